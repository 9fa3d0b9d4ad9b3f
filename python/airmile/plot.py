"""Figures with one call. They need matplotlib: `pip install 'airmile[plot]'`.

Each function draws into `ax`, or into a new figure, and returns the axes, so
that a caller can add to them; `pyplot.savefig("out.png")` saves the last figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from airmile._decoded import Decoded
from airmile._packet_report import PacketReport
from airmile._report import VERDICT_COLOURS, Diagnosis, RadioReport
from airmile.errors import AirmileMissingLibraryError, AirmileNoDataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "demand",
    "flight_rtt",
    "flow_durations",
    "flow_sizes",
    "prb_cdf",
    "promotion_delay",
    "timeline",
    "utilisation",
]

_MS_PER_S = 1_000.0
_DATA_COLOUR = "#333333"
_DIR_COLOURS = {"dl": "#0072b2", "ul": "#d55e00"}
_DIR_NAMES = {"dl": "down", "ul": "up"}
# Values of the paper's own data (LTE, October 2012).
_PAPER_PROMOTION_MS = (319, 435, 558)
_PAPER_UTILISATION = 0.198
# RTT and bytes in flight: bins with fewer samples have no median.
_LEAST_IN_BIN = 10
_BINS = 24


def timeline(report: RadioReport, ax: Axes | None = None) -> Axes:
    """Transfers over the bursts of their direction, in time.

    A transfer is a bar in its verdict's colour; a burst, a time during which
    the queue was not empty, a block under it. Gaps between the blocks are time
    in which the link had nothing to send. Time is in seconds since the first
    thing drawn.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: there is neither a transfer nor a burst.
    """
    if not isinstance(report, RadioReport):
        raise TypeError(f"timeline draws the result of radio(), not {type(report).__name__}")
    transfers, bursts = report.transfers.to_dicts(), report.bursts.to_dicts()
    if not transfers and not bursts:
        raise AirmileNoDataError("timeline: the report has no transfers and no bursts")
    dirs = [d for d in ("dl", "ul") if any(row["dir"] == d for row in [*transfers, *bursts])]
    ax = _axes(ax, height=1.0 + 1.2 * len(dirs))
    start_tti = min(row["start_tti"] for row in [*transfers, *bursts])
    tti_s = report.tti_ms / _MS_PER_S
    ticks: list[tuple[float, str]] = []
    for lane, direction in enumerate(reversed(dirs)):
        for kind, rows, y, height in (
            ("bursts", bursts, lane + 0.1, 0.3),
            ("transfers", transfers, lane + 0.5, 0.3),
        ):
            mine = [row for row in rows if row["dir"] == direction]
            spans = [
                (
                    (row["start_tti"] - start_tti) * tti_s,
                    (row["end_tti"] - row["start_tti"]) * tti_s,
                )
                for row in mine
            ]
            colours = [
                VERDICT_COLOURS[row["verdict"]] if kind == "transfers" else _DATA_COLOUR
                for row in mine
            ]
            ax.broken_barh(spans, (y, height), facecolors=colours)
            ticks.append((y + height / 2, f"{direction} {kind}"))
    ax.set_yticks([y for y, _ in ticks], [label for _, label in ticks])
    ax.set_ylim(0, len(dirs))
    ax.set_xlabel("time in s")
    seen = [v for v in VERDICT_COLOURS if any(t["verdict"] == v for t in transfers)]
    _legend(ax, seen)
    return ax


def demand(report: RadioReport | Diagnosis, ax: Axes | None = None) -> Axes:
    """Link demand of each transfer, a bar in its verdict's colour.

    Link demand is throughput time / duration: the share of the transfer in
    which data waited for the link. 1 means that the link alone set the duration.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: no transfer has a link demand.
    """
    rows = [t for t in report.transfers.to_dicts() if t["link_demand"] is not None]
    if not rows:
        raise AirmileNoDataError("demand: no transfer of the report has a link demand")
    ax = _axes(ax, height=1.0 + 0.35 * len(rows))
    labels = [row["id"] for row in rows]
    places = range(len(rows))
    colours = [VERDICT_COLOURS[r["verdict"]] for r in rows]
    ax.barh(places, [row["link_demand"] for row in rows], color=colours)
    ax.set_yticks(list(places), labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("link demand")
    ax.set_ylabel("transfer")
    _legend(ax, [v for v in VERDICT_COLOURS if any(r["verdict"] == v for r in rows)])
    return ax


def shares(answer: Diagnosis, ax: Axes | None = None) -> Axes:
    """What each transfer waited for: a bar as long as it took, in parts by cause.

    Causes need captures; a modem log alone gives `radio`, `not_radio` and `unknown`.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: there are no transfers.
    """
    rows = answer.per_transfer
    if not rows:
        raise AirmileNoDataError("shares: the diagnosis has no transfers")
    ax = _axes(ax, height=1.0 + 0.35 * len(rows))
    begins = [0.0] * len(rows)
    seen = [v for v in VERDICT_COLOURS if any(row.shares.get(v) for row in rows)]
    for cause in seen:
        parts = [row.shares.get(cause, 0.0) / _MS_PER_S for row in rows]
        ax.barh(range(len(rows)), parts, left=begins, color=VERDICT_COLOURS[cause])
        begins = [begin + part for begin, part in zip(begins, parts, strict=True)]
    ax.set_yticks(range(len(rows)), [row.id for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("time in s")
    ax.set_ylabel("transfer")
    _legend(ax, seen)
    return ax


def prb_cdf(report: RadioReport | Decoded, direction: str = "dl", ax: Axes | None = None) -> Axes:
    """Distribution of the PRBs that each scheduled TTI gave this user.

    A step at the cell's whole bandwidth means that the user often had the cell
    to itself; BurstTracker's `start_threshold` and `end_threshold` are shares
    of it. A report does not hold single grants: its files are read again,
    within the same limits.

    Args:
        report: of :func:`airmile.radio` or :func:`airmile.decode`.
        direction: `dl` or `ul`.
        ax: the axes to draw in; a new figure by default.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: no grant has a number of PRBs.
    """
    n_prb_cell = report.n_prb_cell if isinstance(report, RadioReport) else None
    grant = _grants(report)
    prbs: dict[tuple[int, int, int], int] = {}
    # `n_prb` is that of the whole assignment, repeated in each of its blocks.
    for segment, cell, tti, dir_, n_prb in zip(
        *(grant[name] for name in ("timing_segment", "cell", "tti", "dir", "n_prb")), strict=True
    ):
        if dir_ == direction and n_prb is not None:
            prbs[(segment, cell, tti)] = n_prb
    if not prbs:
        raise AirmileNoDataError(f"prb_cdf: no {direction} grant has a number of PRBs")
    ax = _axes(ax, height=3.5)
    counts = sorted(Counter(prbs.values()).items())
    shares = [n / len(prbs) for n in accumulate(n for _, n in counts)]
    values = [value for value, _ in counts]
    # From nothing to the first value, too.
    ax.step([values[0], *values], [0.0, *shares], where="post", color=_DATA_COLOUR)
    if n_prb_cell is not None:
        ax.axvline(n_prb_cell, color="#999999", linestyle="--", linewidth=1)
        ax.annotate(
            f"cell: {n_prb_cell}",
            (n_prb_cell, 0.5),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            color="#666666",
        )
    ax.set_xlim(left=0)
    ax.set_ylim(0, 1)
    ax.set_xlabel("PRBs in a scheduled TTI")
    ax.set_ylabel("share of scheduled TTIs")
    return ax


def flow_sizes(report: PacketReport, ax: Axes | None = None) -> Axes:
    """Distribution of the payload of TCP flows, down and up (figure 2 of the paper).

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: no TCP flow has payload.
    """
    curves = {"dl": "dl_bytes", "ul": "ul_bytes"}
    return _cdfs("flow_sizes", report, curves, "payload of a flow in bytes", "TCP flows", ax)


def flow_durations(report: PacketReport, ax: Axes | None = None) -> Axes:
    """Distribution of the durations of TCP flows (figure 3 of the paper).

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: there is no TCP flow.
    """
    curves = {"": "duration_s"}
    return _cdfs("flow_durations", report, curves, "duration of a flow in s", "TCP flows", ax)


def flight_rtt(report: PacketReport, direction: str = "dl", ax: Axes | None = None) -> Axes:
    """Bytes in flight against the RTT to the client (figure 10 of the paper).

    Each cell is coloured by its samples, the line is the median RTT. An RTT
    that grows with the bytes in flight is a queue that fills.

    Args:
        report: of :func:`airmile.packets`.
        direction: of the data: `dl` or `ul`.
        ax: the axes to draw in; a new figure by default.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: no RTT has a number of bytes in flight.
    """
    samples = report.rtt_samples
    points = [
        (flight, rtt_ns / 1e6)
        for dir_, flight, rtt_ns in zip(
            *(samples[name] for name in ("dir", "flight_bytes", "rtt_ns")), strict=True
        )
        if dir_ == direction and flight > 0 and rtt_ns > 0
    ]
    if not points:
        raise AirmileNoDataError(f"flight_rtt: no {direction} RTT with bytes in flight")
    ax = _axes(ax, height=4.0)
    flights, rtts = (list(each) for each in zip(*points, strict=True))
    kilobytes = [flight / 1000 for flight in flights]
    cells = ax.hexbin(kilobytes, rtts, gridsize=40, bins="log", mincnt=1, cmap="Blues")
    ax.figure.colorbar(cells, ax=ax, label="samples")
    width = max(kilobytes) / _BINS
    binned: dict[int, list[float]] = {}
    for flight, rtt in zip(kilobytes, rtts, strict=True):
        binned.setdefault(min(int(flight / width), _BINS - 1), []).append(rtt)
    full = sorted(item for item in binned.items() if len(item[1]) >= _LEAST_IN_BIN)
    if full:
        middles = [(place + 0.5) * width for place, _ in full]
        medians = [quantiles(values, n=2)[0] for _, values in full]
        ax.plot(middles, medians, color=_DIR_COLOURS["ul"], marker=".", label="median RTT")
        ax.legend(loc="lower right", frameon=False)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("bytes in flight in kB")
    ax.set_ylabel("RTT to the client in ms")
    return ax


def promotion_delay(report: PacketReport, ax: Axes | None = None) -> Axes:
    """Distribution of the radio's promotion delay (paper 4.2).

    The time that a handset without traffic for `promotion_idle_s` took to get its
    first packet over the air, from the time stamps of its handshakes. Circles are
    the paper's quartiles.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: no handshake follows such a pause.
    """
    curves = {"": "promotion_ms"}
    ax = _cdfs("promotion_delay", report, curves, "promotion delay in ms", "handshakes", ax, False)
    for share, ms in zip((0.25, 0.5, 0.75), _PAPER_PROMOTION_MS, strict=True):
        _paper(ax, ms, share, f"paper: {ms} ms")
    return ax


def utilisation(report: PacketReport, ax: Axes | None = None) -> Axes:
    """Distribution of used / available bandwidth of large flows (figure 21 of the paper).

    Large is more than 1 MB down in more than 5 s, without other flows of the same
    user at the same time. The circle is the paper's median.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: no large flow shows the available bandwidth; a lower
            `send_rate`, or `"auto"`, may.
    """
    curves = {"": "utilisation"}
    axis = "used / available bandwidth"
    ax = _cdfs("utilisation", report, curves, axis, "large flows", ax, False)
    ax.set_xlim(0, max(1.0, ax.get_xlim()[1]))
    _paper(ax, _PAPER_UTILISATION, 0.5, f"paper: {_PAPER_UTILISATION:.1%}")
    return ax


def _cdfs(
    figure: str,
    report: PacketReport,
    names: Mapping[str, str],
    axis: str,
    of: str,
    ax: Axes | None,
    log: bool = True,
) -> Axes:
    """Curves of the report by direction, as steps."""
    curves = report.curves
    drawn = {}
    for direction, name in names.items():
        points = curves.get(name, [])
        # A logarithmic axis starts above 0: smaller values are below the curve's left end.
        points = [point for point in points if point[0] > 0 or not log]
        if points:
            drawn[direction] = points
    if not drawn:
        raise AirmileNoDataError(f"{figure}: the capture has no {axis}")
    ax = _axes(ax, height=3.5)
    for direction, points in drawn.items():
        values, shares = [x for x, _ in points], [share for _, share in points]
        zero = [share for x, share in curves[names[direction]] if x <= 0] if log else []
        ax.step(
            [values[0], *values],
            [zero[-1] if zero else 0.0, *shares],
            where="post",
            color=_DIR_COLOURS.get(direction, _DATA_COLOUR),
            label=_DIR_NAMES.get(direction),
        )
    if log:
        ax.set_xscale("log")
    else:
        ax.set_xlim(left=0)
    ax.set_ylim(0, 1)
    ax.set_xlabel(axis)
    ax.set_ylabel(f"share of {of}")
    if len(drawn) > 1:
        ax.legend(loc="lower right", frameon=False)
    return ax


def _paper(ax: Axes, x: float, share: float, label: str) -> None:
    ax.plot([x], [share], marker="o", linestyle="none", mfc="none", mec="#999999")
    ax.annotate(
        label,
        (x, share),
        xytext=(6, -3),
        textcoords="offset points",
        color="#666666",
        fontsize="small",
    )


def _grants(report: RadioReport | Decoded) -> Any:
    if isinstance(report, Decoded):
        return report.grant
    from airmile._front import decode

    request = report.request
    return decode(
        request.files,
        only="grant",
        from_=request.from_,
        to=request.to,
        sim=report.subscription,
        rnti=request.ask["rnti"],
        experimental=request.ask["experimental"],
    ).grant


def _axes(ax: Axes | None, height: float) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise AirmileMissingLibraryError(
            "figures need matplotlib: pip install 'airmile[plot]'"
        ) from error
    _, made = pyplot.subplots(figsize=(8, height), layout="constrained")
    return made


def _legend(ax: Axes, verdicts: list[str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=VERDICT_COLOURS[verdict], label=verdict) for verdict in verdicts]
    if handles:
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False)

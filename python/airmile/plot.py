"""Figures with one call. They need matplotlib: `pip install 'airmile[plot]'`.

Each function draws into `ax`, or into a new figure, and returns the axes, so
that a caller can add to them; `pyplot.savefig("out.png")` saves the last figure.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from airmile._report import VERDICT_COLOURS, Decoded, Diagnosis, RadioReport
from airmile.errors import AirmileMissingLibraryError, AirmileNoDataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["demand", "prb_cdf", "timeline"]

_MS_PER_S = 1_000.0
_DATA_COLOUR = "#333333"


def timeline(report: RadioReport, ax: Axes | None = None) -> Axes:
    """Transfers over the bursts of their direction, in time.

    A transfer is a bar in its verdict's colour; a burst, a time during which
    the queue was not empty, a block under it. Gaps between the blocks are time
    in which the link had nothing to send. Time is in seconds since the first
    thing drawn, 1 ms a TTI.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: there is neither a transfer nor a burst.
    """
    transfers, bursts = report.transfers.to_dicts(), report.bursts.to_dicts()
    if not transfers and not bursts:
        raise AirmileNoDataError("timeline: the report has no transfers and no bursts")
    dirs = [d for d in ("dl", "ul") if any(row["dir"] == d for row in [*transfers, *bursts])]
    ax = _axes(ax, height=1.0 + 1.2 * len(dirs))
    start_tti = min(row["start_tti"] for row in [*transfers, *bursts])
    ticks: list[tuple[float, str]] = []
    for lane, direction in enumerate(reversed(dirs)):
        for kind, rows, y, height in (
            ("bursts", bursts, lane + 0.1, 0.3),
            ("transfers", transfers, lane + 0.5, 0.3),
        ):
            mine = [row for row in rows if row["dir"] == direction]
            spans = [
                (
                    (row["start_tti"] - start_tti) / _MS_PER_S,
                    (row["end_tti"] - row["start_tti"]) / _MS_PER_S,
                )
                for row in mine
            ]
            colours = [
                VERDICT_COLOURS.get(row["verdict"], VERDICT_COLOURS["unknown"])
                if kind == "transfers"
                else _DATA_COLOUR
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
    which data waited for the link. 1 means that the link was all of it.

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
    colours = [VERDICT_COLOURS.get(r["verdict"], VERDICT_COLOURS["unknown"]) for r in rows]
    ax.barh(places, [row["link_demand"] for row in rows], color=colours)
    ax.set_yticks(list(places), labels)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("link demand")
    ax.set_ylabel("transfer")
    _legend(ax, [v for v in VERDICT_COLOURS if any(r["verdict"] == v for r in rows)])
    return ax


def prb_cdf(report: RadioReport | Decoded, direction: str = "dl", ax: Axes | None = None) -> Axes:
    """Distribution of the PRBs that each scheduled TTI gave this user.

    A step at the cell's whole bandwidth means that the user often had the cell
    to itself; BurstTracker's `start_threshold` and `end_threshold` are shares
    of it. A report does not hold the single grants: its files are read again,
    within the same limits.

    Args:
        report: of :func:`airmile.radio`, or what :func:`airmile.decode` gives.
        direction: `dl` or `ul`.
        ax: where to draw; a new figure without it.

    Raises:
        AirmileMissingLibraryError: matplotlib is not installed.
        AirmileNoDataError: no grant tells its PRBs.
    """
    n_prb_cell = report.n_prb_cell if isinstance(report, RadioReport) else None
    grant = _grants(report)
    prbs: dict[tuple[int, int, int], int] = {}
    # `n_prb` is the whole assignment's, repeated on each of its blocks.
    for segment, cell, tti, dir_, n_prb in zip(
        *(grant[name] for name in ("timing_segment", "cell", "tti", "dir", "n_prb")), strict=True
    ):
        if dir_ == direction and n_prb is not None:
            prbs[(segment, cell, tti)] = n_prb
    if not prbs:
        raise AirmileNoDataError(f"prb_cdf: no {direction} grant tells its PRBs")
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

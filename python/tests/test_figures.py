"""Figures with one call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import airmile as am

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def save(ax: Any, path: Path) -> None:
    ax.figure.savefig(path)
    assert path.stat().st_size > 5000


def test_timeline(run: am.LabRun, tmp_path: Path) -> None:
    report = am.radio(run.log, transfers=run.transfers_csv)
    ax = am.plot.timeline(report)
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert {"dl bursts", "dl transfers"} <= set(labels)
    save(ax, tmp_path / "timeline.png")


def test_timeline_counts_slots_by_their_length(tmp_path: Path) -> None:
    run = am.lab_run("nr-two-carriers", tmp_path / "run")
    report = am.radio(run.dir / "nr_modem.mi2log", transfers=run.transfers_csv)
    assert report.tti_ms == 0.5
    ax: Any = am.plot.timeline(report)
    widths = [box.x1 - box.x0 for bars in ax.collections for box in extents(bars)]
    for transfer in report.transfers.to_dicts():
        assert any(abs(width - transfer["duration_ms"] / 1e3) < 1e-9 for width in widths)


def extents(bars: Any) -> Any:
    return [path.get_extents() for path in bars.get_paths()]


def test_demand_of_both_reports(download: am.LabRun, tmp_path: Path) -> None:
    for function in (am.radio, am.diagnose):
        report = function(download.log, transfers=download.transfers_csv)
        ax: Any = am.plot.demand(report)
        widths = [bar.get_width() for bar in ax.patches]
        assert widths == report.transfers["link_demand"]
    save(ax, tmp_path / "demand.png")


def test_shares_of_causes(capture: Path, run: am.LabRun, tmp_path: Path) -> None:
    """Bars in the colours of their causes, each named once, as long as the transfers."""
    for answer in (am.diagnose([capture.parent / "modem.mi2log", capture]), am.diagnose(run.log)):
        ax: Any = am.plot.shares(answer)
        named = [text.get_text() for text in ax.get_legend().get_texts()]
        (transfer,) = answer.per_transfer
        assert set(named) == {cause for cause, ms in transfer.shares.items() if ms}
        assert [bar.get_width() * 1e3 for bar in ax.patches] == pytest.approx(
            [transfer.shares[cause] for cause in named]
        )
        # A verdict that is a cause is named in this figure, too.
        demand: Any = am.plot.demand(answer)
        assert transfer.verdict in [text.get_text() for text in demand.get_legend().get_texts()]
        assert answer._repr_html_()
    save(ax, tmp_path / "shares.png")


def test_every_verdict_has_a_colour() -> None:
    from airmile._report import VERDICT_COLOURS

    assert set(get_args(am.documents.Verdict)) == set(VERDICT_COLOURS)


def test_prb_cdf_counts_assignments_once(run: am.LabRun, tmp_path: Path) -> None:
    report = am.radio(run.log)
    ax: Any = am.plot.prb_cdf(report)
    prbs, shares = ax.lines[0].get_data()
    grant = am.decode(run.log, only="grant").grant
    columns = ("timing_segment", "cell", "tti", "dir", "n_prb")
    rows = zip(*(grant[name] for name in columns), strict=True)
    assigned = {
        (segment, cell, tti): n for segment, cell, tti, d, n in rows if d == "dl" and n is not None
    }
    for n_prb, share in zip(prbs[1:], shares[1:], strict=True):
        assert share == sum(n <= n_prb for n in assigned.values()) / len(assigned)
    assert (shares[0], shares[-1], prbs[-1]) == (0, 1, max(assigned.values()))
    save(ax, tmp_path / "cdf.png")
    from_records: Any = am.plot.prb_cdf(am.decode(run.log))
    assert list(from_records.lines[0].get_ydata()) == list(shares)


def test_into_axes_of_the_callers_own(run: am.LabRun) -> None:
    from matplotlib import pyplot

    _, mine = pyplot.subplots()
    assert am.plot.demand(am.diagnose(run.log), ax=mine) is mine


def test_nothing_to_draw_is_told(run: am.LabRun) -> None:
    with pytest.raises(am.AirmileNoDataError, match="no transfer"):
        am.plot.shares(am.diagnose(run.log, min_bytes=10**12))
    with pytest.raises(am.AirmileNoDataError, match="no transfer"):
        am.plot.demand(am.radio(run.log, min_bytes=10**12))
    with pytest.raises(am.AirmileNoDataError, match="sl grant"):
        am.plot.prb_cdf(am.radio(run.log), direction="sl")

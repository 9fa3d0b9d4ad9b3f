"""Tables are exported as Arrow, without a copy."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

import airmile as am


@pytest.fixture(scope="module")
def report(run: am.LabRun) -> am.RadioReport:
    return am.radio(run.log)


@pytest.fixture(scope="module")
def grant(run: am.LabRun) -> am.Table:
    return am.decode(run.log, only="grant").grant


def test_polars(report: am.RadioReport, grant: am.Table) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(report.bursts)
    assert frame.to_dicts() == report.bursts.to_dicts()
    assert grant.to_polars()["n_prb"].to_list() == grant["n_prb"]
    assert frame.schema["start_tti"] == polars.Int64
    assert frame.schema["dir"] == polars.String


def test_pyarrow(report: am.RadioReport, grant: am.Table) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(grant)
    assert table.column("tti").to_pylist() == grant["tti"]
    assert table.schema.field("n_prb").metadata[b"doc"].decode() == grant.docs["n_prb"]
    assert report.usage.to_arrow().to_pylist() == report.usage.to_dicts()
    assert pyarrow.schema(grant) == table.schema
    # The same memory on each access.
    first, second = (pyarrow.table(grant).column("tti").chunk(0).buffers()[1] for _ in range(2))
    assert first.address == second.address


def test_pandas(report: am.RadioReport, grant: am.Table) -> None:
    pandas = pytest.importorskip("pandas")
    frame = report.bursts.to_pandas()
    assert frame["start_tti"].tolist() == report.bursts["start_tti"]
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(grant)["tti"].tolist() == grant["tti"]


def test_times_are_timestamps_in_utc(run: am.LabRun, report: am.RadioReport, capture: Path) -> None:
    """Every column that is a time, at its resolution; as plain values, the document's integers."""
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    decoded = am.decode(run.log).tables.values()
    packets = am.packets(capture).tables.values()
    tables = [report.transfers, report.cell_load, report.files, *decoded, *packets]
    for table in tables:
        arrow = pyarrow.table(table)
        for name, doc in table.docs.items():
            kind = arrow.schema.field(name).type
            unit = name.rsplit("_", 1)[-1]
            is_time = unit in ("us", "ns") and "nanoseconds in which" not in doc.lower()
            if pyarrow.types.is_timestamp(kind):
                assert (kind.unit, kind.tz) == (unit, "UTC"), name
                assert arrow[name].cast(pyarrow.int64()).to_pylist() == table[name]
            else:
                assert not (is_time and "Unix epoch" in doc), f"{table.name}.{name}"
    assert tables[0].columns
    start = report.transfers.to_pandas()["start_us"]
    assert str(start.dtype) == "datetime64[us, UTC]"
    assert start[0] == pandas.Timestamp(report.transfers["start_us"][0], unit="us", tz="UTC")
    polars = pytest.importorskip("polars")
    spans = polars.DataFrame(report.transfers).select(polars.col("end_us") - polars.col("start_us"))
    duration_ms = report.transfers["duration_ms"][0]
    assert spans["end_us"][0].total_seconds() * 1e3 == pytest.approx(duration_ms, abs=1)


def test_shares_are_a_struct(run: am.LabRun, capture: Path) -> None:
    """In the order of the causes; without captures in that of a modem log's parts."""
    pytest.importorskip("pyarrow")
    causes = list(get_args(am.documents.Cause))
    with_capture = am.diagnose([capture.parent / "modem.mi2log", capture]).transfers
    for transfers in (with_capture, am.diagnose(run.log).transfers):
        frame = transfers.to_pandas().filter(like="shares.")
        assert list(frame.columns) == [f"shares.{part}" for part in ["radio", "not_radio", *causes]]
        assert frame.sum(axis=1).tolist() == pytest.approx(transfers["duration_ms"], abs=1)
        assert {f"shares.{name}" for name in transfers["shares"][0]} <= set(
            frame.columns[frame.notna().all()]
        )
    # A cause that took no time is 0; what only the other kind of diagnosis has is null.
    polars = pytest.importorskip("polars")
    shares = polars.DataFrame(with_capture)["shares"].struct
    assert shares.field("wireline").to_list() == [0.0]
    assert shares.field("not_radio").to_list() == [None]


def test_tables_outlive_what_they_came_from(run: am.LabRun) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(am.radio(run.log).bursts)
    assert table.num_rows > 0
    assert table.column("end_tti").null_count == 0


def test_a_stream_nobody_reads_is_released(grant: am.Table) -> None:
    for _ in range(1000):
        grant.__arrow_c_stream__()
        grant.__arrow_c_schema__()


def test_tables_without_rows(run: am.LabRun) -> None:
    table = am.radio(run.log, min_bytes=10**12).transfers
    assert (len(table), list(table), table["duration_ms"]) == (0, [], [])
    assert table.types["duration_ms"] == "Float64"
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(table).column_names == table.columns


def test_rows_by_number(grant: am.Table) -> None:
    """As of a list, also past the first batch."""
    rows = grant.to_dicts()
    for at in (0, 1, -1, len(rows) - 1):
        assert grant[at] == rows[at]
    for part in (slice(3, 7), slice(-2, None), slice(8, 2, -2), slice(5, 5), slice(None, 9, 4)):
        assert grant[part] == rows[part]
    with pytest.raises(IndexError, match=f"grant has {len(rows)} rows"):
        _ = grant[len(rows)]


def test_a_slip_in_a_column_is_told(report: am.RadioReport) -> None:
    with pytest.raises(KeyError, match="bursts has dir"):
        _ = report.bursts["nope"]

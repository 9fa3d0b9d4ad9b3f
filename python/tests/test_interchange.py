"""Tables are exported as Arrow, without a copy."""

from __future__ import annotations

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
    assert polars.DataFrame(report.transfers).to_dicts() == report.transfers.to_dicts()
    assert grant.to_polars()["n_prb"].to_list() == grant["n_prb"]
    assert frame.schema["start_tti"] == polars.Int64
    assert frame.schema["dir"] == polars.String


def test_pyarrow(report: am.RadioReport, grant: am.Table) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(grant)
    assert table.column("tti").to_pylist() == grant["tti"]
    assert table.schema.field("n_prb").metadata[b"doc"].decode() == grant.docs["n_prb"]
    assert report.transfers.to_arrow().to_pylist() == report.transfers.to_dicts()
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


def test_a_slip_in_a_column_is_told(report: am.RadioReport) -> None:
    with pytest.raises(KeyError, match="bursts has dir"):
        _ = report.bursts["nope"]

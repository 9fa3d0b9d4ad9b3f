"""The queries of docs/recipes.md run, and give the study's own results."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import airmile as am

duckdb = pytest.importorskip("duckdb")

TEXT = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text()
BLOCKS = re.findall(r"^```(sql|python)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
RECIPES = {
    match[1]: block
    for _, block in BLOCKS
    if (match := re.match(r"(?:--|#) recipe: (\w+)\n", block))
}
Query = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[am.PacketReport, Path]:
    """A busy capture of the lab, studied by the command: in one process, and on an engine."""
    work = tmp_path_factory.mktemp("recipes")
    capture = am.lab_run("busy-video", work / "run").dir / "server.pcapng"
    command(capture, "--send-rate", "auto", "--out", work / "study")
    return am.packets(capture, send_rate="auto"), work


def command(*args: object) -> None:
    airmile = Path(sys.executable).parent / "airmile"
    words = [str(airmile), "packets", *map(str, args), "-q"]
    subprocess.run(words, check=True, capture_output=True)


def one_process(block: str, work: Path) -> str:
    return block.replace("'study/", f"'{work}/study/")


def an_engine(block: str, work: Path) -> str:
    """The views that the page describes for an engine: an empty table has no files."""
    assert "'study/flows/*/*/*.parquet', hive_partitioning = true" in TEXT

    def files(match: re.Match[str]) -> str:
        there = any(work.glob(f"parts/{match[1]}/*/*/*.parquet"))
        many = f"'{work}/parts/{match[1]}/*/*/*.parquet', hive_partitioning = true"
        return many if there else f"'{work}/study/{match[1]}.parquet'"

    return re.sub(r"'study/(\w+)\.parquet'", files, block)


def asks(views: Callable[[str, Path], str], work: Path) -> Query:
    connection = duckdb.connect()
    single = [block for _, block in BLOCKS if block.startswith("-- of one process")]
    tcp = [block for _, block in BLOCKS if block.startswith("create view tcp")]
    for block in single + tcp:
        connection.execute(views(block, work))

    def run(name: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = connection.execute(RECIPES[name]).fetchall()
        return rows

    return run


@pytest.fixture(scope="module")
def query(study: tuple[am.PacketReport, Path]) -> Query:
    return asks(one_process, study[1])


def figure(report: am.PacketReport, what: str) -> float | None:
    (row,) = [row for row in report.summary if row["what"] == what]
    value: float | None = row["here"]
    return value


def near(value: float | None, expected: float | None) -> bool:
    """Within the tolerance of a distribution's buckets and of interpolation between few values."""
    if value is None or expected is None:
        return value is expected
    return value == pytest.approx(expected, rel=0.03, abs=1e-9)


def test_every_recipe_runs(query: Query) -> None:
    names = [name for name in RECIPES if not name.startswith("polars")]
    assert len(names) >= 13
    for name in names:
        assert query(name), name


def test_an_engine_has_the_same_answers(tmp_path: Path) -> None:
    """From hundreds of flows in three captures."""
    pytest.importorskip("numpy")
    day = tmp_path / "day"
    day.mkdir()
    generate = Path(__file__).parents[2] / "tests/scale/generate.py"
    subprocess.run([sys.executable, generate, "100000", "3", day], check=True)
    command(*sorted(day.iterdir()), "--send-rate", "auto", "--out", tmp_path / "study")
    engine = ["--engine", "processes", "--workers", "1", "--buckets", "3"]
    command(day, "--send-rate", "auto", "--out", tmp_path / "parts", *engine)
    one_has, engine_has = asks(one_process, tmp_path), asks(an_engine, tmp_path)
    ((flows, *_),) = one_has("sizes")
    assert flows > 100
    for name in [name for name in RECIPES if not name.startswith("polars")]:
        for one, other in zip(one_has(name), engine_has(name), strict=True):
            for a, b in zip(flat(one), flat(other), strict=True):
                assert a == b or a == pytest.approx(b, rel=1e-9, nan_ok=True), name


def flat(row: tuple[Any, ...]) -> list[Any]:
    """Values, those of lists one by one."""
    return [value for cell in row for value in (cell if isinstance(cell, list) else [cell])]


def test_table_1(study: tuple[am.PacketReport, Path], query: Query) -> None:
    reported = {(row["measure"], row["percentile"]): row["value"] for row in study[0].table1}
    assert any(reported.values())
    for percentile, *values in query("table1"):
        for measure, value in zip(("dl_kbps", "ul_kbps", "handshake_rtt_ms"), values, strict=True):
            n = len(study[0].flows)
            # With few flows the quantile is between two of them.
            expected = reported[measure, int(percentile)]
            assert (value is None) == (expected is None), (measure, percentile)
            if percentile == 50 and n % 2 == 1 and expected is not None:
                assert near(value, expected), (measure, value, expected)


def test_shares_and_counts(study: tuple[am.PacketReport, Path], query: Query) -> None:
    report = study[0]
    document = report.to_dict()
    assert dict(query("terminations")) == document["terminations"]
    ((large, *_),) = query("large")
    assert large == document["large_flows"]
    flows = report.flows.to_dicts()
    ((n, under_5_s, *_),) = query("sizes")
    tcp = [row for row in flows if row["protocol"] == "tcp" and row["leg"] != "server"]
    assert n == len(tcp) == document["tcp_flows"]
    assert near(under_5_s, sum(row["duration_ns"] < 5e9 for row in tcp) / len(tcp))
    ((one_flow,),) = query("concurrency")
    users = report.users.to_dicts()
    alone, more = (sum(u[f"seconds_{n}"] for u in users) for n in ("one_flow", "more_flows"))
    assert near(one_flow, alone / (alone + more))
    ((without, _),) = query("retransmissions")
    down = [row for row in tcp if row["dl_segments"] > 0]
    assert near(without, sum(row["dl_retx"] == 0 for row in down) / len(down))
    ((with_full, _),) = query("windows")
    assert near(with_full, figure(report, "downlink flows with a full receive window"))
    ((mean, _),) = query("utilisation")
    assert near(mean, figure(report, "bandwidth used by large flows, mean"))
    samples = sum(row[1] for row in query("flight_and_rtt"))
    assert samples == sum(row["dir"] == "dl" for row in report.rtt_samples)


def test_polars(study: tuple[am.PacketReport, Path], query: Query) -> None:
    pytest.importorskip("polars")
    results = {}
    for name in ("polars_table1", "polars_curve", "polars_days"):
        space: dict[str, Any] = {}
        exec(RECIPES[name].replace('"study/', f'"{study[1]}/study/'), space)
        results[name] = space["result"]
    of_duckdb = [row[1] for row in query("table1")]
    assert all(near(a, b) for a, b in zip(results["polars_table1"].row(0), of_duckdb, strict=True))
    curve = results["polars_curve"]
    assert curve["share"][-1] == 1.0
    assert curve["dl_bytes"].is_sorted()
    assert results["polars_days"]["len"].sum() == len(study[0].flows)

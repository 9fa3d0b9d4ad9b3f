"""Python and the command give the same documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import airmile as am

Document = Callable[..., dict[str, Any]]


def test_inspect(run: am.LabRun, document: Document) -> None:
    report = am.inspect(run.log)
    assert report.to_dict() == document("inspect", run.log)
    assert not report.damaged
    codes = [row["code"] for row in report.to_dict()["files"][0]["messages"]]
    assert report.messages["code"] == codes
    assert report.files["path"] == [str(run.log)]


@pytest.mark.parametrize(
    ("options", "args"),
    [
        ({}, []),
        ({"evidence": "paper", "start_threshold": 0.8, "end_threshold": 0.3},
         ["--evidence", "paper", "--start-threshold", 0.8, "--end-threshold", 0.3]),
        ({"from_": 1.5, "to": "4"}, ["--from", "1.5", "--to", "4"]),
        ({"pause_ms": 50, "min_bytes": 1000}, ["--pause-ms", 50, "--min-bytes", 1000]),
        ({"radio_at_least": 0.5, "not_radio_below": 0.01},
         ["--radio-at-least", 0.5, "--not-radio-below", 0.01]),
    ],
)  # fmt: skip
def test_analyses(
    run: am.LabRun, document: Document, options: dict[str, Any], args: list[object]
) -> None:
    radio = am.radio(run.log, **options)
    assert radio.to_dict() == document("radio", run.log, *args)
    assert am.diagnose(run.log, **options).to_dict() == document("diagnose", run.log, *args)
    found = radio.to_dict()
    for name in ("transfers", "bursts", "usage", "cell_load", "cells", "missing"):
        assert getattr(radio, name).to_dicts() == found[name], name


def test_an_applications_log(run: am.LabRun, document: Document) -> None:
    log = run.dir / "app.jsonl"
    with_log = am.diagnose([run.log, log])
    assert with_log.to_dict() == document("diagnose", run.log, log)
    assert with_log.to_dict()["transfers_from"] == "given"
    alone = am.diagnose(log)
    assert alone.to_dict() == document("diagnose", log)
    assert alone.verdict == "unknown"
    assert [t["application"]["kind"] for t in alone.transfers]
    assert am.inspect(log).files["kind"] == ["player_log"]


def test_given_transfers(download: am.LabRun, document: Document) -> None:
    given = ["--transfers", download.transfers_csv]
    answer = am.diagnose(download.log, transfers=download.transfers_csv)
    assert answer.to_dict() == document("diagnose", download.log, *given)
    session = answer.to_dict()["session"]
    assert (answer.verdict, answer.confidence) == ("radio", session["confidence"])
    assert (answer.says, answer.link_demand) == (session["says"], session["link_demand"])
    truth = {t["id"]: t["link_demand"] for t in download.transfers}
    for transfer in answer.transfers:
        assert transfer["link_demand"] == pytest.approx(truth[transfer["id"]], abs=0.05)
        shares = {share["key"]: share["value"] for share in transfer["shares"]}
        assert sum(shares.values()) == pytest.approx(transfer["duration_ms"])


def test_tables_of_several_kinds_go_together(run: am.LabRun, document: Document) -> None:
    files = [run.dir / "grants.csv", run.dir / "rlc.csv"]
    assert am.radio(files).to_dict() == document("radio", *files)


def test_printed_as_the_command_prints(run: am.LabRun, command: Callable[..., Any]) -> None:
    for function, name in ((am.inspect, "inspect"), (am.radio, "radio"), (am.diagnose, "diagnose")):
        assert str(function(run.log)) == command(name, run.log).stdout.decode()
    verbose = command("radio", run.log, "-v").stdout.decode()
    assert am.radio(run.log).text(all=True) == verbose


def test_decode(run: am.LabRun, command: Callable[..., Any]) -> None:
    decoded = am.decode(run.log)
    lines = [json.loads(line) for line in command("decode", run.log).stdout.splitlines()]
    counts = {name: len(table) for name, table in decoded.tables.items()}
    for name, count in counts.items():
        assert count == sum(line["type"] == name for line in lines), name
    assert counts["grant"] > 1000
    # JSON has bytes in hexadecimal, grants' sources as a list.
    for name in ("rlc", "mac_block", "measurement"):
        for row, line in zip(decoded[name], (x for x in lines if x["type"] == name), strict=True):
            assert row == {k: v for k, v in line.items() if k not in ("type", "subscription")}
    assert decoded.grant is decoded["grant"]
    assert "grant" in dir(decoded)
    assert not decoded.damaged
    only = am.decode(run.log, only=["grant", "rlc"])
    assert sorted(only.tables) == ["grant", "rlc"]
    with pytest.raises(AttributeError, match="there are grant, rlc"):
        _ = only.measurement


def test_decode_of_a_long_log_comes_in_batches(download: am.LabRun) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = am.decode(download.log, only="rlc").rlc
    read = pyarrow.table(table)
    assert read.num_rows == len(table)


def test_lab(run: am.LabRun, document: Document, tmp_path: Any) -> None:
    listed = document("lab", "list")["scenarios"]
    assert [scenario._asdict() for scenario in am.lab_list()] == listed
    again = am.lab_run("sample-rate-limited", tmp_path / "again")
    assert again.log.read_bytes() == run.log.read_bytes()
    assert all(path.is_file() for path in run.files)
    other = am.lab_run("sample-rate-limited", tmp_path / "other", seed=7)
    assert other.to_dict()["seed"] == 7
    assert other.log.read_bytes() != run.log.read_bytes()


def test_what_jupyter_shows(run: am.LabRun) -> None:
    answer = am.diagnose(run.log, transfers=run.transfers_csv)
    assert repr(answer).startswith("<airmile.Diagnosis: not_radio, confidence ")
    html = answer._repr_html_()
    assert html.index(answer.says) < html.index("<table>")
    radio = am.radio(run.log, transfers=run.transfers_csv)
    assert "paced: not_radio" in repr(radio)
    assert "not_radio" in radio._repr_html_()
    assert "<pre>" in am.inspect(run.log)._repr_html_()
    assert radio.bursts._repr_html_().count("<tr>") <= 11
    assert repr(radio.bursts).startswith("<airmile.Table bursts: ")
    assert repr(am.decode(run.log, only="grant")).startswith("<airmile.Decoded: grant: ")
    assert "sample-rate-limited" in repr(run)

"""Python and the command give the same documents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
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
    for name in ("transfers", "bursts", "usage", "cell_load", "cells", "missing", "files"):
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


def test_whole_urls(tmp_path: Path) -> None:
    """Queries of URLs are shown only if asked for, as with the command's `-v`."""
    path = tmp_path / "page.har"
    entry = {
        "startedDateTime": "2026-01-05T09:00:00Z",
        "time": 100,
        "request": {"method": "GET", "url": "https://a.test/x?token=secret", "headers": []},
        "response": {"status": 200, "content": {"size": 5000}, "bodySize": 5000, "headers": []},
        "timings": {"send": 1, "wait": 50, "receive": 49},
    }
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}))
    assert "secret" not in am.diagnose(path).json()
    assert "secret" in am.diagnose(path, whole_urls=True).json()


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
        assert sum(transfer["shares"].values()) == pytest.approx(transfer["duration_ms"])


def plain(part: object) -> object:
    """A typed part as the document has it."""
    if isinstance(part, am.documents.Part):
        return {name: plain(value) for name, value in vars(part).items()}
    return [plain(each) for each in part] if isinstance(part, list) else part


def test_typed_parts_are_the_documents(tmp_path: Path, download: am.LabRun) -> None:
    video = am.lab_run("busy-video", tmp_path / "video")
    page = am.lab_run("page", tmp_path / "page")
    for answer in (am.diagnose(download.log), am.diagnose(video.dir), am.diagnose(page.dir)):
        found = answer.to_dict()
        for name in ("session", "evidence_counts"):
            assert plain(getattr(answer, name)) == found[name], name
        for name in ("pages", "players", "applications", "clocks", "ecn"):
            assert plain(getattr(answer, name)) == found[name], name
            for part in getattr(answer, name):
                assert part.says in repr(part)
        assert plain(answer.per_transfer) == found["transfers"]
        problems = [(f["path"], p) for f in found["files"] for p in f["problems"]]
        assert [(path, plain(problem)) for path, problem in answer.problems] == problems
    assert answer.pages[0].requests
    assert "<table>" in answer.pages[0]._repr_html_()


def test_compare(document: Document, command: Callable[..., Any], tmp_path: Path) -> None:
    run = am.lab_run("middlebox-ports", tmp_path / "run")
    answer = am.compare(run.dir)
    assert answer.to_dict() == document("compare", run.dir)
    assert str(answer) == command("compare", run.dir).stdout.decode()
    assert answer.verdict in repr(answer)
    two = am.compare([run.dir], by="port", ports=[443, 7777], seed=3)
    args = ["--by", "port", "--ports", "443,7777", "--seed", 3]
    assert two.to_dict() == document("compare", run.dir, *args)
    assert two.pairs["first"] == ["port 443"]
    for name in ("groups", "pairs", "runs", "missing", "files"):
        assert getattr(two, name).to_dicts() == two.to_dict()[name], name


def test_compared_pages(tmp_path: Path) -> None:
    runs = [am.lab_run(name, tmp_path / name).dir for name in ("page", "page-slow-server")]
    answer = am.compare(runs, by="run")
    assert plain(answer.pages) == answer.to_dict()["pages"]
    (page,) = answer.pages
    assert [loads.run for loads in page.loads] == [str(run) for run in runs]
    assert (page.loads[1].difference_ms or 0) > 300
    assert page.url in repr(page)


def test_scrub(capture: Path, command: Callable[..., Any], tmp_path: Path) -> None:
    report = am.scrub(capture, tmp_path / "copy.pcapng", key=tmp_path / "my.key")
    assert (report.copies, report.key_made) == ([tmp_path / "copy.pcapng"], True)
    again = [capture, "-o", tmp_path / "again.pcapng", "--key", report.key]
    assert command("scrub", *again).returncode == 0
    assert report.copies[0].read_bytes() == (tmp_path / "again.pcapng").read_bytes()
    assert json.loads(report.manifest.read_text()) == report.to_dict()
    assert report.inputs == [capture]
    assert am.packets(report.copies[0]).flows["dl_bytes"] == am.packets(capture).flows["dl_bytes"]
    second = am.scrub([capture], tmp_path / "copies", key=report.key)
    assert (second.key_made, second.to_dict()["key_fingerprint"]) == (
        False,
        report.to_dict()["key_fingerprint"],
    )


def test_reproduce(document: Document, tmp_path: Path) -> None:
    listed = document("lab", "reproduce", "--list")["experiments"]
    assert [(e["name"], e["source"], e["what"]) for e in listed] == am.lab_experiments()
    name = "bursttracker-thresholds"
    done = am.lab_reproduce(name, size="quick", output=tmp_path)
    assert done.to_dict() == document("lab", "reproduce", name, "--quick")
    assert set(done.rows["experiment"]) == {name}
    assert json.loads((tmp_path / "reproduce.json").read_text()) == done.to_dict()
    with pytest.raises(am.AirmileFormatError, match="earlier reproduction"):
        am.lab_reproduce(name, size="quick", output=tmp_path)
    with pytest.raises(am.AirmileOptionError, match="did you mean `bursttracker-thresholds`"):
        am.lab_reproduce("bursttracker-treshold")
    # A process of Python is no host.
    assert am.lab_reproduce("bursttracker-fig1", size="quick").problems[0][0] == "bursttracker-fig1"


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
    # Times are shown in UTC.
    assert re.search(r"<td>2026-01-05 09:00:07\.\d{6}</td>", radio.transfers._repr_html_())
    assert "start_us=2026-01-05 09:00:07." in repr(answer.per_transfer[0])
    grant = am.decode(run.log, only="grant", to=1.0).grant
    assert re.search(r"<td>2026-01-05 09:00:\d\d\.\d{9}</td>", grant._repr_html_())
    assert repr(radio.bursts).startswith("<airmile.Table bursts: ")
    assert repr(am.decode(run.log, only="grant")).startswith("<airmile.Decoded: grant: ")
    assert "sample-rate-limited" in repr(run)

"""Each error of the core is one exception, with advice."""

from __future__ import annotations

import datetime
import errno
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import airmile as am


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(am.AirmileInputError) as raised:
        am.radio(tmp_path / "none.mi2log")
    error = raised.value
    assert isinstance(error, OSError)
    assert isinstance(error, am.AirmileError)
    assert error.errno == errno.ENOENT
    assert error.filename == error.file == str(tmp_path / "none.mi2log")
    assert (error.offset, error.line, error.field) == (None, None, None)


def test_a_file_of_no_use(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    path.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    # A capture is usable, but this one is empty.
    with pytest.raises(am.AirmileNoDataError, match=r"trace\.pcap: no IP packets"):
        am.diagnose(path)
    with pytest.raises(am.AirmileFormatError, match="directory"):
        am.decode(tmp_path)
    # For `inspect`, an unusable file is a valid result.
    assert am.inspect(path).can_answer == []


def test_a_table_that_lacks_a_column(tmp_path: Path, run: am.LabRun) -> None:
    path = tmp_path / "transfers.csv"
    path.write_text("id,start_us,bytes\na,1,2\n")
    with pytest.raises(am.AirmileFormatError) as raised:
        am.radio(run.log, transfers=path)
    error = raised.value
    assert (error.file, error.offset, error.line, error.field) == (str(path), 0, 1, "end_us")


def test_nothing_to_analyse(tmp_path: Path, run: am.LabRun) -> None:
    with pytest.raises(am.AirmileNoDataError, match="no radio records") as raised:
        am.radio(run.transfers_csv)
    assert isinstance(raised.value, LookupError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"evidence": "guess"}, "no `guess`"),
        ({"start_threshold": 1.5}, "start_threshold=1.5"),
        ({"end_threshold": -0.1}, "end_threshold=-0.1: give a share between 0 and 1"),
        ({"end_threshold": float("nan")}, "end_threshold=NaN: give a share"),
        ({"radio_at_least": 0.5, "not_radio_below": 0.6}, r"not_radio_below \(0.6\) is above"),
        ({"from_": "soon"}, "is no time"),
        ({"from_": -1.0}, "is before the start"),
        ({"from_": 1_767_603_607_503_000}, "1767603607503000: a number is in seconds since"),
        ({"pause_ms": -1}, "pause_ms: -1 is out of range"),
        ({"min_bytes": -1}, "min_bytes"),
        ({"sim": 300}, "sim"),
        ({"sim": 9}, "sim=9: the log has no such subscription"),
        ({"from_": 5, "to": 3}, "from_ is not before to"),
        ({"pause_ms": 2**70}, "pause_ms: a number is out of range"),
        ({"rnti": 70_000}, "rnti: 70000 is out of range"),
    ],
)
def test_options(run: am.LabRun, options: dict[str, Any], words: str) -> None:
    with pytest.raises(am.AirmileOptionError, match=words) as raised:
        am.radio(run.log, **options)
    assert isinstance(raised.value, ValueError)


def test_names(run: am.LabRun, tmp_path: Path) -> None:
    with pytest.raises(am.AirmileOptionError, match=r"^only: unknown record type `grants`"):
        am.decode(run.log, only="grants")
    with pytest.raises(am.AirmileOptionError, match="nope: no scenario has this name"):
        am.lab_run("nope", tmp_path)


def test_an_output_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(am.AirmileOutputError) as raised:
        am.lab_run("sample-rate-limited", tmp_path / "file")
    assert raised.value.filename == str(tmp_path / "file")


def test_a_former_run_is_replaced_only_when_told(tmp_path: Path) -> None:
    am.lab_run("sample-rate-limited", tmp_path)
    with pytest.raises(am.AirmileError, match=r"contains an earlier run: .* or force=True to "):
        am.lab_run("sample-rate-limited", tmp_path, seed=7)
    again = am.lab_run("sample-rate-limited", tmp_path, seed=7, force=True)
    assert "seed = 7" in (again.log.parent / "scenario.toml").read_text()


@pytest.mark.parametrize(
    ("name", "contents", "offset", "line", "field"),
    [
        ("run.tar", "archive", 700, None, None),
        ("page.har", b'{"log":{"version":"1.2","entries":[{]}}', 36, None, "log.entries[]"),
        ("transfers.csv", b"id,start_us,end_us,bytes\na,x,2,3\n", None, 2, "start_us"),
        ("log.mi2log", b"", None, None, None),
    ],
)
def test_the_place_of_an_error(
    run: am.LabRun,
    tmp_path: Path,
    name: str,
    contents: bytes | str,
    offset: int | None,
    line: int | None,
    field: str | None,
) -> None:
    path = tmp_path / name
    if contents == "archive":
        with tarfile.open(path, "w") as archive:
            archive.add(run.log, "modem.mi2log")
        contents = path.read_bytes()[:700]
    assert isinstance(contents, bytes)
    path.write_bytes(contents)
    with pytest.raises(am.AirmileError) as raised:
        am.diagnose(path)
    error = raised.value
    assert (error.file, error.offset, error.line) == (str(path), offset, line)
    assert error.field == field


@pytest.mark.parametrize(
    ("function", "name", "meant"),
    [
        ("radio", "pause", "pause_ms"),
        ("diagnose", "transfer", "transfers"),
        ("diagnose", "since", "from_"),
        ("packets", "clients", "client"),
        ("packets", "rto_ms", "min_rto_ms"),
        ("compare", "port", "ports"),
        ("lab_run", "seeds", "seed"),
    ],
)
def test_an_unknown_argument_names_the_near_one(
    run: am.LabRun, function: str, name: str, meant: str
) -> None:
    words = f"unexpected keyword argument '{name}'; did you mean '{meant}'"
    with pytest.raises(TypeError, match=words):
        getattr(am, function)(run.log, **{name: 1})
    with pytest.raises(TypeError, match="'xyz'; there are files, "):
        am.radio(run.log, xyz=1)  # type: ignore[call-arg]


def test_wrong_types(run: am.LabRun) -> None:
    with pytest.raises(TypeError, match="files are a path or several, not int"):
        am.radio(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a time is"):
        am.radio(run.log, from_=[1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pause_ms: 'str' object cannot be interpreted"):
        am.radio(run.log, pause_ms="long")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"timeline draws the result of radio\(\), not Diagnosis"):
        am.plot.timeline(am.diagnose(run.log))  # type: ignore[arg-type]
    with pytest.raises(am.AirmileOptionError, match="files: give one or more"):
        am.diagnose([])
    with pytest.raises(am.AirmileOptionError, match="ports: a number is out of range"):
        am.compare(run.dir, ports=[70_000])
    with pytest.raises(am.AirmileOptionError, match="seed: -1 is out of range"):
        am.lab_run("idle", run.dir / "idle", seed=-1)


def test_times_are_taken_in_every_form(run: am.LabRun) -> None:
    start_us = am.inspect(run.log).files["start_us"][0]
    start = datetime.datetime.fromtimestamp(start_us / 1e6, datetime.UTC)
    limit = start + datetime.timedelta(seconds=3)
    zoned = limit.astimezone(datetime.timezone(datetime.timedelta(hours=2)))
    naive = limit.replace(tzinfo=None)
    answers = [am.radio(run.log, to=to).to_dict() for to in (limit, zoned, naive)]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["bursts"]
    assert answers[0] != am.radio(run.log).to_dict()
    after = am.radio(run.log, from_=datetime.timedelta(seconds=3)).to_dict()
    assert after == am.radio(run.log, from_=3).to_dict() != am.radio(run.log).to_dict()
    assert am.radio(run.log, from_=start.date()).to_dict() == am.radio(run.log).to_dict()


def test_missing_libraries_are_named(
    run: am.LabRun, download: am.LabRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = am.radio(run.log)
    for name in ("polars", "pyarrow", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(am.AirmileMissingLibraryError, match="pip install polars"):
        report.bursts.to_polars()
    with pytest.raises(am.AirmileMissingLibraryError, match="pip install pyarrow"):
        report.bursts.to_pandas()
    with pytest.raises(am.AirmileMissingLibraryError, match=r"pip install 'airmile\[plot\]'"):
        am.plot.demand(report)


def test_damage_is_an_answer(run: am.LabRun, tmp_path: Path) -> None:
    damaged = bytearray(run.log.read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 2000] = bytes(2000)
    path = tmp_path / "damaged.mi2log"
    path.write_bytes(damaged)
    report = am.radio(path)
    assert report.damaged
    assert am.diagnose(path).damaged
    assert am.inspect(path).damaged
    assert am.decode(path).damaged
    problems = report.to_dict()["files"][0]["problems"]
    assert any(problem["severity"] == "damage" for problem in problems)

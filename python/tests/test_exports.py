"""Files written in addition to a result: equal to the command's, and read by their programs."""

from __future__ import annotations

import importlib
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import airmile as am

Command = Callable[..., Any]


def test_html(run: am.LabRun, capture: Path, command: Command, tmp_path: Path) -> None:
    answer = am.diagnose(run.log, transfers=run.transfers_csv, to=4.0)
    page = answer.html(tmp_path / "report.html")
    assert page == tmp_path / "report.html"
    assert answer.says in page.read_text()
    other = tmp_path / "other.html"
    limits = ["--transfers", run.transfers_csv, "--to", "4"]
    assert command("diagnose", run.log, *limits, "--html", other).returncode == 0
    assert page.read_bytes() == other.read_bytes()
    radio = am.radio(run.log, transfers=run.transfers_csv, to=4.0)
    page = radio.html(tmp_path / "radio.html")
    assert command("radio", run.log, *limits, "--html", other).returncode == 0
    assert page.read_bytes() == other.read_bytes()
    # With a capture in addition, that of `radio` is still from the radio alone.
    radio = am.radio(capture.parent)
    for kind, write in (("html", radio.html), ("perfetto", radio.perfetto)):
        made, other = write(tmp_path / f"radio.{kind}"), tmp_path / f"other-radio.{kind}"
        assert command("radio", capture.parent, f"--{kind}", other).returncode == 0
        assert made.read_bytes() == other.read_bytes(), kind


def test_perfetto(download: am.LabRun, command: Command, tmp_path: Path) -> None:
    answer = am.diagnose(download.log)
    trace = answer.perfetto(tmp_path / "trace.pftrace")
    other = tmp_path / "other.pftrace"
    assert command("diagnose", download.log, "--perfetto", other).returncode == 0
    assert trace.read_bytes() == other.read_bytes()
    assert command("radio", download.log, "--perfetto", other).returncode == 0
    of_radio = am.radio(download.log).perfetto(tmp_path / "radio.pftrace")
    assert of_radio.read_bytes() == other.read_bytes()
    slices, counters = read_trace(trace)
    assert [name for name, _ in slices["Verdict"]] == [answer.says]
    found = {name: args for name, args in slices["Transfers"]}
    assert len(found) == len(answer.transfers) > 0
    for transfer in answer.transfers:
        args = found[f"{transfer['id']}: {transfer['verdict']}"]
        assert args["verdict"] == transfer["verdict"]
        assert math.isclose(args["confidence"], transfer["confidence"])
        assert args["start_us"] == transfer["start_us"]
    bursts = am.radio(download.log).bursts.to_dicts()
    assert [args["bytes"] for _, args in slices["Downlink bursts"]] == [
        burst["bytes"] for burst in bursts if burst["dir"] == "dl"
    ]
    grants = [g for g in am.decode(download.log, only="grant").grant if g["dir"] == "dl"]
    assert [(g["tti"], g["n_prb"], g["tbs_bytes"]) for g in grants] == [
        (args["tti"], args["n_prb"], args["tbs_bytes"]) for _, args in slices["Downlink grants"]
    ]
    measured = [m["rsrp_dbm"] for m in am.decode(download.log, only="measurement").measurement]
    assert counters["RSRP"] == pytest.approx([rsrp for rsrp in measured if rsrp is not None])


def read_trace(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Slices and counters by track, with Perfetto's own classes."""
    protos = importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace()
    trace.ParseFromString(path.read_bytes())
    tracks: dict[int, str] = {}
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    slices: dict[str, list[Any]] = defaultdict(list)
    counters: dict[str, list[float]] = defaultdict(list)
    assert sum(packet.HasField("clock_snapshot") for packet in trace.packet) == 1
    for packet in trace.packet:
        assert not packet.DiscardUnknownFields()
        names.update((n.iid, n.name) for n in packet.interned_data.event_names)
        arguments.update((n.iid, n.name) for n in packet.interned_data.debug_annotation_names)
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        event = packet.track_event
        if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
            args = {
                arguments[a.name_iid]: getattr(a, a.WhichOneof("value"))
                for a in event.debug_annotations
            }
            name = event.name or names[event.name_iid]
            slices[tracks[event.track_uuid]].append((name, args))
        elif event.type == protos.TrackEvent.TYPE_COUNTER:
            field = event.WhichOneof("counter_value_field")
            counters[tracks[event.track_uuid]].append(getattr(event, field))
    return slices, counters


@pytest.mark.parametrize("export", ["html", "perfetto"])
def test_a_path_that_cannot_be(run: am.LabRun, tmp_path: Path, export: str) -> None:
    write = getattr(am.diagnose(run.log), export)
    with pytest.raises(am.AirmileOutputError) as raised:
        write(tmp_path / "none" / "out")
    assert raised.value.filename == str(tmp_path / "none" / "out")
    before = run.log.read_bytes()
    with pytest.raises(am.AirmileOptionError, match="one of the files to read"):
        write(run.log)
    assert run.log.read_bytes() == before

"""A study on an engine has the rows of one process, also after an interruption."""

from __future__ import annotations

import functools
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import airmile as am
from airmile import _airmile, _front
from airmile.scale import _run, _steps, _storage

pyarrow = pytest.importorskip("pyarrow")

Capture = list[tuple[float, str, tuple[int, int], tuple[int, int], int]]


def ipv4(host: int, net: int) -> bytes:
    return bytes([net, 0, host >> 8, host & 0xFF])


def record(
    at_us: int, src: tuple[bytes, int], dst: tuple[bytes, int], tcp: bytes, size: int
) -> bytes:
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp) + 4 + size, at_us & 0xFFFF, 0x4000,
                     64, 6, 0, src[0], dst[0])  # fmt: skip
    frame = ip + struct.pack(">HH", src[1], dst[1]) + tcp
    seconds, rest = divmod(at_us, 1_000_000)
    head = struct.pack("<IIII", 1_700_000_000 + seconds, rest, len(frame), len(frame) + size)
    return head + frame


def traffic(users: int = 60) -> list[bytes]:
    """Short downloads of some users over half an hour, each with a packet per second at times."""
    packets: list[tuple[int, bytes]] = []
    for user in range(users):
        phone, server = (ipv4(user, 10), 30_000 + user), (ipv4(user % 5, 198), 443)
        begin = user * 7_000_003
        # A server that connects: only the SYN shows its client.
        ends = (server, phone) if user % 11 == 0 else (phone, server)
        steps = [(0, 0, 2, 1, 0, 0), (30_000, 1, 18, 1, 2, 0), (60_000, 0, 16, 2, 2, 100)]
        steps += [
            step
            for n in range(40)
            for at in [60_000 + n * (900_000 if user % 3 else 20_000_000)]
            for step in (
                (at + 90_000, 1, 16, 2 + n * 1_000, 102, 1_000),
                (at + 120_000, 0, 16, 102, 1_002 + n * 1_000, 0),
            )
        ]
        for at, sender, flags, seq, ack, size in steps:
            tcp = struct.pack(">IIBBHHH", seq, ack, 0x50, flags, 60_000, 0, 0)
            packet = record(begin + at, ends[sender], ends[1 - sender], tcp, size)
            packets.append((begin + at, packet))
    packets.sort(key=lambda packet: packet[0])
    return [packet for _, packet in packets]


HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 101)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine captures, one after the other; flows cross from one to the next."""
    directory = tmp_path_factory.mktemp("captures")
    packets = traffic()
    each = -(-len(packets) // 9)
    for n in range(9):
        some = packets[n * each : (n + 1) * each]
        (directory / f"{n}.pcap").write_bytes(HEADER + b"".join(some))
    return directory


@pytest.fixture(scope="module")
def whole(captures: Path) -> am.PacketReport:
    return am.packets(sorted(captures.iterdir()), threads=1)


def rows(report: am.PacketReport) -> dict[str, list[str]]:
    tables = {name: sorted(map(json.dumps, table)) for name, table in report.tables.items()}
    return {name: table for name, table in tables.items() if table}


def check(whole: am.PacketReport, parts: am.PacketReport) -> None:
    assert rows(parts) == rows(whole)
    assert parts.quality == whole.quality
    one, other = whole.to_dict(), parts.to_dict()
    assert other["flows"] == one["flows"]
    assert other["terminations"] == one["terminations"]


def test_processes_find_the_rows_of_one(
    captures: Path, whole: am.PacketReport, tmp_path: Path
) -> None:
    assert {flow["termination"] for flow in whole.flows} == {"capture_end"}
    assert whole.to_dict()["client_by"]["syn"] == 60
    report = am.packets(captures, engine="processes", output=tmp_path, workers=2, buckets=5)
    check(whole, report)
    # Other libraries get the same times.
    one, other = (pyarrow.table(r.flows).sort_by("flow")["start_ns"] for r in (whole, report))
    assert one.type == other.type == pyarrow.timestamp("ns", "UTC")
    assert one.to_pylist() == other.to_pylist()
    assert pyarrow.schema(report.flows).field("start_ns").type == one.type
    assert report.flows[1] == report.flows.to_dicts()[1]
    stored = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("flows/*/*/*"))
    assert stored[0].startswith("flows/day=2023-11-14/bucket=0000")
    assert json.loads((tmp_path / "report.json").read_text()) == report.to_dict()
    assert not list(tmp_path.glob("_work/records/*.parquet")), "records are removed"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs steps in this process, one after the other; records their names."""
    names: list[str] = []

    class Here:
        def each(self, calls: list[Any]) -> Iterator[Any]:
            for function, args in calls:
                names.append(function.__name__)
                yield function(*args)

        def width(self) -> int:
            return 3

        def close(self) -> None:
            pass

    monkeypatch.setattr(_run, "engine_of", lambda *_: Here())
    return names


def test_a_capture_is_cut_at_records(
    here: list[str], whole: am.PacketReport, tmp_path: Path
) -> None:
    alone = tmp_path / "alone.pcap"
    alone.write_bytes(HEADER + b"".join(traffic()))
    ask = _front.packets_ask(alone)
    out = _run.report(ask, "ray", str(tmp_path / "out"), buckets=3, part_bytes=40_000)
    assert here.count("deal_part") > 4
    assert rows(out) == rows(whole)


def test_captures_are_read_in_order_of_time(
    here: list[str], captures: Path, whole: am.PacketReport, tmp_path: Path
) -> None:
    """As a shell orders the names of a ring: 1, 10, 2."""
    shuffled = [captures / f"{n}.pcap" for n in (3, 0, 8, 1, 7, 2, 6, 5, 4)]
    check(whole, am.packets(shuffled, threads=1))
    ask = _front.packets_ask(shuffled)
    check(whole, _run.report(ask, "ray", str(tmp_path), buckets=3))


def test_a_wrong_cut_is_read_again_as_a_whole(
    here: list[str], whole: am.PacketReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = tmp_path / "alone.pcap"
    alone.write_bytes(HEADER + b"".join(traffic()))
    monkeypatch.setattr(_airmile, "split_capture", lambda *_: [100_001])
    ask = _front.packets_ask(alone)
    out = _run.report(ask, "ray", str(tmp_path / "out"), buckets=3)
    assert here.count("deal_part") == 3
    assert rows(out) == rows(whole)


def test_a_frame_that_cannot_be_read_is_no_wrong_cut(here: list[str], tmp_path: Path) -> None:
    packets = traffic()
    for at in (300, 301, 2_500):
        # 12 bytes of the IP header are present; one states a length of 8.
        head = packets[at][:8] + struct.pack("<II", 12, 60)
        packets[at] = head + bytes([0x45 if at != 301 else 0x42]) + packets[at][17:28]
    alone = tmp_path / "alone.pcap"
    alone.write_bytes(HEADER + b"".join(packets))
    whole = am.packets(alone, threads=1)
    out = _run.report(_front.packets_ask(alone), "ray", str(tmp_path / "out"), part_bytes=40_000)
    reads = here.count("deal_part")
    assert reads == len(list((tmp_path / "out/_work/done").glob("part-*"))) > 4
    assert rows(out) == rows(whole)
    assert out.to_dict()["files"] == whole.to_dict()["files"]
    assert whole.to_dict()["files"][0]["problems"], "it is reported"


def test_many_captures_in_few_descriptors(here: list[str], tmp_path: Path) -> None:
    """A worker's number of open files does not grow with the number of captures."""
    packets, day = traffic(), tmp_path / "day"
    day.mkdir()
    each = -(-len(packets) // 150)
    for n in range(150):
        some = packets[n * each : (n + 1) * each]
        (day / f"{n:03}.pcap").write_bytes(HEADER + b"".join(some))
    whole = am.packets(sorted(day.iterdir()), threads=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 30, hard))
        report = _run.report(_front.packets_ask(day), "ray", str(tmp_path / "out"), buckets=2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    check(whole, report)


def test_workers_of_other_directories(
    here: list[str], captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths are absolute, and a worker verifies that it finds the same capture."""
    (tmp_path / "day").mkdir()
    copy = tmp_path / "day/0.pcap"
    copy.write_bytes((captures / "0.pcap").read_bytes())
    monkeypatch.chdir(tmp_path)
    true_deal = _airmile.deal

    def elsewhere(*args: Any) -> str:
        monkeypatch.chdir("/")
        return str(true_deal(*args))

    monkeypatch.setattr(_airmile, "deal", elsewhere)
    _run.report(_front.packets_ask("day"), "ray", str(tmp_path / "out"))
    job = json.loads((tmp_path / "out/_work/job.json").read_text())
    assert job["buckets"] == 12, "four for each worker of the engine"
    part = _run._parts([_storage.identity(str(copy))], 1 << 30)[0][0]
    copy.write_bytes(b"another")
    with pytest.raises(am.AirmileInputError, match="need the same captures"):
        _steps.deal_part({"root": str(tmp_path / "other"), "ask": {}, "buckets": 1}, part)


def test_a_broken_run_goes_on(
    here: list[str], captures: Path, whole: am.PacketReport, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Files of an interrupted step are not read, and completed steps remain."""
    ask = _front.packets_ask(captures)
    true_deal, true_study = _airmile.deal, _airmile.study_bucket

    def breaks(after: int, true: Any) -> Any:
        left = iter(range(after))

        def broken(*args: Any) -> str:
            if next(left, None) is None:
                # Half a file, and no manifest.
                Path(args[-1]).with_suffix(".half").write_bytes(b"PAR1")
                raise KeyboardInterrupt
            return str(true(*args))

        return broken

    for name, after, true in [("deal", 4, true_deal), ("study_bucket", 2, true_study)]:
        with monkeypatch.context() as patch:
            patch.setattr(_airmile, name, breaks(after, true))
            with pytest.raises(KeyboardInterrupt):
                _run.report(ask, "ray", str(tmp_path), buckets=5)
    here.clear()
    report = _run.report(ask, "ray", str(tmp_path), buckets=5)
    assert here == ["study_bucket"] * 3
    check(whole, report)
    # Done: nothing runs again, and the report is the same.
    here.clear()
    check(whole, _run.report(ask, "ray", str(tmp_path), buckets=5))
    assert here == []


def test_another_run_is_not_mixed_in(here: list[str], captures: Path, tmp_path: Path) -> None:
    _run.report(_front.packets_ask(captures), "ray", str(tmp_path), buckets=2)
    with pytest.raises(am.AirmileOptionError, match="holds a run of other captures"):
        _run.report(_front.packets_ask(captures, idle_s=9), "ray", str(tmp_path))


def test_tables_of_another_run_stay_apart(here: list[str], captures: Path, tmp_path: Path) -> None:
    ask = _front.packets_ask(captures)
    _run.report(ask, "ray", str(tmp_path), buckets=2)
    (tmp_path / "_work/job.json").unlink()
    with pytest.raises(am.AirmileOptionError, match="holds flows of another run"):
        _run.report(ask, "ray", str(tmp_path), buckets=2)
    for table in tmp_path.glob("[!_]*"):
        shutil.rmtree(table, ignore_errors=True)
    with pytest.raises(am.AirmileOptionError, match="holds steps of another run"):
        _run.report(ask, "ray", str(tmp_path), buckets=2)


def test_half_a_file_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is removed if writing fails; half a manifest counts as none."""
    from pyarrow import fs

    local = (fs.LocalFileSystem(), str(tmp_path))
    monkeypatch.setattr(_storage, "filesystem", lambda _: local)
    storage = _storage.Storage("store://here")
    storage.write("_work/done/a.json", b'{"key": "a"}')
    assert _steps.manifest_of(storage, "a") == {"key": "a"}
    (tmp_path / "_work/done/a.json").write_bytes(b'{"key')
    assert _steps.manifest_of(storage, "a") is None

    def breaks(_: Any, out: Any, __: int) -> None:
        out.write(b"PAR1")
        raise OSError("the disk is gone")

    monkeypatch.setattr(shutil, "copyfileobj", breaks)
    with pytest.raises(OSError, match="the disk is gone"):
        storage.write("_work/done/b.json", b"{}")
    assert not (tmp_path / "_work/done/b.json").exists()


def test_options_of_an_object_store_stay_behind_the_name() -> None:
    uri = "s3://captures/day/?endpoint_override=localhost:9000&scheme=http"
    assert _storage.below(uri, "0.pcap") == (
        "s3://captures/day/0.pcap?endpoint_override=localhost:9000&scheme=http"
    )
    assert _storage.below("s3://captures/day", "0.pcap") == "s3://captures/day/0.pcap"


def test_file_systems_of_pyarrow(
    here: list[str], captures: Path, whole: am.PacketReport, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """All access to an object store goes through pyarrow, here with a store of files."""
    from pyarrow import fs

    def store(uri: str) -> tuple[Any, str]:
        return fs.LocalFileSystem(), uri.removeprefix("store://here")

    monkeypatch.setattr(_storage, "filesystem", store)
    ask = _front.packets_ask(f"store://here{captures}")
    report = _run.report(ask, "ray", f"store://here{tmp_path}/out", buckets=3)
    check_rows = rows(report)
    assert check_rows == rows(whole)


def test_an_object_store(
    captures: Path, whole: am.PacketReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captures, records and tables in S3, from a server on this machine."""
    server = pytest.importorskip("moto.server", reason="SKIPPED: moto[server] is not installed")
    from pyarrow import fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        _, port = running.get_host_and_port()
        options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        store, _ = fs.FileSystem.from_uri(f"s3://captures?{options}&allow_bucket_creation=true")
        for bucket in ("captures", "results"):
            store.create_dir(bucket)
        for path in captures.iterdir():
            with store.open_output_stream(f"captures/day/{path.name}") as out:
                out.write(path.read_bytes())
        study = functools.partial(
            am.packets,
            f"s3://captures/day?{options}",
            engine="processes",
            output=f"s3://results/study?{options}",
            workers=2,
            buckets=3,
        )
        check(whole, study())
        found = store.get_file_info(fs.FileSelector("results/study", recursive=True))
        names = [info.path for info in found if info.type == fs.FileType.File]
        assert "results/study/report.json" in names
        assert not [name for name in names if name.endswith(".parquet") and "_work" in name]
        check(whole, study())
        with pytest.raises(am.AirmileOptionError, match="holds a run of other captures"):
            study(idle_s=9)
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"engine": "dask", "output": "x"}, "engine: unknown 'dask'"),
        ({"engine": "ray"}, "name a directory"),
        ({"output": "x"}, "for an engine"),
        ({"engine": "processes", "output": "x", "from_": 1.0}, "whole captures"),
    ],
)
def test_options(captures: Path, tmp_path: Path, options: dict[str, Any], error: str) -> None:
    if "output" in options:
        options = options | {"output": tmp_path / "x"}
    with pytest.raises(am.AirmileOptionError, match=error):
        am.packets(captures, **options)


def test_errors_come_from_the_workers(tmp_path: Path) -> None:
    (tmp_path / "no.pcap").write_bytes(b"hello")
    with pytest.raises(am.AirmileFormatError, match="is no packet capture"):
        am.packets(tmp_path, engine="processes", output=tmp_path / "out", workers=1)


def test_the_command(captures: Path, whole: am.PacketReport, tmp_path: Path) -> None:
    command = Path(sys.executable).parent / "airmile"
    args = [
        "packets",
        captures,
        "--engine",
        "processes",
        "--workers",
        "2",
        "--out",
        tmp_path,
        "--json",
    ]
    done = subprocess.run([command, *map(str, args)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["quality"] == whole.quality
    assert b"studied 8 of 8 buckets" in done.stderr
    (tmp_path / "file").touch()
    for files, out, error in [
        (captures, tmp_path / "file", f"error: {tmp_path}/file"),
        ("-", tmp_path / "x", "an engine reads files"),
        (tmp_path / "none", tmp_path / "x", f"error: {tmp_path}/none: No such file"),
    ]:
        args = ["packets", files, "--engine", "processes", "--out", out]
        done = subprocess.run([command, *map(str, args)], capture_output=True, check=False)
        assert done.returncode in (2, 3)
        assert error in done.stderr.decode()
        assert b"Traceback" not in done.stderr


def ray_here() -> bool:
    try:
        import ray  # noqa: F401
    except ImportError:
        print("SKIPPED: ray is not installed")
        return False
    return True


def dies_once(step: Callable[..., Any], marker: str, *args: Any) -> Any:
    """A step that leaves half a file and a killed worker, the first time."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return step(*args)
    job, what = args[0], args[1]
    scratch = Path(job["root"], "_work", "scratch", "half")
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / f"{what}.parquet".replace("/", "_")[:40]).write_bytes(b"PAR1")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not ray_here(), reason="SKIPPED: ray is not installed")
def test_ray_finds_the_rows_of_one_when_workers_are_killed(
    captures: Path, whole: am.PacketReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    pickling: Any = ray.cloudpickle
    pickling.register_pickle_by_value(sys.modules[__name__])
    for name in ("deal_part", "settle_strays", "study_bucket"):
        step = getattr(_steps, name)
        dying = functools.partial(dies_once, step, str(tmp_path / f"{name}.died"))
        monkeypatch.setattr(_steps, name, dying)
    report = am.packets(captures, engine="ray", output=tmp_path / "out", workers=2, buckets=4)
    assert len(list(tmp_path.glob("*.died"))) == 3
    check(whole, report)


def test_spark_finds_the_rows_of_one(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="SKIPPED: pyspark is not installed")
    from pyspark.sql import SparkSession  # type: ignore[import-not-found,unused-ignore]

    from airmile.scale import spark

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    network = "10.0.0.0/8"
    try:
        report = spark.packets(session, str(captures), str(tmp_path), client=network, buckets=5)
        with pytest.raises(am.AirmileOptionError, match="name the clients' network"):
            spark.packets(session, str(captures), str(tmp_path / "other"))
        with pytest.raises(am.AirmileOptionError, match="of another run"):
            spark.packets(session, str(captures), str(tmp_path), client=network, buckets=3)
    finally:
        session.stop()
    check(am.packets(sorted(captures.iterdir()), client=network, threads=1), report)

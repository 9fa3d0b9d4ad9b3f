"""A study from captures to tables, on an engine."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from airmile import _airmile
from airmile._report import Request
from airmile.errors import AirmileOptionError
from airmile.scale import _steps
from airmile.scale._engines import Engine, engine_of
from airmile.scale._report import ScaledReport
from airmile.scale._steps import Job, Manifest, Part, manifest_of
from airmile.scale._storage import Identity, Storage, expand, identity, is_cuttable
from airmile.scale._tables import NAMES

PART_BYTES = 1 << 30
"""Larger captures are split (chosen here: some ten million packets of headers, half a
minute of work)."""

_BUCKETS_A_WORKER = 4
"""Buckets per worker, so that all end at about the same time (chosen here)."""

Report = Callable[[str], None]


def run(
    ask: dict[str, Any],
    engine: str,
    output: str,
    *,
    buckets: int = 0,
    workers: int = 0,
    part_bytes: int = PART_BYTES,
    keep_records: bool = False,
    notify: Report | None = None,
) -> _airmile.Packets:
    """Study captures; write tables to `output` and return the report.

    The arguments are those of :func:`airmile.packets`.
    """
    packets, _ = study(
        ask,
        engine,
        Storage(output),
        buckets=buckets,
        workers=workers,
        part_bytes=part_bytes,
        keep_records=keep_records,
        notify=notify,
    )
    return packets


def report(ask: dict[str, Any], engine: str, output: str, **options: Any) -> ScaledReport:
    """As :func:`run`, with the tables."""
    storage = Storage(output)
    packets, files = study(ask, engine, storage, **options)
    return ScaledReport(packets, Request(ask), storage, files)


def study(
    ask: dict[str, Any],
    engine: str,
    storage: Storage,
    *,
    buckets: int = 0,
    workers: int = 0,
    part_bytes: int = PART_BYTES,
    keep_records: bool = False,
    notify: Report | None = None,
) -> tuple[_airmile.Packets, list[str]]:
    """A study, and the files of its tables below the output."""
    notify = notify or (lambda _: None)
    files = expand([os.fspath(path) for path in ask["files"]])
    ask = ask | {"files": files}
    runner = _Lazy(engine, workers)
    try:
        job = Job(root=storage.root, ask=ask, buckets=buckets)
        captures = [identity(file) for file in files]
        job["buckets"] = _begin(storage, job, captures, part_bytes, runner)
        parts = _deal(storage, job, _parts(captures, part_bytes), runner, notify)
        strays = _strays(storage, parts)
        begins, end_ns = _airmile.clocks([part["report"] for part in parts])
        if end_ns is None:
            answers: list[Manifest] = []
        else:
            capture = _Capture(parts, begins)
            settled = _settle(storage, job, capture, strays, runner, notify)
            answers = _study(storage, job, capture, settled, strays, end_ns, runner, notify)
    finally:
        runner.close()
    by_file: dict[int, list[tuple[str, bytes]]] = {}
    for part in parts:
        marks = part["kept"]["syns"] if len(files) > 1 else None
        syns = (storage.read(marks) or b"") if marks else b""
        by_file.setdefault(part["part"]["file"], []).append((part["report"], syns))
    packets = _airmile.join(ask, list(by_file.values()), [answer["report"] for answer in answers])
    storage.write("report.json", packets.json().encode())
    if not keep_records:
        _forget(storage, parts)
    return packets, sorted(name for answer in answers for name, _ in answer["files"])


class _Lazy:
    """An engine that starts with its first step: a completed run needs none."""

    def __init__(self, name: str, workers: int) -> None:
        self._name, self._workers = name, workers
        self._engine: Engine | None = None

    def _started(self) -> Engine:
        if self._engine is None:
            self._engine = engine_of(self._name, self._workers)
        return self._engine

    def width(self) -> int:
        return self._started().width()

    def each(self, calls: list[Any]) -> Any:
        return self._started().each(calls) if calls else iter(())

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


def refuse_tables(storage: Storage) -> None:
    """Raise if tables of another run would be read with this one's."""
    names = storage.names()
    there = [name for name in NAMES if name in names or f"{name}.parquet" in names]
    if there or "done" in storage.names("_work"):
        what = there[0] if there else "steps"
        raise AirmileOptionError(
            f"{storage.root}: holds {what} of another run: name another directory, or remove it"
        )


def _begin(
    storage: Storage, job: Job, captures: list[Identity], part_bytes: int, runner: _Lazy
) -> int:
    """Start a run, or continue the same one; return its number of buckets."""
    options = {
        name: value for name, value in job["ask"].items() if name not in ("files", "threads")
    }
    asked = {
        "version": _airmile.__version__,
        "files": captures,
        "options": options,
        "part_bytes": part_bytes,
    }
    mark = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    former = storage.read_json("_work/job.json")
    if former is not None:
        if former["mark"] != mark:
            raise AirmileOptionError(
                f"{storage.root}: holds a run of other captures or options: name another "
                "directory, or remove it"
            )
        return int(former["buckets"])
    refuse_tables(storage)
    buckets = job["buckets"] or max(8, _BUCKETS_A_WORKER * runner.width())
    asked |= {"mark": mark, "buckets": buckets}
    storage.write("_work/job.json", json.dumps(asked).encode())
    return buckets


def _parts(captures: list[Identity], part_bytes: int) -> list[list[Part]]:
    found = []
    for number, capture in enumerate(captures):
        path = capture[0]
        cuts = _airmile.split_capture(path, part_bytes) if is_cuttable(path) else []
        found.append(_cut(number, capture, cuts))
    return found


def _cut(number: int, capture: Identity, cuts: list[int]) -> list[Part]:
    if not cuts:
        return [Part(key=f"part-{number:06}", capture=capture, file=number, range=None)]
    edges = [0, *cuts, capture[1]]
    return [
        Part(key=f"part-{number:06}-{n:06}", capture=capture, file=number, range=(begin, end))
        for n, (begin, end) in enumerate(itertools.pairwise(edges))
    ]


def _deal(
    storage: Storage, job: Job, files: list[list[Part]], runner: _Lazy, notify: Report
) -> list[Manifest]:
    """First pass; parts in order of time. A file with wrong cuts is read again as a whole."""
    done: dict[str, Manifest] = {}
    wanted = [part for parts in files for part in parts]
    _each(storage, job, wanted, runner, notify, done)
    again = []
    for number, parts in enumerate(files):
        if len(parts) > 1 and any(_is_torn(done[part["key"]]) for part in parts):
            files[number] = _cut(number, parts[0]["capture"], [])
            again += files[number]
    if again:
        notify(f"{len(again)} captures could not be split, and are read as a whole")
        _each(storage, job, again, runner, notify, done)
    read = [[done[part["key"]] for part in parts] for parts in files]
    return list(itertools.chain.from_iterable(sorted(read, key=_begin_us)))


def _begin_us(parts: Iterable[Manifest]) -> float:
    """The time of a capture's first packet, for sorting: one without packets is the last."""
    starts = [json.loads(part["report"])["file"]["start_us"] for part in parts]
    return min((start for start in starts if start is not None), default=math.inf)


def _each(
    storage: Storage,
    job: Job,
    parts: list[Part],
    runner: _Lazy,
    notify: Report,
    done: dict[str, Manifest],
) -> None:
    for part in parts:
        manifest = manifest_of(storage, part["key"])
        if manifest is not None:
            done[part["key"]] = manifest
    calls = [(_steps.deal_part, (job, part)) for part in parts if part["key"] not in done]
    if len(calls) < len(parts):
        notify(f"{len(parts) - len(calls)} of {len(parts)} parts were read by an earlier run")
    for n, manifest in enumerate(runner.each(calls), 1):
        done[manifest["key"]] = manifest
        notify(f"read {n} of {len(calls)} parts")


def _is_torn(manifest: Manifest) -> bool:
    """Whether a range of a capture is not whole records: cuts are verified by reading."""
    begin, end = manifest["part"]["range"]
    report = json.loads(manifest["report"])["file"]
    return bool(report["damaged"] or report["bytes"] != end - begin)


def _strays(storage: Storage, parts: list[Manifest]) -> bytes:
    """Ends of flows whose client only their first packet shows, each once."""
    size = 37
    ends: set[bytes] = set()
    for part in parts:
        name = part["kept"]["strays"]
        content = (storage.read(name) or b"") if name else b""
        ends.update(content[at : at + size] for at in range(0, len(content), size))
    return b"".join(sorted(ends))


class _Capture:
    """The row groups of all parts, by bucket."""

    def __init__(self, parts: list[Manifest], begins: list[tuple[int, int | None]]) -> None:
        self._groups: list[dict[int, list[int]]] = []
        self._begins = [
            (part["kept"]["parquet"], *begin) for part, begin in zip(parts, begins, strict=True)
        ]
        for part in parts:
            by_bucket: dict[int, list[int]] = {}
            for at, group in enumerate(json.loads(part["report"])["groups"]):
                by_bucket.setdefault(group["bucket"], []).append(at)
            self._groups.append(by_bucket)

    def bucket(self, bucket: int) -> list[Any]:
        """The row groups of a bucket in each part, in the order of the capture."""
        return [
            (name, groups[bucket], first, clock_ns)
            for groups, (name, first, clock_ns) in zip(self._groups, self._begins, strict=True)
            if bucket in groups
        ]

    def all(self) -> list[list[Any]]:
        """All row groups of each part."""
        return [
            [(name, sorted(itertools.chain.from_iterable(groups.values())), first, clock_ns)]
            for groups, (name, first, clock_ns) in zip(self._groups, self._begins, strict=True)
        ]


def _settle(
    storage: Storage, job: Job, capture: _Capture, strays: bytes, runner: _Lazy, notify: Report
) -> Manifest | None:
    if not strays:
        return None
    former = manifest_of(storage, "settled")
    if former is not None:
        return former
    notify(f"{len(strays) // 37} flows have a client that only their first packet shows")
    (manifest,) = runner.each([(_steps.settle_strays, (job, capture.all(), strays))])
    return dict(manifest)


def _study(
    storage: Storage,
    job: Job,
    capture: _Capture,
    settled: Manifest | None,
    strays: bytes,
    end_ns: int,
    runner: _Lazy,
    notify: Report,
) -> list[Manifest]:
    """Second pass."""
    done: dict[int, Manifest] = {}
    calls = []
    for bucket in range(job["buckets"]):
        former = manifest_of(storage, f"bucket-{bucket:05}")
        if former is not None:
            done[bucket] = former
            continue
        own = None
        if settled is not None:
            groups = [n for n, group in enumerate(settled["groups"]) if group["bucket"] == bucket]
            own = (settled["kept"], groups)
        args = (job, bucket, capture.bucket(bucket), own, strays, end_ns)
        calls.append((_steps.study_bucket, args))
    if done:
        notify(f"{len(done)} of {job['buckets']} buckets were studied by an earlier run")
    for n, manifest in enumerate(runner.each(calls), 1):
        done[manifest["bucket"]] = manifest
        notify(f"studied {n} of {len(calls)} buckets")
    return [done[bucket] for bucket in sorted(done)]


def _forget(storage: Storage, parts: list[Manifest]) -> None:
    """Remove the records; manifests and the report's inputs remain."""
    named = {part["kept"]["syns"] for part in parts} | {part["kept"]["strays"] for part in parts}
    for name in storage.names("_work/records"):
        if f"_work/records/{name}" not in named:
            storage.remove_file(f"_work/records/{name}")
    if not storage.remote:
        storage.remove("_work/scratch")


def progress(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr, flush=True)

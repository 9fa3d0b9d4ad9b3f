"""The steps of a study, each a function of plain values that can run anywhere.

A step writes its manifest last, and a step with a manifest is complete. Files of one that was
killed have the names of those that follow, or unique ones: they are replaced or not read.
"""

from __future__ import annotations

import json
import resource
import shutil
import socket
import time
import uuid
from typing import Any, TypedDict

from airmile import _airmile
from airmile.errors import AirmileInputError
from airmile.scale._storage import Identity, Storage, identity, is_remote, opened


class Job(TypedDict):
    """The arguments of every step."""

    root: str
    ask: dict[str, Any]
    buckets: int


class Part(TypedDict):
    """A capture, or the records of a range of its bytes."""

    key: str
    capture: Identity
    file: int
    range: tuple[int, int] | None


Manifest = dict[str, Any]


def manifest_of(storage: Storage, key: str) -> Manifest | None:
    """The manifest of a completed step."""
    return storage.read_json(f"_work/done/{key}.json")


class _Step:
    """Measures a step, and writes its manifest."""

    def __init__(self, job: Job, key: str) -> None:
        self.storage = Storage(job["root"])
        self.key = key
        self.scratch = self.storage.scratch()
        self.begun = (time.process_time(), time.monotonic())

    def done(self, manifest: Manifest) -> Manifest:
        cpu, wall = self.begun
        manifest |= {
            "key": self.key,
            "host": socket.gethostname(),
            "cpu_s": time.process_time() - cpu,
            "wall_s": time.monotonic() - wall,
            "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        self.storage.write(f"_work/done/{self.key}.json", json.dumps(manifest).encode())
        return manifest

    def __enter__(self) -> _Step:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)


def deal_part(job: Job, part: Part) -> Manifest:
    """First pass: the packets of a part, divided into buckets."""
    with _Step(job, part["key"]) as step:
        out = step.scratch / "records.parquet"
        path = part["capture"][0]
        if identity(path) != tuple(part["capture"]):
            raise AirmileInputError(
                f"{path}: size or time on {socket.gethostname()} differs from where "
                "the run started: all machines need the same captures"
            )
        source: tuple[str, object]
        source = (path, opened(path) if is_remote(path) else part["range"])
        report = _airmile.deal(job["ask"], job["buckets"], source, out)
        name = f"_work/records/{part['key']}-{uuid.uuid4().hex}"
        kept: dict[str, str | None] = {}
        for extension in ("parquet", "strays", "syns"):
            file = out.with_suffix(f".{extension}")
            kept[extension] = f"{name}.{extension}" if file.exists() else None
            if file.exists():
                step.storage.keep(file, f"{name}.{extension}")
        return step.done({"part": part, "report": report, "kept": kept})


def settle_strays(job: Job, capture: list[list[object]], strays: bytes) -> Manifest:
    """Between the passes: flows whose client only their first packet shows."""
    with _Step(job, "settled") as step:
        out = step.scratch / "settled.parquet"
        opened_parts = [[_opened(step.storage, part) for part in parts] for parts in capture]
        groups = _airmile.settle(job["ask"], job["buckets"], opened_parts, strays, out)
        name = f"_work/records/settled-{uuid.uuid4().hex}.parquet"
        step.storage.keep(out, name)
        return step.done({"groups": json.loads(groups), "kept": name})


def study_bucket(
    job: Job,
    bucket: int,
    capture: list[Any],
    settled: tuple[str, list[int]] | None,
    strays: bytes,
    end_ns: int,
) -> Manifest:
    """Second pass: the users of a bucket."""
    with _Step(job, f"bucket-{bucket:05}") as step:
        parts = [_opened(step.storage, part) for part in capture]
        own = step.storage.records(*settled) if settled else None
        report = _airmile.study_bucket(
            job["ask"], job["buckets"], bucket, parts, own, strays, end_ns, step.scratch
        )
        files = json.loads(report)["files"]
        for name, _ in files:
            step.storage.keep(step.scratch / name, name)
        return step.done({"bucket": bucket, "report": report, "files": files})


def _opened(storage: Storage, part: Any) -> tuple[object, int, int | None]:
    name, groups, first_packet, clock_ns = part
    return (storage.records(name, groups), first_packet, clock_ns)

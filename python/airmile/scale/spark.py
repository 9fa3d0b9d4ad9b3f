"""The same study on an existing Spark: a thin adapter over `mapInArrow`.

Spark's shuffle replaces the files between the passes, so only the tables are written;
everything else is as in :func:`airmile.packets` with an engine.

>>> from airmile.scale import spark            # doctest: +SKIP
>>> from pyspark.sql import SparkSession       # doctest: +SKIP
>>> session = SparkSession.builder.getOrCreate()         # doctest: +SKIP
>>> report = spark.packets(session, ["day1.pcap", "day2.pcap"], "study")   # doctest: +SKIP

Every executor has to reach the captures and the output directory.
"""

# mypy: disable-error-code="import-untyped,import-not-found"
from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airmile import _airmile
from airmile._front import packets_ask
from airmile._report import Request
from airmile.errors import AirmileOptionError
from airmile.scale._report import ScaledReport
from airmile.scale._run import refuse_tables
from airmile.scale._steps import Job
from airmile.scale._storage import Storage, expand, is_remote, opened

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

# Spark has no unsigned integers: their bits are stored as signed ones.
_RECORD = "part int, bucket int, packet long, time_ns long, clock_ns long, headers binary"


def packets(
    session: SparkSession,
    files: str | Iterable[str],
    output: str,
    *,
    buckets: int = 0,
    **options: Any,
) -> ScaledReport:
    """Study captures on Spark, with a task for each capture and then for each bucket.

    Args:
        session: the Spark session.
        files: captures, as for :func:`airmile.packets` with an engine.
        output: the directory of the tables, as with an engine.
        buckets: parts into which users are divided; 0 is four times Spark's default
            parallelism.
        options: those of :func:`airmile.packets`; `client` is required, since a
            client that only a flow's first packet shows would need another pass.

    Raises:
        AirmileOptionError: without `client`, a client is unknown; or the output
            holds tables of another run.
    """
    listed = expand([files] if isinstance(files, str) else list(map(os.fspath, files)))
    ask = packets_ask(listed, **options)
    storage = Storage(output)
    refuse_tables(storage)
    buckets = buckets or 4 * session.sparkContext.defaultParallelism
    job = Job(root=storage.root, ask=ask, buckets=buckets)
    named = session.createDataFrame(list(enumerate(listed)), "part int, path string")
    spread = named.repartitionByRange(len(listed), "part")
    dealt = spread.mapInArrow(_dealer(job), f"{_RECORD}, report string, syns binary")
    dealt = dealt.persist()
    try:
        rows = dealt.where("report is not null").select("part", "report", "syns").collect()
        summaries = {row["part"]: (row["report"], bytes(row["syns"])) for row in rows}
        reports = [summaries[part] for part in range(len(listed))]
        strays = sum(json.loads(report)["strays"] for report, _ in reports)
        if strays:
            raise AirmileOptionError(
                f"only the first packet of {strays} flows shows their client: name the "
                "clients' network (client=), or use another engine"
            )
        begins, end_ns = _airmile.clocks([report for report, _ in reports])
        records = dealt.where("report is null").drop("report", "syns")
        shuffled = records.repartition(buckets, "bucket").sortWithinPartitions(
            "bucket", "part", "packet"
        )
        studied = shuffled.mapInArrow(_student(job, begins, end_ns or 0), "report string")
        answers = [row["report"] for row in studied.collect()]
    finally:
        dealt.unpersist()
    by_file = [[(report, syns if len(listed) > 1 else b"")] for report, syns in reports]
    joined = _airmile.join(ask, by_file, answers)
    storage.write("report.json", joined.json().encode())
    storage.remove("_work")
    files_of = [name for answer in answers for name, _ in json.loads(answer)["files"]]
    return ScaledReport(joined, Request(ask), storage, sorted(files_of))


def _dealer(job: Job) -> Any:
    def deal(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow
        from pyarrow import parquet

        for row in (row for batch in batches for row in batch.to_pylist()):
            path = row["path"]
            scratch = Path(tempfile.mkdtemp(prefix="airmile-"))
            try:
                out = scratch / "records.parquet"
                source: tuple[str, object] = (path, opened(path) if is_remote(path) else None)
                report = _airmile.deal(job["ask"], job["buckets"], source, out)
                groups = json.loads(report)["groups"]
                file = parquet.ParquetFile(out)
                for at, group in enumerate(groups):
                    for batch in file.iter_batches(row_groups=[at]):
                        yield _signed(batch, row["part"], group["bucket"])
                marks = out.with_suffix(".syns")
                syns = marks.read_bytes() if marks.exists() else b""
                yield _summary(row["part"], report, syns)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            del pyarrow

    return deal


def _fields() -> list[tuple[str, Any]]:
    import pyarrow

    kinds = {"int": pyarrow.int32(), "long": pyarrow.int64(), "binary": pyarrow.binary()}
    pairs = (column.split() for column in _RECORD.split(", "))
    return [(name, kinds[kind]) for name, kind in pairs]


def _signed(batch: pyarrow.RecordBatch, part: int, bucket: int) -> pyarrow.RecordBatch:
    """Records in Spark's types."""
    import pyarrow

    n = batch.num_rows
    columns = []
    for name, kind in _fields():
        if name in ("part", "bucket"):
            value = part if name == "part" else bucket
            columns.append(pyarrow.repeat(pyarrow.scalar(value, kind), n))
        elif name == "packet":
            columns.append(batch.column(name).view(kind))
        else:
            columns.append(batch.column(name).cast(kind))
    columns.append(pyarrow.nulls(n, pyarrow.string()))
    columns.append(pyarrow.nulls(n, pyarrow.binary()))
    names = [name for name, _ in _fields()] + ["report", "syns"]
    return pyarrow.RecordBatch.from_arrays(columns, names=names)


def _summary(part: int, report: str, syns: bytes) -> pyarrow.RecordBatch:
    import pyarrow

    columns = [pyarrow.array([part if name == "part" else None], kind) for name, kind in _fields()]
    columns += [pyarrow.array([report]), pyarrow.array([syns], pyarrow.binary())]
    names = [name for name, _ in _fields()] + ["report", "syns"]
    return pyarrow.RecordBatch.from_arrays(columns, names=names)


def _unsigned(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Records in their types before Spark."""
    import pyarrow

    schema = _airmile.record_schema()
    columns = []
    for field in pyarrow.schema(schema):
        column = batch.column(field.name)
        wide = field.name == "packet"
        columns.append(column.view(field.type) if wide else column.cast(field.type))
    return pyarrow.RecordBatch.from_arrays(columns, schema=pyarrow.schema(schema))


def _student(job: Job, begins: list[tuple[int, int | None]], end_ns: int) -> Any:
    def study(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        source = _Pieces(batches)
        while (bucket := source.next_bucket()) is not None:
            storage = Storage(job["root"])
            scratch = storage.scratch()
            try:
                schema = pyarrow.schema(_airmile.record_schema())
                # The clock of the preceding parts, and numbers within the whole capture.
                pieces = source.pieces(bucket, begins)
                reader = pyarrow.RecordBatchReader.from_batches(schema, pieces)
                report = _airmile.study_bucket(
                    job["ask"], job["buckets"], bucket, [(reader, 0, None)], None, b"", end_ns,
                    scratch,
                )  # fmt: skip
                for name, _ in json.loads(report)["files"]:
                    storage.keep(scratch / name, name)
                yield pyarrow.RecordBatch.from_arrays([pyarrow.array([report])], names=["report"])
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    return study


class _Pieces:
    """Batches sorted by bucket and part, split where these change."""

    def __init__(self, batches: Iterator[pyarrow.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pyarrow.RecordBatch | None = None

    def _fill(self) -> bool:
        while self._rest is None or self._rest.num_rows == 0:
            self._rest = next(self._batches, None)
            if self._rest is None:
                return False
        return True

    def next_bucket(self) -> int | None:
        """The next bucket; `None` at the end."""
        if not self._fill() or self._rest is None:
            return None
        return int(self._rest.column("bucket")[0].as_py())

    def pieces(
        self, bucket: int, begins: list[tuple[int, int | None]]
    ) -> Iterator[pyarrow.RecordBatch]:
        """One bucket, with numbers and clock of the whole capture."""
        import pyarrow
        from pyarrow import compute

        while self._fill() and self._rest is not None:
            rest = self._rest
            part = rest.column("part")[0].as_py()
            if rest.column("bucket")[0].as_py() != bucket:
                return
            same = compute.and_(
                compute.equal(rest.column("bucket"), bucket),
                compute.equal(rest.column("part"), part),
            )
            n = compute.index(same, False).as_py()
            n = rest.num_rows if n < 0 else n
            self._rest = rest.slice(n)
            batch = _unsigned(rest.slice(0, n))
            first, clock_ns = begins[part]
            numbers = compute.add(batch.column("packet"), pyarrow.scalar(first, pyarrow.uint64()))
            batch = batch.set_column(0, batch.schema.field(0), numbers)
            if clock_ns is not None:
                clock = compute.max_element_wise(batch.column("clock_ns"), clock_ns)
                batch = batch.set_column(2, batch.schema.field(2), clock)
            yield batch

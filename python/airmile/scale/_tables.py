"""The tables of a run: Parquet files in directories, read on access."""

# mypy: disable-error-code="import-untyped,import-not-found"
from __future__ import annotations

from typing import Any

from airmile import _airmile
from airmile.errors import AirmileMissingLibraryError
from airmile.scale._storage import Storage

NAMES = (
    "flows",
    "tcp_events",
    "rtt_samples",
    "inflight_samples",
    "bandwidth_samples",
    "http",
    "dns",
    "users",
)


def _timed(schema: Any) -> Any:
    """The schema with times as timestamps in UTC."""
    import pyarrow

    for at, field in enumerate(schema):
        unit = _airmile.TIMES.get(field.name)
        if unit is not None:
            schema = schema.set(at, field.with_type(pyarrow.timestamp(unit, "UTC")))
    return schema


class StoredTable:
    """One table, as :class:`airmile.Table` takes it. Its rows have no order."""

    def __init__(self, storage: Storage, name: str, files: list[str]) -> None:
        self.name = name
        self._storage, self._files = storage, files

    def _read(self, columns: list[str] | None = None) -> Any:
        try:
            import pyarrow
            from pyarrow import dataset, fs
        except ImportError as error:
            raise AirmileMissingLibraryError(
                "tables of an engine need pyarrow: pip install 'airmile[ray]'"
            ) from error
        if not self._files:
            return pyarrow.table({})
        if self._storage.remote:
            store, _ = self._storage.found("")
            paths = [self._storage.found(name)[1] for name in self._files]
        else:
            store = fs.LocalFileSystem()
            paths = [str(self._storage.path(name)) for name in self._files]
        read = dataset.dataset(paths, filesystem=store, format="parquet")
        return read.to_table(columns=columns)

    def _timed(self) -> Any:
        """The rows, their times as timestamps in UTC."""
        table = self._read()
        return table.cast(_timed(table.schema))

    @property
    def columns(self) -> list[tuple[str, str, str | None]]:
        """Column name, type and documentation, in order."""
        schema = self._read([]).schema if not self._files else self._schema()
        doc = b"doc"
        return [
            (field.name, str(field.type), ((field.metadata or {}).get(doc) or b"").decode() or None)
            for field in _timed(schema)
        ]

    def _schema(self) -> Any:
        from pyarrow import parquet

        if self._storage.remote:
            store, path = self._storage.found(self._files[0])
            with store.open_input_file(path) as file:
                return parquet.read_schema(file)
        return parquet.read_schema(self._storage.path(self._files[0]))

    def __len__(self) -> int:
        return int(self._read([]).num_rows) if self._files else 0

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow PyCapsule interface: the rows."""
        return self._timed().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: the columns."""
        return _timed(
            self._read([]).schema if not self._files else self._schema()
        ).__arrow_c_schema__()

    def to_pylist(self, limit: int | None = None, offset: int = 0) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        rows: list[dict[str, Any]] = self._read().slice(offset, limit).to_pylist()
        return rows

    def column(self, name: str) -> list[Any] | None:
        """A column's values."""
        if name not in [column for column, _, _ in self.columns]:
            return None
        values: list[Any] = self._read([name])[name].to_pylist()
        return values

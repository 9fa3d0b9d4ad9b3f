"""Tables: Arrow data that data frame libraries read without a copy."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, overload

from airmile._times import as_utc
from airmile.errors import AirmileMissingLibraryError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import polars
    import pyarrow  # type: ignore[import-untyped,unused-ignore]

    from airmile import _airmile
    from airmile.scale._tables import StoredTable

_SHOWN_ROWS = 10


class Table:
    """Rows of a result, as Arrow.

    Any library with Arrow's PyCapsule interface reads it without a copy:
    `polars.DataFrame(table)`, `pyarrow.table(table)`,
    `pandas.DataFrame.from_arrow(table)` (pandas 3), DuckDB, and so on. Without
    one, it is a sequence of dictionaries (`table[0]`) with columns (`table["bytes"]`).

    Units are in the columns' names (`_ms`, `_bytes`, `_bps`, `_dbm`); `docs` describes
    each column. For other libraries times since the Unix epoch (`start_us`, `time_ns`)
    are timestamps in UTC of that resolution. Plain values (`table["start_us"]`,
    `to_dicts()`) are the document's: integers, as a `datetime` has no nanoseconds.
    """

    __slots__ = ("_table",)

    def __init__(self, table: _airmile.Table | StoredTable) -> None:
        self._table = table

    @property
    def name(self) -> str:
        """The kind of the rows: the record type, or the document's array."""
        return self._table.name

    @property
    def columns(self) -> list[str]:
        """The columns' names, in order."""
        return [name for name, _, _ in self._table.columns]

    @property
    def types(self) -> dict[str, str]:
        """The columns' Arrow types, by name."""
        return {name: kind for name, kind, _ in self._table.columns}

    @property
    def docs(self) -> dict[str, str]:
        """The description of each column, by name."""
        return {name: doc or "" for name, _, doc in self._table.columns}

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._table.to_pylist())

    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, key: str | int | slice) -> Any:
        """A column's values as a list (null is `None`), or a row, or rows.

        Raises:
            IndexError: there is no such row.
            KeyError: there is no such column.
        """
        if isinstance(key, slice):
            at = range(len(self))[key]
            rows = self._table.to_pylist(max(at) - min(at) + 1, min(at)) if at else []
            return rows[:: at.step]
        if isinstance(key, int):
            if not -len(self) <= key < len(self):
                raise IndexError(f"row {key}: {self.name} has {_rows(len(self))}")
            return self._table.to_pylist(1, key % len(self))[0]
        return self._column(key)

    def _column(self, column: str) -> list[Any]:
        values = self._table.column(column)
        if values is None:
            raise KeyError(f"{column!r}: {self.name} has {', '.join(self.columns)}")
        return values

    def to_dicts(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The rows (the first `limit` of them) as dictionaries."""
        return self._table.to_pylist(limit)

    def to_polars(self) -> polars.DataFrame:
        """A Polars data frame over the same memory."""
        try:
            import polars
        except ImportError as error:
            raise _missing("polars") from error
        return polars.DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:
        """A pyarrow table over the same memory."""
        try:
            import pyarrow
        except ImportError as error:
            raise _missing("pyarrow") from error
        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame (through pyarrow; columns with nulls are copied).

        pandas has no structs: their fields are columns, such as `shares.radio_signal`.
        """
        table = self.to_arrow()
        while any(str(field.type).startswith("struct") for field in table.schema):
            table = table.flatten()
        return table.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow PyCapsule interface: the rows."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: the columns."""
        return self._table.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<airmile.Table {self.name}: {_rows(len(self))} of {', '.join(self.columns)}>"

    def _ipython_key_completions_(self) -> list[str]:
        return self.columns

    def _repr_html_(self) -> str:
        head = "".join(
            f'<th title="{escape(doc or "")}">{escape(name)}</th>'
            for name, _, doc in self._table.columns
        )
        rows = "".join(
            f"<tr>{''.join(f'<td>{_cell(name, x)}</td>' for name, x in row.items())}</tr>"
            for row in self.to_dicts(_SHOWN_ROWS)
        )
        more = len(self) - _SHOWN_ROWS
        rest = f"<p>and {more} more rows</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    time = as_utc(name, value)
    if time is not None:
        return time
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return escape(text if len(text) <= 80 else text[:79] + "…")


def _missing(library: str) -> AirmileMissingLibraryError:
    return AirmileMissingLibraryError(f"{library} is not installed: pip install {library}")

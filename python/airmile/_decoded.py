"""The result of `decode`."""

from __future__ import annotations

from html import escape

from airmile import _airmile
from airmile._report import ReadReport, _Document
from airmile._table import Table


class Decoded(ReadReport):
    """Records, a table per type: `decoded.grant`, or `decoded["grant"]`.

    The types and their columns are those of `docs/records.md`. The document
    (`json()`, `to_dict()`) has the files' reports.
    """

    __slots__ = ("_tables",)

    def __init__(self, tables: list[_airmile.Table], document: _Document) -> None:
        super().__init__(document)
        self._tables = {table.name: Table(table) for table in tables}

    @property
    def damaged(self) -> bool:
        """Whether bytes or rows were lost to damage (the command's status 4)."""
        return bool(self._field("damaged"))

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by their record type, including empty ones."""
        return dict(self._tables)

    def __getitem__(self, record: str) -> Table:
        if record not in self._tables:
            raise KeyError(self._unknown(record))
        return self._tables[record]

    def _unknown(self, record: str) -> str:
        return f"no table {record!r}; there are {', '.join(self._tables)}"

    def __getattr__(self, record: str) -> Table:
        if record.startswith("_") or record not in self._tables:
            raise AttributeError(self._unknown(record))
        return self._tables[record]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._tables]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {len(t)}" for name, t in self._tables.items() if len(t))
        return f"<airmile.Decoded: {counts or 'no records'}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{len(table)}</td></tr>"
            for name, table in self._tables.items()
            if len(table)
        )
        head = "<th>record</th><th>rows</th>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

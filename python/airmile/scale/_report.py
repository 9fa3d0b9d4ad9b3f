"""The report of a study on an engine: its tables remain in their files."""

from __future__ import annotations

from airmile import _airmile
from airmile._packet_report import PacketReport
from airmile._report import Request
from airmile._table import Table
from airmile.scale._storage import Storage
from airmile.scale._tables import NAMES, StoredTable


class ScaledReport(PacketReport):
    """A :class:`airmile.PacketReport` whose tables are Parquet files in a directory.

    They are read on access, with pyarrow, and their rows have no order: sort
    by `flow` and time, or query the files (docs/recipes.md).
    """

    __slots__ = ("output",)

    def __init__(
        self, packets: _airmile.Packets, request: Request, storage: Storage, files: list[str]
    ) -> None:
        super().__init__(packets, request)
        self.output = storage.root
        for name in NAMES:
            own = [file for file in files if file.startswith(f"{name}/")]
            self._tables[name] = Table(StoredTable(storage, name, own))

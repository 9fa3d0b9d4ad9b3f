"""The result of a study of packet captures."""

from __future__ import annotations

import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from airmile import _airmile
from airmile._report import ReadReport, Request
from airmile._table import Table


class PacketReport(ReadReport):
    """A study of packet captures, each figure with the paper's for comparison.

    In addition to the document, it has the study's tables, as `airmile packets -o
    DIR` writes them: `flows`, `tcp_events`, `rtt_samples`, `inflight_samples`,
    `bandwidth_samples`, `http`, `dns`, `users`. A table's `docs` describe its
    columns; `dl` is towards the client, `_ns` nanoseconds.
    """

    __slots__ = ("_packets", "_tables", "request")

    def __init__(self, packets: _airmile.Packets, request: Request) -> None:
        super().__init__(packets)
        self._packets = packets
        self._tables = {table.name: Table(table) for table in packets.tables()}
        self.request = request

    @property
    def damaged(self) -> bool:
        """Whether bytes or rows were lost to damage (the command's status 4)."""
        return self._packets.damaged()

    @property
    def says(self) -> str:
        """A summary of the captures in one sentence."""
        return self._packets.says()

    @property
    def summary(self) -> Table:
        """A row per figure: `what` it is, its value `here` and the `paper`'s.

        `section` is the paper's, `n` the number of values; shares are 0 to 1. Values
        that the capture does not have are null.
        """
        return Table(self._packets.summary())

    @property
    def table1(self) -> Table:
        """Table 1 of the paper with this capture: percentiles next to those of other studies."""
        return Table(self._packets.table1())

    @property
    def quality(self) -> dict[str, Any]:
        """Facts that limit the other results: counts by name."""
        quality: dict[str, Any] = self.to_dict()["quality"]
        return quality

    @property
    def curves(self) -> dict[str, list[tuple[float, float]]]:
        """Cumulative distributions by name: points of value and share not above it."""
        curves: dict[str, list[list[float]]] = self.to_dict()["curves"]
        return {name: [(x, share) for x, share in points] for name, points in curves.items()}

    @property
    def files(self) -> Table:
        """A row per file: kind, bytes, `start_us`, `end_us`, frames, problems."""
        return Table(self._packets.files())

    @property
    def periodic(self) -> Table:
        """Requests at regular intervals: `period_s`, `requests`, `bytes`."""
        return Table(self._packets.periodic())

    @property
    def tables(self) -> dict[str, Table]:
        """All tables of the study by name, including empty ones."""
        return dict(self._tables)

    @property
    def flows(self) -> Table:
        """A row per flow: hosts, time, bytes, termination, losses, RTTs, bandwidth."""
        return self._tables["flows"]

    @property
    def tcp_events(self) -> Table:
        """A row per retransmission, duplicate ACK, reordering, slow start, ..."""
        return self._tables["tcp_events"]

    @property
    def rtt_samples(self) -> Table:
        """A row per RTT between monitor and client, with the bytes in flight."""
        return self._tables["rtt_samples"]

    @property
    def inflight_samples(self) -> Table:
        """A row per sample of the sender's window."""
        return self._tables["inflight_samples"]

    @property
    def bandwidth_samples(self) -> Table:
        """A row per estimate of the available bandwidth."""
        return self._tables["bandwidth_samples"]

    @property
    def http(self) -> Table:
        """A row per HTTP/1 request and its response."""
        return self._tables["http"]

    @property
    def dns(self) -> Table:
        """A row per DNS lookup."""
        return self._tables["dns"]

    @property
    def users(self) -> Table:
        """A row per user session: bytes, concurrency, radio time and energy."""
        return self._tables["users"]

    def html(self, path: str | os.PathLike[str], *, flow: str | Iterable[str | int] = ()) -> Path:
        """Write the study as one HTML file for any browser, without network access.

        The same as the command's `--html`. The captures are read again.

        Args:
            path: the file to write; an existing file is overwritten.
            flow: draw these flows instead of the most notable ones: numbers, or
                ends as `"10.0.0.1:40000-192.0.2.1:443"`.

        Returns:
            The path.

        Raises:
            AirmileInputError: a capture cannot be read any more.
            AirmileOptionError: `path` is one of the captures, or there is no such flow.
            AirmileOutputError: `path` cannot be written.

        >>> import tempfile, airmile as am
        >>> run = am.lab_run("receive-window", tempfile.mkdtemp())
        >>> page = am.packets(run.dir / "server.pcapng").html(run.dir / "study.html")
        >>> page.read_text()[:15]
        '<!doctype html>'
        """
        flows = [flow] if isinstance(flow, str) else [str(name) for name in flow]
        _airmile.packets_html(self.request.ask, flows, os.fspath(path))
        return Path(path)

    def text(self, all: bool = False) -> str:
        """The text that the command prints; with `all`, that of `-v`."""
        return self._packets.text(all)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<airmile.PacketReport: {self.says}>"

    def _repr_html_(self) -> str:
        known = [row for row in self.summary.to_dicts() if row["here"] is not None]
        rows = "".join(
            f"<tr><td>{escape(row['section'])}</td><td>{escape(row['what'])}</td>"
            f"<td>{_figure(row['here'], row['unit'])}</td>"
            f"<td>{_figure(row['paper'], row['unit'])}</td></tr>"
            for row in known
        )
        head = "<th>section</th><th>figure</th><th>here</th><th>paper</th>"
        return (
            f"<p><b>{escape(self.says)}</b></p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "share":
        return f"{value:.2%}"
    if unit == "bit/s":
        return f"{value / 1e6:.2f} Mbit/s"
    return escape(f"{value:,.4g} {unit}" if unit not in ("", "correlation") else f"{value:.4g}")

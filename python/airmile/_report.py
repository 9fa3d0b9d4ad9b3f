"""Results: the command's documents, with their arrays as tables."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Protocol

from airmile import _airmile
from airmile._table import Table

# Those of the HTML report (web/src/report.css), after Okabe and Ito: distinguishable with any
# colour vision.
VERDICT_COLOURS = {
    "radio": "#0072b2",
    "mixed": "#a5457e",
    "not_radio": "#c77700",
    "unknown": "#6b757d",
}

_EXPLAINED = 3


@dataclass(frozen=True)
class Request:
    """The arguments of a call, so that a figure or a file can read the same input again."""

    ask: dict[str, Any]

    @property
    def files(self) -> list[str]:
        """The files."""
        files: list[str] = self.ask["files"]
        return files

    @property
    def from_(self) -> str | None:
        """The start limit: everything before it is ignored."""
        limit: str | None = self.ask["from"]
        return limit

    @property
    def to(self) -> str | None:
        """The end limit: everything from it on is ignored."""
        limit: str | None = self.ask["to"]
        return limit


class _Document(Protocol):
    def json(self) -> str: ...


class Report:
    """A document, as the command's `--json` prints it."""

    __slots__ = ("_document",)

    def __init__(self, document: _Document) -> None:
        self._document = document

    def json(self) -> str:
        """The document's text, the same as the command's `--json`.

        Its schema is `docs/schema/<command>.json`, in the version of its field `version`.
        """
        return self._document.json()

    def to_dict(self) -> dict[str, Any]:
        """The document as plain dictionaries, lists, numbers and text."""
        document: dict[str, Any] = json.loads(self.json())
        return document


class InspectReport(Report):
    """What files contain, and which questions they can answer."""

    __slots__ = ("_inspect",)

    def __init__(self, inspect: _airmile.Inspect) -> None:
        super().__init__(inspect)
        self._inspect = inspect

    @property
    def damaged(self) -> bool:
        """Whether bytes or rows were lost to damage (the command's status 4)."""
        return self._inspect.damaged()

    @property
    def can_answer(self) -> list[str]:
        """The questions that the files can answer, with the evidence."""
        answers: list[str] = self.to_dict()["can_answer"]
        return answers

    @property
    def files(self) -> Table:
        """A row per file: kind, bytes, `start_us`, `end_us`, records, problems."""
        return Table(self._inspect.files())

    @property
    def messages(self) -> Table:
        """A row per log code, version and file: `count`, and the number `decoded`."""
        return Table(self._inspect.messages())

    @property
    def missing(self) -> Table:
        """`what` is missing for a better result, and `how_to_capture` it."""
        return Table(self._inspect.missing())

    def __str__(self) -> str:
        return self._inspect.text()

    def __repr__(self) -> str:
        kinds = ", ".join(self.files["kind"])
        return f"<airmile.InspectReport: {kinds}; answers {len(self.can_answer)} questions>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Analysis(Report):
    """A result that can write files: a report, a trace."""

    __slots__ = ("request",)

    _of_radio: ClassVar[bool] = False

    def __init__(self, document: _Document, request: Request) -> None:
        super().__init__(document)
        self.request = request

    def html(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as one HTML file for any browser, without network access.

        The same as the command's `--html`. The files are read again, since the
        result does not hold every grant.

        Args:
            path: the file to write; an existing file is overwritten.

        Returns:
            The path.

        Raises:
            AirmileInputError: a file cannot be read any more.
            AirmileOptionError: `path` is one of the input files.
            AirmileOutputError: `path` cannot be written.

        >>> import tempfile, airmile as am
        >>> run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())
        >>> page = am.diagnose(run.log).html(run.dir / "report.html")
        >>> page.read_text()[:15]
        '<!doctype html>'
        """
        _airmile.export(self.request.ask, os.fspath(path), None, self._of_radio)
        return Path(path)

    def perfetto(self, path: str | os.PathLike[str]) -> Path:
        """Write a trace for ui.perfetto.dev.

        Transfers, bursts and grants are slices; PRBs per TTI, buffers, cell load
        and signal are counters. Times are the log's clock. The same as the
        command's `--perfetto`; arguments and errors are those of :meth:`html`.

        >>> import tempfile, airmile as am
        >>> run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())
        >>> trace = am.diagnose(run.log).perfetto(run.dir / "trace.pftrace")
        >>> b"Downlink bursts" in trace.read_bytes()
        True
        """
        _airmile.export(self.request.ask, None, os.fspath(path), self._of_radio)
        return Path(path)


class RadioReport(Analysis):
    """Bursts, throughput time and link demand.

    *Throughput time* is the time during which the user's queue was not empty;
    *link demand* is throughput time / duration (BurstTracker, MobiCom 2019).
    """

    __slots__ = ("_radio",)

    _of_radio: ClassVar[bool] = True

    def __init__(self, radio: _airmile.Radio, request: Request) -> None:
        super().__init__(radio, request)
        self._radio = radio

    @property
    def damaged(self) -> bool:
        """Whether bytes or rows were lost to damage (the command's status 4)."""
        return self._radio.damaged()

    @property
    def subscription(self) -> int:
        """The analysed subscription of a multi-SIM phone."""
        return self._radio.subscription()

    @property
    def tti_ms(self) -> float:
        """Length of a TTI in ms: 1 in LTE, in NR that of a slot."""
        return self._radio.tti_ms()

    @property
    def n_prb_cell(self) -> int | None:
        """Downlink bandwidth of the cell in PRBs."""
        return self._radio.n_prb_cell()

    @property
    def transfers(self) -> Table:
        """A row per transfer.

        `id`, `dir`, `start_us`, `end_us` (exclusive), `start_tti`, `end_tti`,
        `duration_ms`, `bytes`, `throughput_time_ms`, `sched_wait_ms`,
        `limited_ms`, `granted_ms`, `active_time_ms`, `unknown_ms`, `link_demand` (0 to 1),
        `link_throughput_bps`, `burst_throughput_bps`, `evidence`, `verdict`,
        `confidence` (0 to 1), `overlapped`, `notes`. Values
        without a source are null.
        """
        return Table(self._radio.transfers())

    @property
    def bursts(self) -> Table:
        """A row per time with a non-empty queue; downlink, then uplink.

        `start_tti`, `end_tti` (exclusive; the TTI that empties the queue does
        not count), `bytes`, `scheduled_ttis`, `unknown_ttis`, `opened_by`,
        `closed_by`, `confidence` (0 to 1). A TTI lasts `tti_ms`.
        """
        return Table(self._radio.bursts())

    @property
    def usage(self) -> Table:
        """Allocation and signal during each transfer, in the order of `transfers`.

        Shares are 0 to 1; `rsrp_dbm`, `rsrq_db`, `snr_db` are means.
        """
        return Table(self._radio.usage())

    @property
    def cell_load(self) -> Table:
        """Load of the whole cell in windows; no rows if it is not estimated."""
        return Table(self._radio.cell_load())

    @property
    def cells(self) -> Table:
        """Serving cells: `pci`, `earfcn`, `measurements`."""
        return Table(self._radio.cells())

    @property
    def missing(self) -> Table:
        """`what` is missing for a better result, and `how_to_capture` it."""
        return Table(self._radio.missing())

    @property
    def files(self) -> Table:
        """A row per file: kind, bytes, `start_us`, `end_us`, records, problems."""
        return Table(self._radio.files())

    def text(self, all: bool = False) -> str:
        """The text that the command prints; with `all`, that of `-v`."""
        return self._radio.text(all)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        transfers = self.transfers
        verdicts = ", ".join(
            f"{id_}: {verdict}"
            for id_, verdict in list(zip(transfers["id"], transfers["verdict"], strict=True))[:5]
        )
        more = f", and {len(transfers) - 5} more" if len(transfers) > 5 else ""
        return f"<airmile.RadioReport: {verdicts or 'no transfers'}{more}>"

    def _repr_html_(self) -> str:
        return _transfers_html(self.transfers.to_dicts())


class Diagnosis(Analysis):
    """The bottleneck: one verdict for all transfers, and one for each."""

    __slots__ = ("_diagnose",)

    def __init__(self, diagnose: _airmile.Diagnose, request: Request) -> None:
        super().__init__(diagnose, request)
        self._diagnose = diagnose

    @property
    def damaged(self) -> bool:
        """Whether bytes or rows were lost to damage (the command's status 4)."""
        return self._diagnose.damaged()

    @property
    def verdict(self) -> str:
        """`radio`, `not_radio`, `mixed` or `unknown`, for all transfers together."""
        return self._diagnose.verdict()

    @property
    def confidence(self) -> float:
        """Confidence of the verdict, 0 to 1."""
        return self._diagnose.confidence()

    @property
    def link_demand(self) -> float | None:
        """Share of the time in which data waited for the link, 0 to 1."""
        return self._diagnose.link_demand()

    @property
    def says(self) -> str:
        """The verdict in a sentence."""
        return self._diagnose.says()

    @property
    def transfers(self) -> Table:
        """A row per transfer.

        `id`, `verdict`, `confidence`, `shares` (`key` a cause, `value` ms,
        which add up to the duration), `counterfactual_ms` (its duration without
        the leading cause) with `counterfactual_low_ms` and
        `counterfactual_high_ms`, `evidence` (`what`, `value`, `unit`,
        `from_tti`, `to_tti`), `next_step`, and the measures of `radio`; with an
        application's log `name` (URL) and `application` (phases, stalls).
        """
        return Table(self._diagnose.transfers())

    @property
    def cells(self) -> Table:
        """Serving cells: `pci`, `earfcn`, `measurements`."""
        return Table(self._diagnose.cells())

    @property
    def missing(self) -> Table:
        """`what` is missing for a better result, and `how_to_capture` it."""
        return Table(self._diagnose.missing())

    @property
    def files(self) -> Table:
        """A row per file: kind, bytes, `start_us`, `end_us`, records, problems."""
        return Table(self._diagnose.files())

    def text(self, all: bool = False) -> str:
        """The text that the command prints; with `all`, that of `-v`."""
        return self._diagnose.text(all)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<airmile.Diagnosis: {self.verdict}, confidence {self.confidence:.0%}. {self.says}>"

    def _repr_html_(self) -> str:
        transfers = self.transfers.to_dicts()
        colour = VERDICT_COLOURS.get(self.verdict, VERDICT_COLOURS["unknown"])
        parts = [
            f'<p style="border-left:6px solid {colour};padding-left:8px">'
            f"<b>{escape(self.says)}</b><br>{escape(self.verdict)}, "
            f"confidence {self.confidence:.0%}</p>",
            _transfers_html(transfers),
        ]
        largest = sorted(transfers, key=lambda t: t["bytes"] or 0, reverse=True)
        for transfer in largest[:_EXPLAINED]:
            evidence = "".join(f"<li>{escape(item['what'])}</li>" for item in transfer["evidence"])
            parts.append(
                f"<p><b>{escape(transfer['id'])}</b>: {escape(transfer['verdict'])}</p>"
                f"<ul>{evidence}</ul><p>Next: {escape(transfer['next_step'])}</p>"
            )
        return "".join(parts)


class Decoded(Report):
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
        damaged: bool = self.to_dict()["damaged"]
        return damaged

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by their record type, including empty ones."""
        return dict(self._tables)

    def __getitem__(self, record: str) -> Table:
        return self._tables[record]

    def __getattr__(self, record: str) -> Table:
        if record.startswith("_") or record not in self._tables:
            raise AttributeError(f"no table {record!r}; there are {', '.join(self._tables)}")
        return self._tables[record]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._tables]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {len(t)}" for name, t in self._tables.items() if len(t))
        return f"<airmile.Decoded: {counts or 'no records'}>"


class LabRun(Report):
    """The files of a run of the lab, and its truth."""

    __slots__ = ("_run",)

    def __init__(self, run: _airmile.LabRun) -> None:
        super().__init__(run)
        self._run = run

    @property
    def dir(self) -> Path:
        """The directory."""
        return Path(self.to_dict()["dir"])

    @property
    def log(self) -> Path:
        """The modem log of the run."""
        return self.dir / "modem.mi2log"

    @property
    def transfers_csv(self) -> Path:
        """The application's record of the transfers, for `transfers=`."""
        return self.dir / "transfers.csv"

    @property
    def files(self) -> list[Path]:
        """All files of the run, including the truth."""
        return [self.dir / file["name"] for file in self.to_dict()["files"]]

    @property
    def transfers(self) -> Table:
        """`id`, `dir` and the true `link_demand` of each transfer."""
        return Table(self._run.transfers())

    def __repr__(self) -> str:
        document = self.to_dict()
        return f"<airmile.LabRun: {document['scenario']}, seed {document['seed']}, in {self.dir}>"


def _transfers_html(transfers: list[dict[str, Any]]) -> str:
    def number(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    rows = []
    for transfer in transfers:
        colour = VERDICT_COLOURS.get(transfer["verdict"], VERDICT_COLOURS["unknown"])
        cells = [
            escape(transfer["id"]),
            f'<span style="color:{colour}">&#9632;</span> {escape(transfer["verdict"])}',
            f"{transfer['confidence']:.0%}",
            number(transfer["link_demand"], ".0%"),
            number(transfer["duration_ms"], ".0f"),
            number(transfer["throughput_time_ms"], ".0f"),
            number(transfer["bytes"], ",d"),
        ]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(
        f"<th>{name}</th>"
        for name in (
            "transfer",
            "verdict",
            "confidence",
            "link demand",
            "duration ms",
            "throughput time ms",
            "bytes",
        )
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

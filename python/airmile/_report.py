"""Results: the command's documents, with their arrays as tables."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from airmile import _airmile, documents
from airmile._table import Table

# Those of the HTML report (web/src/report.css); verdicts without a cause after Okabe and Ito:
# distinguishable with any colour vision.
VERDICT_COLOURS = {
    "radio": "#0072b2",
    "mixed": "#a5457e",
    "not_radio": "#c77700",
    "radio_contention": "#3a94cc",
    "radio_signal": "#0072b2",
    "slow_start_restart": "#c2410c",
    "undesired_slow_start": "#b91c1c",
    "first_slow_start": "#eab308",
    "receive_window": "#7c3aed",
    "sender_limited": "#0d9488",
    "wireline": "#65a30d",
    "loss_recovery_radio": "#db2777",
    "loss_recovery_congestion": "#db2777",
    "setup": "#94a3b8",
    "uplink_queue": "#f59e0b",
    "unknown": "#6b757d",
}

_EXPLAINED = 3
# Transfers listed in a notebook (chosen here: a screen).
_LISTED = 25

P = TypeVar("P", bound=documents.Part)


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

    __slots__ = ("_document", "_parsed")

    def __init__(self, document: _Document) -> None:
        self._document = document
        self._parsed: dict[str, Any] | None = None

    def json(self) -> str:
        """The document's text, the same as the command's `--json`.

        Its schema is `docs/schema/<command>.json`, in the version of its field `version`.
        """
        return self._document.json()

    def to_dict(self) -> dict[str, Any]:
        """The document as plain dictionaries, lists, numbers and text."""
        document: dict[str, Any] = json.loads(self.json())
        return document

    def _field(self, name: str) -> Any:
        """A field of the document, which is parsed once."""
        if self._parsed is None:
            self._parsed = self.to_dict()
        return self._parsed[name]

    def _part(self, name: str, kind: type[P]) -> P:
        """A part of the document, typed."""
        return kind._of(self._field(name))

    def _parts(self, name: str, kind: type[P]) -> list[P]:
        return [kind._of(part) for part in self._field(name)]

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class ReadReport(Report):
    """A result of files that were read."""

    __slots__ = ()

    @property
    def problems(self) -> list[tuple[str, documents.Problem]]:
        """What is wrong with the inputs: a file and, of it, the offset, severity and text."""
        return [
            (file.path, problem)
            for file in self._parts("files", documents.FileReport)
            for problem in file.problems
        ]


class InspectReport(ReadReport):
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


class Analysis(ReadReport):
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
        return _transfers_html(self.transfers.to_dicts(_LISTED), len(self.transfers))


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
        """The bottleneck of all transfers together.

        `radio`, `not_radio`, `mixed` or `unknown`; with captures, a cause
        (`airmile.documents.Cause`).
        """
        return self._diagnose.verdict()

    @property
    def confidence(self) -> float:
        """Confidence of the verdict, 0 to 1."""
        return self._diagnose.confidence()

    @property
    def session(self) -> documents.SessionVerdict:
        """The verdict on all transfers together, with the shares of its causes."""
        return self._part("session", documents.SessionVerdict)

    @property
    def per_transfer(self) -> list[documents.TransferDiagnosis]:
        """The verdict on each transfer, with its evidence: the rows of `transfers`, typed."""
        return self._parts("transfers", documents.TransferDiagnosis)

    @property
    def pages(self) -> list[documents.Page]:
        """The pages of browser logs: verdict, requests, critical path."""
        return self._parts("pages", documents.Page)

    @property
    def players(self) -> list[documents.PlayerSession]:
        """The players of logs: what stalls and changes of bitrate waited for."""
        return self._parts("players", documents.PlayerSession)

    @property
    def applications(self) -> list[documents.ApplicationSummary]:
        """The contents of applications' logs."""
        return self._parts("applications", documents.ApplicationSummary)

    @property
    def clocks(self) -> list[documents.ClockReport]:
        """The offsets between the files' clocks."""
        return self._parts("clocks", documents.ClockReport)

    @property
    def ecn(self) -> list[documents.EcnReport]:
        """Congestion marks, by direction."""
        return self._parts("ecn", documents.EcnReport)

    @property
    def evidence_counts(self) -> documents.EvidenceCounts:
        """The amount of each kind of evidence."""
        return self._part("evidence_counts", documents.EvidenceCounts)

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

        `id`, `verdict`, `confidence`, `shares` (ms by cause, which add up to the
        duration; `radio`, `not_radio` and `unknown` without captures; a struct for other
        libraries, null where it does not apply), `counterfactual_ms` (its duration without
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
        colour = VERDICT_COLOURS[self.verdict]
        parts = [
            f'<p style="border-left:6px solid {colour};padding-left:8px">'
            f"<b>{escape(self.says)}</b><br>{escape(self.verdict)}, "
            f"confidence {self.confidence:.0%}</p>",
            *(f"<p>{escape(page.url)}: {escape(page.says)}</p>" for page in self.pages),
            *(f"<p>{escape(player.says)}</p>" for player in self.players),
            _transfers_html(self.transfers.to_dicts(_LISTED), len(self.transfers)),
        ]
        largest = sorted(self.per_transfer, key=lambda t: t.bytes or 0, reverse=True)
        for transfer in largest[:_EXPLAINED]:
            evidence = "".join(f"<li>{escape(item.what)}</li>" for item in transfer.evidence)
            parts.append(
                f"<p><b>{escape(transfer.id)}</b>: {escape(transfer.verdict)}</p>"
                f"<ul>{evidence}</ul><p>Next: {escape(transfer.next_step)}</p>"
            )
        return "".join(parts)


def _transfers_html(transfers: list[dict[str, Any]], of: int) -> str:
    def number(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    rows = []
    for transfer in transfers:
        colour = VERDICT_COLOURS[transfer["verdict"]]
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
    rest = f"<p>and {of - len(transfers)} more transfers</p>" if of > len(transfers) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{rest}"

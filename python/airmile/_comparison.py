"""The results of `compare` and `scrub`."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from airmile import _airmile, documents
from airmile._report import ReadReport, Report
from airmile._table import Table


class Comparison(ReadReport):
    """Whether groups of downloads differ, and in what."""

    __slots__ = ("_compare",)

    def __init__(self, compare: _airmile.Compare) -> None:
        super().__init__(compare)
        self._compare = compare

    @property
    def damaged(self) -> bool:
        """Whether bytes or rows were lost to damage (the command's status 4)."""
        return self._compare.damaged()

    @property
    def verdict(self) -> str:
        """The verdict.

        `middlebox_restarts`, `restarts`, `throttling`, `page_load_time`,
        `no_difference` or `cannot_tell`.
        """
        return str(self._field("verdict"))

    @property
    def confidence(self) -> float:
        """Confidence of the verdict, 0 to 1: 1 minus its p."""
        return self._compare.confidence()

    @property
    def says(self) -> str:
        """The verdict in a sentence."""
        return self._compare.says()

    @property
    def notes(self) -> list[str]:
        """Remarks on the verdict, or why there is none."""
        return list(self._field("notes"))

    @property
    def next_step(self) -> str:
        """What to do next."""
        return str(self._field("next_step"))

    @property
    def grouped_by(self) -> str:
        """What the groups are: `port` or `run`."""
        return str(self._field("grouped_by"))

    @property
    def groups(self) -> Table:
        """A row per group: `name`, `transfers`, and its measures.

        A measure is a struct of `value`, `low`, `high` (interval of 95 %) and `n`.
        """
        return Table(self._compare.groups())

    @property
    def pairs(self) -> Table:
        """A row per pair of groups: the differences, `second` minus `first`, and their p."""
        return Table(self._compare.pairs())

    @property
    def pages(self) -> list[documents.ComparedPage]:
        """The pages that several runs loaded: load times and causes in each run."""
        return self._parts("pages", documents.ComparedPage)

    @property
    def runs(self) -> Table:
        """A row per run: `path`, number of `transfers`, and how they were `seen_by`."""
        return Table(self._compare.runs())

    @property
    def missing(self) -> Table:
        """`what` is missing for a better result, and `how_to_capture` it."""
        return Table(self._compare.missing())

    @property
    def files(self) -> Table:
        """A row per file: kind, bytes, `start_us`, `end_us`, records, problems."""
        return Table(self._compare.files())

    def text(self, all: bool = False) -> str:
        """The text that the command prints; with `all`, that of `-v`."""
        return self._compare.text(all)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        confidence = f"confidence {self.confidence:.0%}"
        return f"<airmile.Comparison: {self.verdict}, {confidence}. {self.says}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.says)}</b></p><pre>{escape(self.text())}</pre>"


class ScrubReport(Report):
    """Copies that can be shared, and what was changed in them."""

    __slots__ = ("_scrub",)

    def __init__(self, scrub: _airmile.Scrub) -> None:
        super().__init__(scrub)
        self._scrub = scrub

    @property
    def damaged(self) -> bool:
        """Whether bytes of an input were lost to damage (the command's status 4)."""
        return self._scrub.damaged()

    @property
    def copies(self) -> list[Path]:
        """The copies."""
        return [self.manifest.parent / name for name in self.files["output"]]

    @property
    def inputs(self) -> list[Path]:
        """The originals, in the order of the copies."""
        return [Path(path) for path in self._scrub.inputs()]

    @property
    def key(self) -> Path:
        """The key file: keep it, and do not share it."""
        return Path(self._scrub.key_file())

    @property
    def key_made(self) -> bool:
        """Whether the key is new."""
        return self._scrub.key_made()

    @property
    def manifest(self) -> Path:
        """The list of changes next to the copies: the document that `json` has."""
        return Path(self._scrub.manifest())

    @property
    def files(self) -> Table:
        """A row per copy: sizes, digests, counts of `changes`, `problems`."""
        return Table(self._scrub.files())

    @property
    def left_out(self) -> Table:
        """A row per file of a directory that was not copied."""
        return Table(self._scrub.left_out())

    @property
    def kept(self) -> list[str]:
        """What was left unchanged, in words."""
        return list(self._field("kept"))

    @property
    def lacks(self) -> list[str]:
        """What results of the copies lack, in words."""
        return list(self._field("lacks"))

    def __str__(self) -> str:
        return self._scrub.text()

    def __repr__(self) -> str:
        names: Any = ", ".join(str(path) for path in self.copies)
        return f"<airmile.ScrubReport: {names or 'no copies'}; key {self.key}>"

"""The lab: emulated cells, and the experiments of papers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from airmile import _airmile
from airmile._call import checked
from airmile._report import Report
from airmile._table import Table
from airmile.errors import AirmileOptionError


class Scenario(NamedTuple):
    """A scenario of the lab."""

    name: str
    about: str


class Experiment(NamedTuple):
    """A table or figure of a paper that the lab can repeat."""

    name: str
    source: str
    about: str


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

    def __str__(self) -> str:
        return self._run.text()

    def __repr__(self) -> str:
        document = self.to_dict()
        return f"<airmile.LabRun: {document['scenario']}, seed {document['seed']}, in {self.dir}>"


class Reproduction(Report):
    """Experiments of papers, each value with the paper's."""

    __slots__ = ("_done",)

    def __init__(self, done: _airmile.LabReproduction) -> None:
        super().__init__(done)
        self._done = done

    @property
    def rows(self) -> Table:
        """A row per value: `experiment`, `what`, `unit`, `paper`, `ours`, `ratio`, `n`, ...

        `low` and `high` are the 95 % interval, `held` states whether the threshold
        (`at_least`, `at_most`) was met; null: there is none.
        """
        return Table(self._done.rows())

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Experiments that were skipped, failed or are invalid, with the reason."""
        return [
            (experiment["name"], experiment[kind])
            for experiment in self.to_dict()["experiments"]
            for kind in ("skipped", "failed", "invalid")
            if kind in experiment
        ]

    def __str__(self) -> str:
        return self._done.text()

    def __repr__(self) -> str:
        document: dict[str, Any] = self.to_dict()
        names = ", ".join(experiment["name"] for experiment in document["experiments"])
        held = [held for held in self.rows["held"] if held is not None]
        bars = f", {sum(held)} of {len(held)} bars held" if held else ""
        return f"<airmile.Reproduction, {document['size']}: {names}{bars}>"


def lab_list() -> list[Scenario]:
    """List the scenarios of the lab.

    >>> import airmile as am
    >>> "sample-download" in [scenario.name for scenario in am.lab_list()]
    True
    """
    return [Scenario(name, about) for name, about in _airmile.lab_list()]


@checked
def lab_run(
    scenario: str, output: str | os.PathLike[str], *, seed: int | None = None, force: bool = False
) -> LabRun:
    """Run a scenario: writes a modem log, tables and the truth to a directory.

    Args:
        scenario: a name of :func:`lab_list`, or a scenario file.
        output: the directory for the results; created if missing.
        seed: a seed instead of the scenario's; the same seed gives the same
            files.
        force: replace an earlier run in the directory: deletes the files that it
            wrote and keeps all others.

    Raises:
        AirmileOptionError: the scenario does not exist, or the seed is out of range.
        AirmileOutputError: the directory or a file cannot be written.

    >>> import tempfile, airmile as am
    >>> run = am.lab_run("sample-rate-limited", tempfile.mkdtemp())
    >>> run.log.name, run.transfers["id"]
    ('modem.mi2log', ['paced'])
    """
    if seed is not None and not 0 <= seed < 2**64:
        raise AirmileOptionError(f"seed: {seed} is out of range")
    return LabRun(_airmile.lab_run(scenario, seed, force, os.fspath(output)))


def lab_experiments() -> list[Experiment]:
    """List the experiments of :func:`lab_reproduce`.

    >>> import airmile as am
    >>> [e.source for e in am.lab_experiments() if e.name == "bursttracker-table1"]
    ['BurstTracker, MobiCom 2019, table 1']
    """
    return [Experiment(*experiment) for experiment in _airmile.lab_experiments()]


@checked
def lab_reproduce(
    names: str | Iterable[str] = (),
    *,
    size: Literal["quick", "default", "full"] = "default",
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Reproduction:
    """Repeat tables and figures of papers, with the papers' values.

    Takes from a second (`"quick"`, one experiment) to hours; Ctrl-C ends it after the
    current experiment. Those between real hosts are skipped, `airmile lab
    reproduce` runs them.

    Args:
        names: experiments (:func:`lab_experiments`), or a paper's prefix (`"qcut"`);
            all by default.
        size: `"quick"`: one short run of each, which shows only that it works;
            `"full"`: the papers' number of runs.
        output: a directory for the rows, figures and points, written after each
            experiment.
        force: replace an earlier reproduction in the directory.

    Raises:
        AirmileFormatError: the directory holds an earlier reproduction.
        AirmileOptionError: an experiment does not exist.
        AirmileOutputError: the directory or a file cannot be written.

    >>> import airmile as am
    >>> done = am.lab_reproduce("bursttracker-thresholds", size="quick")
    >>> done.rows.columns[:6]
    ['experiment', 'source', 'what', 'unit', 'paper', 'ours']
    """
    listed = [names] if isinstance(names, str) else list(names)
    directory = None if output is None else os.fspath(output)
    return Reproduction(_airmile.lab_reproduce(listed, size, directory, force))

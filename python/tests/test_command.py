"""The command that the wheel installs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import airmile as am

Command = Callable[..., subprocess.CompletedProcess[bytes]]


def test_version_and_help(command: Command) -> None:
    version = command("-V")
    assert version.returncode == 0
    # A build from a checkout has its commit after the version.
    words = version.stdout.decode().split()
    assert words[:2] == ["airmile", am.__version__]
    assert len(words) <= 3
    lines = command("--version").stdout.decode().splitlines()
    assert lines[0].split() == words
    assert [line.split(":")[0] for line in lines[1:]] == ["commit", "features", "target"]
    assert b"Usage: airmile " in command("radio", "--help").stdout


def test_exit_statuses_and_streams(command: Command, run: am.LabRun) -> None:
    done = command("diagnose", run.log)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Verdict: not radio" in done.stdout
    over = command("diagnose", run.log, "--fail-if", "link_demand < 0.5")
    assert over.returncode == 1
    usage = command("diagnose", run.log, "--evidence", "guess")
    assert (usage.returncode, usage.stdout) == (2, b"")
    assert command("diagnose", run.dir / "none").returncode == 3


def test_as_a_module(run: am.LabRun) -> None:
    args: list[Any] = [sys.executable, "-m", "airmile", "inspect", run.log]
    done = subprocess.run(args, capture_output=True, check=True)
    assert done.stdout.decode() == str(am.inspect(run.log))


def test_standard_input_and_a_reader_that_has_seen_enough(command: Command, run: am.LabRun) -> None:
    line = f"'{sys.executable}' -m airmile"
    piped = subprocess.run(
        f"cat '{run.log}' | {line} decode - | head -1; echo ${{PIPESTATUS[*]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        check=True,
    )
    assert piped.stdout.splitlines()[0].startswith(b"{")
    assert piped.stdout.splitlines()[1].split()[1] == b"0", piped.stderr

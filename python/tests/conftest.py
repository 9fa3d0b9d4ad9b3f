from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import airmile as am

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> am.LabRun:
    return am.lab_run("sample-rate-limited", tmp_path_factory.mktemp("rate-limited"))


@pytest.fixture(scope="session")
def download(tmp_path_factory: pytest.TempPathFactory) -> am.LabRun:
    return am.lab_run("sample-download", tmp_path_factory.mktemp("download"))


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At the server: one download, limited by the client's window."""
    run = am.lab_run("receive-window", tmp_path_factory.mktemp("receive-window"))
    return run.dir / "server.pcapng"


@pytest.fixture(scope="session")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At the server: one download with losses; the radio is its bottleneck."""
    run = am.lab_run("undesired-slow-start", tmp_path_factory.mktemp("lossy"))
    return run.dir / "server.pcapng"


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """The command that the wheel installs."""

    def call(*args: object) -> subprocess.CompletedProcess[bytes]:
        path = Path(sys.executable).parent / "airmile"
        return subprocess.run([path, *map(str, args)], capture_output=True, check=False)

    return call


@pytest.fixture(scope="session")
def document(command: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """A `--json` document of the command."""

    def call(*args: object) -> dict[str, Any]:
        done = command(*args, "--json")
        assert done.returncode == 0, done.stderr.decode()
        parsed: dict[str, Any] = json.loads(done.stdout)
        return parsed

    return call

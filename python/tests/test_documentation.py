"""Examples run, the notebook runs, type annotations are correct."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import airmile as am

REPOSITORY = Path(__file__).parents[2]
PACKAGE = Path(am.__file__).parent


@pytest.mark.parametrize(
    "name",
    [
        name
        for _, name, _ in pkgutil.walk_packages([str(PACKAGE)], "airmile.")
        if not name.endswith("__main__")
    ]
    + ["airmile"],
)
def test_docstrings(name: str) -> None:
    if name == "airmile._airmile":
        pytest.skip("compiled")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_function_has_an_example() -> None:
    finder = doctest.DocTestFinder()
    functions = [name for name in am.__all__ if inspect.isfunction(getattr(am, name))]
    assert {"diagnose", "compare", "scrub", "lab_reproduce"} <= set(functions)
    for name in functions:
        tests = finder.find(getattr(am, name), name)
        assert any(test.examples for test in tests), name


@pytest.mark.parametrize("path", sorted((REPOSITORY / "python/examples").glob("*.py")))
def test_examples(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_python_page(run: am.LabRun, tmp_path: Path) -> None:
    """The code of docs/python.md runs, and the exceptions that its text names exist."""
    pytest.importorskip("polars")
    pytest.importorskip("matplotlib")
    page = (REPOSITORY / "docs/python.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert programs
    for name in re.findall(r"`airmile\.(\w+)`", page):
        assert hasattr(am, name), name
    shutil.copy(run.log, tmp_path / "log.mi2log")
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert {"report.html", "trace.pftrace"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("name", "words"),
    [("is_it_the_air", "not_radio"), ("packets-study", "undesired slow start, of large flows")],
)
def test_notebook(name: str, words: str, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    path = REPOSITORY / f"docs/notebooks/{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "clear the outputs"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=resources
    ).execute()
    shown = [
        output["data"].get("text/html", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    assert any(words in html for html in shown)


def test_types_of_documents_are_the_schemas() -> None:
    script = REPOSITORY / "tests/docs/python_documents.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()


def test_types() -> None:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "-p", "airmile"],
        capture_output=True,
        check=False,
        text=True,
        cwd=REPOSITORY / "python/tests",
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml",
         "python/tests", "python/examples"],
        capture_output=True,
        check=False,
        text=True,
        cwd=REPOSITORY,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("args", [["check"], ["format", "--check"]])
def test_style(args: list[str]) -> None:
    pytest.importorskip("ruff")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *args, "--no-cache", "python"],
        capture_output=True,
        check=False,
        text=True,
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stdout + done.stderr

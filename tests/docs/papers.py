"""Checks that the functions, types, tests and files that docs/papers name exist.

python papers.py     status 1, and a line for each name in backticks that is nowhere in the sources

A path of segments (`burst::fuse::decide_poll`) has to be defined, or be a module, where a file has
the other segments in its path or text; a name alone has to be a word of some source; a file or
directory has to be tracked. Names in a map's column `test` have to be functions. Of commands, the
files are checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SOURCES = {".rs", ".py", ".ts", ".mjs", ".c", ".h", ".toml"}
# A definition, a method of a trait, a field or a variant.
DEFINITION = re.compile(
    r"\b(?:fn|struct|enum|trait|type|const(?! +fn)|static|mod) +(\w+)"
    r"|^ +(?:pub(?:\([^)]*\))? )?(\w+) *[:,({]",
    re.MULTILINE,
)


def listed() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in out.splitlines() if (ROOT / name).exists()]


class Source:
    """A source file: its words, what it defines, and the parts of its path."""

    def __init__(self, name: str) -> None:
        text = (ROOT / name).read_text(errors="replace")
        self.defined = {one for pair in DEFINITION.findall(text) for one in pair if one}
        self.functions = set(re.findall(r"\bfn +(\w+)", text))
        self.modules = set(re.split(r"[/.]", name.replace("-", "_")))
        self.words = set(re.findall(r"\w+", text)) | self.modules


FILES = listed()
OWN = "tests/docs/papers.py"
ALL = [Source(name) for name in FILES if Path(name).suffix in SOURCES and name != OWN]
WORDS = {word for source in ALL for word in source.words}
FUNCTIONS = {name for source in ALL for name in source.functions}


def is_file(path: str) -> bool:
    """Whether it is a tracked file or directory, as a whole path or the end of one."""
    ends = f"*/{path.rstrip('/')}"
    return any(fnmatch(f"/{name}", ends) or fnmatch(f"/{name}", f"{ends}/*") for name in FILES)


def is_defined(path: str) -> bool:
    """Whether a file defines the last segment, or is it, and has all others."""
    *others, last = filter(None, path.split("::"))
    return any(
        (last in source.defined or last in source.modules) and source.words.issuperset(others)
        for source in ALL
    )


def is_known(name: str) -> bool:
    """Whether a text in backticks names what exists, or nothing of the sources."""
    if "::" in name:
        head, _, group = name.partition("{")
        return all(is_defined(head + last.strip(" }")) for last in group.split(","))
    if re.search(r"[\s$%<>+=\"']|^[-\d]", name):
        return all(is_file(word) for word in name.split() if Path(word).suffix in SOURCES)
    if "/" in name or Path(name).suffix in SOURCES:
        return is_file(name)
    return "*" in name or WORDS.issuperset(re.findall(r"[A-Za-z_]\w*", name))


def missing(page: Path) -> list[str]:
    """The names of a page that do not exist."""
    found, tests = [], None
    for line in FENCE.sub("", page.read_text()).splitlines():
        cells = [cell.strip() for cell in line.split("|")] if line.startswith("|") else []
        tests = (cells.index("test") if "test" in cells else tests) if cells else None
        of_tests = CODE.findall(cells[tests]) if tests is not None and tests < len(cells) else []
        for name in CODE.findall(line):
            is_test = name in of_tests and re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name)
            if not (name in FUNCTIONS if is_test else is_known(name)):
                found.append(f"{page.relative_to(ROOT)}: `{name}` does not exist")
    return found


if __name__ == "__main__":
    found = [one for page in sorted((ROOT / "docs/papers").glob("*.md")) for one in missing(page)]
    print("\n".join(found) if found else "all names of docs/papers exist")
    sys.exit(bool(found))

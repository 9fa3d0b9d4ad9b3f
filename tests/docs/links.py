"""Checks that relative links and anchors of all Markdown files exist.

python links.py [DIRECTORY]     status 1, and a line for each broken link
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#+\s+(.+)$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", plain).strip()))
    return found


def broken(root: Path) -> list[str]:
    """Broken links, with their files."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    out = []
    for name in listed:
        page = root / name
        text = page.read_text()
        for target in LINK.findall(CODE.sub("", FENCE.sub("", text))):
            if re.match(r"^[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            there = (page.parent / path) if path else page
            if not there.exists():
                out.append(f"{name}: {target}: no such file")
            elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text()):
                out.append(f"{name}: {target}: no such heading")
    return out


if __name__ == "__main__":
    found = broken(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found) if found else "all links are valid")
    sys.exit(bool(found))

"""The `airmile` command, identical to the Rust program."""

from __future__ import annotations

import os
import signal
import sys

from airmile import _airmile


def main() -> int:
    """Run the command with `sys.argv`; return its exit status."""
    # Ctrl-C ends the command at once: no Python code runs during it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # `--engine` runs the package of this Python.
    os.environ.setdefault("AIRMILE_PYTHON", sys.executable)
    return _airmile.command(["airmile", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

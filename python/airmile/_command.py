"""The `airmile` command, the same that Rust's own program is."""

from __future__ import annotations

import os
import signal
import sys

from airmile import _airmile


def main() -> int:
    """Run the command on `sys.argv`; give its exit status."""
    # Ctrl-C ends the command at once: no Python runs while it works.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What `--engine` runs is this Python's package.
    os.environ.setdefault("AIRMILE_PYTHON", sys.executable)
    return _airmile.command(["airmile", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

"""`python -m airmile.scale JSON`: the program behind `airmile packets --engine`."""

from __future__ import annotations

import json
import sys

from airmile import _airmile
from airmile.errors import AirmileError, AirmileOptionError
from airmile.scale._run import progress, run


def main(text: str) -> int:
    """Run the study with the command's arguments; return its exit status."""
    asked = json.loads(text)
    try:
        packets = run(
            asked["ask"],
            asked["engine"],
            asked["output"],
            buckets=asked["buckets"],
            workers=asked["workers"],
            notify=None if asked["quiet"] else progress,
        )
    except (AirmileError, OSError) as error:
        what = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            what = f"{error.filename}: {error.strerror}"
        print(f"error: {what}", file=sys.stderr)
        return 2 if isinstance(error, AirmileOptionError) else 3
    if not asked["quiet"]:
        for file in json.loads(packets.json())["files"]:
            for problem in file["problems"]:
                offset = problem["offset"]
                where = file["path"] if offset is None else f"{file['path']}: byte {offset}"
                print(f"airmile: {where}: {problem['what']}", file=sys.stderr)
    if asked["json"]:
        print(packets.json())
    else:
        print(packets.text(asked["verbose"]), end="")
    return 4 if packets.damaged() else 0


if __name__ == "__main__":
    _ = _airmile.__version__
    sys.exit(main(sys.argv[1]))

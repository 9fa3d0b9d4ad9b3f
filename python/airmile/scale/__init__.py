"""A packet study past one machine: `airmile.packets(..., engine="ray")`.

Captures are split by file, and large ones at record boundaries. A first pass deals
their packets out by user and hour; a second studies the users of each bucket in the
order of the capture. Both are the functions that one process runs, and so are the
rows. An engine only says where they run: Ray, or processes of this machine; Spark has
an adapter of its own (:mod:`airmile.scale.spark`).

Everything that a run leaves is named by a manifest that is written last, so what a
worker left half-written is never read, and the same call goes on where a broken run
ended.
"""

from airmile.scale._run import run

__all__ = ["run"]

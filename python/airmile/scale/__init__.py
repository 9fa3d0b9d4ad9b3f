"""A packet study on several machines: `airmile.packets(..., engine="ray")`.

Captures are split by file, and large ones at record boundaries. A first pass divides
their packets by user and hour; a second studies the users of each bucket in the
order of the capture. Both use the functions of a study in one process, and give the
same rows. An engine only determines where they run: Ray, or processes of this machine;
Spark has an adapter, `airmile.scale.spark`.

A manifest, written last, lists all files of a step. Partial files of an interrupted
worker are therefore never read, and the same call continues an interrupted run.
"""

from airmile.scale._run import run

__all__ = ["run"]

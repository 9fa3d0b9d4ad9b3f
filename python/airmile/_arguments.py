"""Paths and times, as the compiled part takes them."""

from __future__ import annotations

import datetime
import numbers
import os
from collections.abc import Iterable
from typing import TypeAlias

from airmile.errors import AirmileOptionError

FilePath: TypeAlias = str | os.PathLike[str]
Files: TypeAlias = FilePath | Iterable[FilePath]
Time: TypeAlias = float | str | datetime.date | datetime.timedelta

# Over this a number is probably one of microseconds since 1970 (chosen here: 30 years).
_MOST_SECONDS = 1e9


def paths(files: Files) -> list[str]:
    """Paths as text."""
    if isinstance(files, str | bytes | os.PathLike):
        return [os.fsdecode(files)]
    if not isinstance(files, Iterable):
        raise TypeError(f"files are a path or several, not {type(files).__name__}")
    listed = [os.fsdecode(path) for path in files]
    if not listed:
        raise AirmileOptionError("files: give one or more")
    return listed


def time(given: object) -> str | None:
    """A time in the command's format."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, datetime.datetime):
        if given.tzinfo is not None:
            given = given.astimezone(datetime.UTC).replace(tzinfo=None)
        return given.isoformat(timespec="microseconds") + "Z"
    if isinstance(given, datetime.date):
        return given.isoformat()
    if isinstance(given, datetime.timedelta):
        given = given.total_seconds()
    if isinstance(given, numbers.Real):
        if abs(float(given)) > _MOST_SECONDS:
            what = "a number is in seconds since the start; for a time of a table give a datetime"
            raise AirmileOptionError(f"{given}: {what}")
        return f"{float(given):.9f}"
    raise TypeError(f"a time is a number, a datetime or text, not {type(given).__name__}")

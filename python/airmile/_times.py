"""Times of documents and tables, as text."""

from __future__ import annotations

import datetime

from airmile import _airmile

_EPOCH = datetime.datetime(1970, 1, 1)
# Units in a second, and digits after its point.
_UNITS = {"us": (1_000_000, 6), "ns": (1_000_000_000, 9)}
# 1980-01-06, where GPS time begins: before it, a log's clock has no day.
_EARLIEST_S = 315_964_800


def as_utc(name: str, value: object) -> str | None:
    """A value as date and time in UTC, if its column or field is a time of a clock with a day."""
    unit = _airmile.TIMES.get(name)
    if unit is None or not isinstance(value, int):
        return None
    units, digits = _UNITS[unit]
    seconds, rest = divmod(value, units)
    if seconds < _EARLIEST_S:
        return None
    try:
        moment = _EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%d %H:%M:%S}.{rest:0{digits}d}"

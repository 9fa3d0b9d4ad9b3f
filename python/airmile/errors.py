"""What the functions raise. One base, and Python's own kinds beside it."""

from __future__ import annotations

__all__ = [
    "AirmileError",
    "AirmileFormatError",
    "AirmileInputError",
    "AirmileMissingLibraryError",
    "AirmileNoDataError",
    "AirmileOptionError",
    "AirmileOutputError",
]


class AirmileError(Exception):
    """Base of all that airmile raises."""


class AirmileOptionError(AirmileError, ValueError):
    """An argument's value makes no sense. The command ends with status 2."""


class AirmileInputError(AirmileError, OSError):
    """An input cannot be opened or read; has `errno` and `filename` where the system gave them."""


class AirmileFormatError(AirmileInputError):
    """An input was read, but it is not of use here; the message says what it is."""


class AirmileOutputError(AirmileError, OSError):
    """A file, directory or table cannot be written."""


class AirmileNoDataError(AirmileError, LookupError):
    """The inputs hold nothing of what was asked for."""


class AirmileMissingLibraryError(AirmileError, ImportError):
    """An optional library is not installed; the message says how to install it."""

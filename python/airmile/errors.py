"""The exceptions of the functions: one base class, combined with Python's own kinds."""

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
    """Base of all exceptions of airmile.

    Attributes:
        file: the file that it is about, as text.
        offset: the byte in it.
        line: the line in it, of a table, from 1.
        field: the field or column.

    Each is `None` if it is not known.
    """

    file: str | None = None
    offset: int | None = None
    line: int | None = None
    field: str | None = None


class AirmileOptionError(AirmileError, ValueError):
    """An argument has an invalid value. The command ends with status 2."""


class AirmileInputError(AirmileError, OSError):
    """An input cannot be opened or read; has `errno` and `filename` if the system gave them."""


class AirmileFormatError(AirmileInputError):
    """An input was read, but is not usable; the message states its kind."""


class AirmileOutputError(AirmileError, OSError):
    """A file, directory or table cannot be written."""


class AirmileNoDataError(AirmileError, LookupError):
    """The inputs hold none of the requested data."""


class AirmileMissingLibraryError(AirmileError, ImportError):
    """An optional library is not installed; the message shows how to install it."""

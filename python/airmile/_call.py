"""Errors of arguments: they name the argument, and one that does not exist the near one."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from airmile.errors import AirmileOptionError

P = ParamSpec("P")
R = TypeVar("R")

# Names of other tools, and those of the command that Python cannot have.
_MEANT = {"from": "from_", "since": "from_", "start": "from_", "until": "to", "end": "to"}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors name the argument."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise TypeError(_unknown(function.__name__, name, known))
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # By the compiled part, which converts the arguments: `... field Analysis.pause_ms`.
            text, _, field = str(error).rpartition(".")
            if not text.startswith("failed to extract field ") or error.__cause__ is None:
                raise
            if isinstance(error.__cause__, OverflowError):
                raise AirmileOptionError(f"{field}: a number is out of range") from None
            raise TypeError(f"{field}: {error.__cause__}") from None

    return call


def _unknown(function: str, name: str, known: list[str]) -> str:
    meant = _MEANT.get(name, name)
    alike = difflib.get_close_matches(meant, known, n=1, cutoff=0.6)
    parts = [word for word in known if word.startswith(meant) or meant.startswith(word)]
    nearest = meant if meant in known else next(iter(alike or parts), None)
    hint = f"; did you mean {nearest!r}?" if nearest else f"; there are {', '.join(known)}"
    return f"{function}() got an unexpected keyword argument {name!r}{hint}"

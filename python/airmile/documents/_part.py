"""What all parts of a document have."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from html import escape
from typing import Any, Self

from airmile._times import as_utc

_SHOWN_ROWS = 10


class Part:
    """A part of a document. `says`, where a part has it, states it in a sentence."""

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Self:
        """The part that a document's object describes."""
        return cls(**{name: _value(kind, document.get(name)) for name, kind in _fields(cls)})

    def __repr__(self) -> str:
        says, url = getattr(self, "says", None), getattr(self, "url", None)
        shown = f"{url}: {says}" if says and url else says
        fields = (f"{name}={_shown(name, value)}" for name, value in _scalars(self).items())
        return f"<airmile.{type(self).__name__}: {shown or ', '.join(fields)}>"

    def _repr_html_(self) -> str:
        says = getattr(self, "says", None)
        out = f"<p><b>{escape(says)}</b></p>" if says else _rows([self])
        for name, value in _values(self).items():
            if isinstance(value, list) and value and isinstance(value[0], Part):
                more = f", the first {_SHOWN_ROWS}" if len(value) > _SHOWN_ROWS else ""
                out += f"<p>{escape(name)} ({len(value)}{more})</p>{_rows(value[:_SHOWN_ROWS])}"
        return out


def _shown(name: str, value: object) -> str:
    plain = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return as_utc(name, value) or plain


def _values(part: Part) -> dict[str, Any]:
    return {name: getattr(part, name) for name, _ in _fields(type(part))}


def _scalars(part: Part) -> dict[str, Any]:
    known = _values(part).items()
    return {name: x for name, x in known if x is not None and isinstance(x, str | int | float)}


def _rows(parts: list[Any]) -> str:
    rows = [_scalars(part) for part in parts]
    names = [name for name, _ in _fields(type(parts[0])) if any(name in row for row in rows)]

    def cell(name: str, value: object) -> str:
        return as_utc(name, value) or escape(
            f"{value:.6g}" if isinstance(value, float) else str(value)
        )

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    cells = ["".join(f"<td>{cell(name, row.get(name, ''))}</td>" for name in names) for row in rows]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@functools.cache
def _known(part: Any) -> list[tuple[str, Any]]:
    hints = typing.get_type_hints(part)
    return [(field.name, hints[field.name]) for field in dataclasses.fields(part)]


def _fields(part: Any) -> list[tuple[str, Any]]:
    """Names and types of a part's fields."""
    return _known(part)


def _value(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, types.UnionType):
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        return [_value(item, each) for each in value]
    if isinstance(kind, type) and issubclass(kind, Part):
        return kind._of(value)
    return value

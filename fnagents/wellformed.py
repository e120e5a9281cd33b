"""Whether values made by foreign code are what they claim to be: text where text belongs, numbers where numbers do.

Frozen values are made without checks, for speed; what a tool, a guardrail or a client returns is checked once, where
it enters a run.  What passes here can be saved and loaded again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

from attrs import fields, has

from fnagents.items import Part, Role
from fnagents.models import Usage

__all__ = ["complaint"]


def _whole(value: object) -> bool:
    return type(value) is int


def _finite(value: object) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def checked(values: Any) -> bool:
        return type(values) is tuple and all(check(one) for one in cast("tuple[object, ...]", values))

    return checked


def _text(value: object) -> bool:
    # Not a subclass: an Enum member or marked-up text would be loaded as another value.
    return type(value) is str


def _part(value: object) -> bool:
    return isinstance(value, Part) and complaint(value) is None


def _usage(value: object) -> bool:
    return isinstance(value, Usage) and complaint(value) is None


#: By the annotation of a field; fields of other types are checked by whoever reads them.
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "str": _text,
    "str | None": lambda value: value is None or _text(value),
    "int": _whole,
    "int | None": lambda value: value is None or _whole(value),
    "bool": lambda value: type(value) is bool,
    "float": _finite,
    "float | None": lambda value: value is None or _finite(value),
    "tuple[str, ...]": _all(_text),
    "str | tuple[Part, ...]": lambda value: _text(value) or _all(_part)(value),
    "Role": lambda value: value in get_args(Role),
    "Usage": _usage,
    "Usage | None": lambda value: value is None or _usage(value),
}
_Fields = tuple[tuple[str, str, Callable[[Any], bool]], ...]
_known: dict[type, _Fields] = {}


def _annotation(kind: type[Any], name: str) -> str:
    """As it stands in the class, which is text; attrs' own is resolved as soon as anybody asks for that."""
    return next(
        str(base.__annotations__[name]) for base in kind.__mro__ if name in vars(base).get("__annotations__", ())
    )


def _checks(kind: type[Any]) -> _Fields:
    found = _known.get(kind)
    if found is None:
        named = [(one.name, _annotation(kind, one.name)) for one in fields(kind)]
        found = _known[kind] = tuple((name, type_, _CHECKS[type_]) for name, type_ in named if type_ in _CHECKS)
    return found


def complaint(value: object) -> str | None:
    """What is wrong with a value of this library, in a few words, or None.

    >>> from fnagents import Usage
    >>> complaint(Usage(input_tokens=1.5))
    'Usage.input_tokens is a float, not int'
    """
    if not has(value.__class__):
        return f"a {type(value).__name__} is no value of this library"
    for name, expected, check in _checks(value.__class__):
        given = getattr(value, name)
        if not check(given):
            return f"{type(value).__name__}.{name} is a {type(given).__name__}, not {expected}"
    return None

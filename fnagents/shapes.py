"""The hooks of a strict converter: how one piece of plain data is judged and taken apart.

Data of the wrong type is never bent: no strings for numbers, no booleans for numbers, no text for an array.
Each hook takes data that is the reader's own, fresh from the parser, so that it may take tags out of it.
In a detailed converter the hooks note on what they raise where it was; `located` reads it off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, get_args, get_origin

from cattrs import Converter
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)

from fnagents.outcome import Failure, Success
from fnagents.prose import shortened

__all__ = [
    "TAG",
    "Hook",
    "WrongError",
    "by_tag",
    "elements",
    "found",
    "literal",
    "located",
    "number",
    "number_as_data",
    "outcome",
    "scalar",
    "text_or",
]

#: From data and the type that is asked for to a value; raises where the data does not fit.
Hook: TypeAlias = Callable[[Any, Any], Any]

#: The key that holds the name of a union's member.
TAG = "$type"
_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class WrongError(ValueError):
    """Data that is not what its place asks for; the message says what was expected and what was found."""


# --- scalars -------------------------------------------------------------------------------------------

_WORDS: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def found(data: Any) -> str:
    return _WORDS.get(type(data), "something that is no JSON")


def scalar(kind: type) -> Hook:
    def structure(data: Any, _: Any) -> Any:
        if data.__class__ is not kind:
            raise WrongError(f"expected {_WORDS[kind]}, found {found(data)}")
        return data

    return structure


def number(data: Any, _: Any) -> float:
    if data.__class__ is float or data.__class__ is int:
        number: float = data
        return number
    if data.__class__ is str and data in _FLOATS:
        return _FLOATS[data]
    raise WrongError(f"expected a number, found {found(data)}")


def number_as_data(value: float) -> float | str:
    return value if math.isfinite(value) else str(float(value))


def _isliteral(kind: Any) -> bool:
    return get_origin(kind) is Literal


def literal(kind: Any) -> Hook:
    allowed = get_args(kind)

    def structure(data: Any, _: Any) -> Any:
        if data not in allowed:
            raise WrongError(f"expected one of {', '.join(allowed)}, found {shortened(repr(data), 80)}")
        return data

    return structure


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def elements(made: Converter, kind: Any) -> Hook:
    element = get_args(kind)[0]
    build = made.get_structure_hook(element)
    collect = _collected if made.detailed_validation else _plain

    def structure(data: Any, _: Any) -> tuple[Any, ...]:
        if data.__class__ is not list:
            raise WrongError(f"expected an array, found {found(data)}")
        return collect(build, data, element)

    return structure


def _plain(build: Hook, data: list[Any], element: Any) -> tuple[Any, ...]:
    return tuple([build(one, element) for one in data])


def _collected(build: Hook, data: list[Any], element: Any) -> tuple[Any, ...]:
    built: list[Any] = []
    for index, one in enumerate(data):
        try:
            built.append(build(one, element))
        except Exception as error:  # the caller reads off it where it was
            error.add_note(IterableValidationNote(f"at {index}", index, element))
            raise IterableValidationError("array", [error], tuple) from None
    return tuple(built)


def text_or(parts: Hook, kind: Any) -> Hook:
    return lambda data, _: data if data.__class__ is str else parts(data, kind)


def by_tag(table: dict[str, tuple[Hook, type]]) -> Hook:
    def structure(data: Any, _: Any) -> Any:
        tag = _taken(data)
        if tag not in table:
            raise WrongError(f"unknown $type {shortened(tag, 80)!r}, expected {', '.join(table)}")
        build, kind = table[tag]
        return build(data, kind)

    return structure


def _taken(data: Any) -> str:
    """The tag, taken out of data that is the reader's own (fresh from the parser), so the rest are fields."""
    if data.__class__ is not dict:
        raise WrongError(f"expected an object, found {found(data)}")
    tag = data.pop(TAG, None)
    if tag.__class__ is not str:
        raise WrongError("it has no $type" if tag is None else f"its $type is {found(tag)}")
    name: str = tag
    return name


def outcome(made: Converter, kinds: tuple[Any, ...]) -> Hook:
    """`Success` and `Failure`, each with one key; the classes are generic, so their arguments say what it holds."""
    cases: dict[str, tuple[type, str, Hook, Any]] = {}
    for kind in kinds:
        (inner,) = get_args(kind)
        case, key = (Success, "value") if get_origin(kind) is Success else (Failure, "error")
        build = made.get_structure_hook(inner)
        cases[case.__name__] = (case, key, _placed(build, key) if made.detailed_validation else build, inner)

    def structure(data: Any, _: Any) -> Any:
        tag = _taken(data)
        if tag not in cases:
            raise WrongError(f"unknown $type {shortened(tag, 80)!r}, expected Success, Failure")
        case, key, build, inner = cases[tag]
        if len(data) != 1 or key not in data:
            raise WrongError(f"expected the one key {key!r} beside $type")
        return case(build(data[key], inner))

    return structure


# --- where it was --------------------------------------------------------------------------------------


def _placed(build: Hook, name: str) -> Hook:
    """The hook, which notes the key that it was called for on what it raises."""

    def structure(data: Any, kind: Any) -> Any:
        try:
            return build(data, kind)
        except Exception as error:
            error.add_note(AttributeValidationNote(f"at {name}", name, object))
            raise ClassValidationError("outcome", [error], object) from None

    return structure


def located(error: Exception) -> tuple[str, str]:
    """Where in the data the detailed converter found the first fault (such as `.outcome.value`), and what it was.

    >>> try:
    ...     converter(detailed=True).structure({"guardrail": "g", "tripped": 1}, Verdict)
    ... except Exception as error:
    ...     located(error)
    ('.tripped', 'expected true or false, found a whole number')
    """
    if isinstance(error, BaseValidationError):
        first = error.exceptions[0]
        where, reason = located(first)
        return _label(getattr(first, "__notes__", ())) + where, reason
    if isinstance(error, ForbiddenExtraKeysError):
        return "", f"unknown key {shortened(repr(min(error.extra_fields)), 80)}"
    if isinstance(error, KeyError):
        return "", "it is missing"
    return "", str(error)


def _label(notes: Iterable[Any]) -> str:
    for note in notes:
        if isinstance(note, IterableValidationNote):
            return f"[{note.index}]"
        if isinstance(note, AttributeValidationNote):
            return f".{note.name}"
    return ""

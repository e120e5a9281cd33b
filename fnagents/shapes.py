"""The hooks of a strict converter: how one piece of plain data is judged and taken apart.

Data of the wrong type is never bent: no strings for numbers, no booleans for numbers, no text for an array.
A hook takes data that is the reader's own, fresh from the parser, so that it may take tags out of it.
In a detailed converter the hooks note on what they raise where it was; `located` reads it off.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
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
    "FLOATS",
    "Hook",
    "TAG",
    "WrongError",
    "by_tag",
    "elements",
    "fields",
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
#: The floats that JSON has no form for, by the texts that stand for them.  NaN is none: it does not equal itself,
#: so a value with it would not come back as it was.
FLOATS: Mapping[str, float] = {"inf": math.inf, "-inf": -math.inf}

_WORDS: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


class WrongError(ValueError):
    """Data that is not what its place asks for; `place` is where below it, as far as the raiser knows."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.place = place


def _wrong(expected: str, data: Any) -> WrongError:
    return WrongError(f"expected {expected}, found {_WORDS.get(data.__class__, data.__class__.__name__)}")


# --- scalars -------------------------------------------------------------------------------------------


def scalar(kind: type) -> Hook:
    """A hook for exactly this class: `True` is no `int`, `5.0` neither.

    >>> scalar(int)(5, int)
    5
    """

    def structure(data: Any, _: Any) -> Any:
        if data.__class__ is not kind:
            raise _wrong(_WORDS[kind], data)
        return data

    return structure


def number(data: Any, _: Any) -> float:
    """The hook for floats; whole numbers stay whole (they are equal, and written back as they came).

    >>> number(5, float), number("inf", float)
    (5, inf)
    """
    if data.__class__ is float or data.__class__ is int:
        if not -sys.float_info.max <= data <= sys.float_info.max:
            raise WrongError("expected a number that a float can be")
        return data
    if data.__class__ is str and data in FLOATS:
        return FLOATS[data]
    raise _wrong(_WORDS[float], data)


def number_as_data(value: float) -> float | str:
    """The float, or the text that stands for one that JSON cannot write.

    Total, and what is written can be read: what no field may hold and a caller can still put there, NaN and an
    integer beyond all floats, is written as the infinity of its sign.

    >>> number_as_data(0.5), number_as_data(math.inf), number_as_data(-10**400), number_as_data(math.nan)
    (0.5, 'inf', '-inf', 'inf')
    """
    if -sys.float_info.max <= value <= sys.float_info.max:
        return value
    return "-inf" if value < 0 else "inf"


def literal(kind: Any) -> Hook:
    """A hook for a `Literal` of texts: one of them."""
    allowed = get_args(kind)

    def structure(data: Any, _: Any) -> Any:
        if data not in allowed:
            raise WrongError(f"expected one of {', '.join(allowed)}, found {shortened(repr(data), 80)}")
        return data

    return structure


# --- objects -------------------------------------------------------------------------------------------


def fields(build: Callable[[Any, Any], Any]) -> Hook:
    """The hook of a class that stands alone, asked about objects only."""

    def structure(data: Any, kind: Any) -> Any:
        if data.__class__ is not dict:
            raise _wrong(_WORDS[dict], data)
        return build(data, kind)

    return structure


def by_tag(table: Mapping[Any, tuple[Hook, type]]) -> Hook:
    """A hook for a union: the tag, taken out of the data, says which class it is; the rest are that class's fields."""

    def structure(data: Any, _: Any) -> Any:
        tag = data.pop(TAG, None) if data.__class__ is dict else None
        if tag.__class__ is not str or tag not in table:
            raise _untagged(data, tag, table)
        build, kind = table[tag]
        return build(data, kind)

    return structure


def outcome(made: Converter, kinds: Iterable[Any]) -> Hook:
    """A hook for `Success[T] | Failure[E]`; both are generic, so the type's own arguments say what they hold."""
    table: dict[Any, tuple[type, str, Hook, Any]] = {}
    for kind in kinds:
        (inner,) = get_args(kind)
        case, key = (Success, "value") if get_origin(kind) is Success else (Failure, "error")
        build = made.get_structure_hook(inner)
        table[case.__name__] = (case, key, _placed(build, key) if made.detailed_validation else build, inner)

    def structure(data: Any, _: Any) -> Any:
        tag = data.pop(TAG, None) if data.__class__ is dict else None
        if tag.__class__ is not str or tag not in table:
            raise _untagged(data, tag, table)
        case, key, build, inner = table[tag]
        if len(data) != 1 or key not in data:
            raise WrongError(f"expected {key!r} and nothing else")
        return case(build(data[key], inner))

    return structure


def _untagged(data: Any, tag: Any, table: Mapping[Any, Any]) -> WrongError:
    if data.__class__ is not dict:
        return _wrong(_WORDS[dict], data)
    found = "nothing" if tag is None else shortened(repr(tag), 80)
    return WrongError(f"expected {TAG} to be one of {', '.join(table)}, found {found}")


# --- arrays --------------------------------------------------------------------------------------------


def text_or(parts: Hook, kind: Any) -> Hook:
    """A hook for text or an array of parts."""
    return lambda data, _: data if data.__class__ is str else parts(data, kind)


def elements(made: Converter, kind: Any) -> Hook:
    """A hook for a tuple of any length whose elements are of one type."""
    element = get_args(kind)[0]
    build = made.get_structure_hook(element)
    collect = _collected if made.detailed_validation else _plain

    def structure(data: Any, _: Any) -> tuple[Any, ...]:
        if data.__class__ is not list:
            raise _wrong(_WORDS[list], data)
        return collect(build, data, element)

    return structure


def _plain(build: Hook, data: list[Any], element: Any) -> tuple[Any, ...]:
    return tuple([build(one, element) for one in data])


def _collected(build: Hook, data: list[Any], element: Any) -> tuple[Any, ...]:
    built: list[Any] = []
    for index, one in enumerate(data):
        try:
            built.append(build(one, element))
        except Exception as error:  # noqa: BLE001  # only noted on its way
            raise _at(IterableValidationNote, IterableValidationError, index, error) from None
    return tuple(built)


# --- where it was --------------------------------------------------------------------------------------


def _at(note: Any, group: Any, where: int | str, error: Exception) -> Exception:
    """The error, noted where it was, in a group as cattrs' own are; checkers see the constructors of the bases."""
    error.add_note(note(f"at {where}", where, object))
    grouped: Exception = group("below", [error], object)
    return grouped


def _placed(build: Hook, name: str) -> Hook:
    """The hook, which notes the key that it was called for on what it raises."""

    def structure(data: Any, kind: Any) -> Any:
        try:
            return build(data, kind)
        except Exception as error:  # noqa: BLE001  # only noted on its way
            raise _at(AttributeValidationNote, ClassValidationError, name, error) from None

    return structure


def located(error: Exception) -> tuple[str, str]:
    """Where in the data a detailed converter found the first fault (such as `.outcome.value`), and what it was.

    >>> from fnagents.converting import converter
    >>> try:
    ...     converter(detailed=True).structure([1, "2"], tuple[int, ...])
    ... except IterableValidationError as error:
    ...     located(error)
    ('[1]', 'expected a whole number, found a string')
    """
    if isinstance(error, BaseValidationError):
        first = error.exceptions[0]
        place, reason = located(first)
        return _label(getattr(first, "__notes__", ())) + place, reason
    if isinstance(error, ForbiddenExtraKeysError):
        return "", f"unknown key {shortened(repr(min(error.extra_fields)), 80)}"
    if isinstance(error, KeyError):
        return "", "it is missing"
    return getattr(error, "place", ""), str(error)


def _label(notes: Iterable[Any]) -> str:
    ours = (note for note in notes if isinstance(note, IterableValidationNote | AttributeValidationNote))
    return next(
        (f"[{note.index}]" if isinstance(note, IterableValidationNote) else f".{note.name}" for note in ours), ""
    )

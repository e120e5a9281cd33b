"""From what a tool's function returned to what the model reads.

    str                                   as it is
    Text, Image, File, or a list of them  parts
    Output, Handoff, Delegate             themselves
    None, "", [], {}                      null, "", [], {}: never an empty text, which a provider may drop
    numbers, booleans                     JSON; NaN and the infinities as the strings "NaN", "Infinity", "-Infinity"
    mappings, lists, tuples, sets         canonical JSON; sets sorted by the JSON of their elements; keys as text
    attrs, dataclasses, named tuples      JSON objects by field
    Enum, date and time, UUID, Path, ...  their value; ISO 8601; text
    pydantic models                       what `model_dump(mode="json")` gives
    bytes, iterators, anything else       `UnrenderableOutput`, which the model reads as feedback

The walk is our own and not a cattrs converter, which passes unknown objects through and gives bytes a text form:
both would have to be refused by hooks of our own anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeAlias, cast
from uuid import UUID

from attrs import evolve, has
from attrs import fields as attrs_fields

from fnagents.errors import ToolError, ToolRaised, UnrenderableOutput
from fnagents.items import File, Image, Part, Text
from fnagents.jsontext import DEEPEST, Json, canonical
from fnagents.outcome import Failure, Outcome, Success
from fnagents.schemas.formats import write_duration
from fnagents.tools import Answer, Output
from fnagents.wellformed import complaint

__all__ = ["plain", "raised", "render"]

Rendered: TypeAlias = Outcome[Answer, ToolError]
Elements: TypeAlias = "list[object] | tuple[object, ...] | AbstractSet[object]"


class _FormlessError(TypeError):
    """Carries what has no form out of the walk."""


def raised(error: BaseException) -> ToolRaised:
    """The exception as a value: its class and its message (never a traceback; "" if `str` of it fails)."""
    try:
        message = str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  # whatever a foreign __str__ does
        message = ""
    return ToolRaised(type(error).__name__, message)


def render(value: object) -> Rendered:
    """What the model reads of a returned value; an `Outcome` stands for what is in it.

    >>> render({"b": {2, 1}, "a": None})
    <Success: Output(parts='{"a":null,"b":[1,2]}', usage=None, memory='')>
    """
    if isinstance(value, str):
        return Success(Output(_exact(value) or '""'))
    if isinstance(value, Answer):
        return _checked(value)
    if isinstance(value, Success):
        return render(cast("Success[object]", value).unwrap())
    if isinstance(value, Failure):
        return _failed(cast("Failure[object]", value).failure())
    parts = _parts(value)
    return _checked(Output(parts)) if parts else _as_json(value)


def _checked(answer: Answer) -> Rendered:
    problem = complaint(answer)
    if problem is not None:
        return Failure(UnrenderableOutput(problem))
    return Success(evolve(answer, parts='""') if isinstance(answer, Output) and not answer.parts else answer)


def _parts(value: Any) -> tuple[Part, ...]:
    """The value as parts for a model; () if any of it is none."""
    parts = cast("Elements", value) if isinstance(value, list | tuple) else (value,)
    found = tuple(part for part in parts if isinstance(part, Text | Image | File))
    return found if len(found) == len(parts) else ()


def _failed(error: object) -> Rendered:
    if isinstance(error, ToolError):
        problem = complaint(error)
        return Failure(error if problem is None else UnrenderableOutput(problem))
    if isinstance(error, BaseException):
        return Failure(raised(error))
    return Failure(ToolRaised(type(error).__name__, error if isinstance(error, str) else repr(error)))


def _as_json(value: object) -> Rendered:
    try:
        return Success(Output(canonical(plain(value))))
    except RecursionError:
        return Failure(UnrenderableOutput("it is nested too deep, or contains itself"))
    except _FormlessError as error:
        return Failure(UnrenderableOutput(str(error)))
    except Exception as error:  # noqa: BLE001  # properties and methods of foreign objects may raise anything
        return Failure(UnrenderableOutput(f"reading it raised {type(error).__name__}"))


def plain(value: object, depth: int = 0) -> Json:
    """Plain JSON data of a value; raises TypeError naming the class of what has no form.

    >>> plain({"when": date(2024, 2, 29)})
    {'when': '2024-02-29'}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value, depth)
    if isinstance(value, str | int):
        return _exact(value) if isinstance(value, str) else int(value)
    if isinstance(value, float):
        return _number(value)
    if depth > DEEPEST:
        raise RecursionError
    return _structure(value, depth + 1)


def _exact(text: str) -> str:
    # Of a subclass (an Enum, marked-up text) its characters, not what its own `__str__` says.
    return str.__str__(text)


def _number(value: float) -> Json:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _structure(value: Any, depth: int) -> Json:
    if isinstance(value, Mapping):
        return _members(cast("Mapping[object, object]", value), depth)
    if has(value.__class__):
        return {one.name: plain(getattr(value, one.name), depth) for one in attrs_fields(value.__class__)}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name), depth) for one in dataclass_fields(value)}
    if isinstance(value, tuple) and (names := getattr(cast("object", value), "_fields", None)) is not None:
        return {name: plain(element, depth) for name, element in zip(names, cast("Elements", value), strict=True)}
    if isinstance(value, list | tuple):
        return [plain(element, depth) for element in cast("Elements", value)]
    if isinstance(value, AbstractSet):
        return sorted((plain(element, depth) for element in cast("Elements", value)), key=canonical)
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return plain(dump(mode="json"), depth)
    return _text(value)


def _members(value: Mapping[object, object], depth: int) -> Json:
    members: dict[str, Json] = {}
    for key, element in value.items():
        name = _key(key)
        if name in members:
            raise _FormlessError(f"two keys of a mapping read as {name!r}")
        members[name] = plain(element, depth)
    return members


def _key(key: object) -> str:
    text = plain(key)
    if isinstance(text, str):
        return text
    if isinstance(text, list | dict):
        raise _FormlessError(f"a {type(key).__name__} cannot be a key of a JSON object")
    return canonical(text)


def _text(value: object) -> str:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return write_duration(value)
    if isinstance(value, UUID | Decimal | PurePath):
        return str(value)
    raise _FormlessError(f"a value of type {type(value).__name__} has no form for a model; return text or plain data")

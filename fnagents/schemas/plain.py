"""A value as the JSON that its type's form decodes: what a default, or a stored final output, is written as."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import math
import uuid
from collections import deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any

import attrs

from fnagents.jsontext import Json, canonical
from fnagents.schemas.formats import write_duration

__all__ = ["NoJsonError", "plain", "said_of"]

#: What is JSON as it is.
_SCALARS = frozenset({bool, int, str})
_TEXT = (uuid.UUID, Decimal, PurePath)
_DATES = (dt.datetime, dt.date, dt.time)


class NoJsonError(ValueError):
    """The value has no form in JSON."""


def plain(value: Any) -> Json:
    """The value as plain data; raises `NoJsonError` if it has no JSON form, and whatever its class raises.

    >>> plain({"when": dt.date(2024, 2, 29), "tags": ("a", None)})
    {'when': '2024-02-29', 'tags': ['a', None]}
    """
    said: Json = value
    if said is None or value.__class__ in _SCALARS:
        return said
    if isinstance(value, Enum):
        return said_of(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoJsonError(f"{value!r} is no JSON number")
        return float(value)
    if isinstance(value, str | int):
        return str.__str__(value) if isinstance(value, str) else int(value)
    written = _written(value)
    return written if written is not None else _structure(value)


def said_of(member: Enum) -> Json:
    """How a member of an enumeration is said: by its value if all values are JSON scalars, else by its name."""
    return member.value if all(_is_scalar(each.value) for each in type(member)) else member.name


def _is_scalar(value: object) -> bool:
    return value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value))


def _written(value: Any) -> str | None:
    if isinstance(value, _DATES):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return write_duration(value)
    if isinstance(value, _TEXT):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return None


def _structure(value: Any) -> Json:
    if isinstance(value, type):
        raise NoJsonError(f"{value!r} has no JSON form")
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if _is(value, Mapping):
        return {_key(key): plain(each) for key, each in value.items()}
    if _is(value, list, tuple, deque):
        return [plain(each) for each in value]
    if _is(value, AbstractSet):
        return sorted((plain(each) for each in value), key=canonical)
    return _fields(value)


def _is(value: Any, *kinds: Any) -> bool:
    # `isinstance` would narrow `Any` to containers of the unknown.
    return isinstance(value, kinds)


def _fields(value: Any) -> Json:
    kind = value.__class__
    if dataclasses.is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value) if one.init}
    if attrs.has(kind):
        return {one.alias: plain(getattr(value, one.name)) for one in attrs.fields(kind) if one.init}
    if hasattr(kind, "model_dump"):
        dumped: Json = value.model_dump(mode="json", by_alias=True)
        return dumped
    raise NoJsonError(f"{kind.__name__} has no JSON form")


def _key(key: Any) -> str:
    said = plain(key)
    if isinstance(said, bool) or not isinstance(said, str | int):
        raise NoJsonError(f"a key of type {type(key).__name__} has no JSON form")
    return str(said)

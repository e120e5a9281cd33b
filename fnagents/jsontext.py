"""JSON as text: reading it strictly, writing it in one form.

What a model or a file sends is hostile until read: `read_json` is total and bounded, and refuses what JSON
(RFC 8259) leaves open, because two readers that disagree on it would run two different calls:
duplicate keys, NaN and Infinity, numbers that overflow to infinity, unpaired surrogates, depth without end.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import Any, TypeAlias

from fnagents.errors import InvalidJson
from fnagents.outcome import Failure, Outcome, Success

__all__ = ["DEEPEST", "Json", "canonical", "compact", "digest", "encodable", "read_json", "read_object", "visible"]

#: What `json.loads` gives.
Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"

#: The deepest nesting of arrays and objects that is read.
DEEPEST = 200
_SURROGATE = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


class _RefusedError(ValueError):
    """Carries the reason out of the parser's hooks."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise _RefusedError(f"the key {twice!r} is there twice")
    return found


def _constant(name: str) -> Any:
    raise _RefusedError(f"{name} is not a JSON number")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _RefusedError(f"the number {text[:40]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)


def _too_deep(text: str, limit: int) -> bool:
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for match in _BRACKETS.finditer(text):
        mark = match.group()
        if mark in "[{":
            depth += 1
            if depth > limit:
                return True
        elif mark in "]}":
            depth -= 1
    return False


def encodable(text: str) -> bool:
    r"""Whether `text` has a UTF-8 form, that is, no unpaired surrogate.

    >>> encodable("Malm\u00f6"), encodable("\ud800")
    (True, False)
    """
    return text.isascii() or _SURROGATE.search(text) is None


def read_json(text: str, *, depth: int = DEEPEST, surrogates: bool = False) -> Outcome[Json, InvalidJson]:
    """The value of a JSON text, or why it is none.

    Integers are exact up to 4,300 digits (the interpreter's default limit); at most `depth` levels of nesting.
    With `surrogates`, unpaired ones are let through (run files keep them).

    >>> read_json('{"a": 1, "a": 2}')
    <Failure: InvalidJson(reason="the key 'a' is there twice")>
    """
    if _too_deep(text, depth):
        return Failure(InvalidJson(f"it is nested more than {depth} deep"))
    try:
        value: Json = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        return Failure(InvalidJson(_reason(text, error)))
    if not surrogates and ("\\u" in text or not encodable(text)) and not encodable(compact(value)):
        return Failure(InvalidJson("it has an unpaired surrogate, which is no character"))
    return Success(value)


def _reason(text: str, error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno} column {error.colno} (of {len(text)} characters)"
    # What `int` says of too many digits goes on to name a setting of the interpreter.
    return str(error).split(";")[0]


def read_object(text: str) -> Outcome[dict[str, Json], InvalidJson]:
    """The arguments of a call: a JSON object, where blank text means `{}`.

    >>> read_object("  ")
    <Success: {}>
    >>> read_object("[1]")
    <Failure: InvalidJson(reason='it is an array, not an object')>
    """
    if not text or text.isspace():
        return Success({})
    reading = read_json(text)
    if isinstance(reading, Failure):
        return reading
    value = reading.unwrap()
    return Success(value) if isinstance(value, dict) else Failure(InvalidJson(f"it is {_kind(value)}, not an object"))


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "a number"


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True).encode


def compact(data: object) -> str:
    """JSON text of plain data: no spaces, keys as they come, characters as they are.  Raises on NaN."""
    return _COMPACT(data)


def canonical(data: object) -> str:
    """The one JSON text of plain data: no spaces, keys sorted.  Equal data, equal text.

    >>> canonical({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return _CANONICAL(data)


def visible(text: str) -> str:
    r"""The text with each unpaired surrogate as a marker that any encoder takes, such as `<U+DCFF>`.

    >>> visible("a\udcff")
    'a<U+DCFF>'
    """
    if encodable(text):
        return text
    return _SURROGATE.sub(lambda match: f"<U+{ord(match.group()):04X}>", text)


def digest(text: str) -> str:
    """SHA-256 of the text in UTF-8, as 64 hexadecimal digits (unpaired surrogates as their own three bytes)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

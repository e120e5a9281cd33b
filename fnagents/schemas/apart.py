"""Whether two schemas can accept one value in common: what makes `oneOf` and `anyOf` the same thing.

The strict dialect has no `oneOf`.  Turned into `anyOf`, it accepts what two branches accept, which the schema
itself refuses; so it is turned only where no branch, made strict, accepts a value that another branch accepts.
`apart` proves that for the ordinary cases (different types, different constants, different keys) and says
False where it cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fnagents.schemas.data import is_array, is_object

__all__ = ["apart"]

_ALL = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
_NAMES = {"number": {"integer", "fraction"}, **{name: {name} for name in _ALL - {"fraction"}}}
#: How deep properties are compared: enough for a tag inside a tagged object.
_FUEL = 3

_Look = Callable[[Mapping[str, Any]], "Mapping[str, Any] | None"]


def apart(one: Mapping[str, Any], other: Mapping[str, Any], look: _Look, fuel: int = _FUEL) -> bool:
    """Whether it is certain that no value fits both the strict form of `one` and `other` as it is.

    `look` follows references: it gives the schema that is meant, or None if there is none.

    >>> apart({"type": "string"}, {"type": "number"}, lambda schema: schema)
    True
    >>> apart({"type": "integer"}, {"type": "number"}, lambda schema: schema)
    False
    """
    left, right = look(one), look(other)
    if left is None or right is None or fuel == 0:
        return False
    if not _types(left, look, fuel, strict=True) & _types(right, look, fuel):
        return True
    mine, theirs = _values(left), _values(right)
    if mine is not None and theirs is not None:
        return not any(_same(a, b) for a in mine for b in theirs)
    return _keys_apart(left, right, look, fuel)


def _keys_apart(one: Mapping[str, Any], other: Mapping[str, Any], look: _Look, fuel: int) -> bool:
    # The strict form of `one` has exactly its declared keys, if it is an object.
    if _types(one, look, fuel, strict=True) != {"object"}:
        return False
    mine, theirs = _dict(one.get("properties")), _dict(other.get("properties"))
    required = other.get("required")
    if is_array(required) and any(name not in mine for name in required):
        return True
    if other.get("additionalProperties") is False and "patternProperties" not in other and mine.keys() - theirs.keys():
        return True
    return any(
        is_object(mine[name]) and is_object(theirs[name]) and apart(mine[name], theirs[name], look, fuel - 1)
        for name in mine
        if name in theirs
    )


def _types(schema: Mapping[str, Any], look: _Look, fuel: int, *, strict: bool = False) -> set[str]:
    values = _values(schema)
    if values is not None:
        return {_type_of(value) for value in values}
    kind = schema.get("type")
    if kind is None:
        if strict and "properties" in schema:
            return {"object"}
        branches = schema.get("anyOf")
        if not is_array(branches) or fuel == 0:
            return set(_ALL)
        seen = [look(branch) if is_object(branch) else None for branch in branches]
        return {name for one in seen for name in (_ALL if one is None else _types(one, look, fuel - 1, strict=strict))}
    names: list[Any] = kind if is_array(kind) else [kind]
    return {each for name in names for each in _NAMES.get(name, _ALL) if isinstance(name, str)}


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return listed if is_array(listed) else None


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "fraction"
    if value is None:
        return "null"
    return "string" if isinstance(value, str) else "array" if is_array(value) else "object"


def _same(one: Any, other: Any) -> bool:
    # Only scalars are told apart with certainty: `[1]` and `[True]` are equal to Python and not to JSON Schema.
    if is_array(one) or is_object(one) or is_array(other) or is_object(other):
        return _type_of(one) == _type_of(other)
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _dict(value: Any) -> dict[str, Any]:
    return value if is_object(value) else {}

"""Forms made of other forms: arrays, objects, unions.  Like every form, schema and decoder in one (forms.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

from fnagents.schemas.forms import SCALARS, Decode, Form, MismatchError

__all__ = ["Member", "array_form", "map_form", "object_form", "tuple_form", "union_form"]


def _array(value: Any) -> list[Any]:
    kind: object = value.__class__
    if kind is not list:
        raise MismatchError
    found: list[Any] = value
    return found


def _object(value: Any) -> dict[str, Any]:
    kind: object = value.__class__
    if kind is not dict:
        raise MismatchError
    found: dict[str, Any] = value
    return found


def array_form(element: Form, make: Callable[[list[Any]], Any], *, hashable: bool) -> Form:
    """The form of a collection: an array.  A set takes duplicates too, since no provider holds a model to less."""
    decode_element = element.decode

    def decode(value: Any) -> Any:
        return make([decode_element(each) for each in _array(value)])

    def decode_list(value: Any) -> Any:
        return [decode_element(each) for each in _array(value)]

    schema = {"type": "array", "items": element.schema}
    return Form(schema, decode_list if make is list else decode, hashable and element.hashable)


def tuple_form(elements: Sequence[Form]) -> Form:
    """The form of a tuple of fixed length."""
    decoders = tuple(element.decode for element in elements)

    def decode(value: Any) -> Any:
        return tuple([decode_one(each) for decode_one, each in zip(decoders, _array(value), strict=True)])

    schema: dict[str, Any] = {"type": "array", "minItems": len(elements), "maxItems": len(elements)}
    if elements:
        schema["prefixItems"] = [element.schema for element in elements]
    return Form(schema, decode, all(element.hashable for element in elements))


def map_form(
    key: Form | None, value: Form, make: Callable[[dict[Any, Any]], Any], *, taken: Sequence[str] = ()
) -> Form:
    """The form of a mapping: an object with any keys (that fit `key`), except those that are `taken`."""
    decode_value = value.decode
    decode_key = key.decode if key is not None else None
    refused = frozenset(taken)

    def decode(given: Any) -> Any:
        entries = _object(given)
        if not refused.isdisjoint(entries):
            raise MismatchError
        if decode_key is None:
            return make({name: decode_value(each) for name, each in entries.items()})
        return make({decode_key(name): decode_value(each) for name, each in entries.items()})

    schema: dict[str, Any] = {"type": "object", "additionalProperties": value.schema or True}
    if key is not None:
        schema["propertyNames"] = key.schema
    if refused:
        schema["propertyNames"] = {"not": {"enum": list(taken)}}
    return Form(schema, decode, hashable=False)


def union_form(branches: Sequence[Form]) -> Form:
    """The form of a union: the first branch that accepts decides.

    A JSON number that is an integer goes to a plain `int` and any other to a plain `float`, if the union has both.
    """
    others = [branch for branch in branches if branch is not SCALARS[type(None)]]
    hashable = all(branch.hashable for branch in branches)
    schema = {"anyOf": [branch.schema for branch in branches]}
    if len(others) == 1 and len(branches) - len(others) == 1:
        decode_some = others[0].decode

        def decode_optional(value: Any) -> Any:
            return None if value is None else decode_some(value)

        return Form(schema, decode_optional, hashable)
    exact = (int, float) if SCALARS[int] in branches and SCALARS[float] in branches else ()
    return Form(schema, _trial(tuple(branch.decode for branch in branches), exact), hashable)


#: While a union is decoded: for each union in it and each array or object (by their ids), the branches that are left
#: to try, and the value itself, which so keeps its id.
_TRIED: ContextVar[dict[tuple[int, int], tuple[tuple[Decode, ...], Any]] | None] = ContextVar("tried", default=None)


def _trial(decoders: tuple[Decode, ...], exact: tuple[type, ...]) -> Decode:
    """Decode by the first of the decoders that accepts.

    Which one that is, is remembered until the outermost union is decoded: where unions stand in one another, each
    is tried on every way to it, which would double the work with every level.
    """
    own = id(decoders)

    def decode(value: Any) -> Any:
        if type(value) in exact:
            return value
        if value.__class__ is not list and value.__class__ is not dict:
            return _first(decoders, value)
        tried = _TRIED.get()
        if tried is None:
            return _outermost(decode, value)
        at = (own, id(value))
        for decode_one in tried[at][0] if at in tried else decoders:
            try:
                found = decode_one(value)
            except Exception:  # noqa: BLE001, S112  # this branch refuses; the next may not
                continue
            tried[at] = ((decode_one,), value)
            return found
        tried[at] = ((), value)
        raise MismatchError

    return decode


def _first(decoders: tuple[Decode, ...], value: Any) -> Any:
    for decode_one in decoders:
        try:
            return decode_one(value)
        except Exception:  # noqa: BLE001, S112  # as above
            continue
    raise MismatchError


def _outermost(decode: Decode, value: Any) -> Any:
    token = _TRIED.set({})
    try:
        return decode(value)
    finally:
        _TRIED.reset(token)


#: A member of an object: its key, the name that the constructor knows it by, its form, whether it is required.
Member: TypeAlias = tuple[str, str, Form, bool]


def object_form(members: Sequence[Member], make: Callable[..., Any], *, hashable: bool = False) -> Form:
    """The form of a closed object."""
    required = tuple((key, name, form.decode) for key, name, form, needed in members if needed)
    optional = tuple((key, name, form.decode) for key, name, form, needed in members if not needed)
    least = len(required)

    def decode(value: Any) -> Any:
        given = _object(value)
        found = {name: decode_one(given[key]) for key, name, decode_one in required}
        if len(given) != least:
            found.update([(name, decode_one(given[key])) for key, name, decode_one in optional if key in given])
            if len(given) != len(found):
                raise MismatchError
        return make(**found)

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: form.schema for key, _, form, _ in members},
        "required": [key for key, *_ in required],
        "additionalProperties": False,
    }
    if not required:
        del schema["required"]
    return Form(schema, decode, hashable)

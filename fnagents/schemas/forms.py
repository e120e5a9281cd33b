"""A form: what one type looks like in JSON, as a schema and as the function that decodes it, made together.

One walk over a type makes both, so that they cannot disagree: the decoder accepts what the schema accepts and
nothing else.  Decoders are strict closures in the manner of cattrs' hooks, and not cattrs' own, because those
look a class's annotations up again by themselves (a class that is local to a function has none they could find),
cost 80 us a class to compile, and do not know the constraints.

A decoder raises any `Exception` for a value that does not fit; which one is of no interest, since jsonschema
explains (judging.py).  `MismatchError` is the one raised here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from attrs import frozen

__all__ = [
    "ANYTHING",
    "DECIMAL_NUMBER",
    "DECIMAL_TEXT",
    "Decode",
    "Form",
    "Member",
    "MismatchError",
    "SCALARS",
    "array_form",
    "choice_form",
    "map_form",
    "object_form",
    "scalar",
    "text_form",
    "tuple_form",
    "union_form",
]

Decode: TypeAlias = Callable[[Any], Any]


class MismatchError(ValueError):
    """The value does not fit the type."""


@frozen
class Form:
    """A type's JSON: the schema that accepts it, the function that decodes it, whether the result can be hashed."""

    schema: dict[str, Any]
    decode: Decode
    hashable: bool = True

    @property
    def nullable(self) -> bool:
        """Whether null is accepted."""
        try:
            self.decode(None)
        except Exception:  # a decoder may run a class's own code, and any refusal is an answer
            return False
        return True


def _null(value: Any) -> Any:
    if value is not None:
        raise MismatchError
    return value


def _boolean(value: Any) -> Any:
    if value is not True and value is not False:
        raise MismatchError
    return value


def _integer(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise MismatchError


def _number(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is not int:
        raise MismatchError
    try:
        return float(value)
    except OverflowError:
        return value


def _string(value: Any) -> Any:
    if type(value) is not str:
        raise MismatchError
    return value


def _anything(value: Any) -> Any:
    return value


ANYTHING = Form({}, _anything, hashable=False)

#: The scalars of JSON.
SCALARS: dict[type, Form] = {
    type(None): Form({"type": "null"}, _null),
    bool: Form({"type": "boolean"}, _boolean),
    int: Form({"type": "integer"}, _integer),
    float: Form({"type": "number"}, _number),
    str: Form({"type": "string"}, _string),
}


def scalar(kind: object) -> Form | None:
    """The form of a JSON scalar type, or None.

    >>> scalar(int).decode(5.0)
    5
    """
    return SCALARS.get(kind) if isinstance(kind, type) else None


def text_form(read: Callable[[str], Any], **keywords: Any) -> Form:
    """The form of a type that is written as text."""

    def decode(value: Any) -> Any:
        return read(_string(value))

    return Form({"type": "string", **keywords}, decode)


#: A decimal number as text.
_DECIMAL = r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,5})?$"
_IS_DECIMAL = re.compile(_DECIMAL).search


def _decimal_of_number(value: Any) -> Decimal:
    if type(value) is not int and type(value) is not float:
        raise MismatchError
    return Decimal(repr(value)) if type(value) is float else Decimal(value)


def _decimal_of_text(text: str) -> Decimal:
    if _IS_DECIMAL(text) is None:
        raise MismatchError
    return Decimal(text)


#: `Decimal` as a JSON number, read by its shortest decimal form, and as text, which keeps all digits.
DECIMAL_NUMBER = Form({"type": "number"}, _decimal_of_number)
DECIMAL_TEXT = text_form(_decimal_of_text, pattern=_DECIMAL)


def array_form(element: Form, make: Callable[[list[Any]], Any], *, hashable: bool) -> Form:
    """The form of a collection: an array.  A set takes duplicates too, since no provider holds a model to less."""
    decode_element = element.decode

    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise MismatchError
        return make([decode_element(each) for each in value])

    def decode_list(value: Any) -> Any:
        if type(value) is not list:
            raise MismatchError
        return [decode_element(each) for each in value]

    schema = {"type": "array", "items": element.schema}
    return Form(schema, decode_list if make is list else decode, hashable and element.hashable)


def tuple_form(elements: Sequence[Form]) -> Form:
    """The form of a tuple of fixed length."""
    decoders = tuple(element.decode for element in elements)
    length = len(decoders)

    def decode(value: Any) -> Any:
        if type(value) is not list or len(value) != length:
            raise MismatchError
        return tuple([decode_one(each) for decode_one, each in zip(decoders, value, strict=True)])

    schema: dict[str, Any] = {"type": "array", "minItems": length, "maxItems": length}
    if elements:
        schema["prefixItems"] = [element.schema for element in elements]
    return Form(schema, decode, all(element.hashable for element in elements))


def map_form(key: Form | None, value: Form, make: Callable[[dict[Any, Any]], Any], *, taken: Sequence[str] = ()) -> Form:
    """The form of a mapping: an object with any keys (that fit `key`), except those that are `taken`."""
    decode_value = value.decode
    decode_key = key.decode if key is not None else None
    refused = frozenset(taken)

    def decode(given: Any) -> Any:
        if type(given) is not dict or (refused and not refused.isdisjoint(given)):
            raise MismatchError
        if decode_key is None:
            return make({name: decode_value(each) for name, each in given.items()})
        return make({decode_key(name): decode_value(each) for name, each in given.items()})

    schema: dict[str, Any] = {"type": "object", "additionalProperties": value.schema or True}
    if key is not None:
        schema["propertyNames"] = key.schema
    if refused:
        schema["propertyNames"] = {"not": {"enum": list(taken)}}
    return Form(schema, decode, hashable=False)


def choice_form(choices: Sequence[tuple[Any, Any]]) -> Form:
    """The form of a choice: pairs of JSON scalar and meaning.  `True` is not 1, and 1.0 is."""
    table = {(type(said) is bool, said): meant for said, meant in choices}
    only_text = {said: meant for said, meant in choices if type(said) is str}

    def decode_text(value: Any) -> Any:
        if type(value) is not str:
            raise MismatchError
        return only_text[value]

    def decode(value: Any) -> Any:
        return table[type(value) is bool, value]

    values = [said for said, _ in choices]
    names = {_TYPE_NAMES[type(value)] for value in values}
    schema: dict[str, Any] = {"type": names.pop()} if len(names) == 1 else {}
    return Form({**schema, "enum": values}, decode_text if len(only_text) == len(choices) else decode)


_TYPE_NAMES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"}


def union_form(branches: Sequence[Form]) -> Form:
    """The form of a union: the first branch that accepts decides.

    A JSON number that is an integer goes to a plain `int` and any other to a plain `float`, if the union has both.
    """
    others = [branch for branch in branches if branch is not SCALARS[type(None)]]
    hashable = all(branch.hashable for branch in branches)
    schema = {"anyOf": [branch.schema for branch in branches]}
    if len(others) == 1 and len(branches) == 2:
        decode_some = others[0].decode

        def decode_optional(value: Any) -> Any:
            return None if value is None else decode_some(value)

        return Form(schema, decode_optional, hashable)
    exact = {kind: SCALARS[kind].decode for kind in (int, float) if SCALARS[kind] in branches}
    decoders = tuple(branch.decode for branch in branches)

    def decode(value: Any) -> Any:
        if len(exact) == 2 and type(value) in exact:
            return value
        for decode_one in decoders:
            try:
                return decode_one(value)
            except Exception:  # noqa: BLE001, S112  # this branch refuses; the next may not
                continue
        raise MismatchError

    return Form(schema, decode, hashable)


#: A member of an object: its key, the name that the constructor knows it by, its form, whether it is required.
Member: TypeAlias = tuple[str, str, Form, bool]


def object_form(members: Sequence[Member], make: Callable[..., Any], *, hashable: bool = False) -> Form:
    """The form of a closed object."""
    required = tuple((key, name, form.decode) for key, name, form, needed in members if needed)
    optional = tuple((key, name, form.decode) for key, name, form, needed in members if not needed)
    least = len(required)

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise MismatchError
        found = {name: decode_one(value[key]) for key, name, decode_one in required}
        if len(value) != least:
            found.update([(name, decode_one(value[key])) for key, name, decode_one in optional if key in value])
            if len(value) != len(found):
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

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
    "MismatchError",
    "SCALARS",
    "choice_form",
    "scalar",
    "text_form",
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
        except Exception:  # noqa: BLE001  # a decoder may run a class's own code, and any refusal is an answer
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

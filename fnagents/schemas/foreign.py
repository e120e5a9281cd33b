"""The forms of other libraries' models: pydantic models and types, msgspec structs.

They are known by what they have, and their library is asked for their schema and for decoding.  What they accept
is wider than their schema ("2" for an integer, unknown keys without a word), so jsonschema judges first, by the
model's own schema with its objects closed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fnagents.schemas.data import is_array, is_object
from fnagents.schemas.forms import Form, MismatchError
from fnagents.schemas.judging import judge, unmatchable

if TYPE_CHECKING:
    from fnagents.schemas.types import Builder

__all__ = ["foreign_form"]

#: What models and types of pydantic have, and its dataclasses.
_PYDANTIC = ("__get_pydantic_core_schema__", "__pydantic_validator__")


def foreign_form(builder: Builder, kind: Any, arguments: tuple[Any, ...]) -> Form | None:
    """The form of a model of pydantic or msgspec, or None for any other class."""
    hint = kind[arguments] if arguments and hasattr(kind, "__class_getitem__") else kind
    if "pydantic" in sys.modules and any(hasattr(kind, mark) for mark in _PYDANTIC):
        return builder.named(("foreign", hint), hint.__name__, lambda: _pydantic(builder, hint))
    if hasattr(kind, "__struct_fields__") and "msgspec" in sys.modules:
        return builder.named(("foreign", hint), kind.__name__, lambda: _msgspec(builder, hint))
    return None


def _pydantic(builder: Builder, hint: Any) -> Form:
    from pydantic import TypeAdapter

    try:
        adapter = TypeAdapter(hint)
        schema = adapter.json_schema()
    except Exception as error:  # noqa: BLE001  # a model may hold anything
        builder.refuse(hint, f"{type(error).__name__}: {error}")
    return _judged(builder, schema, adapter.validate_python, hint)


def _msgspec(builder: Builder, hint: Any) -> Form:
    import msgspec

    try:
        schema = msgspec.json.schema(hint)
    except Exception as error:  # noqa: BLE001  # a struct may hold anything
        builder.refuse(hint, f"{type(error).__name__}: {error}")
    return _judged(builder, schema, lambda value: msgspec.convert(value, hint), hint)


def _judged(builder: Builder, schema: Mapping[str, Any], decode: Callable[[Any], Any], hint: Any) -> Form:
    if wrong := unmatchable(schema):
        builder.refuse(hint, wrong)
    definitions = schema.get("$defs", {})
    labels: dict[str, str] = {}
    for name in definitions:
        labels[name] = builder.label(name)
        builder.definitions[labels[name]] = {}
    for name, label in labels.items():
        builder.definitions[label] = _closed(definitions[name], labels)
    own = _closed({name: value for name, value in schema.items() if name != "$defs"}, labels)
    problems = judge({**own, "$defs": {label: builder.definitions[label] for label in labels.values()}})

    def decode_judged(value: Any) -> Any:
        if problems(value):
            raise MismatchError
        return decode(value)

    return Form(own, decode_judged, hashable=getattr(hint, "__hash__", None) is not None)


def _closed(schema: Any, labels: Mapping[str, str]) -> Any:
    """A copy without titles, its references renamed, its objects closed unless they say otherwise."""
    if not is_object(schema):
        return [_closed(each, labels) for each in schema] if is_array(schema) else schema
    made: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "title":
            continue
        if keyword == "$ref":
            made[keyword] = f"#/$defs/{labels[value.rpartition('/')[2]]}"
        elif keyword == "properties":
            made[keyword] = {name: _closed(each, labels) for name, each in value.items()}
        elif keyword in ("default", "const", "enum", "examples", "discriminator"):
            if keyword != "discriminator":
                made[keyword] = value
        else:
            made[keyword] = _closed(value, labels)
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made

"""Random types, signatures, schemas, and JSON that nearly fits them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import pathlib
import uuid
from random import Random
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import annotated_types as at
import attrs
from hypothesis import strategies as st

__all__ = ["functions", "instances", "json_values", "schemas", "texts", "types"]

_NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


class Color(enum.Enum):
    """A colour."""

    RED = "red"
    ONE = 1


@dataclasses.dataclass
class Node:
    """A tree."""

    value: int
    children: list[Node] = dataclasses.field(default_factory=list)


_SCALARS: list[Any] = [
    int, float, bool, str, None, Any, dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID,
    decimal.Decimal, bytes, pathlib.Path, Color, Node, Literal["a", 1, True, None], Literal[1, 2],  # noqa: PYI061
    Annotated[int, at.Ge(0), at.Lt(10)], Annotated[float, at.MultipleOf(0.5)], Annotated[str, at.Len(1, 3), "a text"],
]  # fmt: skip
_KEYS: list[Any] = [str, int, Literal["a", "b"], dt.date]


def types() -> st.SearchStrategy[Any]:
    """Types with a JSON form, nested a few levels."""
    return st.recursive(st.sampled_from(_SCALARS), _larger, max_leaves=6)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(_NAMES, st.tuples(inner, st.booleans()), max_size=3)
    return st.one_of(
        inner.map(lambda one: list[one]),  # type: ignore[valid-type]
        inner.map(lambda one: tuple[one, ...]),  # type: ignore[valid-type]
        st.lists(inner, max_size=3).map(lambda many: tuple[tuple(many)]),  # type: ignore[misc]
        st.tuples(st.sampled_from(_KEYS), inner).map(lambda pair: dict[pair]),  # type: ignore[valid-type,misc]
        st.sampled_from([set[int], frozenset[str], set[Any], set[bool | int]]),
        inner.map(lambda one: Annotated[list[one], at.MinLen(1)]),  # type: ignore[valid-type]
        st.lists(inner, min_size=2, max_size=3).map(_union),
        st.builds(_dataclass, fields),
        st.builds(_attrs, fields),
        st.builds(_typed_dict, fields),
        st.builds(_named_tuple, fields),
    )


def _union(many: list[Any]) -> Any:
    made = many[0]
    for one in many[1:]:
        made = made | one if made is not None else one | None if one is not None else None
    return made


_Fields = dict[str, tuple[Any, bool]]


def _in_order(fields: _Fields) -> list[tuple[str, Any, bool]]:
    return sorted(((name, hint, optional) for name, (hint, optional) in fields.items()), key=lambda one: one[2])


def _dataclass(fields: _Fields) -> Any:
    spec = [
        (name, hint, dataclasses.field(default=None)) if optional else (name, hint)
        for name, hint, optional in _in_order(fields)
    ]
    return dataclasses.make_dataclass("Made", spec)


def _attrs(fields: _Fields) -> Any:
    spec = {
        name: attrs.field(type=hint, default=None) if optional else attrs.field(type=hint)
        for name, hint, optional in _in_order(fields)
    }
    return attrs.make_class("Made", spec)


def _typed_dict(fields: _Fields) -> Any:
    spec = {name: NotRequired[hint] if optional else hint for name, (hint, optional) in fields.items()}
    return TypedDict("Made", spec)  # type: ignore[operator]


def _named_tuple(fields: _Fields) -> Any:
    return NamedTuple("Made", [(name, hint) for name, (hint, _) in fields.items()])


_KINDS = [
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
]


@st.composite
def functions(draw: st.DrawFn) -> Any:
    """A function with a random signature of every kind of parameter; it answers with how it was called."""
    many = draw(st.lists(st.tuples(st.integers(0, 4), types(), st.booleans()), max_size=4))
    parameters: list[inspect.Parameter] = []
    defaults = False
    for number, (kind, hint, optional) in enumerate(sorted(many, key=lambda one: one[0])):
        variadic = _KINDS[kind] in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if variadic and any(each.kind is _KINDS[kind] for each in parameters):
            continue
        default = not variadic and (optional or (defaults and kind < 2))
        defaults = defaults or default
        parameters.append(
            inspect.Parameter(
                f"p{number}", _KINDS[kind], annotation=hint, default=7 if default else inspect.Parameter.empty
            )
        )
    signature = inspect.Signature(parameters)

    def function(*args: Any, **kwargs: Any) -> Any:
        return signature.bind(*args, **kwargs).arguments

    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


# --- JSON ---------------------------------------------------------------------------------------------------


def json_values() -> st.SearchStrategy[Any]:
    """Any JSON, small."""
    return st.recursive(
        st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([0.5, 2.0, -1.25]) | texts(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
        max_leaves=5,
    )


def texts() -> st.SearchStrategy[str]:
    """Texts, many of them of some format."""
    return st.text(max_size=4) | st.sampled_from(_TEXTS)


_TEXTS = [
    "", "a", "b", "abcd", "red", "1", "-2", "01", "p0", "2024-02-29", "2024-02-30", "2024-02-29T12:30:00Z", "12:30",
    "PT1H", "P1M", "12345678-1234-5678-1234-567812345678", "aGk=", "aGk", "1.50", "a\n", "\u00e9",
]  # fmt: skip


@st.composite
def instances(draw: st.DrawFn, schema: Any) -> Any:
    """JSON for a schema: most of it fits, some does not.

    One number is drawn and the rest follows from it: strategies made anew for each schema are a hundred times slower.
    """
    return _instance(schema, schema, Random(draw(st.integers(0, 2**32))), 6)


def _instance(schema: Any, root: Any, rng: Random, fuel: int) -> Any:
    if fuel == 0 or not isinstance(schema, dict) or rng.random() < 0.06:
        return _anything(rng, 2)
    if "$ref" in schema:
        target: Any = root
        for step in str(schema["$ref"]).split("/")[1:]:
            target = target.get(step, {}) if isinstance(target, dict) else {}
        return _instance(target, root, rng, fuel - 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return _instance(rng.choice(schema[keyword]), root, rng, fuel - 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema.get("type", "object" if "properties" in schema else None)
    kind = rng.choice(kind) if isinstance(kind, list) and kind else kind
    if kind == "array" or "prefixItems" in schema:
        return _array(schema, root, rng, fuel - 1)
    if kind == "object":
        return _object(schema, root, rng, fuel - 1)
    return rng.choice(_LEAVES[kind]) if kind in _LEAVES else _anything(rng, 2)


def _array(schema: dict[str, Any], root: Any, rng: Random, fuel: int) -> list[Any]:
    if "prefixItems" in schema:
        return [_instance(one, root, rng, fuel) for one in schema["prefixItems"]]
    return [_instance(schema.get("items", {}), root, rng, fuel) for _ in range(rng.randrange(4))]


def _object(schema: dict[str, Any], root: Any, rng: Random, fuel: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    made = {
        name: _instance(each, root, rng, fuel)
        for name, each in properties.items()
        if rng.random() < (0.97 if name in required else 0.6)
    }
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict) or extra is True or rng.random() < 0.05:
        keys = [rng.choice(_TEXTS) for _ in range(rng.randrange(3))]
        made.update({key: _instance(extra, root, rng, fuel) for key in keys})
    return made


def _anything(rng: Random, depth: int) -> Any:
    kind = rng.choice([*_LEAVES, "array", "object"])
    if kind in _LEAVES:
        return rng.choice(_LEAVES[kind])
    inner = [_anything(rng, depth - 1) if depth else None for _ in range(rng.randrange(3))]
    return inner if kind == "array" else dict(zip("abc", inner, strict=False))


_LEAVES: dict[str, list[Any]] = {
    "integer": [0, 1, 2, 7, 9, 10, -1, 2.0, 10**20, 10**400],
    "number": [0, 1, -1.5, 0.5, 0.3, 1e300, 10**400],
    "string": _TEXTS,
    "boolean": [True, False],
    "null": [None],
}


# --- schemas --------------------------------------------------------------------------------------------------


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas for objects with definitions, many of them with a strict form."""
    leaf = st.sampled_from(
        [{"type": name} for name in ("integer", "number", "string", "boolean", "null")]
        + [{}, {"const": "a"}, {"const": "b"}, {"enum": ["a", 1]}, {"type": ["string", "null"]}, {"minimum": 3}]
        + [{"$ref": f"#/$defs/{name}"} for name in "ABX"]
        + [{"$ref": "#/$defs/A", "description": "x"}, {"$ref": "#"}, {"$ref": "#/$defs/B", "default": None}]
    )
    inner = st.recursive(leaf, _larger_schemas, max_leaves=6)
    return st.fixed_dictionaries(
        {
            "properties": st.dictionaries(_NAMES, inner, max_size=3),
            "$defs": st.fixed_dictionaries({"A": inner, "B": inner}),
        },
        optional={"type": st.just("object"), "description": st.just("x"), "required": st.just(["a"])},
    )


def _larger_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, min_size=1, max_size=3)
    properties = st.dictionaries(_NAMES, inner, max_size=3)
    extra: st.SearchStrategy[Any] = st.sampled_from([False, False, False, True, {"type": "string"}])
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": properties},
            optional={"additionalProperties": extra, "default": st.none(), "required": st.lists(_NAMES, max_size=2)},
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"prefixItems": lists}),
        st.fixed_dictionaries({"anyOf": lists}, optional={"title": st.just("t")}),
        st.fixed_dictionaries({"oneOf": lists}, optional={"anyOf": lists}),
        st.fixed_dictionaries({"allOf": lists}, optional={"type": st.just("object"), "properties": properties}),
        st.fixed_dictionaries({"not": inner}),
    )

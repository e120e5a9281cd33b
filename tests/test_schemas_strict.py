"""The strict form of a schema: its rules one by one, its promises, and what has none."""

import copy
import json
from typing import Any

import pytest

from fnagents.errors import DeclarationError
from fnagents.outcome import Failure, Success
from fnagents.schemas.apart import apart
from fnagents.schemas.closing import NotStrict
from fnagents.schemas.strict import strict, strict_text

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
EMPTY = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}


def closed(**properties: Any) -> dict[str, Any]:
    """A strict object with these properties."""
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": list(properties),
    }


def of(value: Any, **more: Any) -> dict[str, Any]:
    """A schema with one property `a`."""
    return {"type": "object", "properties": {"a": value}, **more}


CONVERTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing is an empty object": ({}, EMPTY),
    "properties are added to a bare object": ({"type": "object"}, EMPTY),
    "properties make an object": ({"properties": {"a": STRING}}, closed(a=STRING)),
    "a one-element type at the root": ({"type": ["object"], "properties": {}}, EMPTY),
    "all keys are required, in order": (
        {"type": "object", "properties": {"b": STRING, "a": INTEGER}, "required": ["a"]},
        closed(b=STRING, a=INTEGER),
    ),
    "a null default goes, others stay": (
        {"properties": {"a": {**INTEGER, "default": None}, "b": {**INTEGER, "default": 3}}},
        closed(a=INTEGER, b={**INTEGER, "default": 3}),
    ),
    "an optional parameter does not become nullable": (
        of({**INTEGER, "default": 3}),
        closed(a={**INTEGER, "default": 3}),
    ),
    "nested objects are closed": (of(of(STRING)), closed(a=closed(a=STRING))),
    "a nullable object is closed": (
        of({"type": ["object", "null"], "properties": {"b": {}}}),
        closed(a={**closed(b={}), "type": ["object", "null"]}),
    ),
    "a bare nested object is closed": (
        of({"type": "object"}),
        closed(a={"type": "object", "additionalProperties": False}),
    ),
    "other types are left alone": (
        of({"type": "string", "additionalProperties": True}),
        closed(a={"type": "string", "additionalProperties": True}),
    ),
    "items": (of({"type": "array", "items": of(STRING)}), closed(a={"type": "array", "items": closed(a=STRING)})),
    "items by position": (of({"items": [of(STRING)]}), closed(a={"items": [closed(a=STRING)]})),
    "prefixItems": (of({"prefixItems": [of(STRING)]}), closed(a={"prefixItems": [closed(a=STRING)]})),
    "anyOf": (of({"anyOf": [of(STRING), {"type": "null"}]}), closed(a={"anyOf": [closed(a=STRING), {"type": "null"}]})),
    "oneOf of different types": (of({"oneOf": [STRING, INTEGER]}), closed(a={"anyOf": [STRING, INTEGER]})),
    "allOf of one": (
        of({"allOf": [{**STRING, "title": "A", "minLength": 1}], "title": "B", "minLength": 1}),
        closed(a={**STRING, "title": "B", "minLength": 1}),
    ),
    "allOf of one, and more keys": (
        of({"allOf": [{"properties": {"b": STRING}, "required": ["b"]}], "properties": {}, "required": ["b"]}),
        closed(a={"properties": {"b": STRING}, "required": ["b"], "additionalProperties": False, "type": "object"}),
    ),
    "required keys of an allOf and its parent are one set": (
        of({"allOf": [{"required": ["b"], "properties": {"b": STRING, "c": STRING}}], "required": ["c"]}),
        closed(a=closed(b=STRING, c=STRING)),
    ),
    "allOf of a reference": (
        of({"allOf": [{"$ref": "#/$defs/D"}], "description": "d"}, **{"$defs": {"D": STRING}}),
        {**closed(a={"anyOf": [{"$ref": "#/$defs/D"}], "description": "d"}), "$defs": {"D": STRING}},
    ),
    "a bare reference": (
        of({"$ref": "#/$defs/D"}, **{"$defs": {"D": of(STRING)}}),
        {**closed(a={"$ref": "#/$defs/D"}), "$defs": {"D": closed(a=STRING)}},
    ),
    "a reference beside a null default": (
        of({"$ref": "#/$defs/D", "default": None}, **{"$defs": {"D": STRING}}),
        {**closed(a={"$ref": "#/$defs/D"}), "$defs": {"D": STRING}},
    ),
    "a reference beside what its target says already": (
        of({"$ref": "#/$defs/D", "type": "string"}, **{"$defs": {"D": STRING}}),
        {**closed(a={"$ref": "#/$defs/D"}), "$defs": {"D": STRING}},
    ),
    "a chain of references keeps its type": (
        of(
            {"$ref": "#/definitions/A", "description": "x"},
            definitions={"A": {"$ref": "#/definitions/B"}, "B": of(STRING)},
        ),
        {
            **closed(a={"anyOf": [{"$ref": "#/definitions/A"}], "description": "x"}),
            "definitions": {"A": {"$ref": "#/definitions/B"}, "B": closed(a=STRING)},
        },
    ),
    "a reference at the root": (
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": of(STRING)}, "description": "x"},
        {**closed(a=STRING), "description": "x", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": closed(a=STRING)}},
    ),
    "a reference to the root": (
        {"properties": {"a": {"type": "array", "items": {"$ref": "#"}}}},
        closed(a={"type": "array", "items": {"$ref": "#"}}),
    ),
    "a reference to a property": (
        {"properties": {"a": STRING, "b": {"$ref": "#/properties/a"}}},
        closed(a=STRING, b={"$ref": "#/properties/a"}),
    ),
    "a reference into a list": (
        {"properties": {"a": {"anyOf": [STRING, INTEGER]}, "b": {"$ref": "#/properties/a/anyOf/1"}}},
        closed(a={"anyOf": [STRING, INTEGER]}, b={"$ref": "#/properties/a/anyOf/1"}),
    ),
    "escapes in a reference": (
        of({"$ref": "#/$defs/a~1b%20~0c"}, **{"$defs": {"a/b ~c": STRING}}),
        {**closed(a={"$ref": "#/$defs/a~1b%20~0c"}), "$defs": {"a/b ~c": STRING}},
    ),
    "definitions below the root": (
        of({"$defs": {"D": of(STRING)}, "type": "array", "items": {"$ref": "#/properties/a/$defs/D"}}),
        closed(a={"$defs": {"D": closed(a=STRING)}, "type": "array", "items": {"$ref": "#/properties/a/$defs/D"}}),
    ),
    "$id at the root": ({"$id": "urn:x", "properties": {}}, {"$id": "urn:x", **EMPTY}),
    "keywords of no concern": (
        of({"type": "string", "enum": ["a"], "examples": [{"b": ["c"]}], "not": {"const": "b"}}),
        closed(a={"type": "string", "enum": ["a"], "examples": [{"b": ["c"]}], "not": {"const": "b"}}),
    ),
    "properties named like keywords": (
        {"properties": {"$ref": STRING, "$id": STRING, "default": STRING, "allOf": STRING}},
        closed(**{"$ref": STRING, "$id": STRING, "default": STRING, "allOf": STRING}),
    ),
}


@pytest.mark.parametrize(("schema", "form"), CONVERTED.values(), ids=CONVERTED)
def test_the_strict_form(schema: dict[str, Any], form: dict[str, Any]) -> None:
    """Each rule gives its form; the schema stays as it was; the form is its own strict form."""
    before = copy.deepcopy(schema)
    assert strict(schema) == Success(form)
    assert schema == before
    assert strict(form) == Success(form)


def deep(levels: int) -> dict[str, Any]:
    """A schema of arrays in arrays."""
    schema: dict[str, Any] = STRING
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return of(schema)


def shared(levels: int) -> dict[str, Any]:
    """A schema that holds one object many times over: small in memory, vast when written out."""
    schema: dict[str, Any] = of(STRING)
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema, "y": schema}}
    return schema


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "open object": (of({"type": "object", "additionalProperties": True}), "a", "not declared"),
    "map": (of({"type": "object", "additionalProperties": STRING}), "a", "not declared"),
    "map without a type": (of({"additionalProperties": {}}), "a", "not declared"),
    "open root": ({"additionalProperties": True}, "", "not declared"),
    "in an array": (of({"items": {"type": "object", "additionalProperties": {}}}), "a[]", "not declared"),
    "in a definition": (
        {
            "properties": {"o": {"anyOf": [{"$ref": "#/$defs/O"}]}},
            "$defs": {"O": of({"type": "object", "additionalProperties": True})},
        },
        "o.a",
        "not declared",
    ),
    "in a definition that nothing uses": ({"$defs": {"O": {"additionalProperties": True}}}, "O", "not declared"),
    "required and not declared": (of(STRING, required=["b"]), "", "requires a key"),
    "odd required": (of(STRING, required="a"), "", "requires a key"),
    "boolean subschema": (of(True), "a", "must be an object"),
    "boolean items": (of({"items": False}), "a[]", "must be an object"),
    "root union": ({"anyOf": [of(STRING)]}, "", "plain object"),
    "root oneOf": ({"type": "object", "oneOf": [of(STRING)]}, "", "plain object"),
    "root scalar": (STRING, "", "plain object"),
    "nullable root": ({"type": ["object", "null"]}, "", "plain object"),
    "unknown reference": (of({"$ref": "#/$defs/N"}), "a", "leads to no schema"),
    "reference outside": (of({"$ref": "http://example.org/s"}), "a", "leads to no schema"),
    "reference that is no text": (of({"$ref": 3}), "a", "leads to no schema"),
    "reference past a list": (of({"anyOf": [STRING, {"$ref": "#/properties/a/anyOf/9"}]}), "a", "leads to no schema"),
    "reference through a scalar": (of({"type": "string", "$ref": "#/properties/a/type/x"}), "a", "leads to no schema"),
    "references in a circle": (
        of({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}),
        "a",
        "leads to no schema",
    ),
    "reference in a circle at the root": ({"$ref": "#"}, "", "leads to no schema"),
    "reference to what is not converted": (
        of({"$ref": "#/x/D"}, x={"D": {"type": "object", "properties": {}}}),
        "a",
        "leads to no schema",
    ),
    "reference with demands": (
        of({"$ref": "#/$defs/D", "minLength": 3}, **{"$defs": {"D": STRING}}),
        "a",
        "minLength beside",
    ),
    "reference under not": (of({"not": {"$ref": "#"}}), "a", "reference inside"),
    "reference under if": (of({"if": {"items": [{"$ref": "#"}]}}), "a", "reference inside"),
    "overlapping oneOf": (of({"oneOf": [INTEGER, {"type": "number"}]}), "a", "one value"),
    "anyOf and oneOf": (of({"anyOf": [STRING], "oneOf": [STRING]}), "a", "both"),
    "allOf of two": (of({"allOf": [STRING, STRING]}), "a", "allOf"),
    "allOf that is none": (of({"allOf": STRING}), "a", "allOf"),
    "allOf that contradicts": (of({"allOf": [STRING], "type": "integer"}), "a", "type differs"),
    "nested $id": (of({"$id": "urn:x"}), "a", "$id"),
    "patternProperties": (of({"patternProperties": {}}), "a", "patternProperties"),
    "$dynamicRef": (of({"$dynamicRef": "#x"}), "a", "$dynamicRef"),
    "properties that are none": (of({"properties": [1]}), "a", "not an object"),
    "anyOf that is none": (of({"anyOf": {}}), "a", "not an array"),
    "definitions that are none": ({"$defs": []}, "", "not an object"),
    "too deep": (deep(120), "a" + "[]" * 99, "deep"),
    "too large": (shared(30), "", "parts"),
    "not plain data": (of({"enum": [{1, 2}]}), "a", "plain data"),
}


@pytest.mark.parametrize(("schema", "path", "reason"), REFUSED.values(), ids=REFUSED)
def test_no_strict_form(schema: dict[str, Any], path: str, reason: str) -> None:
    """What cannot be strict is a `NotStrict` that names the property and why; the schema stays as it was."""
    before = copy.deepcopy(schema) if path or "properties" not in schema else None
    match strict(schema):
        case Failure(NotStrict(where, why)):
            assert reason in why
            assert where == path or reason == "parts"
        case Success():
            pytest.fail("it has a strict form")
    assert before is None or schema == before


def tagged(name: str, **more: Any) -> dict[str, Any]:
    """An object with a constant tag."""
    return {"type": "object", "properties": {"kind": {"const": name}, **more}, "required": ["kind"]}


APART: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "string, integer": (STRING, INTEGER, True),
    "integer, number": (INTEGER, {"type": "number"}, False),
    "type lists": ({"type": ["string", "null"]}, {"type": ["null", "integer"]}, False),
    "constants": ({"const": 1}, {"const": 2}, True),
    "equal numbers": ({"const": 1}, {"const": 1.0}, False),
    "true and one": ({"const": True}, {"const": 1}, True),
    "fractions and integers": ({"enum": [0.5]}, INTEGER, True),
    "enumerations": ({"enum": ["a", "b"]}, {"enum": ["b"]}, False),
    "arrays as constants": ({"const": [1]}, {"const": [True]}, False),
    "null and a string": ({"const": None}, STRING, True),
    "tags": (tagged("a"), tagged("b"), True),
    "one tag": (tagged("a"), tagged("a"), False),
    "other keys, open": (tagged("a", x=STRING), tagged("a"), False),
    "other keys, closed": (tagged("a", x=STRING), {**tagged("a"), "additionalProperties": False}, True),
    "a key that the other requires": (tagged("a"), {**tagged("a"), "required": ["y"]}, True),
    "an object without a type": ({"properties": {"x": STRING}}, STRING, True),
    "anything": ({}, STRING, False),
    "unions": ({"anyOf": [STRING, INTEGER]}, {"anyOf": [{"type": "null"}, {"type": "array"}]}, True),
    "unions that meet": ({"anyOf": [STRING, INTEGER]}, {"anyOf": [{"type": "null"}, STRING]}, False),
    "odd unions": ({"anyOf": 3}, STRING, False),
    "odd branches": ({"anyOf": [True]}, STRING, False),
    "odd types": ({"type": "thing"}, STRING, False),
}


@pytest.mark.parametrize(("one", "other", "verdict"), APART.values(), ids=APART)
def test_apart(one: dict[str, Any], other: dict[str, Any], verdict: bool) -> None:
    """Two branches are apart only where no value can fit both."""
    assert apart(one, other, lambda schema: schema) is verdict


def test_apart_gives_up_in_the_deep() -> None:
    """Objects that differ four levels down, or that nest without end, are not proved apart."""
    one, other = tagged("a"), tagged("b")
    for _ in range(3):
        one, other = of(one), of(other)
    assert apart(one, other, lambda schema: schema) is False
    nested: dict[str, Any] = {"anyOf": []}
    nested["anyOf"].append(nested)
    assert apart(nested, STRING, lambda schema: schema) is False
    assert apart(STRING, INTEGER, lambda schema: None) is False


def test_results_share_nothing() -> None:
    """A change to one result is seen in no other."""
    first, second = strict({}).unwrap(), strict({}).unwrap()
    first["properties"]["x"] = STRING
    assert second == EMPTY
    listed = {"properties": {"a": {"enum": [["x"]]}}}
    strict(listed).unwrap()["properties"]["a"]["enum"][0].append("y")
    assert listed == {"properties": {"a": {"enum": [["x"]]}}}


def test_work_is_bounded_by_size() -> None:
    """Twenty-five definitions, each with two described references to the next, stay as many."""
    definitions = {
        f"D{n}": {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/D{n + 1}", "description": side} for side in ("left", "right")},
        }
        for n in range(25)
    }
    form = strict({"properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": {**definitions, "D25": of(STRING)}}).unwrap()
    assert len(json.dumps(form)) < 10_000


def test_a_thousand_definitions_in_a_row() -> None:
    """A long chain of definitions is walked without recursion."""
    definitions: dict[str, Any] = {f"D{n}": of({"$ref": f"#/$defs/D{n + 1}"}) for n in range(1000)}
    schema = {"properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": {**definitions, "D1000": STRING}}
    assert len(strict(schema).unwrap()["$defs"]) == 1001


def test_strict_text_names_tool_parameter_and_ways_out() -> None:
    """A schema that cannot be strict is a declaration error that says where, and what to do."""
    schema = json.dumps(of({"type": "object", "additionalProperties": True}))
    with pytest.raises(DeclarationError, match=r"tool 'save': 'a' cannot be strict: .*strict=False.*dataclass"):
        strict_text(schema, "tool 'save'")
    with pytest.raises(DeclarationError, match="its schema cannot be strict"):
        strict_text('{"type":"string"}', "save")
    with pytest.raises(DeclarationError, match="not JSON"):
        strict_text("{", "save")
    with pytest.raises(DeclarationError, match="its schema is not an object"):
        strict_text("[]", "save")

"""The JSON Schema of a run's document, made from the classes; `python tests/run_schema.py` writes the package's."""

import json
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import attrs

import fnagents
from fnagents.beginnings import Start
from fnagents.converting import ALONE, REFERENCES, UNIONS, converter, members
from fnagents.errors import AwaitingApproval
from fnagents.outcome import Failure, Success
from fnagents.protocol import Event

PATH = Path(fnagents.__file__).with_name("run.schema.json")
REFERENCE = {"$ref": "#/$defs/reference"}
TEXT = {"$ref": "#/$defs/text"}
TAGGED = {member for union in UNIONS for member in members(union)}


def of_type(kind: Any) -> Any:
    """The schema of a field's type."""
    origin, inner = get_origin(kind), get_args(kind)
    simple = {str: TEXT, int: {"type": "integer"}, bool: {"type": "boolean"}, type(None): {"type": "null"}}
    if kind in simple:
        return simple[kind]
    if kind is float:
        return {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is tuple:
        return {"type": "array", "items": of_type(inner[0])}
    if origin in (Union, UnionType):
        return {"anyOf": [of_type(one) for one in inner if one is not AwaitingApproval]}
    if origin in (Success, Failure):
        key = "value" if origin is Success else "error"
        return closed({"$type": {"const": origin.__name__}, key: of_type(inner[0])}, ["$type", key])
    return {"$ref": f"#/$defs/{kind.__name__}"}


def closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def of_class(kind: Any) -> dict[str, Any]:
    """The schema of a class; its docstring's first line says what it is."""
    fields = [one for one in attrs.fields(kind) if one.init]
    references = REFERENCES.get(kind.__name__, ())
    tag = {"$type": {"const": kind.__name__}} if kind in TAGGED else {}
    properties = {one.name: REFERENCE if one.name in references else of_type(one.type) for one in fields}
    required = [*tag, *(one.name for one in fields if one.default is attrs.NOTHING)]
    return {"description": kind.__doc__.strip().splitlines()[0], **closed({**tag, **properties}, required)}


def document_schema() -> dict[str, Any]:
    """The schema of the newest version."""
    converter()
    attrs.resolve_types(Start)
    joined = closed(
        {"$type": {"const": "Joined"}, "value": {"type": "array", "items": {"type": "string"}}}, ["$type", "value"]
    )
    named = {
        "reference": {"description": "The digest of a definition.", "type": "string", "pattern": "^([0-9a-f]{64})?$"},
        "text": {"anyOf": [{"type": "string"}, joined]},
        "Told": of_told(),
        "Listed": closed(
            {"definition": REFERENCE, "serial": {"type": "boolean"}, "gate": {"type": "boolean"}}, ["definition"]
        ),
    }
    listed = {"anyOf": [{"$ref": "#/$defs/Listed"}, REFERENCE]}
    definition = {
        "anyOf": [
            TEXT,
            {"$ref": "#/$defs/Told"},
            {"$ref": "#/$defs/ToolDefinition"},
            {"type": "array", "items": listed},
        ]
    }
    classes = {one.__name__: of_class(one) for one in sorted({*ALONE, *TAGGED, Start}, key=lambda one: one.__name__)}
    del classes["Listing"]
    document = {
        "format": {"const": "fnagents.run"},
        "version": {"const": 1},
        "definitions": {"type": "object", "propertyNames": REFERENCE, "additionalProperties": definition},
        "start": {"$ref": "#/$defs/Start"},
        "events": {"type": "array", "items": of_type(Event)},
    }
    digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    seal = {"version": {"const": 1}, "digests": {"type": "array", "items": digest}, "chain": digest}
    sealed = {**document, "seal": closed({**seal, "hmac": digest}, list(seal))}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of fnagents, version 1",
        **closed(sealed, list(document)),
        "$defs": {**named, **classes},
    }


def of_told() -> dict[str, Any]:
    properties = {
        "instructions": REFERENCE,
        "tools": REFERENCE,
        "settings": {"$ref": "#/$defs/ModelSettings"},
        "model": TEXT,
        "output_schema": REFERENCE,
    }
    return {"description": "What a model was told beside the conversation.", **closed(properties, [])}


def as_text() -> str:
    return json.dumps(document_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(as_text(), encoding="utf-8", newline="\n")

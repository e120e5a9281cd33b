"""A model that invents: it calls every tool once with arguments drawn from the tool's schema, then ends.

For smoke tests of agents: what it says depends on the seed and the request alone, so a run can be had again.
"""

from __future__ import annotations

import json
import math
import random
from typing import Any

from fnagents.errors import ModelError
from fnagents.items import Message, ToolCall
from fnagents.models import Emit, ModelClient, ModelRequest, ModelResponse
from fnagents.outcome import Outcome, Success
from fnagents.schemas.data import is_object

__all__ = ["inventive"]

_DEEPEST = 6
_FORMATS = {
    "date-time": "2024-02-29T12:30:00Z",
    "date": "2024-02-29",
    "time": "12:30:00Z",
    "duration": "PT90S",
    "uuid": "12345678-1234-5678-1234-567812345678",
    "uri": "https://example.org/a",
    "email": "ann@example.org",
}


def inventive(seed: int = 0) -> ModelClient:
    """A model client that calls each tool once, one a turn, and then says a final text (or an invented output).

    Arguments fit the schema that was sent as far as types, enumerations, bounds and formats go; patterns are not
    solved.  Tools that have no parameters in their definition are left out.

    >>> from fnagents import Agent, run_sync, tool
    >>> @tool
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> run = run_sync(Agent("a", tools=[add]), "go", client=inventive(7))
    >>> [item.name for item in run.turns[0].said], run.outcome
    (['add'], <Success: done>)
    """

    async def client(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:  # noqa: ARG001
        chance = random.Random(f"{seed}/{request.agent}/{request.turn}")  # noqa: S311  # no secret is made of it
        called = {item.name for item in request.items if isinstance(item, ToolCall)}
        for tool in request.tools:
            parameters = json.loads(tool.text).get("parameters")
            if tool.name not in called and is_object(parameters):
                arguments = json.dumps(_drawn(chance, parameters, parameters, 0))
                item = ToolCall(f"call_{request.turn}", tool.name, arguments, tool.kind, tool.namespace)
                return Success(ModelResponse((item,)))
        return Success(ModelResponse((Message("assistant", _final(chance, request.sent.output_schema)),)))

    return client


def _final(chance: random.Random, output_schema: str) -> str:
    if not output_schema:
        return "done"
    schema: dict[str, Any] = json.loads(output_schema)
    schema = schema["schema"] if schema.get("type") == "json_schema" else schema
    return json.dumps(_drawn(chance, schema, schema, 0))


def _drawn(chance: random.Random, schema: Any, root: dict[str, Any], depth: int) -> Any:
    """A value that fits the schema; shallow where it may be, so that recursive schemas end."""
    if not is_object(schema):
        return chance.choice(["text", 1, None])
    if isinstance(reference := schema.get("$ref"), str):
        return _drawn(chance, _referred(reference, root), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if values := schema.get("enum"):
        return chance.choice(list(values))
    if branches := schema.get("anyOf") or schema.get("oneOf"):
        return _drawn(chance, branches[-1] if depth > _DEEPEST else chance.choice(branches), root, depth + 1)
    if parts := schema.get("allOf"):
        return _drawn(
            chance, {**schema, **{k: v for part in parts for k, v in part.items()}, "allOf": None}, root, depth
        )
    kind: Any = schema.get("type", "object" if "properties" in schema else "string")
    return _of_kind(chance, kind if isinstance(kind, str) else chance.choice(kind), schema, root, depth)


def _referred(reference: str, root: dict[str, Any]) -> Any:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step.replace("~1", "/").replace("~0", "~")]
    return found


def _of_kind(chance: random.Random, kind: str, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    if kind == "object":
        required = schema.get("required", ())
        return {
            name: _drawn(chance, part, root, depth + 1)
            for name, part in schema.get("properties", {}).items()
            if name in required or chance.random() < 0.5  # noqa: PLR2004  # as often as not
        }
    if kind == "array":
        least = max(int(schema.get("minItems", 0)), 0 if depth > _DEEPEST else 1)
        fixed = [_drawn(chance, part, root, depth + 1) for part in schema.get("prefixItems", ())]
        more = least - len(fixed) if schema.get("items") is not False else 0
        return fixed + [_drawn(chance, schema.get("items", {}), root, depth + 1) for _ in range(more)]
    if kind == "string":
        text = _FORMATS.get(str(schema.get("format")), chance.choice(["red", "blue", "Oslo", "a longer text"]))
        return text.ljust(int(schema.get("minLength", 0)), "x")[: int(schema.get("maxLength", len(text) + 100))]
    return {"boolean": chance.random() < 0.5, "null": None}.get(kind, _number(chance, kind, schema))  # noqa: PLR2004


def _number(chance: random.Random, kind: str, schema: dict[str, Any]) -> int | float:
    below, above = schema.get("exclusiveMaximum"), schema.get("exclusiveMinimum")
    most = schema.get("maximum", None if below is None else below - 1)
    least = schema.get("minimum", (most or 10) - 10 if above is None else above + 1)
    most = least + 10 if most is None else most
    step = schema.get("multipleOf", 1)
    number = chance.randint(math.ceil(least / step), max(math.floor(most / step), math.ceil(least / step))) * step
    return int(number) if kind == "integer" else float(number)

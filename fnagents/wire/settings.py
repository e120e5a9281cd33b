"""All of a request but the conversation, as the Responses API takes it: instructions, tools, settings.

What is None or empty is left out; the provider's default holds.  `parallel_tool_calls` without tools is refused
by the API, so it goes only with them.
"""

from __future__ import annotations

from typing import TypeAlias

from fnagents.errors import DeclarationError
from fnagents.jsontext import Json
from fnagents.models import ModelSettings, Sent, ToolDefinition
from fnagents.wire.parts import Data, object_of

__all__ = ["write_sent", "write_tool_choice", "write_tools"]

_Tools: TypeAlias = tuple[ToolDefinition, ...]

#: Settings that are sent under their own name, as they are.
_PLAIN = (
    "temperature",
    "top_p",
    "max_output_tokens",
    "truncation",
    "store",
    "top_logprobs",
    "max_tool_calls",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "background",
)
#: Settings that are JSON texts of objects.
_OBJECTS = ("reasoning", "metadata", "prompt")
#: Fields that are made of the request itself.
_OURS = frozenset({"model", "instructions", "tools", "input", "stream", "previous_response_id", "conversation"})
_HOSTED = frozenset({"file_search", "web_search", "web_search_preview", "image_generation", "code_interpreter"})
_LOGPROBS = "message.output_text.logprobs"


def write_tools(tools: _Tools) -> list[Json]:
    """The definitions in order; those of one namespace together, where its first one stands.

    A definition with a namespace is a function's, or already a `namespace` of its own (which has a description).
    """
    written: list[Json] = []
    spaces: dict[str, Data] = {}
    for tool in tools:
        data = object_of(tool.text, f"the definition of {tool.name!r}")
        if not tool.namespace or data.get("type") not in {"function", "custom", "namespace"}:
            written.append(data)
            continue
        wrapped = data if data.get("type") == "namespace" else _namespace(tool.namespace, data)
        if tool.namespace not in spaces:
            spaces[tool.namespace] = wrapped
            written.append(wrapped)
        else:
            _members(spaces[tool.namespace]).extend(_members(wrapped))
    return written


def _namespace(name: str, tool: Data) -> Data:
    return {"type": "namespace", "name": name, "description": f"The tools of {name}.", "tools": [tool]}


def _members(namespace: Data) -> list[Json]:
    members: Json = namespace.get("tools")
    if not isinstance(members, list):
        raise DeclarationError(f"the namespace {namespace.get('name')!r} has no tools")
    return members


def write_tool_choice(choice: str, tools: _Tools) -> Json:
    """What the model must do: "auto", "none", "required", a tool's name, or JSON text of any other choice.

    >>> write_tool_choice("get_weather", ())
    {'type': 'function', 'name': 'get_weather'}
    """
    if choice in {"auto", "none", "required"}:
        return choice
    if choice.startswith("{"):
        return object_of(choice, "tool_choice")
    named = next((tool for tool in tools if tool.name == choice and not tool.namespace), None)
    kind = object_of(named.text, f"the definition of {choice!r}").get("type") if named is not None else None
    if kind == "custom":
        return {"type": "custom", "name": choice}
    if isinstance(kind, str) and kind not in {"function", "mcp"}:
        return {"type": kind}
    if named is None and choice in _HOSTED:
        return {"type": choice}
    return {"type": "function", "name": choice}


def _text(settings: ModelSettings, output_schema: str) -> Data:
    text: Data = {}
    if output_schema:
        schema = object_of(output_schema, "the output schema")
        whole = schema.get("type") == "json_schema"
        text["format"] = (
            schema if whole else {"type": "json_schema", "name": "final_output", "schema": schema, "strict": True}
        )
    if settings.verbosity is not None:
        text["verbosity"] = settings.verbosity
    return text


def _include(settings: ModelSettings) -> list[Json]:
    wanted = {*settings.include, *((_LOGPROBS,) if settings.top_logprobs is not None else ())}
    return [*sorted(wanted)]


def write_sent(sent: Sent) -> Data:
    """Everything of a request that does not change from turn to turn, without the model's name.

    `sent.output_schema` is a JSON Schema, sent as the strict format `final_output`, or a whole format
    (`{"type": "json_schema", "name": ..., "schema": ..., "strict": ...}`), sent as it is.
    Raises `DeclarationError` where `settings.extra` has a field that is written otherwise.

    >>> write_sent(Sent(instructions="Be brief.", settings=ModelSettings(temperature=0.0)))
    {'instructions': 'Be brief.', 'temperature': 0.0}
    """
    settings = sent.settings
    data: Data = {"instructions": sent.instructions} if sent.instructions is not None else {}
    data |= {name: value for name in _PLAIN if (value := getattr(settings, name)) is not None}
    data |= {name: object_of(text, f"settings.{name}") for name in _OBJECTS if (text := getattr(settings, name))}
    if include := _include(settings):
        data["include"] = include
    if text := _text(settings, sent.output_schema):
        data["text"] = text
    if settings.tool_choice is not None:
        data["tool_choice"] = write_tool_choice(settings.tool_choice, sent.tools)
    if sent.tools:
        data["tools"] = write_tools(sent.tools)
    if settings.parallel_tool_calls is not None and (sent.tools or settings.prompt):
        data["parallel_tool_calls"] = settings.parallel_tool_calls
    extra = object_of(settings.extra, "settings.extra")
    if taken := sorted(extra.keys() & (data.keys() | _OURS)):
        raise DeclarationError(f"settings.extra has {', '.join(taken)}, which the request says already")
    return data | extra

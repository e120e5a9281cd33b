"""Tools: one class, which every family of tools is made with; what their functions take and answer.

A tool is data and a few functions.  What differs between families is data: the `kind` of call it answers,
the definition that the model reads, how arguments are read.  Nothing here runs a tool: see pipeline.py.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias

from attrs import Factory, field, frozen
from typing_extensions import TypeIs, TypeVar

from fnagents.errors import DeclarationError, ToolError
from fnagents.items import Item, Part, as_content, as_items, text_of
from fnagents.jsontext import canonical
from fnagents.models import Delta, ToolDefinition, Usage
from fnagents.outcome import Outcome
from fnagents.schemas.arguments import Arguments
from fnagents.schemas.read import json_reader
from fnagents.schemas.strict import strict_text

if TYPE_CHECKING:
    from fnagents.agent import Agent
    from fnagents.runs import Run

__all__ = [
    "AgentContext",
    "Allow",
    "Answer",
    "Delegate",
    "Fatal",
    "Handoff",
    "Output",
    "Reject",
    "Tool",
    "ToolContext",
    "ToolInputGuardrail",
    "ToolOutputGuardrail",
    "ToolSource",
    "Trip",
    "check_name",
    "fatal",
    "is_tool",
]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
Ctx = TypeVar("Ctx", default=Any)
#: The context that a tool or an agent asks for: what takes any context also takes a certain one.
CtxIn = TypeVar("CtxIn", contravariant=True, default=Any)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


# --- what a function answers ---------------------------------------------------------------------------


@frozen
class Output:
    """What a tool gives the model: text or parts; `usage` if it asked models itself.

    `memory` is text that the tool's next call in the same run finds in its context.
    """

    parts: str | tuple[Part, ...] = field(converter=as_content)
    usage: Usage | None = None
    memory: str = ""

    @property
    def text(self) -> str:
        """What the model reads, without pictures and files."""
        return text_of(self.parts)


@frozen
class Handoff:
    """The conversation goes on with another agent; `text` is what the call's output says."""

    agent: str
    text: str = ""

    @property
    def output(self) -> str:
        """The output of the call, never empty."""
        return self.text or canonical({"assistant": self.agent})


@frozen
class Delegate:
    """A nested run answers the call: `agent` is started on `input`, its final output is the call's output.

    `extract` asks for an `Extract` effect when the nested run has ended.
    """

    agent: str
    input: tuple[Item, ...] = field(converter=as_items)
    max_turns: int | None = 10
    #: canonical JSON of the structured arguments ("" for none), seen inside as `tool_input`
    tool_input: str = ""
    extract: bool = False


#: What a tool's function may answer.
Answer: TypeAlias = Output | Handoff | Delegate


@frozen
class Fatal:
    """The verdict of `on_error` that ends the run."""


# --- what a function is given --------------------------------------------------------------------------


@frozen(eq=False)
class AgentContext(Generic[Ctx]):
    """Where an agent's own functions are called: instructions, `is_enabled`, tool sources, guardrails.

    `context` is the caller's own object, passed through untouched; `seen` is the run so far.
    """

    context: Ctx
    agent: str
    turn: int
    path: tuple[str, ...]
    seen: Run = field(repr=False)
    #: the structured arguments of the agent tool that started this run, as JSON text ("" at the root)
    tool_input: str = ""

    @property
    def usage(self) -> Usage:
        """What the run has cost so far, nested runs included."""
        return self.seen.usage

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation so far."""
        return self.seen.items


def _nobody_listens(delta: Delta) -> None:
    """Drop it: the run is not watched."""


def _never() -> bool:
    return False


@frozen(eq=False)
class ToolContext(AgentContext[Ctx]):
    """Where a tool's function is called.  `place` is the call's position: turn and index, such as "2.0".

    `arguments` is the text as the model wrote it; `call_id` the provider's id, which may repeat.
    `cancelled()` tells a function that nobody waits for it any more; `emit` takes deltas for whoever watches.
    """

    tool: Tool[..., Any, Any] = field(kw_only=True, repr=False)
    place: str = field(default="", kw_only=True)
    call_id: str = field(default="", kw_only=True)
    arguments: str = field(default="{}", kw_only=True)
    cancelled: Callable[[], bool] = field(default=_never, kw_only=True, repr=False)
    emit: Callable[[Delta], None] = field(default=_nobody_listens, kw_only=True, repr=False)

    @property
    def memory(self) -> str:
        """What this tool last left in the run ("" for nothing)."""
        return self.seen.memory_of(self.agent, self.tool.kind, self.tool.namespace, self.tool.name)


# --- guardrails ----------------------------------------------------------------------------------------


@frozen
class Allow:
    """A guardrail's verdict: go on.  `info` is kept in the run."""

    info: str = ""


@frozen
class Reject:
    """A guardrail's verdict: the model reads `message` instead; the run goes on."""

    message: str
    info: str = ""


@frozen
class Trip:
    """A guardrail's verdict: the run ends with `GuardrailTripped`."""

    info: str = ""


_Verdict: TypeAlias = "Allow | Reject | Trip | Awaitable[Allow | Reject | Trip]"
#: Judges the validated arguments of a call, before it runs.
ToolInputGuardrail: TypeAlias = Callable[[ToolContext[Any], Mapping[str, Any]], _Verdict]
#: Judges what the model is about to read.
ToolOutputGuardrail: TypeAlias = Callable[[ToolContext[Any], Output], _Verdict]
#: Lists tools when a turn opens (an MCP server, for example).
ToolSource: TypeAlias = Callable[[AgentContext[Any]], Awaitable["tuple[Tool[..., Any, Any], ...]"]]


def fatal(context: ToolContext[Any], error: ToolError) -> Fatal:  # noqa: ARG001  # the shape of `on_error`
    """As `on_error=fatal`: any failure of this tool ends the run with `ToolFailed`."""
    return Fatal()


# --- the tool ------------------------------------------------------------------------------------------


def check_name(name: object, what: str = "tool") -> str:
    """The name, if a provider takes it; raises `DeclarationError` otherwise."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DeclarationError(
            f"{what} name {name!r}: a name has 1 to 64 characters of a-z, A-Z, 0-9, _ and -; give one with name="
        )
    return name


def _schema_text(parameters: Mapping[str, Any] | str | None) -> str:
    given: Any = parameters
    if isinstance(given, str):
        return given
    if given is not None and not isinstance(given, Mapping):
        # The text of no schema: what reads the schema refuses it, and knows the tool's name.
        return json.dumps(type(given).__name__)
    schema: dict[str, Any] = {"type": "object", **(given or {})}
    if schema["type"] == "object":
        schema.setdefault("properties", {})
    try:
        return json.dumps(schema, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DeclarationError(f"parameters must be a JSON Schema of plain data: {error}") from None


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _positive(seconds: object) -> bool:
    # Compared, not asked: `isfinite` raises for an integer beyond all floats.
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds <= sys.float_info.max


def _definition(tool: Tool[..., Any, Any]) -> str:
    parameters = strict_text(tool.schema_text, f"tool {tool.name!r}") if tool.strict else tool.schema_text
    head = canonical({"type": "function", "name": tool.name, "description": tool.description})
    rest = {"strict": tool.strict} | ({"defer_loading": True} if tool.defer_loading else {})
    return f'{head[:-1]},"parameters":{parameters},{canonical(rest)[1:]}'


@frozen(eq=False)
class Tool(Generic[P, R, CtxIn]):
    """A tool: what the model is told of it, how its arguments are read, and the function that answers a call.

    By hand it is made of a JSON Schema and a function of the context and the arguments' text; `tool` makes it
    of a plain function.  `function` may be async; it gives an `Answer`, an `Outcome`, or any value that has a
    form for the model (see rendering.py).  A tool without a function is run by the provider.

    `timeout` counts seconds.  `needs_approval` is a bool or a predicate of the context and the validated
    arguments, `is_enabled` a bool or a predicate of the agent's context; either may be async.  `on_error` words
    a failure for the model, or returns `Fatal()`.  `serial` calls run one at a time in the model's order.
    `strict` sends the schema in its strict form; arguments are always judged by `parameters`.

    Raises `DeclarationError` for a name, schema or timeout that cannot work.

    >>> from fnagents import Tool
    >>> shout = Tool("shout", "Shout.", {"properties": {"text": {"type": "string"}}, "required": ["text"],
    ...     "additionalProperties": False}, lambda context, text: text.upper())
    >>> shout.definition["parameters"]["required"]
    ['text']
    """

    name: str
    description: str = ""
    #: the judging JSON Schema, as text; `parameters` gives it as data
    schema_text: str = field(default=None, converter=_schema_text, alias="parameters", repr=False)
    function: Callable[[Any, Any], Any] | None = field(default=None, repr=False)
    kind: str = field(default="function_call", kw_only=True)
    namespace: str = field(default="", kw_only=True)
    strict: bool = field(default=True, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
    needs_approval: bool | Callable[[ToolContext[CtxIn], Mapping[str, Any]], bool | Awaitable[bool]] = field(
        default=False, kw_only=True
    )
    is_enabled: bool | Callable[[AgentContext[CtxIn]], bool | Awaitable[bool]] = field(default=True, kw_only=True)
    input_guardrails: tuple[ToolInputGuardrail, ...] = field(default=(), converter=tuple, kw_only=True)
    output_guardrails: tuple[ToolOutputGuardrail, ...] = field(default=(), converter=tuple, kw_only=True)
    on_error: Callable[[ToolContext[Any], ToolError], str | Fatal | Awaitable[str | Fatal]] | None = field(
        default=None, kw_only=True
    )
    serial: bool = field(default=False, kw_only=True)
    defer_loading: bool = field(default=False, kw_only=True)
    #: run a sync function on the event loop: for cheap pure ones
    inline: bool = field(default=False, kw_only=True)
    #: from the arguments' text to what the function takes; by default parsed and judged by `parameters`
    read: Callable[[str], Outcome[Arguments, ToolError]] = field(
        default=Factory(lambda self: json_reader(self.schema_text, f"tool {self.name!r}"), takes_self=True),
        kw_only=True,
        repr=False,
    )
    #: JSON text of the definition that is sent, where it is not a function's
    definition_text: str = field(default=Factory(_definition, takes_self=True), kw_only=True, repr=False)
    #: the function that a call of the tool as a function runs
    plain: Callable[P, R] | None = field(default=None, kw_only=True, repr=False)
    asynchronous: bool = field(
        default=Factory(lambda self: _is_async(self.function), takes_self=True), kw_only=True, repr=False
    )
    #: what a `Delegate(extract=True)` makes of the nested run that has ended
    extract: Callable[[ToolContext[Any], Run], Any] | None = field(default=None, kw_only=True, repr=False)
    #: the agents that this tool may hand over or delegate to
    agents: tuple[Agent[Any, Any], ...] = field(default=(), kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        check_name(self.name)
        for option, given in (("needs_approval", self.needs_approval), ("is_enabled", self.is_enabled)):
            if not (isinstance(given, bool) or callable(given)):
                raise DeclarationError(f"tool {self.name}: {option}={given!r} is neither a bool nor a function")
        if self.timeout is not None and not _positive(self.timeout):
            raise DeclarationError(f"tool {self.name}: timeout={self.timeout!r} is not a positive number of seconds")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The plain function, as if it had never been made a tool."""
        if self.plain is None:
            raise TypeError(f"the tool {self.name!r} was not made of a plain function; use invoke(tool, arguments)")
        return self.plain(*args, **kwargs)

    @property
    def parameters(self) -> dict[str, Any]:
        """The judging JSON Schema, as plain data of the caller's own."""
        schema: dict[str, Any] = json.loads(self.schema_text)
        return schema

    @property
    def definition(self) -> dict[str, Any]:
        """What is sent to the model, as plain data of the caller's own."""
        definition: dict[str, Any] = json.loads(self.definition_text)
        return definition

    @property
    def told(self) -> ToolDefinition:
        """What is sent to the model, as a value of a request."""
        return ToolDefinition(self.name, self.definition_text, self.namespace, self.kind)


def is_tool(value: object) -> TypeIs[Tool[..., Any, Any]]:
    """Whether a value is a tool and not a tool source; type checkers lose a tool's parameters in `isinstance`."""
    return isinstance(value, Tool)

"""Agents: frozen values that say who speaks, with which tools, and when to stop."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypeAlias, cast

from attrs import field, frozen
from typing_extensions import TypeVar

from fnagents.errors import DeclarationError, ToolError
from fnagents.items import Item, ToolCall
from fnagents.models import ModelSettings, Once
from fnagents.outcome import Outcome
from fnagents.schemas.output import Schema, schema
from fnagents.tools import AgentContext, Allow, CtxIn, Handoff, Output, Tool, ToolSource, Trip, is_tool

__all__ = [
    "Agent",
    "Agents",
    "InputGuardrail",
    "OutputGuardrail",
    "StopAt",
    "ToolResult",
    "agents",
    "blocking",
]

Out = TypeVar("Out", covariant=True, default=str)

_Verdict: TypeAlias = "Allow | Trip | Awaitable[Allow | Trip]"


@frozen
class ToolResult:
    """One answered call of a turn, as a `tool_use_behavior` function sees it."""

    call: ToolCall
    outcome: Outcome[Output | Handoff, ToolError]


class StopAt:
    """As `tool_use_behavior`: the first successful output of one of these tools is the final output."""

    __slots__ = ("names",)

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)


@frozen
class InputGuardrail:
    """Judges what a run begins with: beside the first model call, or before it if `blocking`."""

    function: Callable[[AgentContext[Any], tuple[Item, ...]], _Verdict]
    blocking: bool = False


#: Judges the final output's text.
OutputGuardrail: TypeAlias = Callable[[AgentContext[Any], str], _Verdict]

#: From a context and the answered calls of a turn to the final output, or None to ask the model again.
ToolUseFunction: TypeAlias = Callable[[AgentContext[Any], tuple[ToolResult, ...]], "str | None | Awaitable[str | None]"]


def blocking(function: Callable[[AgentContext[Any], tuple[Item, ...]], _Verdict]) -> InputGuardrail:
    """The guardrail, run before the first model call instead of beside it."""
    return InputGuardrail(function, blocking=True)


def _guardrail(given: Any) -> InputGuardrail:
    return given if isinstance(given, InputGuardrail) else InputGuardrail(given)


def _guardrails(given: Any) -> tuple[InputGuardrail, ...]:
    return tuple(_guardrail(one) for one in given)


def _tools(given: Iterable[Tool[..., Any, CtxIn] | ToolSource]) -> tuple[Tool[..., Any, CtxIn] | ToolSource, ...]:
    if is_tool(given):
        raise DeclarationError(f"tools takes several tools: tools=[{given.name}]")
    return tuple(given)


def _handoffs(given: Iterable[Tool[..., Any, CtxIn]]) -> tuple[Tool[..., Any, CtxIn], ...]:
    return tuple(given)


def _output_guardrails(given: Iterable[OutputGuardrail]) -> tuple[OutputGuardrail, ...]:
    return tuple(given)


@frozen(eq=False, slots=True)
class Agent(Once, Generic[CtxIn, Out]):
    """An agent: instructions, tools, and the type of its final output.

    `instructions` is text or a function (sync or async) of the agent's context.  `tools` are tools and tool
    sources, `handoffs` the tools that hand the conversation over.  `output_type` is any type that the schema
    builder knows; the model has `output_retries` tries to mend an output that does not fit.
    `tool_use_behavior` says whether a turn's tool outputs may end the run: "run_llm_again" (they never do),
    "stop_on_first_tool", `StopAt(names)`, or a function; a failed call never ends it.
    With `reset_tool_choice`, a forced tool choice holds until the agent has used a tool.

    Raises `DeclarationError` for tools whose names collide.

    >>> Agent("greeter", "Greet the user.").name
    'greeter'
    """

    name: str
    instructions: str | Callable[[AgentContext[CtxIn]], str | Awaitable[str]] | None = None
    model: str = field(default="", kw_only=True)
    tools: tuple[Tool[..., Any, CtxIn] | ToolSource, ...] = field(default=(), converter=_tools, kw_only=True)
    handoffs: tuple[Tool[..., Any, CtxIn], ...] = field(default=(), converter=_handoffs, kw_only=True)
    output_type: type[Out] | Schema[Out] | None = field(default=None, kw_only=True)
    output_retries: int = field(default=1, kw_only=True)
    settings: ModelSettings = field(default=ModelSettings(), kw_only=True)
    tool_use_behavior: Literal["run_llm_again", "stop_on_first_tool"] | StopAt | ToolUseFunction = field(
        default="run_llm_again", kw_only=True
    )
    reset_tool_choice: bool = field(default=True, kw_only=True)
    input_guardrails: tuple[InputGuardrail, ...] = field(default=(), converter=_guardrails, kw_only=True)
    output_guardrails: tuple[OutputGuardrail, ...] = field(default=(), converter=_output_guardrails, kw_only=True)

    def __attrs_post_init__(self) -> None:
        _check_kinds(self)
        if self.tool_use_behavior not in ("run_llm_again", "stop_on_first_tool") and not (
            isinstance(self.tool_use_behavior, StopAt) or callable(self.tool_use_behavior)
        ):
            raise DeclarationError(
                f"agent {self.name!r}: tool_use_behavior={self.tool_use_behavior!r} is none of 'run_llm_again', "
                "'stop_on_first_tool', StopAt('name', ...) and a function"
            )
        _distinct(self)
        _ = self.output  # what cannot be an output type is refused here, not when the agent runs

    @property
    def output(self) -> Schema[Out] | None:
        """The schema of the final output, or None for plain text."""
        return self.once(_output)


def _output(agent: Agent[Any, Any]) -> Schema[Any] | None:
    kind = agent.output_type
    if kind is None or kind is str:
        return None
    return kind if isinstance(kind, Schema) else schema(kind)


def _check_kinds(agent: Agent[Any, Any]) -> None:
    """What type checkers see too, for those who use none: said here, not when the agent runs."""
    if not _is(agent.name, str) or not agent.name:
        raise DeclarationError("an agent needs a name, as text: Agent('triage', ...)")
    said: object = agent.instructions
    rules: tuple[tuple[bool, str, object], ...] = (
        (said is None or isinstance(said, str) or callable(said), "instructions is text or a function", said),
        (_is(agent.model, str), "model is a model's name; a client is given to run(..., client=...)", agent.model),
        (_is(agent.settings, ModelSettings), "settings is ModelSettings(...)", agent.settings),
    )
    for holds, rule, given in rules:
        if not holds:
            raise DeclarationError(f"agent {agent.name!r}: {rule}, not a {type(given).__name__}")


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind)


def _is_source(value: object) -> bool:
    """Whether a value can be a tool source: an async function of one argument."""
    if not callable(value) or not (
        inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None))  # noqa: B004
    ):
        return False
    try:
        inspect.signature(value).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _distinct(agent: Agent[Any, Any]) -> None:
    seen: set[tuple[str, str, str]] = set()
    for tool in (*agent.tools, *agent.handoffs):
        if not is_tool(tool):
            if not _is_source(tool):
                raise DeclarationError(
                    f"agent {agent.name!r}: {tool!r} is neither a Tool nor a tool source (an async function of the "
                    "agent's context); make a tool of a function with tool(...)"
                )
            continue
        known = (tool.kind, tool.namespace, tool.name)
        if known in seen:
            raise DeclarationError(f"agent {agent.name!r} has two tools named {tool.name!r}; rename one with name=")
        seen.add(known)


def _of_mapping(given: object) -> Iterable[Agent[Any, Any]]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{given!r} is neither an Agent nor agents by name: agents(first, second, ...)")
    return cast("Agents", given).values()


#: The agents of a run, by name.
Agents: TypeAlias = Mapping[str, Agent[Any, Any]]


def agents(*roots: Agent[Any, Any] | Agents) -> Agents:
    """All agents that can be reached from these, by name: through handoffs and agent tools.

    Raises `DeclarationError` if two different agents have one name.

    >>> list(agents(Agent("a"), Agent("b")))
    ['a', 'b']
    """
    found: dict[str, Agent[Any, Any]] = {}
    waiting: list[Agent[Any, Any]] = []
    for root in roots:
        waiting.extend([root] if isinstance(root, Agent) else _of_mapping(root))
    while waiting:
        agent = waiting.pop(0)
        known = found.setdefault(agent.name, agent)
        if known is not agent:
            raise DeclarationError(f"two different agents are named {agent.name!r}; names are unique in a run")
        for tool in (*agent.tools, *agent.handoffs):
            if is_tool(tool):
                waiting.extend(inner for inner in tool.agents if found.get(inner.name) is not inner)
    return found

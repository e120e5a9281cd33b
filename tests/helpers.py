"""Small things that several test modules need: tools by hand, calls, and runs folded from short words."""

import json
from collections.abc import Callable
from typing import Any

from fnagents import (
    Agent,
    Agents,
    Event,
    Listing,
    Message,
    ModelResponse,
    Outcome,
    Replied,
    Run,
    Success,
    Tool,
    ToolCall,
    ToolDefinition,
    agents,
    key,
    plan,
    step,
)
from fnagents.items import Item

#: One integer, `x`.
NUMBER = {"properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
#: No arguments at all.
NOTHING: dict[str, Any] = {"additionalProperties": False}


def made(
    name: str, function: Callable[..., Any] | None = None, parameters: dict[str, Any] = NOTHING, **options: Any
) -> Tool[..., Any, Any]:
    """A tool by hand; a sync function runs on the event loop, so that no thread is needed."""
    return Tool(name, "", parameters, function, **{"inline": True, **options})


def given(name: str, answer: Any, **options: Any) -> Tool[..., Any, Any]:
    """A tool that takes nothing and always gives this answer."""
    return made(name, lambda context, text: answer, **options)


def raising(name: str, error: BaseException, **options: Any) -> Tool[..., Any, Any]:
    """A tool that always raises this."""

    def function(context: Any, text: str) -> Any:
        raise error

    return made(name, function, **options)


def call(name: str, id: str = "c", **arguments: Any) -> ToolCall:
    """A call with these arguments."""
    return ToolCall(id, name, json.dumps(arguments))


def replied(turn: int, *items: Item | str, **options: Any) -> Replied:
    """The model's answer; text stands for the final message."""
    said = tuple(Message("assistant", item) if isinstance(item, str) else item for item in items)
    return Replied(turn, Success(ModelResponse(said)), **options)


def folded(run: Run, *events: Event) -> Run:
    """The run after the events."""
    for event in events:
        run = step(run, event)
    return run


def keys(given: Agent[Any, Any] | Agents, run: Run) -> list[str]:
    """The names of what is planned."""
    return [key(effect) for effect in plan(agents(given), run)]


def listed(name: str, *, serial: bool = False, gate: bool = False) -> Listing:
    """What the core is told of a tool."""
    return Listing(ToolDefinition(name, "{}"), serial, gate)


async def at_once(work: Callable[[], Any]) -> Outcome[Any, BaseException]:
    """Instead of a thread: the work done on the spot, for virtual time."""
    return Success(work())


def texts(run: Run) -> list[str]:
    """What the model has read as the outputs of its calls."""
    return [output.text for turn in run.turns for output in turn.outputs]

"""The standard world: `performer(agents, client)` answers every effect but `Ask`.

Effects of a turn are answered in asking.py, those of a tool call here and in pipeline.py; foreign code is
called in these modules and nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias, assert_never

from fnagents.agent import Agents
from fnagents.asking import CLIENT, call_model, decide, finish, prepare
from fnagents.errors import ToolError, ToolRejected, UnknownTool
from fnagents.items import ToolCall
from fnagents.models import ModelClient
from fnagents.outcome import Failure, Outcome, Success
from fnagents.pipeline import (
    CAUGHT,
    Calling,
    Flag,
    OnRaised,
    check_call,
    failed,
    pass_cancellation,
    run_call,
    run_extract,
)
from fnagents.protocol import (
    Ask,
    CallModel,
    CallTool,
    Check,
    Checked,
    Decide,
    Effect,
    Event,
    Extract,
    Finish,
    Prepare,
    Returned,
)
from fnagents.rendering import raised
from fnagents.runs import MOST_GATES, CallState
from fnagents.tools import AgentContext, Tool, ToolContext
from fnagents.workers import InThread, in_thread
from fnagents.world import Watch, World, enabled, report

__all__ = ["Perform", "performer"]

#: The whole outside world: from an effect to the event that answers it; None if nobody can answer it yet (`Ask`).
Perform: TypeAlias = Callable[[Effect], Awaitable[Event | None]]


def performer(
    agents: Agents,
    client: ModelClient,
    *,
    context: Any = None,
    on_raised: OnRaised | None = None,
    watch: Watch | None = None,
    in_thread: InThread = in_thread,
) -> Perform:
    """A `Perform` over these agents and this model.

    `context` is handed to every function of theirs; `on_raised` is told of each exception of a tool; `watch` of
    the client's deltas; `in_thread` runs sync tools (tests with virtual time give their own).
    """
    if not callable(client):
        raise TypeError(f"{CLIENT}; this is a {type(client).__name__}")
    return partial(_perform, World(agents, client, context, on_raised, watch, in_thread))


async def _perform(world: World, effect: Effect) -> Event | None:
    match effect:
        case Prepare():
            return await prepare(world, effect)
        case CallModel():
            return await call_model(world, effect)
        case Check():
            return await _check(world, effect)
        case Ask():
            return None
        case CallTool():
            return await _call_tool(world, effect)
        case Extract():
            return await _extract(world, effect)
        case Decide():
            return await decide(world, effect)
        case Finish():
            return await finish(world, effect)
        case _:
            assert_never(effect)


async def _check(world: World, effect: Check) -> Checked:
    found = await _find(world, effect)
    if isinstance(found, Failure):
        return Checked(effect.place, found, path=effect.path)
    return await check_call(found.unwrap())


async def _call_tool(world: World, effect: CallTool) -> Returned | Checked:
    found = await _find(world, effect)
    if isinstance(found, Failure):
        return Returned(effect.place, found, path=effect.path)
    calling = found.unwrap()
    event = await run_call(calling, effect.digest, approved=effect.approved)
    if effect.attempt and isinstance(event, Checked) and (_passes(event) or effect.attempt >= MOST_GATES):
        # Where nobody is asked between the two they could take turns for ever; and a person is asked so often only.
        return await failed(calling, ToolRejected("The tool reads its arguments differently each time."))
    return event


def _passes(event: Checked) -> bool:
    return isinstance(event.outcome, Success) and not event.outcome.unwrap().needed


async def _extract(world: World, effect: Extract) -> Returned:
    found = await _find(world, effect)
    if isinstance(found, Failure):
        return Returned(effect.place, found, path=effect.path)
    child = _state(effect).child
    assert child is not None  # `plan` asks only then
    return await run_extract(found.unwrap(), child)


def _state(effect: Check | CallTool | Extract) -> CallState:
    return effect.seen.turns[-1].calls[int(effect.place.partition(".")[2])]


async def _find(world: World, effect: Check | CallTool | Extract) -> Outcome[Calling, ToolError]:
    """The tool of a call, looked up anew: the agent's own first, then its sources', if it is enabled now."""
    agent, seen, call = world.agents[effect.agent], effect.seen, _state(effect).call
    context = world.context_of(effect.agent, len(seen.turns) - 1, effect.path, seen)
    there: list[str] = []
    try:
        for tool in (*await world.tools_of(agent, context), *agent.handoffs):
            if await enabled(tool, context):
                if (tool.kind, tool.namespace, tool.name) == (call.kind, call.namespace, call.name):
                    return Success(_calling(world, tool, call, context, effect.place, tool in agent.handoffs))
                there.append(tool.name)
    except CAUGHT as error:
        pass_cancellation(error)
        report(error)
        return Failure(raised(error))
    return Failure(UnknownTool(call.name, tuple(there)))


def _calling(
    world: World, tool: Tool[..., Any, Any], call: ToolCall, context: AgentContext[Any], place: str, handoff: bool
) -> Calling:
    flag = Flag()
    inside = ToolContext(
        context.context,
        context.agent,
        context.turn,
        context.path,
        context.seen,
        context.tool_input,
        tool=tool,
        place=place,
        call_id=call.id,
        arguments=call.arguments,
        cancelled=flag.read,
        emit=partial(world.tell, context.path, context.turn),
    )
    return Calling(tool, call, inside, flag, world.in_thread, world.on_raised, handoff)

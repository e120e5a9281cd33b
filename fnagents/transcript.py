"""Selectors: what can be read off a run and its agents.  Pure; nothing is stored.

Who speaks, which tools that agent has, what the model is told, what the final output is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from attrs import evolve, frozen

from fnagents.agent import Agent, StopAt
from fnagents.items import Item, Message, Opaque, ToolCall
from fnagents.jsontext import compact
from fnagents.models import ModelRequest, Sent
from fnagents.outcome import Success
from fnagents.protocol import Listing
from fnagents.runs import CallState, Input, Run, Turn
from fnagents.schemas.output import Schema
from fnagents.tools import Output, Tool, is_tool

__all__ = [
    "Known",
    "final_text",
    "identity",
    "is_dynamic",
    "known_tools",
    "listing",
    "request",
    "speaker",
    "stopping_output",
]

Identity: TypeAlias = tuple[str, str, str]


@frozen
class Known:
    """A tool of a turn, as `plan` sees it."""

    listing: Listing
    handoff: bool


def identity(call: ToolCall) -> Identity:
    """What a call is resolved by: kind, namespace and name."""
    return (call.kind, call.namespace, call.name)


def speaker(run: Run) -> str:
    """The name of the agent whose turn is open, or who has the next one."""
    if not run.turns:
        return run.agent
    turn = run.turns[-1]
    handoff = turn.handoff
    return turn.agent if handoff is None else handoff.agent


def listing(tool: Tool[..., Any, Any]) -> Listing:
    """What the core needs of a tool."""
    return Listing(tool.told, serial=tool.serial, gate=tool.needs_approval is not False)


def is_dynamic(agent: Agent[Any, Any]) -> bool:
    """Whether a turn of this agent needs a `Prepare`: something of it is a function."""
    return agent.once(_is_dynamic)


def _is_dynamic(agent: Agent[Any, Any]) -> bool:
    return callable(agent.instructions) or any(
        not is_tool(tool) or not isinstance(tool.is_enabled, bool) for tool in (*agent.tools, *agent.handoffs)
    )


def _static(agent: Agent[Any, Any]) -> dict[Identity, Known]:
    return _known(
        tuple(listing(tool) for tool in agent.tools if is_tool(tool) and tool.is_enabled is True),
        tuple(listing(tool) for tool in agent.handoffs if tool.is_enabled is True),
    )


def _known(tools: tuple[Listing, ...], handoffs: tuple[Listing, ...]) -> dict[Identity, Known]:
    known: dict[Identity, Known] = {}
    for listings, handoff in ((tools, False), (handoffs, True)):
        for one in listings:
            definition = one.definition
            known[(definition.kind, definition.namespace, definition.name)] = Known(one, handoff)
    return known


def _prepared(turn: Turn) -> dict[Identity, Known]:
    assert turn.prepared is not None  # the caller looked
    return _known(turn.prepared.tools, turn.prepared.handoffs)


def known_tools(agent: Agent[Any, Any], turn: Turn | None) -> Mapping[Identity, Known]:
    """The tools of a turn: those recorded when it was opened, or the agent's own."""
    if turn is not None and turn.prepared is not None:
        return turn.once(_prepared)
    return agent.once(_static)


def _format(schema: Schema[Any]) -> str:
    """The schema alone where it is strict, as most are; the whole format otherwise."""
    if schema.strict:
        return schema.text
    return f'{{"type":"json_schema","name":{compact(schema.name)},"schema":{schema.text},"strict":false}}'


def _free(agent: Agent[Any, Any]) -> Sent:
    return Sent(
        instructions=agent.instructions if isinstance(agent.instructions, str) else None,
        tools=tuple(known.listing.definition for known in agent.once(_static).values()),
        settings=agent.settings,
        model=agent.model,
        output_schema=_format(agent.output) if agent.output is not None else "",
    )


def _unforced(agent: Agent[Any, Any]) -> Sent:
    return evolve(agent.once(_free), settings=evolve(agent.settings, tool_choice=None))


def _used_a_tool(run: Run, agent: str) -> bool:
    return any(turn.agent == agent and turn.calls for turn in reversed(run.turns))


def _sent(agent: Agent[Any, Any], run: Run, turn: Turn | None) -> Sent:
    forced = agent.settings.tool_choice not in {None, "auto", "none"}
    reset = forced and agent.reset_tool_choice and _used_a_tool(run, agent.name)
    sent = agent.once(_unforced if reset else _free)
    if turn is None or turn.prepared is None:
        return sent
    tools = tuple(known.listing.definition for known in known_tools(agent, turn).values())
    return evolve(sent, instructions=turn.prepared.instructions, tools=tools)


def request(agent: Agent[Any, Any], run: Run) -> ModelRequest:
    """What the model is asked next; a turn that was opened by `Prepared` is the one that is asked for."""
    turn = run.turns[-1] if run.turns and run.turns[-1].replied is None else None
    if turn is not None and turn.prepared is not None and turn.prepared.failure is not None:
        turn = None
    number = len(run.turns) if turn is None else len(run.turns) - 1
    if run.previous_response_id is not None or run.conversation_id is not None:
        return _tail(agent, run, turn, number)
    return ModelRequest(agent.name, number, _sent(agent, run, turn), run.input, run.turns[:number])


def _tail(agent: Agent[Any, Any], run: Run, turn: Turn | None, number: int) -> ModelRequest:
    """A request where the server holds the conversation: only what came after its last reply that can be named."""
    sent = _sent(agent, run, turn)
    previous, conversation = run.previous_response_id, run.conversation_id
    tail: list[Item] = []
    for one in reversed(run.turns[:number]):
        if one.response is not None and (conversation is not None or one.response.id):
            previous = None if conversation is not None else one.response.id
            items = (*one.outputs, *one.told, *tail)
            return ModelRequest(agent.name, number, sent, Input(items), (), previous, conversation)
        tail[:0] = one.items
    return ModelRequest(agent.name, number, sent, Input((*run.input.items, *tail)), (), previous, conversation)


def final_text(turn: Turn) -> str | None:
    """The text of a model's answer that ends a run: it called no tool, and spoke or did nothing else."""
    response = turn.response
    if response is None or turn.calls:
        return None
    for item in reversed(response.items):
        if isinstance(item, Message):
            return item.text
    return None if any(isinstance(item, Opaque) for item in response.items) else ""


def stopping_output(agent: Agent[Any, Any], turn: Turn) -> str | None:
    """The output of the first call in call order that ends the run by `tool_use_behavior`, or None.

    A failed call never ends a run: its text is feedback for the model, not an answer for the user.
    """
    behavior = agent.tool_use_behavior
    if behavior != "stop_on_first_tool" and not isinstance(behavior, StopAt):
        return None
    for state in turn.calls:
        if isinstance(behavior, StopAt) and not _names(state) & behavior.names:
            continue
        match state.answer:
            case Success(answer) if isinstance(answer, Output) and state.call.kind == "function_call":
                return answer.text
            case _:
                continue
    return None


def _names(state: CallState) -> set[str]:
    call = state.call
    return {call.name, f"{call.namespace}.{call.name}"}

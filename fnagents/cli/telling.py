"""Runs, items and events in lines for people.  What models, tools and files said is made safe here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, assert_never

from fnagents.cli.texts import exact, safe
from fnagents.decisions import interruptions
from fnagents.items import Item, Message, Opaque, Reasoning, ToolCall, ToolOutput
from fnagents.matching import nested
from fnagents.models import Usage
from fnagents.outcome import Failure, Outcome, Success
from fnagents.prose import explain, shortened
from fnagents.protocol import (
    Approved,
    Ask,
    Checked,
    Decided,
    Declined,
    Event,
    Finished,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
)
from fnagents.runs import CallState, Run
from fnagents.tools import Answer, Delegate, Handoff, Output
from fnagents.unfolding import events

__all__ = ["Line", "asked", "costs", "indented", "state_of", "story", "told"]

#: A style of rich ("" for none), and what is said.
Line: TypeAlias = tuple[str, str]

_GOOD, _BAD, _DOUBT, _QUIET = "green", "red", "yellow", "dim"


def story(run: Run) -> Iterator[tuple[int, Line]]:
    """The conversation of a run: each line with its depth."""
    for item in run.input.items:
        for said in _item("", item):
            yield 0, said
    for event in events(run):
        inner = nested(run, event.path)
        assert inner is not None  # the run has the event
        for said in told(event, _agent(inner, event), _call(inner, event)):
            yield len(event.path), said


def told(event: Event, agent: str, call: str) -> list[Line]:
    """What an event says, of this agent and (where it is one of a call) of the tool called so."""
    match event:
        case Prepared() | Decided():
            return [] if event.failure is None else [(_BAD, safe(explain(event.failure)))]
        case Replied():
            return _replied(event, agent)
        case Checked():
            return _failed(event, call) if isinstance(event.outcome, Failure) else []
        case Approved():
            return [(_GOOD, f"{exact(call)} is approved{', always' if event.always else ''}")]
        case Declined():
            return [(_DOUBT, f"{exact(call)} is declined{': ' if event.reason else ''}{safe(event.reason)}")]
        case Returned():
            return _returned(event, call)
        case Finished():
            failed = event.path and isinstance(event.outcome, Failure)
            return [(_BAD, safe(explain(event.outcome.failure())))] if failed else []
        case Refused():
            return [(_DOUBT, f"the output does not fit: {safe(event.problem)}")]
        case Reopened():
            return [(_QUIET, "the run was reopened")]
        case _:
            assert_never(event)


def _replied(event: Replied, agent: str) -> list[Line]:
    match event.outcome:
        case None:
            return [(_BAD, "a guardrail tripped before the model had answered")]
        case Success(response):
            return [said for item in response.items for said in _item(agent, item)]
        case Failure(error):
            return [(_BAD, safe(explain(error)))]
        case _:
            assert_never(event.outcome)


def _item(agent: str, item: Item) -> list[Line]:
    match item:
        case Message():
            who = agent if item.role == "assistant" and agent else item.role
            return [("", f"{exact(who)}: {safe(item.text if item.refusal is None else item.refusal)}")]
        case Reasoning():
            return [(_QUIET, safe(item.text))] if item.text else []
        case ToolCall():
            return [("cyan", f"{exact(agent)} calls {exact(item.name)} {safe(item.arguments)}")]
        case ToolOutput():
            return [("", safe(item.text))]
        case Opaque():
            return [(_QUIET, f"[{exact(item.type)}]")]
        case _:
            assert_never(item)


def _failed(event: Checked | Returned, call: str) -> list[Line]:
    return [(_BAD, f"{exact(call)}: {safe(event.feedback or explain(event.outcome.failure()))}")]


def _returned(event: Returned, call: str) -> list[Line]:
    if isinstance(event.outcome, Failure):
        return _failed(event, call)
    answer: Answer = event.outcome.unwrap()
    match answer:
        case Output():
            return [("", f"{exact(call)} gives {safe(answer.text)}")]
        case Handoff():
            return [(_QUIET, f"the conversation goes on with {exact(answer.agent)}")]
        case Delegate():
            return [(_QUIET, f"{exact(call)} asks {exact(answer.agent)}")]
        case _:
            assert_never(answer)


def _agent(run: Run, event: Event) -> str:
    return run.turns[event.turn].agent if isinstance(event, Replied) else ""


def _call(run: Run, event: Event) -> str:
    if not isinstance(event, Checked | Approved | Declined | Returned):
        return ""
    turn, _, index = event.place.partition(".")
    state: CallState = run.turns[int(turn)].calls[int(index)]
    return state.call.name


# --- a run as a whole ----------------------------------------------------------------------------------


def state_of(run: Run) -> str:
    """How it stands with a run, in a word."""
    outcome: Outcome[object, object] | None = run.outcome
    if outcome is None:
        return "paused" if interruptions(run) else "unfinished"
    return "finished" if isinstance(outcome, Success) else "failed"


def asked(ask: Ask) -> str:
    """A question in a line."""
    at = f" (in {'/'.join(ask.path)})" if ask.path else ""
    return f"{exact(ask.agent)} asks to call {exact(ask.tool)} with {exact(ask.arguments)}{at}"


def costs(usage: Usage) -> str:
    """What something cost, in a line."""
    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    thought = f" ({usage.reasoning_tokens} reasoning)" if usage.reasoning_tokens else ""
    plural = "" if usage.requests == 1 else "s"
    tokens = f"{usage.input_tokens} input tokens{cached}, {usage.output_tokens} output tokens{thought}"
    return f"{usage.requests} request{plural}, {tokens}"


def indented(lines: Iterable[tuple[int, Line]], limit: int) -> Iterator[Line]:
    """The lines, each at its depth and at most this long, those inside of a text as well."""
    for depth, (style, text) in lines:
        margin = "  " * depth
        yield style, margin + shortened(text, limit).replace("\n", f"\n{margin}  ")

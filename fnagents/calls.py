"""What is folded into one call: checks, decisions, answers.  Pure; folding.py has the rest of `step`."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from attrs import evolve

from fnagents.growing import Growing, refuse
from fnagents.outcome import Success
from fnagents.protocol import Approved, Checked, Checkup, Declined, Event, Returned
from fnagents.runs import MOST_GATES, CallState, Run, Sticky, StickyKey
from fnagents.tools import Delegate, Handoff

__all__ = ["OfCall", "call_at", "of_call"]

#: What happens to a call.
OfCall: TypeAlias = Checked | Approved | Declined | Returned


def call_at(run: Growing, event: Event, place: str) -> tuple[int, CallState]:
    """The position and the state of the call of the last turn at this place."""
    position = place.rpartition(".")[2]
    calls = run.calls
    index = int(position) if position.isdecimal() and len(position) < 10 else len(calls)  # noqa: PLR2004
    if index >= len(calls) or place != f"{run.number}.{index}":
        refuse(event, "there is no such call in the last turn")
    return index, calls[index]


def of_call(run: Growing, event: OfCall) -> None:
    """Fold what happened to a call."""
    index, state = call_at(run, event, event.place)
    if not state.is_open or run.handoff is not None:
        refuse(event, "the call is already answered")
    match event:
        case Checked():
            run.put(index, _checked(run, state, event))
        case Approved() | Declined():
            _with_decision(run, index, state, event)
        case Returned():
            _returned(run, index, state, event)
        case _:
            assert_never(event)


def _asks(state: CallState) -> bool:
    checkup = state.checkup
    return checkup is not None and checkup.needed and state.decision is None


def _checked(run: Growing, state: CallState, event: Checked) -> CallState:
    if state.returned is not None or _asks(state):
        refuse(event, "the call is not waiting for a check")
    if len(state.gate) >= MOST_GATES:
        refuse(event, f"the call has {len(state.gate)} checks and decisions behind it")
    gated = evolve(state, gate=(*state.gate, event), decision=None)
    match event.outcome:
        case Success(checkup) if checkup.needed:
            return evolve(gated, decision=_sticky(run, gated, checkup))
        case _:
            return gated


def _about(run: Growing, state: CallState, checkup: Checkup) -> StickyKey:
    assert run.turn is not None  # the call is its
    call = state.call
    return run.turn.agent, call.kind, call.namespace, call.name, checkup.definition


def _sticky(run: Growing, state: CallState, checkup: Checkup) -> Approved | Declined | None:
    """The last sticky decision of an earlier turn on the same tool of the same agent."""
    for one in reversed(run.sticky.get(_about(run, state, checkup), ())):
        if one.turn < run.number:
            digest = checkup.digest
            return Approved("", digest) if one.approved else Declined("", digest, one.reason)
    return None


def _with_decision(run: Growing, index: int, state: CallState, event: Approved | Declined) -> None:
    checkup = state.checkup
    if checkup is None or not _asks(state):
        refuse(event, "the call does not wait for a decision")
    if checkup.digest != event.digest:
        refuse(event, "the decision is about other arguments than the call has now")
    run.put(index, evolve(state, gate=(*state.gate, event), decision=event))
    if event.always:
        reason = event.reason if isinstance(event, Declined) else ""
        key = _about(run, state, checkup)
        sticky = Sticky(run.number, index, isinstance(event, Approved), reason)
        run.stick(key, _last_two(run.sticky.get(key, ()), sticky))


def _last_two(earlier: tuple[Sticky, ...], sticky: Sticky) -> tuple[Sticky, ...]:
    """The last decision before this turn, and that of this turn.

    That is the last one in call order, not in order of arrival: it must not depend on who answered first.
    """
    before = [one for one in earlier if one.turn < sticky.turn]
    beside = [one for one in earlier if one.turn == sticky.turn and one.position > sticky.position]
    return (*before[-1:], *(beside or [sticky]))


def _returned(run: Growing, index: int, state: CallState, event: Returned) -> None:
    answer = event.outcome.unwrap() if isinstance(event.outcome, Success) else None
    if state.returned is not None:
        if state.child is None or state.child.outcome is None:
            refuse(event, "its nested run answers the call")
        if isinstance(answer, Delegate):
            refuse(event, "the call was delegated already")
        return run.put(index, evolve(state, extracted=event))
    if _asks(state):
        refuse(event, "the call waits for a decision")
    child = None
    if isinstance(answer, Delegate):
        child = Run(answer.agent, answer.input, answer.max_turns, tool_input=answer.tool_input)
    elif isinstance(answer, Handoff):
        run.handoff = answer
    return run.put(index, CallState(state.call, state.id, state.gate, state.decision, event, child))

"""`step`: one event folded into a run.  Pure; see core.py for the theory.

An event that does not fit (another turn, a call that is answered, a decision nobody asked for) raises
`UnexpectedEventError` and names what was wrong; the run is a value and stays as it was.  `fold` is the
total form, for events that come from outside.

The rules stand once, here and (of calls) in calls.py, for one event and for a whole file.  Each refuses before it
writes to what growing.py has.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import assert_never

from attrs import evolve

from fnagents.calls import call_at, of_call
from fnagents.errors import UnexpectedEvent, UnexpectedEventError
from fnagents.growing import Growing, refuse
from fnagents.items import ToolCall
from fnagents.outcome import Failure, Outcome, Success
from fnagents.protocol import (
    Approved,
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
from fnagents.runs import DEEPEST_RUN, MOST_CALLS, CallState, Run, Turn
from fnagents.tools import Delegate

__all__ = ["fold", "step"]


def step(run: Run, event: Event) -> Run:
    """The run after the event.  Raises `UnexpectedEventError` if the run does not wait for it.

    >>> from fnagents import ModelResponse, Message, Replied, Success, start
    >>> run = step(start("greeter", "hi"), Replied(0, Success(ModelResponse((Message("assistant", "Hello!"),)))))
    >>> run.items[-1].text
    'Hello!'
    """
    growing = Growing(run)
    _add(growing, event)
    return growing.run


def fold(run: Run, events: Iterable[Event]) -> Outcome[Run, UnexpectedEvent]:
    """The run after all events, or the first that does not fit, by its index from 0."""
    growing = Growing(run)
    for index, event in enumerate(events):
        try:
            _add(growing, event)
        except UnexpectedEventError as error:
            return Failure(UnexpectedEvent(str(error), index))
    return Success(growing.run)


def _add(run: Growing, event: Event) -> None:
    if len(event.path) > DEEPEST_RUN:
        _check_depth(event)
    _fold(run, event)


def _check_depth(event: Event) -> None:
    """One run may stand below the deepest that works, to fail there; else a file could hold what nothing can walk."""
    if len(event.path) > DEEPEST_RUN + 1:
        refuse(evolve(event, path=event.path[: DEEPEST_RUN + 1]), "it goes on deeper than runs are nested")
    if isinstance(event, Returned) and isinstance(event.outcome.value_or(None), Delegate):
        refuse(event, f"no run is planted deeper than {DEEPEST_RUN + 1}")


def _fold(run: Growing, event: Event) -> None:
    if run.outcome is not None and (event.path or not isinstance(event, Reopened)):
        refuse(event, "the run has ended")
    if event.path:
        return _into_child(run, event)
    match event:
        case Checked() | Approved() | Declined() | Returned():
            return of_call(run, event)
        case Prepared():
            return _prepared(run, event)
        case Replied():
            return _replied(run, event)
        case Decided():
            return _decided(run, event)
        case Refused():
            return _refused(run, event)
        case Finished():
            return _finished(run, event)
        case Reopened():
            return _reopened(run, event)
        case _:
            assert_never(event)


# --- a turn --------------------------------------------------------------------------------------------


def _check_ready(run: Growing, event: Prepared | Replied) -> None:
    """A new turn may begin: the last one is answered."""
    if event.turn != run.number + 1:
        refuse(event, f"the next turn is {run.number + 1}")
    if waiting := run.open:
        refuse(event, f"the call {run.number}.{waiting[0]} is not answered")


def _opened(run: Growing) -> Turn | None:
    """The last turn, if it waits for the model."""
    turn = run.turn
    waits = turn is not None and turn.prepared is not None and turn.replied is None and not turn.prepared.failure
    return turn if waits else None


def _prepared(run: Growing, event: Prepared) -> None:
    if _opened(run) is not None:
        refuse(event, f"turn {run.number} is already open")
    _check_ready(run, event)
    run.add(Turn(run.speaker, prepared=event))


def _replied(run: Growing, event: Replied) -> None:
    turn = _opened(run)
    if turn is None:
        _check_ready(run, event)
    elif event.turn != run.number:
        refuse(event, f"the turn that waits for the model is {run.number}")
    calls, added = _calls(run, event)
    if len(calls) > MOST_CALLS:
        refuse(event, f"it has more than {MOST_CALLS} calls")
    if added:
        run.ids = _with(run.ids, frozenset(added))
    if turn is None:
        run.add(Turn(run.speaker, replied=event, calls=calls))
    else:
        run.change(turn, replied=event, calls=calls)


def _calls(run: Growing, event: Replied) -> tuple[tuple[CallState, ...], set[str]]:
    """The calls of a reply, and their ids on the wire."""
    calls: list[CallState] = []
    added: set[str] = set()
    for item in event.outcome.unwrap().items if isinstance(event.outcome, Success) else ():
        if isinstance(item, ToolCall):
            name = _wire_id(item.id, f"call_{event.turn}_{len(calls)}", (*run.ids, added))
            added.add(name)
            calls.append(CallState(item, name))
    return tuple(calls), added


def _wire_id(given: str, made: str, taken: Iterable[AbstractSet[str]]) -> str:
    """The provider's id if it is there and new, else one made from the call's place."""
    name = given or made
    while any(name in ids for ids in taken):
        name = made if name == given != made else f"{name}_"
    return name


def _with(ids: tuple[frozenset[str], ...], added: frozenset[str]) -> tuple[frozenset[str], ...]:
    """The ids and some more.  Sets of equal size are joined, so an id is copied log(n) times in all, not n."""
    while ids and len(ids[-1]) <= len(added):
        added |= ids[-1]
        ids = ids[:-1]
    return (*ids, added)


def _decided(run: Growing, event: Decided) -> None:
    turn = _answered(run, event, event.turn)
    if turn.decided is not None:
        refuse(event, "the turn is already decided")
    run.change(turn, decided=event)


def _refused(run: Growing, event: Refused) -> None:
    turn = _answered(run, event, event.turn - 1)
    if turn.refused is not None:
        refuse(event, "the output is already refused")
    run.change(turn, refused=event)


def _answered(run: Growing, event: Decided | Refused, number: int) -> Turn:
    """The last turn, which must be the one of this number and all answered."""
    turn = run.turn
    if turn is None or number != run.number or turn.response is None or run.open:
        refuse(event, "that turn is not the last one, or not all answered")
    return turn


def _finished(run: Growing, event: Finished) -> None:
    if event.turn != run.number + 1:
        refuse(event, f"the run is at turn {run.number + 1}")
    if isinstance(event.outcome, Success) and (run.turn is None or run.turn.response is None or run.open):
        refuse(event, "there is no answered turn that could have a final output")
    run.end(event)


def _reopened(run: Growing, event: Reopened) -> None:
    if not isinstance(run.outcome, Failure):
        refuse(event, "only a failed run can be reopened")
    if event.turn != run.number + 1:
        refuse(event, f"the run is at turn {run.number + 1}")
    run.end(event)
    run.max_turns = event.max_turns


# --- a nested run ----------------------------------------------------------------------------------------


def _into_child(run: Growing, event: Event) -> None:
    place, *rest = event.path
    index, state = call_at(run, event, place)
    # A nested run that grows is as open as it was: it is settled once it ends.
    if not state.is_open or run.handoff is not None:
        refuse(event, f"the call {place} is already answered")
    if state.child is None:
        refuse(event, f"the call {place} has no nested run")
    if state.child.outcome is not None:
        refuse(event, "the nested run has ended")
    child = run.child(index, state.child)
    _fold(child, evolve(event, path=tuple(rest)))
    if child.outcome is not None:
        run.settle(index)

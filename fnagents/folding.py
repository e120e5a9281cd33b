"""`step`: one event folded into a run.  Pure; see core.py for the theory.

An event that does not fit (another turn, a call that is answered, a decision nobody asked for) raises
`UnexpectedEventError` and names what was wrong; the run is a value and stays as it was.  `fold` is the
total form, for events that come from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NoReturn, TypeAlias, assert_never

from attrs import evolve

from fnagents.errors import UnexpectedEvent, UnexpectedEventError
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
from fnagents.runs import CallState, Run, Sticky, Turn
from fnagents.tools import Delegate, Handoff
from fnagents.transcript import speaker

__all__ = ["events", "fold", "step"]

_OfCall: TypeAlias = Checked | Approved | Declined | Returned


def _refuse(event: Event, why: str) -> NoReturn:
    at = "/".join((*event.path, getattr(event, "place", "") or f"turn {getattr(event, 'turn', '?')}"))
    raise UnexpectedEventError(f"{type(event).__name__} at {at} does not fit the run: {why}")


def step(run: Run, event: Event) -> Run:
    """The run after the event.  Raises `UnexpectedEventError` if the run does not wait for it.

    >>> from fnagents import ModelResponse, Message, Replied, Success, start
    >>> run = step(start("greeter", "hi"), Replied(0, Success(ModelResponse((Message("assistant", "Hello!"),)))))
    >>> run.items[-1].text
    'Hello!'
    """
    if run.outcome is not None and (event.path or not isinstance(event, Reopened)):
        _refuse(event, "the run has ended")
    if event.path:
        return _into_child(run, event)
    match event:
        case Checked() | Approved() | Declined() | Returned():
            return _of_call(run, event)
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


def fold(run: Run, events: Iterable[Event]) -> Outcome[Run, UnexpectedEvent]:
    """The run after all events, or the first that does not fit, by its index from 0."""
    for index, event in enumerate(events):
        try:
            run = step(run, event)
        except UnexpectedEventError as error:
            return Failure(UnexpectedEvent(str(error), index))
    return Success(run)


# --- a turn --------------------------------------------------------------------------------------------


def _last(run: Run, turn: Turn) -> Run:
    return evolve(run, turns=(*run.turns[:-1], turn))


def _ready(run: Run, event: Prepared | Replied) -> None:
    """A new turn may begin: the last one is answered."""
    if event.turn != len(run.turns):
        _refuse(event, f"the next turn is {len(run.turns)}")
    if run.turns and (waiting := run.turns[-1].open):
        _refuse(event, f"the call {len(run.turns) - 1}.{waiting[0]} is not answered")


def _opened(run: Run) -> Turn | None:
    """The last turn, if it waits for the model."""
    turn = run.turns[-1] if run.turns else None
    waits = turn is not None and turn.prepared is not None and turn.replied is None and not turn.prepared.failure
    return turn if waits else None


def _prepared(run: Run, event: Prepared) -> Run:
    if _opened(run) is not None:
        _refuse(event, f"turn {len(run.turns) - 1} is already open")
    _ready(run, event)
    return evolve(run, turns=(*run.turns, Turn(speaker(run), prepared=event)))


def _replied(run: Run, event: Replied) -> Run:
    turn = _opened(run)
    if turn is None:
        _ready(run, event)
        turn = Turn(speaker(run))
        turns = run.turns
    elif event.turn != len(run.turns) - 1:
        _refuse(event, f"the turn that waits for the model is {len(run.turns) - 1}")
    else:
        turns = run.turns[:-1]
    calls: list[CallState] = []
    added: set[str] = set()
    for item in event.outcome.unwrap().items if isinstance(event.outcome, Success) else ():
        if isinstance(item, ToolCall):
            name = _wire_id(item.id, f"call_{len(turns)}_{len(calls)}", (*run.ids, added))
            added.add(name)
            calls.append(CallState(item, name))
    ids = _with(run.ids, frozenset(added)) if added else run.ids
    return evolve(run, turns=(*turns, evolve(turn, replied=event, calls=tuple(calls))), ids=ids)


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


def _decided(run: Run, event: Decided) -> Run:
    turn = _answered(run, event, event.turn)
    if turn.decided is not None:
        _refuse(event, "the turn is already decided")
    return _last(run, evolve(turn, decided=event))


def _refused(run: Run, event: Refused) -> Run:
    turn = _answered(run, event, event.turn - 1)
    if turn.refused is not None:
        _refuse(event, "the output is already refused")
    return _last(run, evolve(turn, refused=event))


def _answered(run: Run, event: Decided | Refused, number: int) -> Turn:
    """The last turn, which must be the one of this number and all answered."""
    turn = run.turns[-1] if run.turns else None
    if turn is None or number != len(run.turns) - 1 or turn.response is None or turn.open:
        _refuse(event, "that turn is not the last one, or not all answered")
    return turn


def _finished(run: Run, event: Finished) -> Run:
    if event.turn != len(run.turns):
        _refuse(event, f"the run is at turn {len(run.turns)}")
    if isinstance(event.outcome, Success) and (not run.turns or run.turns[-1].response is None or run.turns[-1].open):
        _refuse(event, "there is no answered turn that could have a final output")
    return evolve(run, ends=(*run.ends, event))


def _reopened(run: Run, event: Reopened) -> Run:
    if not isinstance(run.outcome, Failure):
        _refuse(event, "only a failed run can be reopened")
    if event.turn != len(run.turns):
        _refuse(event, f"the run is at turn {len(run.turns)}")
    return evolve(run, ends=(*run.ends, event), max_turns=event.max_turns)


# --- a call --------------------------------------------------------------------------------------------


def _state(run: Run, event: Event, place: str) -> tuple[int, CallState]:
    position = place.rpartition(".")[2]
    calls = run.turns[-1].calls if run.turns else ()
    index = int(position) if position.isdecimal() and len(position) < 10 else len(calls)  # noqa: PLR2004
    if index < len(calls) and place == f"{len(run.turns) - 1}.{index}":
        return index, calls[index]
    _refuse(event, "there is no such call in the last turn")


def _put(run: Run, index: int, state: CallState) -> Run:
    turn = run.turns[-1]
    return _last(run, evolve(turn, calls=(*turn.calls[:index], state, *turn.calls[index + 1 :])))


def _into_child(run: Run, event: Event) -> Run:
    place, *rest = event.path
    index, state = _state(run, event, place)
    if index not in run.turns[-1].open:
        _refuse(event, f"the call {place} is already answered")
    if state.child is None:
        _refuse(event, f"the call {place} has no nested run")
    if state.child.outcome is not None:
        _refuse(event, "the nested run has ended")
    child = step(state.child, evolve(event, path=tuple(rest)))
    return _put(run, index, evolve(state, child=child))


def _of_call(run: Run, event: _OfCall) -> Run:
    index, state = _state(run, event, event.place)
    if not state.is_open or run.turns[-1].handoff is not None:
        _refuse(event, "the call is already answered")
    match event:
        case Checked():
            return _put(run, index, _checked(run, state, event))
        case Approved() | Declined():
            return _with_decision(run, index, state, event)
        case Returned():
            return _put(run, index, _returned(state, event))
        case _:
            assert_never(event)


def _asks(state: CallState) -> bool:
    checkup = state.checkup
    return checkup is not None and checkup.needed and state.decision is None


def _checked(run: Run, state: CallState, event: Checked) -> CallState:
    if state.returned is not None or _asks(state):
        _refuse(event, "the call is not waiting for a check")
    gated = evolve(state, gate=(*state.gate, event), decision=None)
    match event.outcome:
        case Success(checkup) if checkup.needed:
            return evolve(gated, decision=_sticky(run, gated, checkup.definition, checkup.digest))
        case _:
            return gated


def _sticky(run: Run, state: CallState, definition: str, digest: str) -> Approved | Declined | None:
    """The last sticky decision of an earlier turn on the same tool of the same agent."""
    turn, call = run.turns[-1], state.call
    for one in reversed(run.sticky):
        same = (one.agent, one.kind, one.namespace, one.tool, one.definition) == (
            turn.agent,
            call.kind,
            call.namespace,
            call.name,
            definition,
        )
        if same and one.turn < len(run.turns) - 1:
            return Approved("", digest) if one.approved else Declined("", digest, one.reason)
    return None


def _with_decision(run: Run, index: int, state: CallState, event: Approved | Declined) -> Run:
    checkup = state.checkup
    if checkup is None or not _asks(state):
        _refuse(event, "the call does not wait for a decision")
    if checkup.digest != event.digest:
        _refuse(event, "the decision is about other arguments than the call has now")
    decided = _put(run, index, evolve(state, gate=(*state.gate, event), decision=event))
    if not event.always:
        return decided
    sticky = Sticky(
        run.turns[-1].agent,
        state.call.kind,
        state.call.namespace,
        state.call.name,
        checkup.definition,
        len(run.turns) - 1,
        index,
        isinstance(event, Approved),
        event.reason if isinstance(event, Declined) else "",
    )
    # In call order, not in that of arrival: which one is the last must not depend on who answered first.
    return evolve(decided, sticky=tuple(sorted((*run.sticky, sticky), key=lambda one: (one.turn, one.position))))


def _returned(state: CallState, event: Returned) -> CallState:
    if state.returned is not None:
        if state.child is None or state.child.outcome is None:
            _refuse(event, "its nested run answers the call")
        if isinstance(event.outcome, Success) and isinstance(event.outcome.unwrap(), Delegate):
            _refuse(event, "the call was delegated already")
        return evolve(state, extracted=event)
    if _asks(state):
        _refuse(event, "the call waits for a decision")
    match event.outcome:
        case Success(answer) if isinstance(answer, Delegate):
            child = Run(answer.agent, answer.input, answer.max_turns, tool_input=answer.tool_input)
            return evolve(state, returned=event, child=child)
        case _:
            return evolve(state, returned=event)


# --- back to events ------------------------------------------------------------------------------------


def events(run: Run) -> tuple[Event, ...]:
    """All events of the run in canonical order: by turn; in a turn by call; nested ones before their call's answer.

    A call that handed the conversation over comes last in its turn, whatever its position: nothing fits after it.
    `fold(start, events(run))` is the run again.  The order in which they arrived is in a journal alone.
    """
    return tuple(_events(run, ()))


def _events(run: Run, path: tuple[str, ...]) -> Iterator[Event]:
    ends = iter(run.ends)
    end = next(ends, None)
    for number in range(len(run.turns) + 1):
        for event in _of_turn(run.turns[number - 1], number - 1, path) if number else ():
            yield evolve(event, path=path) if path and not event.path else event
        while end is not None and end.turn == number:
            yield evolve(end, path=path) if path else end
            end = next(ends, None)


def _handed_over(numbered: tuple[int, CallState]) -> bool:
    returned = numbered[1].returned
    return returned is not None and isinstance(returned.outcome.value_or(None), Handoff)


def _of_turn(turn: Turn, number: int, path: tuple[str, ...]) -> Iterator[Event]:
    if turn.prepared is not None:
        yield turn.prepared
    if turn.replied is not None:
        yield turn.replied
    for index, state in sorted(enumerate(turn.calls), key=_handed_over):
        yield from state.gate
        if state.returned is not None:
            yield state.returned
        if state.child is not None:
            yield from _events(state.child, (*path, f"{number}.{index}"))
        if state.extracted is not None:
            yield state.extracted
    if turn.decided is not None:
        yield turn.decided
    if turn.refused is not None:
        yield turn.refused

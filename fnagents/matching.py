"""Events matched to the effects that they answered, and the events of one run to those of another.  Pure.

Where something belongs decides, never when it came: events of one call stand in their own order whatever happened
beside them, and so do the ends of a (nested) run at one turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from attrs import frozen

from fnagents.protocol import (
    Approved,
    Ask,
    CallTool,
    Check,
    Checked,
    Decided,
    Declined,
    Effect,
    Event,
    Extract,
    Finished,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
)
from fnagents.runs import CallState, Run
from fnagents.unfolding import events

__all__ = ["Comparison", "compared", "keyed", "leads_to", "nested"]

#: Where in a run events stand in one order: the path, and the place of a call or what an event of a turn answers.
_Spot: TypeAlias = tuple[tuple[str, ...], str]


# --- events and effects --------------------------------------------------------------------------------


def keyed(events: Iterable[Event]) -> dict[str, Event]:
    """Each event under the `key` of the effect that it answered; `Reopened` answers none.

    The events are those of one run from its start, in any order in which they fold.

    >>> from fnagents.outcome import Success
    >>> from fnagents.protocol import Decided, Replied
    >>> list(keyed([Replied(0, None, path=("0.1",)), Decided(0)]))
    ['0.1/model-0', 'decide-0']
    """
    found: dict[str, Event] = {}
    earlier: dict[_Spot, list[Event]] = {}
    for event in events:
        word = _word(event)
        before = earlier.setdefault((event.path, word), [])
        match event:
            case Reopened():
                name = ""
            case Checked() | Approved() | Declined() | Returned():
                name = _of_call(event, before)
            case _:
                # Only finishing may be tried again in a turn: after an output that was refused, or a reopening.
                name = f"{word}~{len(before)}" if before else word
        if name:
            found["/".join((*event.path, name))] = event
        before.append(event)
    return found


def _word(event: Event) -> str:
    """What the event answers in its turn, or the place of its call."""
    match event:
        case Checked() | Approved() | Declined() | Returned():
            return event.place
        case Prepared():
            return f"prepare-{event.turn}"
        case Replied():
            return f"model-{event.turn}"
        case Decided():
            return f"decide-{event.turn}"
        case Finished() | Refused() | Reopened():
            return f"finish-{event.turn}"
        case _:
            assert_never(event)


def _of_call(event: Checked | Approved | Declined | Returned, before: list[Event]) -> str:
    """The name of the effect that asked for this event of a call, after the earlier ones of the call."""
    checks = sum(isinstance(one, Checked) for one in before)
    again = f"~{len(before)}" if checks > 1 else ""
    if isinstance(event, Approved | Declined):
        return f"ask-{event.place}{again}"
    if isinstance(event, Checked) and not checks:
        return f"check-{event.place}"
    if any(isinstance(one, Returned) for one in before):
        return f"extract-{event.place}"
    return f"call-{event.place}{again}"


# --- two runs ------------------------------------------------------------------------------------------


@frozen
class Comparison:
    """What one run has that another, the recorded one, has not.

    `lacking` are the events that the record lacks, in an order in which they fold into it; `ahead` counts those that
    the record alone has; `conflict` says where the two are not of one run, or is "".
    """

    lacking: tuple[Event, ...] = ()
    ahead: int = 0
    conflict: str = ""


def compared(record: Run, run: Run) -> Comparison:
    """The events of a run beside those of a record of it.

    >>> from fnagents.protocol import Prepared
    >>> from fnagents.core import step
    >>> from fnagents.runs import start
    >>> record = start("greeter", "hi")
    >>> compared(record, step(record, Prepared(0, "Greet."))).lacking
    (Prepared(turn=0, instructions='Greet.', tools=(), handoffs=(), failure=None, path=()),)
    >>> compared(record, start("greeter", "ho")).conflict
    'it began with something else'
    """
    if not _began_alike(record, run):
        return Comparison(conflict="it began with something else")
    recorded: dict[_Spot, list[Event]] = {}
    for event in events(record):
        recorded.setdefault(_spot(event), []).append(event)
    met = dict.fromkeys(recorded, 0)
    lacking: list[Event] = []
    for event in events(run):
        spot = _spot(event)
        known, number = recorded.get(spot, []), met.get(spot, 0)
        if number >= len(known):
            lacking.append(event)
        elif known[number] == event:
            met[spot] = number + 1
        else:
            return Comparison(conflict=f"it has another {'/'.join((*event.path, _word(event)))}")
    reopened = [event for event in lacking if isinstance(event, Reopened)]
    if record.outcome is not None and reopened:
        # It may have set calls free whose answers stand before it in canonical order.
        lacking.remove(reopened[0])
        lacking.insert(0, reopened[0])
    return Comparison(tuple(lacking), sum(len(known) - met[spot] for spot, known in recorded.items()))


def _spot(event: Event) -> _Spot:
    """Where events stand in one order in every run: not that of a refused output and of ends beside it."""
    return event.path, f"refuse-{event.turn}" if isinstance(event, Refused) else _word(event)


def _began_alike(run: Run, other: Run) -> bool:
    return (run.agent, run.id, run.input) == (other.agent, other.id, other.input)


# --- a run and what is asked of it ----------------------------------------------------------------------


def leads_to(run: Run, effect: Effect) -> bool:
    """Whether a run has all that the effect was planned from, by a look at the last turn there.

    Calls of the turn may be further by now.  A look at the effect's own call is not enough: a handoff comes once its
    siblings are answered, and nothing fits after it.
    """
    here, seen = nested(run, effect.path), effect.seen
    if here is None or not _began_alike(here, seen) or (len(here.turns), here.ends) != (len(seen.turns), seen.ends):
        return False
    if isinstance(effect, Check | Ask | CallTool | Extract):
        return all(_has(mine, theirs) for mine, theirs in zip(here.turns[-1].calls, seen.turns[-1].calls))
    return here.turns[-1:] == seen.turns[-1:]


def _has(mine: CallState, theirs: CallState) -> bool:
    """Whether this state of a call has the events of that one; those of a nested run are its own effects' matter."""
    if mine.gate[: len(theirs.gate)] != theirs.gate:
        return False
    # Tuples look for one and the same first, which an event most often is.
    return all(
        event is None or (event,) == (known,)
        for event, known in ((theirs.returned, mine.returned), (theirs.extracted, mine.extracted))
    )


def nested(run: Run, path: tuple[str, ...]) -> Run | None:
    """The nested run at this path, if there is one; the run itself at ()."""
    found: Run | None = run
    for place in path:
        state = _call(found, place) if found is not None else None
        found = state.child if state is not None else None
    return found


def _call(run: Run, place: str) -> CallState | None:
    turn, _, index = place.partition(".")
    calls = run.turns[int(turn)].calls if int(turn) < len(run.turns) else ()
    return calls[int(index)] if int(index) < len(calls) else None

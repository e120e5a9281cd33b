"""`events`: a run taken apart into the events that were folded into it.  Pure; the other way of `fold`."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from fnagents.protocol import Event
from fnagents.runs import CallState, Run, Turn
from fnagents.tools import Handoff

__all__ = ["events"]


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

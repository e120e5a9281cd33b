"""A run taken apart into what it began with and its events, and put together again."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from fnagents.errors import TurnsExhausted, UnexpectedEvent, UnexpectedEventError
from fnagents.folding import step
from fnagents.items import Item
from fnagents.outcome import Failure, Outcome, Success
from fnagents.protocol import Event, Finished, Replied, Returned
from fnagents.runs import CallState, Input, Run
from fnagents.tools import Output

__all__ = ["Start", "beginning", "refold"]


@frozen
class Start:
    """What a run begins with, in a document."""

    agent: str
    input: tuple[Item, ...]
    max_turns: int | None = 10
    id: str = ""
    tool_input: str = ""
    previous_response_id: str | None = None
    conversation_id: str | None = None

    @property
    def run(self) -> Run:
        """The run that has not begun."""
        return Run(
            self.agent,
            Input(self.input),
            self.max_turns,
            self.id,
            self.tool_input,
            previous_response_id=self.previous_response_id,
            conversation_id=self.conversation_id,
        )


def beginning(run: Run) -> Start:
    """What the run began with: its events folded into `beginning(run).run` are the run again.

    Reopening sets a new limit of turns.  The first one is known only where the run ended at it; where it did not,
    it is not what ended the run, and none is as good.

    >>> from fnagents.runs import start
    >>> beginning(start("a", "hi", max_turns=3)).max_turns
    3
    """
    limit = run.max_turns
    if len(run.ends) > 1:
        first = run.ends[0]
        error = first.outcome.failure() if isinstance(first, Finished) and isinstance(first.outcome, Failure) else None
        limit = error.limit if isinstance(error, TurnsExhausted) else None
    held = (run.previous_response_id, run.conversation_id)
    return Start(run.agent, run.input.items, limit, run.id, run.tool_input, *held)


def refold(run: Run, events: Sequence[Event]) -> Outcome[Run, UnexpectedEvent]:
    """`fold`, for many events at once: the plain answers to one reply become one turn, not a new turn each.

    It accepts and refuses what `step` does; only the common case takes the short way.
    """
    index = 0
    while index < len(events):
        event = events[index]
        try:
            run = step(run, event)
        except UnexpectedEventError as error:
            return Failure(UnexpectedEvent(str(error), index))
        index += 1
        if isinstance(event, Replied) and not event.path:
            answers = _plain_answers(run, events, index)
            run = _answered(run, answers)
            index += len(answers)
    return Success(run)


def _plain_answers(run: Run, events: Sequence[Event], index: int) -> list[Returned]:
    """The answers to the last turn's calls in their order, up to one that hands over, delegates or needs a check."""
    turn, number = run.turns[-1], len(run.turns) - 1
    answers: list[Returned] = []
    for position, event in enumerate(events[index : index + len(turn.calls)]):
        if not isinstance(event, Returned) or event.path or event.place != f"{number}.{position}":
            break
        if isinstance(event.outcome, Success) and not isinstance(event.outcome.unwrap(), Output):
            break
        answers.append(event)
    return answers


def _answered(run: Run, answers: list[Returned]) -> Run:
    if not answers:
        return run
    turn = run.turns[-1]
    calls = [CallState(state.call, state.id, returned=event) for state, event in zip(turn.calls, answers)]
    answered = evolve(turn, calls=(*calls, *turn.calls[len(calls) :]))
    return evolve(run, turns=(*run.turns[:-1], answered))

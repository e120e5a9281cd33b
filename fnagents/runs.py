"""Runs: what has happened, as one value.  A run holds data only: names, text, numbers, events.

A run is its start and the events folded into it, kept where they belong: an event of a turn in its `Turn`, one
of a call in its `CallState`, a nested run on the call that planted it.  `core.step` is the only writer;
what it works out once (ids on the wire, sticky decisions, a turn's handoff) is kept beside the events, never saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import Factory, evolve, field, frozen

from fnagents.agent import Agent
from fnagents.errors import InvalidOutput, NestedFailed, RunError, ToolError, ToolRejected
from fnagents.items import Item, Message, ToolCall, ToolOutput, as_items
from fnagents.models import ModelResponse, Once, Usage
from fnagents.outcome import Failure, Outcome, Success
from fnagents.prose import explain
from fnagents.protocol import (
    Approved,
    Checked,
    Checkup,
    Decided,
    Declined,
    Finished,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
)
from fnagents.tools import Delegate, Handoff, Output
from fnagents.wellformed import complaint

__all__ = [
    "CallState",
    "DEEPEST_RUN",
    "Input",
    "MOST_CALLS",
    "MOST_GATES",
    "Run",
    "Sticky",
    "StickyKey",
    "Turn",
    "start",
]

#: Nested runs do their work so deep and no deeper: one that is planted below fails at once, and plants none.
DEEPEST_RUN = 16
#: The most calls of one turn: each event looks at all of them.
MOST_CALLS = 1_000
#: After so many checks and decisions a call is not checked again.
MOST_GATES = 100
#: What the model reads for a handoff that came after one that succeeded.
ALREADY_HANDED_OVER = "Not run: the conversation was already handed over in this turn."

#: What a sticky decision is about: agent, kind, namespace and name of the tool, digest of its definition.
StickyKey: TypeAlias = tuple[str, str, str, str, str]


@frozen
class Sticky:
    """A decision with `always=True`: it answers calls of later turns of the run in which it was made."""

    turn: int
    #: of the call in its turn
    position: int
    approved: bool
    reason: str = ""


@frozen(slots=True)
class Input(Once):
    """What a run begins with."""

    items: tuple[Item, ...]


@frozen
class CallState:
    """One tool call and what happened to it.

    `id` is the call's id on the wire: the provider's, unless that is empty or taken.  `gate` are the checks and
    decisions in order, `decision` the one that holds for the last check (a sticky one included).
    `returned` is the tool's answer; where that is a `Delegate`, `child` is the nested run, and `extracted`
    what the tool made of it in the end.
    """

    call: ToolCall
    id: str
    gate: tuple[Checked | Approved | Declined, ...] = ()
    decision: Approved | Declined | None = None
    returned: Returned | None = None
    child: Run | None = None
    extracted: Returned | None = None

    @property
    def checkup(self) -> Checkup | None:
        """The last check, if the call passed it."""
        for event in reversed(self.gate):
            if isinstance(event, Checked):
                return event.outcome.unwrap() if isinstance(event.outcome, Success) else None
        return None

    @property
    def last(self) -> Checked | Returned | None:
        """The event that answers the call without a nested run, or None."""
        if self.extracted is not None:
            return self.extracted
        if self.returned is not None:
            return self.returned
        if self.gate and isinstance(self.gate[-1], Checked) and isinstance(self.gate[-1].outcome, Failure):
            return self.gate[-1]
        return None

    @property
    def answer(self) -> Outcome[Output | Handoff, ToolError] | None:
        """What answers the call, or None while it is open."""
        event = self.last
        if event is None:
            return Failure(ToolRejected(self.decision.reason)) if isinstance(self.decision, Declined) else None
        answered: Outcome[Any, ToolError] = event.outcome
        if isinstance(answered, Success) and isinstance(delegate := answered.unwrap(), Delegate):
            return None if delegate.extract else self._of_child()
        return answered

    @property
    def is_open(self) -> bool:
        """Whether nothing answers the call yet (`answer` is None), without making the answer."""
        event = self.last
        if event is None:
            return not isinstance(self.decision, Declined)
        if not isinstance(event.outcome, Success) or not isinstance(delegate := event.outcome.unwrap(), Delegate):
            return False
        return delegate.extract or self.child is None or self.child.outcome is None

    def _of_child(self) -> Outcome[Output, ToolError] | None:
        if self.child is None or self.child.outcome is None:
            return None
        if isinstance(self.child.outcome, Failure):
            return Failure(NestedFailed(explain(self.child.outcome.failure())))
        return Success(Output(self.child.outcome.unwrap()))

    @property
    def output(self) -> ToolOutput | None:
        """What the model reads, or None while the call is open."""
        outcome = self.answer
        if outcome is None:
            return None
        if isinstance(outcome, Failure):
            event = self.last
            feedback = (event.feedback if event else "") or explain(outcome.failure())
            return ToolOutput(self.id, feedback, self.call.kind)
        answer = outcome.unwrap()
        return ToolOutput(self.id, answer.output if isinstance(answer, Handoff) else answer.parts, self.call.kind)

    @property
    def usage(self) -> Usage | None:
        """What the call cost beyond the run's own model calls."""
        total = self.child.usage if self.child is not None else None
        for event in (self.returned, self.extracted):
            if event is not None and isinstance(event.outcome, Success):
                answer = event.outcome.unwrap()
                if isinstance(answer, Output) and answer.usage is not None:
                    total = answer.usage if total is None else total + answer.usage
        return total


@frozen(slots=True)
class Turn(Once):
    """One model call and the work that it caused; `agent` made the call and judges its tool calls."""

    agent: str
    prepared: Prepared | None = None
    replied: Replied | None = None
    calls: tuple[CallState, ...] = ()
    decided: Decided | None = None
    refused: Refused | None = None
    #: what a call of the turn handed the conversation over by
    handoff: Handoff | None = field(default=None, kw_only=True, eq=False, repr=False)

    @property
    def response(self) -> ModelResponse | None:
        """The model's answer, or None if there is none (yet)."""
        if self.replied is None or not isinstance(self.replied.outcome, Success):
            return None
        return self.replied.outcome.unwrap()

    @property
    def open(self) -> tuple[int, ...]:
        """The positions of the calls that are not answered; none once the conversation was handed over."""
        if self.handoff is not None:
            return ()
        return tuple(index for index, state in enumerate(self.calls) if state.is_open)

    @property
    def outputs(self) -> Iterator[ToolOutput]:
        """The outputs of the answered calls, in call order."""
        handed_over = self.handoff is not None
        for state in self.calls:
            output = state.output
            if output is not None:
                yield output
            elif handed_over:
                yield ToolOutput(state.id, ALREADY_HANDED_OVER, state.call.kind)

    @property
    def said(self) -> Iterator[Item]:
        """The items of the model's answer, each call under its id on the wire."""
        response = self.response
        states = iter(self.calls)
        for item in response.items if response is not None else ():
            if isinstance(item, ToolCall):
                state = next(states)
                yield item if state.id == item.id else evolve(item, id=state.id)
            else:
                yield item

    @property
    def told(self) -> tuple[Message, ...]:
        """What the model was told after the outputs: why its final output was refused."""
        return () if self.refused is None else (Message("user", explain(InvalidOutput(self.refused.problem))),)

    @property
    def items(self) -> tuple[Item, ...]:
        """What this turn added to the conversation: the answer, the outputs, and what the model was told after."""
        return (*self.said, *self.outputs, *self.told)

    @property
    def usage(self) -> Usage:
        """What this turn has cost, nested runs included."""
        total = Usage()
        outcome = self.replied.outcome if self.replied is not None else None
        if isinstance(outcome, Success):
            total = outcome.unwrap().usage
        elif isinstance(outcome, Failure):
            total = getattr(outcome.failure(), "usage", None) or Usage(requests=1)
        return sum((used for state in self.calls if (used := state.usage) is not None), start=total)


def _count(turns: tuple[Turn, ...]) -> str:
    return f"<{len(turns)} turns>"


def _as_input(given: Input | str | Item | Iterable[Item]) -> Input:
    return given if isinstance(given, Input) else Input(as_items(given))


@frozen
class Run:
    """A run: what it began with, its turns, and how it ended (`outcome`: None while it goes on or is paused).

    `Success(text)` is the final output, canonical JSON where the agent has an `output_type`; `output` decodes it.
    """

    agent: str
    input: Input = field(converter=_as_input)
    max_turns: int | None = 10
    id: str = ""
    tool_input: str = ""
    turns: tuple[Turn, ...] = field(default=(), repr=_count)
    #: how it ended and was reopened, in order
    ends: tuple[Finished | Reopened, ...] = ()
    #: call ids in use, as sets of growing size, so that adding to them stays cheap
    ids: tuple[frozenset[str], ...] = field(
        default=Factory(lambda self: _ids(self.input.items), takes_self=True), eq=False, repr=False
    )
    #: sticky decisions that still count: in each list that of this turn and the last one before it, in order
    sticky: Mapping[StickyKey, tuple[Sticky, ...]] = field(
        factory=dict[StickyKey, tuple[Sticky, ...]], eq=False, repr=False
    )
    #: the server holds the conversation before `input`: it goes on from this response
    previous_response_id: str | None = field(default=None, kw_only=True)
    #: the server holds the whole conversation under this id
    conversation_id: str | None = field(default=None, kw_only=True)

    @property
    def outcome(self) -> Outcome[str, RunError] | None:
        """How the run ended, or None."""
        last = self.ends[-1] if self.ends else None
        return last.outcome if isinstance(last, Finished) else None

    @property
    def items(self) -> tuple[Item, ...]:
        """The whole conversation, input first; made when asked."""
        return (*self.input.items, *(item for turn in self.turns for item in turn.items))

    @property
    def usage(self) -> Usage:
        """What the run has cost so far, nested runs included."""
        return sum((turn.usage for turn in self.turns), start=Usage())

    def memory_of(self, agent: str, kind: str, namespace: str, name: str) -> str:
        """What this agent's tool last left in the run."""
        for turn in reversed(self.turns):
            for state in reversed(turn.calls) if turn.agent == agent else ():
                call = state.call
                if (call.kind, call.namespace, call.name) == (kind, namespace, name) and (left := _memory(state)):
                    return left
        return ""


def _memory(state: CallState) -> str:
    match state.answer:
        case Success(answer) if isinstance(answer, Output):
            return answer.memory
        case _:
            return ""


def _ids(items: Iterable[Item]) -> tuple[frozenset[str], ...]:
    taken = frozenset(item.id for item in items if isinstance(item, ToolCall))
    return (taken,) if taken else ()


def _checked_input(given: str | Item | Iterable[Item]) -> Input:
    items = as_items(given)
    for index, item in enumerate(items):
        if (problem := complaint(item)) is not None:
            raise TypeError(f"input[{index}]: {problem}")
    return Input(items)


def _check_texts(**options: object) -> None:
    for option, text in options.items():
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{option}={text!r} is a {type(text).__name__}, not text")


def start(
    agent: Agent[Any, Any] | str,
    input: str | Item | Iterable[Item],
    *,
    max_turns: int | None = 10,
    id: str = "",
    previous_response_id: str | None = None,
    conversation_id: str | None = None,
) -> Run:
    """A run that has not begun: pure, no id is invented.

    `max_turns` is the most model calls of the root agent's conversation (None for no limit).  With
    `previous_response_id` or `conversation_id` the server holds what was said before, and requests carry only what
    came after its last reply; giving both is a ValueError.

    >>> start("greeter", "hi").items
    (Message(role='user', content='hi', extra=''),)
    """
    if max_turns is not None and (type(max_turns) is not int or max_turns < 0):
        raise ValueError(f"max_turns={max_turns!r} is neither a count of turns nor None")
    _check_texts(id=id, previous_response_id=previous_response_id, conversation_id=conversation_id)
    if previous_response_id is not None and conversation_id is not None:
        raise ValueError("give previous_response_id or conversation_id: a conversation has one place to be kept")
    return Run(
        agent if isinstance(agent, str) else agent.name,
        _checked_input(input),
        max_turns,
        id,
        previous_response_id=previous_response_id,
        conversation_id=conversation_id,
    )

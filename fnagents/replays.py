"""Recorded runs against today's agents: what would be asked today, and where it first differs.

`replay` drives today's `plan` with the recorded answers.  No tool, predicate, guardrail or model is called: what
they said is in the record.  What is compared is what the library and the agents' data decide: which effects are
planned, and what the model would be told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast

from attrs import field, frozen

from fnagents.agent import Agent, Agents
from fnagents.agent import agents as reached
from fnagents.beginnings import beginning
from fnagents.errors import FunctionRaised
from fnagents.folding import step
from fnagents.models import Sent, ToolDefinition
from fnagents.outcome import Failure, Outcome, Success
from fnagents.planning import plan
from fnagents.prose import shortened
from fnagents.protocol import (
    Approved,
    Ask,
    CallModel,
    CallTool,
    Check,
    Checked,
    Decide,
    Decided,
    Declined,
    Effect,
    Event,
    Extract,
    Finish,
    Finished,
    Prepare,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
    key,
)
from fnagents.runs import Run
from fnagents.unfolding import events

__all__ = ["Cause", "Divergence", "replay"]

#: In what today differs from the record.  An effect is missing if today nothing asks for a recorded event, surplus
#: if today something is asked first that was not asked then.
Cause: TypeAlias = Literal[
    "instructions", "tool definition", "settings", "request items", "missing effect", "surplus effect", "order"
]


@frozen
class Divergence:
    """Where today's agents first differ from the record.

    `index` counts `events(run)`, `key` names the effect and `path` its nested run; `expected` is what was recorded,
    `got` what today gives.
    """

    index: int
    key: str
    path: tuple[str, ...]
    cause: Cause
    expected: str = field(repr=False)
    got: str = field(repr=False)

    @property
    def problem(self) -> str:
        """The divergence in one line."""
        expected, got = shortened(self.expected, 200), shortened(self.got, 200)
        return f"{self.cause} at {self.key} (event {self.index}): then {expected!r}, now {got!r}"


#: Where in a run something belongs: the path, and the place or a word and the turn.
_Spot: TypeAlias = tuple[tuple[str, ...], str]
#: The recorded events that are not folded yet, by spot; those of one spot in their order.
_Waiting: TypeAlias = dict[_Spot, deque[tuple[int, Event]]]

#: What is done in a turn, in the order of doing it: the effect, the word in its key, and what answers it.
_ANSWERS: Mapping[type, tuple[str, tuple[type, ...]]] = {
    Prepare: ("prepare", (Prepared,)),
    CallModel: ("model", (Replied,)),
    Check: ("check", (Checked,)),
    Ask: ("ask", (Approved, Declined)),
    CallTool: ("call", (Returned, Checked)),
    Extract: ("extract", (Returned,)),
    Decide: ("decide", (Decided,)),
    Finish: ("finish", (Finished, Refused, Reopened)),
}
_WORDS = [word for word, _ in _ANSWERS.values()]
_OF_CALL = ("check", "ask", "call", "extract")


def replay(agents: Agent[Any, Any] | Agents | Iterable[Agent[Any, Any]], run: Run) -> Outcome[Run, Divergence]:
    """The run, made again of its recorded events by today's agents, or where they first part ways.

    Pure; the run may have ended, be paused or be unfinished.

    >>> from fnagents import Agent, Message, ModelResponse, Replied, Sent, Success, start, step
    >>> reply = Success(ModelResponse((Message("assistant", "Hello!"),)))
    >>> run = step(start("a", "hi"), Replied(0, reply, Sent("Greet.")))
    >>> replay(Agent("a", "Greet."), run) == Success(run)
    True
    >>> replay(Agent("a", "Say hello."), run).failure().cause
    'instructions'
    """
    known = reached(*_roots(agents))
    waiting: _Waiting = {}
    for index, event in enumerate(events(run)):
        waiting.setdefault(_spot(event), deque()).append((index, event))
    again = beginning(run).run
    while waiting:
        planned = plan(known, again)
        answers = [(effect, *found) for effect in planned if (found := _answer(waiting, effect)) is not None]
        if not answers:
            return Failure(_unanswered(planned, waiting))
        for effect, index, event in answers:
            if (divergence := _difference(known, effect, index, event)) is not None:
                return Failure(divergence)
            again = _folded(again, waiting, _spot(event))
    return Success(again)


def _roots(given: Agent[Any, Any] | Agents | Iterable[Agent[Any, Any]]) -> Iterable[Agent[Any, Any]]:
    if isinstance(given, Agent):
        return (given,)
    return cast("Agents", given).values() if isinstance(given, Mapping) else given


# --- matching ------------------------------------------------------------------------------------------


def _word(one: Effect | Event) -> str:
    """The word in the key of the effect, or of the one that the event answers."""
    return next(word for effect, (word, answers) in _ANSWERS.items() if isinstance(one, (effect, *answers)))


def _where(one: Effect | Event) -> str:
    match one:
        case Check() | Ask() | CallTool() | Extract() | Checked() | Approved() | Declined() | Returned():
            return one.place
        case _:
            return str(one.turn)


def _spot(one: Effect | Event) -> _Spot:
    word = "refused" if isinstance(one, Refused) else _word(one)
    return (one.path, _where(one) if word in _OF_CALL else f"{word}-{_where(one)}")


def _when(one: Effect | Event) -> tuple[int, int]:
    """Its turn, and what is done before and after it in that turn."""
    return int(_where(one).partition(".")[0]), _WORDS.index(_word(one))


def _answer(waiting: _Waiting, effect: Effect) -> tuple[int, Event] | None:
    """The recorded event that answers the effect, with its index."""
    queue = _of_finish(waiting, effect) if isinstance(effect, Finish) else waiting.get(_spot(effect))
    if queue is None:
        return None
    index, event = queue[0]
    if isinstance(event, Checked) and isinstance(effect, CallTool) and not effect.digest:
        # Only an approved call is checked again: this one needed a check, and needs none today.
        return None
    return (index, event) if isinstance(event, _ANSWERS[type(effect)][1]) else None


def _of_finish(waiting: _Waiting, effect: Finish) -> deque[tuple[int, Event]] | None:
    """What ended the run at this turn, or the refusal of its output: events do not say which of them came first.

    An output that a guardrail raised on is judged again once the run is reopened; no other failure stands before a
    refusal of the output that was planned then.
    """
    ended, refused = waiting.get(_spot(effect)), waiting.get((effect.path, f"refused-{effect.turn}"))
    if ended is None or refused is None:
        return ended or refused
    end = ended[0][1]
    raised = isinstance(end, Finished) and isinstance(end.outcome, Failure) and type(end.outcome.failure())
    return ended if isinstance(effect.outcome, Failure) or raised is FunctionRaised else refused


def _folded(run: Run, waiting: _Waiting, spot: _Spot) -> Run:
    """The run after the event of the spot, and after its reopening if that comes next: nothing asks for that."""
    queue = waiting[spot]
    run = step(run, queue.popleft()[1])
    while queue and isinstance(queue[0][1], Reopened):
        run = step(run, queue.popleft()[1])
    if not queue:
        del waiting[spot]
    return run


# --- differences ---------------------------------------------------------------------------------------


def _unanswered(planned: tuple[Effect, ...], waiting: _Waiting) -> Divergence:
    """The first event that nothing asks for today; or, if something comes before it in the same place, that."""
    index, event = min((queue[0] for queue in waiting.values()), key=lambda one: one[0])
    name = "/".join((*event.path, f"{_word(event)}-{_where(event)}"))
    for effect in planned:
        beside = effect.path == event.path and (_spot(effect) == _spot(event) or _word(effect) not in _OF_CALL)
        if beside and _when(effect) < _when(event):
            return Divergence(index, key(effect), effect.path, "surplus effect", name, key(effect))
    got = ", ".join(key(effect) for effect in planned) or "nothing: the run has ended"
    return Divergence(index, name, event.path, "missing effect", name, got)


def _difference(known: Agents, effect: Effect, index: int, event: Event) -> Divergence | None:
    """In what the effect differs from the recorded one."""
    found: tuple[Cause, str, str] | None = None
    if isinstance(effect, CallModel) and isinstance(event, Replied):
        found = _of_sent(event.sent, effect.request.sent)
    elif isinstance(effect, Finish):
        found = _of_end(known, effect, event)
    return None if found is None else Divergence(index, key(effect), effect.path, *found)


def _of_sent(recorded: Sent, today: Sent) -> tuple[Cause, str, str] | None:
    if recorded.instructions != today.instructions:
        return "instructions", recorded.instructions or "", today.instructions or ""
    if recorded.tools != today.tools:
        return "tool definition", *_of_tools(recorded.tools, today.tools)
    for name in ("model", "settings", "output_schema"):
        if (was := getattr(recorded, name)) != (now := getattr(today, name)):
            return "settings", f"{name}={was!r}", f"{name}={now!r}"
    return None


def _of_tools(recorded: tuple[ToolDefinition, ...], today: tuple[ToolDefinition, ...]) -> tuple[str, str]:
    """The first tool that was changed, removed or added ("" for one that is not there), or the two orders."""
    before, now = ({(one.kind, one.namespace, one.name): one.text for one in tools} for tools in (recorded, today))
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            return before.get(name, ""), now.get(name, "")
    return ", ".join(one.name for one in recorded), ", ".join(one.name for one in today)


def _of_end(known: Agents, effect: Finish, event: Event) -> tuple[Cause, str, str] | None:
    """A failure that is planned passes through, and so does text that no output type decodes."""
    recorded = event.outcome if isinstance(event, Finished) else None
    planned = effect.outcome
    if isinstance(planned, Failure):
        same = isinstance(recorded, Failure) and type(recorded.failure()) is type(planned.failure())
    else:
        same = not isinstance(recorded, Success) or known[effect.agent].output is not None or recorded == planned
    return None if same else ("missing effect", repr(recorded), repr(planned))

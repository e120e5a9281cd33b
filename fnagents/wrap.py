"""Wrappers of the outside world: from a `Perform` to a `Perform`.

    recorded(perform, record)            every event is written down before the run goes on
    replayed(run, otherwise)             what is recorded answers; nothing is done again
    approved_by(perform, decide)         a policy answers questions
    observed(perform, observer)          somebody looks on, and cannot change anything
    limited(perform, seconds)            a limit in time, whose verdict is an event

They compose: `recorded(approved_by(limited(performer(...), 60), policy), journal)` writes down what the limit and
the policy said, too; what stands outside of `recorded` is not in the record when it happens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeAlias

from fnagents.errors import BudgetSpent, ModelTimedOut
from fnagents.matching import keyed
from fnagents.outcome import Failure
from fnagents.perform import Perform
from fnagents.pipeline import CAUGHT, pass_cancellation, settled
from fnagents.protocol import (
    Approved,
    Ask,
    CallModel,
    CallTool,
    Check,
    Checked,
    Declined,
    Effect,
    Event,
    Replied,
    Returned,
    key,
)
from fnagents.runs import Run
from fnagents.unfolding import events

__all__ = ["Decide", "Observer", "Record", "approved_by", "limited", "observed", "recorded", "replayed"]

_log = logging.getLogger("fnagents.agents")


# --- writing down and reading back ---------------------------------------------------------------------


class Record(Protocol):
    """Where events are written down; a `Journal` is one."""

    def reach(self, effect: Effect) -> None:
        """Write down what the run that this effect was planned from has, and the record has not."""
        ...

    def append(self, event: Event) -> None:
        """Write down the event."""
        ...


def recorded(perform: Perform, record: Record) -> Perform:
    """As `perform`, with each event in the record before it is given back.

    What was decided about the run outside of `perform` (`approve`, `reopen`) is written down before the next effect.
    What `record` raises passes through and ends the drive: a run that cannot be recorded does not go on.
    """

    async def performing(effect: Effect) -> Event | None:
        record.reach(effect)
        event = await perform(effect)
        if event is not None:
            record.append(event)
        return event

    return performing


def replayed(record: Run | Iterable[Event], otherwise: Perform | None = None) -> Perform:
    """A world that gives the recorded events again, each to the effect of its key.

    An effect that is not in the record goes to `otherwise`; without one nobody answers it, so that the run goes as
    far as the record does.  `record` is a run, or events of one from its start in any order in which they fold.

    >>> import asyncio
    >>> from fnagents import Agent, agents, drive, run_sync, start
    >>> from fnagents.testing import scripted
    >>> greeter = Agent("greeter", "Greet.")
    >>> run = run_sync(greeter, "hi", client=scripted("Hello!"))
    >>> asyncio.run(drive(agents(greeter), start(greeter, "hi"), replayed(run))) == run
    True
    """
    known = keyed(events(record) if isinstance(record, Run) else record)

    async def performing(effect: Effect) -> Event | None:
        event = known.get(key(effect))
        if event is not None:
            return event
        return await otherwise(effect) if otherwise is not None else None

    return performing


# --- people --------------------------------------------------------------------------------------------

#: A policy for questions, sync or async: True approves, False or a reason declines, None leaves the question open.
Decide: TypeAlias = Callable[[Ask], bool | str | None | Awaitable[bool | str | None]]


def approved_by(perform: Perform, decide: Decide) -> Perform:
    """As `perform`, but `decide` is asked first whether a call may run.

    It answers True, False, or a reason for the model to read as text; with None the question goes to `perform`.  Where
    it raises, nobody has decided: the log has the traceback and the question stays open.  Any other answer is a
    TypeError.

    >>> import asyncio
    >>> from fnagents import Agent, Tool, ToolCall, agents, drive, performer, start
    >>> from fnagents.testing import scripted
    >>> pay = Tool("pay", "Pay.", {}, lambda context, given: "paid", needs_approval=True)
    >>> clerk = agents(Agent("clerk", "Help.", tools=[pay]))
    >>> world = performer(clerk, scripted(ToolCall("c", "pay"), "Sorry."))
    >>> run = asyncio.run(drive(clerk, start("clerk", "pay!"), approved_by(world, lambda ask: "not on Sundays")))
    >>> [item.text for item in run.items[-2:]]
    ['not on Sundays', 'Sorry.']
    """

    async def performing(effect: Effect) -> Event | None:
        if not isinstance(effect, Ask):
            return await perform(effect)
        try:
            said = await settled(decide(effect))
        except CAUGHT as error:
            pass_cancellation(error)
            _log.warning("the policy for questions raised at %s", key(effect), exc_info=error)
            return None
        return await perform(effect) if said is None else _decided(effect, said)

    return performing


def _decided(ask: Ask, said: object) -> Approved | Declined:
    if said is True:
        return Approved(ask.place, ask.checkup.digest, path=ask.path)
    if said is False or isinstance(said, str):
        return Declined(ask.place, ask.checkup.digest, said or "", path=ask.path)
    raise TypeError(f"a policy for questions gives True, False, a reason or None, not a {type(said).__name__}")


# --- looking on ----------------------------------------------------------------------------------------

#: Told of each effect as it begins (with None), and again with the event that answers it; sync or async.
Observer: TypeAlias = Callable[[Effect, Event | None], object]


def observed(
    perform: Perform, observer: Observer, on_raised: Callable[[Effect, BaseException], object] | None = None
) -> Perform:
    """As `perform`, with an observer that is told `(effect, None)` before and `(effect, event)` after.

    It is waited for, and cannot change the run.  What it raises goes to the log and to `on_raised`, and the run goes
    on.  Of an effect that nobody answers, was cancelled or raised, it is told the beginning only.
    """

    async def tell(effect: Effect, event: Event | None) -> None:
        try:
            await settled(observer(effect, event))
        except CAUGHT as error:
            pass_cancellation(error)
            _log.warning("an observer raised at %s", key(effect), exc_info=error)
            if on_raised is not None:
                on_raised(effect, error)

    async def performing(effect: Effect) -> Event | None:
        await tell(effect, None)
        event = await perform(effect)
        if event is not None:
            await tell(effect, event)
        return event

    return performing


# --- a limit in time -----------------------------------------------------------------------------------


def limited(perform: Perform, seconds: float, *, clock: Callable[[], float] | None = None) -> Perform:
    """As `perform`, for this many seconds from its first effect on; then calls and the model get a verdict.

    A tool call that would begin later is answered with `BudgetSpent("seconds")`.  One that is under way goes on: it
    may be doing something, and what it did has to be known (its own limit is `timeout=`).  A model call has no side
    effect, so it is cut at the limit, or not begun; it fails with `ModelTimedOut(seconds)`, which ends the run.
    Questions, and the agent's own functions, are asked as ever: an answer that is there is not thrown away.

    Why the run ends as `ModelFailed` and not as `BudgetExhausted`: each effect is answered by an event of its own
    kind and key.  A `Finished` in the place of a `Replied` folds too, but it has the key of an effect that nobody
    planned, so that neither `replay` nor `replayed` would find it again (law 8); and a nested run would end in the
    same way.  After `reopen`, the model is asked again.

    `clock` gives seconds from any beginning, by default those of the running event loop.  A pause is not counted
    where the run goes on under a new wrapper.
    """
    if not seconds >= 0:
        raise ValueError(f"seconds={seconds!r} is no span of time")
    began: list[float] = []

    async def performing(effect: Effect) -> Event | None:
        now = clock() if clock is not None else asyncio.get_running_loop().time()
        if not began:
            began.append(now)
        left = began[0] + seconds - now
        match effect:
            case Check() if left <= 0:
                return Checked(effect.place, Failure(BudgetSpent("seconds")), path=effect.path)
            case CallTool() if left <= 0:
                return Returned(effect.place, Failure(BudgetSpent("seconds")), path=effect.path)
            case CallModel():
                event = await _in_time(perform, effect, left)
                return event or Replied(
                    effect.turn, Failure(ModelTimedOut(seconds)), effect.request.sent, path=effect.path
                )
            case _:
                return await perform(effect)

    return performing


async def _in_time(perform: Perform, effect: CallModel, left: float) -> Event | None:
    """What `perform` answers within the seconds that are left, or None."""
    if left <= 0:
        return None
    limit = asyncio.timeout(left)
    try:
        async with limit:
            return await perform(effect)
    except TimeoutError:
        if not limit.expired():
            raise
    return None

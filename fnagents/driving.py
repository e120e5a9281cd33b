"""Driving a run: perform what `plan` says, fold what comes back, until it has ended or only questions remain.

`drive` keeps the planned effects that are not under way running side by side, folds each event in as it arrives
and plans again at once.  `lockstep` performs all planned effects, waits for all, and plans again, for engines that
need a fixed order.  Both give equal runs, because an effect once planned stays planned (law 19).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TypeAlias

from fnagents.agent import Agents
from fnagents.core import plan, step
from fnagents.errors import ToolCancelled
from fnagents.outcome import Failure
from fnagents.perform import Perform
from fnagents.pipeline import drop, leave_behind, pass_cancellation
from fnagents.protocol import CallTool, Effect, Event, Returned, key
from fnagents.runs import Run

__all__ = ["drive", "interrupt", "lockstep"]

#: Seconds that cancelled effects have to stop before they are left behind.
_PATIENCE = 1.0


_Arrivals: TypeAlias = "asyncio.Queue[str]"


async def drive(agents: Agents, run: Run, perform: Perform) -> Run:
    """The run as far as it goes: ended, or paused with only questions that `perform` answers with None.

    What `perform` raises passes through, after the other effects under way were cancelled.
    """
    under_way: dict[str, asyncio.Task[Event | None]] = {}
    asked: set[str] = set()
    arrived: _Arrivals = asyncio.Queue()
    try:
        while True:
            effects = [
                (name, effect)
                for effect in plan(agents, run)
                if (name := key(effect)) not in under_way and name not in asked
            ]
            if len(effects) == 1 and not under_way and not isinstance(effects[0][1], CallTool):
                name, effect = effects[0]
                event = await perform(effect)
                pass_cancellation()
                run = _folded(run, name, event, asked)
                continue
            for name, effect in effects:
                under_way[name] = task = asyncio.ensure_future(_performed(perform, effect))
                task.add_done_callback(partial(_arrive, arrived, name))
            if not under_way:
                return run
            name = await arrived.get()
            run = _folded(run, name, under_way.pop(name).result(), asked)
            # What has arrived meanwhile is folded before planning again: it changes nothing but the work.
            while not arrived.empty():
                name = arrived.get_nowait()
                run = _folded(run, name, under_way.pop(name).result(), asked)
    finally:
        await _stop(list(under_way.values()))


def _folded(run: Run, name: str, event: Event | None, asked: set[str]) -> Run:
    if event is None:
        asked.add(name)
        return run
    return step(run, event)


def _arrive(arrived: _Arrivals, name: str, _task: asyncio.Task[Event | None]) -> None:
    arrived.put_nowait(name)


async def _performed(perform: Perform, effect: Effect) -> Event | None:
    """In a task of its own, so that a tool which clings to life holds nobody up: the caller's cancellation passes."""
    return await perform(effect)


async def _stop(tasks: list[asyncio.Task[Event | None]]) -> None:
    """Cancel what is under way and wait for it, but not for ever."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_PATIENCE)
    for task in tasks:
        leave_behind(task)
        task.add_done_callback(drop)


async def lockstep(agents: Agents, run: Run, perform: Perform) -> Run:
    """As `drive`, in rounds: all planned effects are performed side by side, then their events folded in plan order."""
    asked: set[str] = set()
    while True:
        effects = [effect for effect in plan(agents, run) if key(effect) not in asked]
        if not effects:
            return run
        for effect, event in zip(effects, await _all(perform, effects), strict=True):
            if event is None:
                asked.add(key(effect))
            else:
                run = step(run, event)


async def _all(perform: Perform, effects: list[Effect]) -> list[Event | None]:
    tasks = [asyncio.ensure_future(_performed(perform, effect)) for effect in effects]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _stop([task for task in tasks if not task.done()])


def interrupt(agents: Agents, run: Run, reason: str = "") -> Run:
    """The run with every call that is under way answered as `ToolCancelled`, innermost first.

    A call is under way if `plan` asks for it to be run.  Nested runs and questions stay open, a model call under
    way leaves nothing; the run can be resumed, and the model reads what was interrupted.
    """
    calls = [effect for effect in plan(agents, run) if isinstance(effect, CallTool)]
    for effect in sorted(calls, key=lambda effect: -len(effect.path)):
        run = step(run, Returned(effect.place, Failure(ToolCancelled(reason)), path=effect.path))
    return run

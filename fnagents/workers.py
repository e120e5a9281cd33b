"""Threads for sync tools: daemon workers of our own, reused, at least 32 at work at once.

Why not the loop's default executor: it has cores + 4 threads, waits for all of them at exit, and a hung function
would take one of them for ever.  Here a worker whose caller has gone away is abandoned: it no longer counts
against the limit, its late result is dropped, and being a daemon it never keeps the process from exiting.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

from attrs import Factory, define, field

from fnagents.outcome import Failure, Outcome, Success

__all__ = ["InThread", "in_thread"]

#: Runs a blocking function elsewhere: what it returned, or the exception that it raised, as a value.
InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Outcome[Any, BaseException]]]

_MOST = 64
#: What is known of the thread that asks.
_here = threading.local()


@define(eq=False)
class _Job:
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Outcome[Any, BaseException]]
    started: bool = False
    ended: bool = False
    abandoned: bool = False

    def run(self) -> None:
        outcome: Outcome[Any, BaseException]
        try:
            outcome = Success(self.work())
        except BaseException as error:  # noqa: BLE001  # StopIteration and the like must not kill a worker
            outcome = Failure(error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self._settle, outcome)

    def _settle(self, outcome: Outcome[Any, BaseException]) -> None:
        if not self.done.done():
            self.done.set_result(outcome)


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="fnagents-worker", daemon=True).start()


@define(eq=False)
class _Pool:
    start: Callable[[Callable[[], None]], None] = _start
    lock: threading.Condition = field(factory=threading.Condition)
    waiting: deque[_Job] = Factory(deque[_Job])
    idle: int = 0
    working: int = 0

    def submit(self, job: _Job) -> None:
        """Raises what starting a thread may raise, if no worker will ever take the job."""
        # A worker that runs an event loop of its own waits for the job: it must not wait for a worker like itself.
        nested = getattr(_here, "is_worker", False)
        with self.lock:
            self.waiting.append(job)
            if self.idle >= len(self.waiting):
                self.lock.notify()
            elif nested or self.working + self.idle < _MOST:
                self._hire(job)

    def _hire(self, job: _Job | None = None) -> None:
        try:
            self.start(self._work)
        except RuntimeError:
            if job is not None and self.working + self.idle == 0:
                self.waiting.remove(job)
                raise
        else:
            self.idle += 1

    def _work(self) -> None:
        _here.is_worker = True
        while True:
            with self.lock:
                while not self.waiting:
                    self.lock.wait()
                job = self.waiting.popleft()
                self.idle -= 1
                self.working += 1
                job.started = True
            job.run()
            with self.lock:
                job.ended = True
                if job.abandoned:  # another worker may have been hired in this one's place
                    return
                self.working -= 1
                self.idle += 1
            del job

    def abandon(self, job: _Job) -> None:
        """Nobody waits for the job: forget it, or give up the worker that runs it."""
        with self.lock:
            if job.ended:
                return
            job.abandoned = True
            if not job.started:
                self.waiting.remove(job)
                return
            self.working -= 1
            if len(self.waiting) > self.idle:
                self._hire()


_pool = _Pool()


def _renew() -> None:
    """A forked child has none of its parent's threads, and maybe a lock that one of them held."""
    _pool.__init__()  # type: ignore[misc]


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew)


async def in_thread(work: Callable[[], Any]) -> Outcome[Any, BaseException]:
    """What `work()` returned or raised, run in a worker with the caller's context variables.

    Cancelling the wait abandons the worker; what it gives later is dropped.
    """
    loop = asyncio.get_running_loop()
    context = contextvars.copy_context()
    job = _Job(lambda: context.run(work), loop, loop.create_future())
    try:
        _pool.submit(job)
    except RuntimeError as error:
        return Failure(error)
    try:
        return await job.done
    except asyncio.CancelledError:
        _pool.abandon(job)
        raise

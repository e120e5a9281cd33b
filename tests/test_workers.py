"""Threads for sync tools."""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import pytest

from fnagents import workers
from fnagents.outcome import Failure, Success
from fnagents.workers import in_thread

VARIABLE = contextvars.ContextVar("VARIABLE", default="outside")


def fail(error):
    raise error


def test_what_was_returned_or_raised_is_a_value() -> None:
    """Any class of exception: StopIteration would never reach a future."""
    stop, leave, plain = StopIteration(1), SystemExit(3), ValueError("no")

    async def main():
        return [
            await in_thread(lambda: 42),
            await in_thread(lambda: fail(plain)),
            await in_thread(lambda: fail(stop)),
            await in_thread(lambda: fail(leave)),
        ]

    assert asyncio.run(main()) == [Success(42), Failure(plain), Failure(stop), Failure(leave)]


def test_work_is_done_beside_the_loop_and_side_by_side() -> None:
    """All must be there at once for any of them to go on."""
    everyone = threading.Barrier(8, timeout=30)

    async def main():
        return await asyncio.gather(*(in_thread(everyone.wait) for _ in range(8)))

    outcomes = asyncio.run(main())
    assert sorted(outcome.unwrap() for outcome in outcomes) == list(range(8))


def test_context_variables_reach_the_thread() -> None:
    """And what it sets stays there."""

    def work():
        seen = VARIABLE.get()
        VARIABLE.set("thread")
        return seen

    async def main():
        VARIABLE.set("inside")
        return await in_thread(work), VARIABLE.get()

    assert asyncio.run(main()) == (Success("inside"), "inside")


def test_workers_are_used_again() -> None:
    """A second piece of work after the first needs no second thread."""

    async def main():
        names = set()
        for _ in range(20):
            names.add((await in_thread(lambda: threading.current_thread().name)).unwrap())
            names.add((await in_thread(threading.get_ident)).unwrap())
        return names

    names = asyncio.run(main())
    assert "fnagents-worker" in names


async def abandoned(entered, release, count=1):
    """Cancel the waits for work that hangs."""

    def hang():
        entered.release()
        release.wait(60)

    tasks = [asyncio.ensure_future(in_thread(hang)) for _ in range(count)]
    for _ in range(min(count, workers._MOST)):
        await asyncio.to_thread(entered.acquire)
    for task in reversed(tasks):  # those that wait for a worker first
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return tasks


def settle():
    """Wait until no worker is at work."""
    for _ in range(1_000):
        with workers._pool.lock:
            if workers._pool.working == 0 and not workers._pool.waiting:
                return
        time.sleep(0.01)


def test_an_abandoned_worker_counts_no_more() -> None:
    """As many as there may be hang, twice; still there is room for work, and late results change nothing."""
    entered, release = threading.Semaphore(0), threading.Event()

    async def main():
        tasks = await abandoned(entered, release, workers._MOST + 3)
        assert all(task.cancelled() for task in tasks)
        return await in_thread(lambda: "done")

    assert asyncio.run(main()) == Success("done")
    settle()
    with workers._pool.lock:
        assert (workers._pool.working, list(workers._pool.waiting)) == (0, [])
    release.set()


def test_work_that_waits_for_a_worker_is_done_when_one_is_abandoned() -> None:
    """Nobody waits behind work that hangs and that nobody waits for."""
    entered, release = threading.Semaphore(0), threading.Event()

    def hang():
        entered.release()
        release.wait(60)

    async def main():
        hung = [asyncio.ensure_future(in_thread(hang)) for _ in range(workers._MOST)]
        for _ in hung:
            await asyncio.to_thread(entered.acquire)
        waiting = asyncio.ensure_future(in_thread(lambda: "done"))
        await asyncio.sleep(0)
        assert len(workers._pool.waiting) == 1
        hung[0].cancel()
        outcome = await waiting
        for task in hung:
            task.cancel()
        await asyncio.gather(*hung, return_exceptions=True)
        return outcome

    assert asyncio.run(main()) == Success("done")
    release.set()
    settle()


def test_a_worker_that_was_done_when_its_caller_went_away_is_counted_once() -> None:
    """Its result is on the way, and the wait is cancelled before it arrives."""
    settle()

    async def main():
        task = asyncio.ensure_future(in_thread(lambda: "done"))
        await asyncio.sleep(0)
        settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    with workers._pool.lock:
        assert workers._pool.working == 0


def test_a_late_result_of_a_loop_that_is_closed_is_dropped() -> None:
    """The worker ends in peace."""
    entered, release, ended = threading.Semaphore(0), threading.Event(), threading.Event()

    class Late:
        def __del__(self):
            ended.set()

    def work():
        kept = Late()
        entered.release()
        release.wait(60)
        return kept

    async def main():
        task = asyncio.ensure_future(in_thread(work))
        await asyncio.to_thread(entered.acquire)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    release.set()
    assert ended.wait(30)


def test_nothing_of_the_work_is_kept() -> None:
    """A worker that waits for work holds nothing of the last one."""

    class Thing:
        pass

    async def main():
        thing = Thing()
        await in_thread(lambda: thing is None)
        return weakref.ref(thing)

    reference = asyncio.run(main())
    settle()
    gc.collect()
    assert reference() is None


HANGING = """
import asyncio, threading
from fnagents.workers import in_thread

async def main():
    started = threading.Event()
    task = asyncio.ensure_future(in_thread(lambda: (started.set(), threading.Event().wait())))
    while not started.is_set():
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    print("left", flush=True)

asyncio.run(main())
"""


def test_work_that_never_ends_does_not_keep_the_process() -> None:
    """The interpreter exits without it."""
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("left\n", "", 0)


FORKING = """
import os, sys
from fnagents import Agent, ToolCall, run_sync, tool
from fnagents.testing import scripted

@tool
def work() -> int:
    return 1

def go():
    return run_sync(Agent("a", tools=[work]), "x", client=scripted(ToolCall("c", "work"), "done")).outcome.unwrap()

go()
child = os.fork()
if not child:
    os._exit(0 if go() == "done" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_workers_of_its_own() -> None:
    """A child has none of its parent's threads; its sync tools run all the same."""
    done = subprocess.run([sys.executable, "-c", FORKING], timeout=30)
    assert done.returncode == 0


def test_a_fork_gives_new_workers() -> None:
    """What a child process does first: it forgets its parent's threads and their lock."""
    assert asyncio.run(workers.in_thread(lambda: 1)) == Success(1)
    before = workers._pool.lock
    workers._renew()
    assert (workers._pool.idle, workers._pool.lock is before) == (0, False)
    assert asyncio.run(workers.in_thread(lambda: 2)) == Success(2)


NESTING = """
import asyncio
from fnagents import Agent, ToolCall, run_sync, tool
from fnagents.testing import scripted

@tool
def inner() -> str:
    return "in"

@tool
def outer() -> str:
    client = scripted(ToolCall("c", "inner"), "done")
    return run_sync(Agent("in", tools=[inner]), "x", client=client).outcome.unwrap()

calls = [ToolCall(str(n), "outer") for n in range(80)]
run = run_sync(Agent("out", tools=[outer]), "x", client=scripted(calls, "all done"))
print(run.outcome.unwrap(), {item.text for item in run.items[-81:-1]})
"""


def test_tools_that_run_agents_of_their_own_do_not_wait_for_each_other() -> None:
    """More of them than there are workers: a worker that waits for a worker gets a new one."""
    done = subprocess.run([sys.executable, "-c", NESTING], timeout=60, capture_output=True, text=True)
    assert done.stdout == "all done {'done'}\n"


def refuse(work):
    raise RuntimeError("can't start new thread")


def test_a_job_that_no_thread_could_be_had_for_is_not_run_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any worker it is a failure, and forgotten."""
    monkeypatch.setattr(workers, "_pool", workers._Pool(refuse))
    ran = []
    failed = asyncio.run(workers.in_thread(lambda: ran.append(1)))
    assert str(failed.failure()) == "can't start new thread"
    workers._pool.start = workers._start
    assert asyncio.run(workers.in_thread(lambda: ran.append(2))) == Success(None)
    assert ran == [2]


def test_a_job_waits_for_a_worker_where_no_more_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one, and it is busy."""
    monkeypatch.setattr(workers, "_pool", workers._Pool())
    ran = []

    async def busy():
        held = threading.Event()
        first = asyncio.ensure_future(workers.in_thread(held.wait))
        await asyncio.sleep(0.05)
        workers._pool.start = refuse
        second = asyncio.ensure_future(workers.in_thread(lambda: ran.append(3)))
        await asyncio.sleep(0.05)
        assert ran == []
        held.set()
        await asyncio.gather(first, second)

    asyncio.run(busy())
    assert ran == [3]

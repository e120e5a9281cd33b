"""Law 12, timeouts, in virtual time: a call times out if and only if it outlasts its limit; elapsed = the lesser.

Durations are whole seconds and limits half ones, so that none are equal.  For sync functions the wait is injected:
they say how long they block, and the thread that is none waits so long in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from attrs import frozen
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fnagents import (
    Agent,
    Failure,
    ModelError,
    ModelFailed,
    ModelResponse,
    ModelSettings,
    Outcome,
    Run,
    Success,
    Tool,
    ToolCall,
    ToolContext,
    ToolError,
    ToolTimedOut,
    agents,
    drive,
    explain,
    performer,
    start,
)
from fnagents.errors import ModelTimedOut, ToolRaised
from fnagents.testing import run_virtual, scripted

#: Longer than any limit here.
LATE = 1_000

_blocked: ContextVar[list[float]] = ContextVar("_blocked")


# --- functions that take their time --------------------------------------------------------------------


async def returns(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


async def returns_in_steps(seconds: float) -> str:
    for _ in range(int(seconds)):
        await asyncio.sleep(1)
    return "done"


async def raises(seconds: float) -> str:
    await asyncio.sleep(seconds)
    raise ValueError("done")


async def raises_timeout_error(seconds: float) -> str:
    await asyncio.sleep(seconds)
    raise TimeoutError("done")


async def raises_cancelled_error(seconds: float) -> str:
    await asyncio.sleep(seconds)
    raise asyncio.CancelledError("done")


async def has_a_limit_of_its_own(seconds: float) -> str:
    async with asyncio.timeout(seconds):
        await asyncio.sleep(LATE)
    return "never"


async def keeps_a_limit_of_its_own(seconds: float) -> str:
    async with asyncio.timeout(LATE):
        await asyncio.sleep(seconds)
    return "done"


async def swallows_its_own_limit(seconds: float) -> str:
    try:
        await asyncio.wait_for(asyncio.sleep(LATE), seconds)
    except TimeoutError:
        return "done"
    return "never"


async def shields(seconds: float) -> str:
    await asyncio.shield(asyncio.sleep(seconds))
    return "done"


async def groups(seconds: float) -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(seconds))
        group.create_task(asyncio.sleep(seconds / 2))
    return "done"


async def raises_on_cancel(seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        raise ValueError("cancelled") from None
    return "done"


async def returns_on_cancel(seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        return "late"
    return "done"


async def swallows_cancellation(seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(LATE)
        return "much too late"
    return "done"


async def raises_stop_iteration(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return next(iter(()))


async def is_cancelled_from_inside(seconds: float) -> str:
    await asyncio.sleep(seconds)
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(LATE)
    return "never"


def blocks(seconds: float) -> str:
    _blocked.get().append(seconds)
    return "done"


def blocks_and_raises(seconds: float) -> str:
    _blocked.get().append(seconds)
    raise ValueError("done")


def blocks_and_raises_timeout_error(seconds: float) -> str:
    _blocked.get().append(seconds)
    raise TimeoutError("done")


def blocks_and_stops(seconds: float) -> str:
    _blocked.get().append(seconds)
    return next(iter(()))


@frozen
class Later:
    """An awaitable that is no coroutine, so that nobody minds if it is never awaited."""

    seconds: float

    def __await__(self) -> Any:
        return returns(self.seconds).__await__()


def blocks_then_waits(seconds: float) -> Any:
    _blocked.get().append(seconds / 2)
    return Later(seconds / 2)


async def in_virtual_thread(work: Callable[[], Any]) -> Outcome[Any, BaseException]:
    """As `in_thread`: the work is done at once, and what it blocks passes in virtual time."""
    blocked: list[float] = []
    token = _blocked.set(blocked)
    outcome: Outcome[Any, BaseException]
    try:
        outcome = Success(work())
    except BaseException as error:  # noqa: BLE001  # as the real one
        outcome = Failure(error)
    finally:
        _blocked.reset(token)
    await asyncio.sleep(sum(blocked))
    return outcome


#: What each gives in time: the text, or the class of what it raised.
IN_TIME: dict[Callable[[float], Any], str] = {
    returns: "done",
    returns_in_steps: "done",
    raises: "ValueError",
    raises_timeout_error: "TimeoutError",
    raises_cancelled_error: "CancelledError",
    has_a_limit_of_its_own: "TimeoutError",
    keeps_a_limit_of_its_own: "done",
    swallows_its_own_limit: "done",
    shields: "done",
    groups: "done",
    raises_on_cancel: "done",
    returns_on_cancel: "done",
    swallows_cancellation: "done",
    raises_stop_iteration: "RuntimeError",
    blocks: "done",
    blocks_and_raises: "ValueError",
    blocks_and_raises_timeout_error: "TimeoutError",
    blocks_and_stops: "StopIteration",
    blocks_then_waits: "done",
}
#: Those that go on when they are cancelled: a sync function cannot be stopped.
GOES_ON = {swallows_cancellation, blocks, blocks_and_raises, blocks_and_raises_timeout_error, blocks_and_stops}
GOES_ON |= {blocks_then_waits}


# --- calls ---------------------------------------------------------------------------------------------


@frozen
class Timed:
    """A call of a function that takes `seconds` and may take `limit`."""

    function: Callable[[float], Any]
    seconds: int
    limit: float | None

    @property
    def is_late(self) -> bool:
        """Whether it outlasts its limit."""
        return self.limit is not None and self.seconds > self.limit

    @property
    def elapsed(self) -> float:
        """The lesser of the two."""
        return self.seconds if self.limit is None else min(self.seconds, self.limit)

    def tool(self, name: str, *, serial: bool = False, flags: dict[str, Callable[[], bool]] | None = None) -> Any:
        """The tool whose calls these are."""
        by_hand = self.function
        noted = {} if flags is None else flags

        def plain(context: ToolContext[Any], given: str) -> Any:
            noted[name] = context.cancelled
            return by_hand(self.seconds)

        async def waiting(context: ToolContext[Any], given: str) -> Any:
            noted[name] = context.cancelled
            return await by_hand(self.seconds)

        function = waiting if asyncio.iscoroutinefunction(by_hand) else plain
        return Tool(name, "Takes its time.", {}, function, timeout=self.limit, serial=serial)


def played(calls: list[Timed], *, serial: bool = False, flags: dict[str, Callable[[], bool]] | None = None) -> Any:
    """One turn that calls each once: the run, and how long it took in virtual seconds."""
    tools = [one.tool(f"tool_{number}", serial=serial, flags=flags) for number, one in enumerate(calls)]
    agent = Agent("timer", "Wait.", tools=tools)
    client = scripted([ToolCall(f"c{number}", tool.name) for number, tool in enumerate(tools)], "done")

    async def timed() -> tuple[Run, float]:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        everyone = agents(agent)
        perform = performer(everyone, client, in_thread=in_virtual_thread)
        run = await drive(everyone, start(agent, "go"), perform)
        return run, loop.time() - begun

    return run_virtual(timed())


def answers(run: Run) -> Iterator[Outcome[Any, ToolError] | None]:
    """What answered each call."""
    for state in run.turns[0].calls:
        yield state.answer


def assert_answered(call: Timed, answer: Outcome[Any, ToolError] | None) -> None:
    """As the law says for this call alone, whatever runs beside it."""
    if call.is_late:
        assert call.limit is not None
        assert answer == Failure(ToolTimedOut(call.limit, running=call.function in GOES_ON))
        return
    expected = IN_TIME[call.function]
    match answer:
        case Success(output):
            assert output.text == expected
        case Failure(ToolRaised(kind)):
            assert kind == expected
        case _:
            raise AssertionError(f"{call} was answered by {answer}")


LIMITS = st.one_of(st.none(), st.integers(0, 12).map(lambda seconds: seconds + 0.5))
TIMED = st.builds(Timed, st.sampled_from(list(IN_TIME)), st.integers(0, 12), LIMITS)


@pytest.mark.parametrize("limit", [None, 4.5, 3.5], ids=["none", "longer", "shorter"])
@pytest.mark.parametrize("function", list(IN_TIME), ids=lambda function: function.__name__)
def test_every_function(function: Callable[[float], Any], limit: float | None) -> None:
    """Law 12 for each way of taking time, ending in time and not: no other timeout is taken for the limit."""
    call = Timed(function, 4, limit)
    run, elapsed = played([call])
    assert_answered(call, next(answers(run)))
    assert elapsed == call.elapsed
    assert run.outcome == Success("done")


@given(st.lists(TIMED, min_size=1, max_size=6))
@example([Timed(swallows_cancellation, 9, 0.5), Timed(blocks, 7, 1.5), Timed(returns, 3, None)])
def test_side_by_side(calls: list[Timed]) -> None:
    """Law 12: each call of a turn is judged by its own limit, and the turn takes as long as the longest of them."""
    run, elapsed = played(calls)
    for call, answer in zip(calls, answers(run), strict=True):
        assert_answered(call, answer)
    assert elapsed == max(call.elapsed for call in calls)
    assert run.outcome == Success("done")


@given(st.lists(TIMED, min_size=1, max_size=5))
@example([Timed(swallows_cancellation, 9, 0.5), Timed(blocks, 7, 1.5), Timed(returns, 3, None)])
def test_one_after_the_other(calls: list[Timed]) -> None:
    """Law 12 for serial tools: the clock of a call starts when it does, so the turn takes the sum."""
    run, elapsed = played(calls, serial=True)
    for call, answer in zip(calls, answers(run), strict=True):
        assert_answered(call, answer)
    assert elapsed == sum(call.elapsed for call in calls)


@given(st.lists(TIMED, min_size=1, max_size=4))
def test_told_to_stop(calls: list[Timed]) -> None:
    """A function can see that nobody waits for it any more (`context.cancelled`) if and only if it came too late."""
    flags: dict[str, Callable[[], bool]] = {}
    played(calls, flags=flags)
    assert [flags[f"tool_{number}"]() for number in range(len(calls))] == [call.is_late for call in calls]


@given(st.integers(1, 10), st.integers(1, 10))
def test_a_tie_is_either(seconds: int, other: int) -> None:
    """At the very same instant both are true; elapsed is what it is, and the sibling is not touched."""
    calls = [Timed(returns, seconds, seconds), Timed(returns, other, other + 0.5)]
    run, elapsed = played(calls)
    first, second = answers(run)
    assert (
        first == Failure(ToolTimedOut(seconds))
        or first == Failure(ToolTimedOut(seconds, running=True))
        or (isinstance(first, Success) and first.unwrap().text == "done")
    )
    assert_answered(calls[1], second)
    assert elapsed == max(seconds, other)


@pytest.mark.parametrize("seconds", [0, 2])
def test_a_limited_call_that_cancels_its_own_task(seconds: int) -> None:
    """A call with a limit has a task of its own: cancelling that is a failure of the call, not of the run."""
    run, elapsed = played([Timed(is_cancelled_from_inside, seconds, 5.5), Timed(returns, 3, None)])
    first, second = answers(run)
    assert first is not None
    match first:
        case Failure(ToolRaised(kind)):
            assert kind == "CancelledError"
        case _:
            raise AssertionError(first)
    assert second is not None
    assert elapsed == 3


def test_the_model_reads_the_limit() -> None:
    """The feedback names the limit in seconds, and says so where the function may still be running."""
    run, _ = played([Timed(returns, 9, 2.5), Timed(blocks, 9, 1.5)])
    stopped, running = [state.output.text for state in run.turns[0].calls]
    assert "2.5 seconds" in stopped
    assert "still" not in stopped
    assert "1.5 seconds" in running
    assert "still" in running


@settings(max_examples=30)
@given(st.integers(0, 12), LIMITS)
def test_model_calls(seconds: int, limit: float | None) -> None:
    """`ModelSettings.timeout` is the client's: it reads the limit of one try, and nothing above it cuts it short."""
    agent = Agent("timer", "Wait.", settings=ModelSettings(timeout=limit))

    async def client(request: Any, emit: Any) -> Outcome[ModelResponse, ModelError]:
        tried = asyncio.ensure_future(asyncio.sleep(seconds))
        done, _ = await asyncio.wait([tried], timeout=request.settings.timeout)
        if done:
            return Success(ModelResponse(()))
        await tried  # a client may try once more
        return Failure(ModelTimedOut(request.settings.timeout))

    async def timed() -> tuple[Run, float]:
        loop = asyncio.get_running_loop()
        begun, everyone = loop.time(), agents(agent)
        run = await drive(everyone, start(agent, "go"), performer(everyone, client))
        return run, loop.time() - begun

    run, elapsed = run_virtual(timed())
    late = limit is not None and seconds > limit
    assert run.outcome == (Failure(ModelFailed(ModelTimedOut(limit or 0))) if late else Success(""))
    assert elapsed == seconds


def test_a_model_that_raises_timeout_error() -> None:
    """A client's own TimeoutError is its bug, not the limit: it passes through, as all exceptions of a client do."""
    agent = Agent("timer", "Wait.", settings=ModelSettings(timeout=5))

    async def client(request: Any, emit: Any) -> Outcome[ModelResponse, Any]:
        raise TimeoutError("of its own")

    everyone = agents(agent)
    with pytest.raises(TimeoutError, match="of its own"):
        run_virtual(drive(everyone, start(agent, "go"), performer(everyone, client)))


def test_explained() -> None:
    """Each timeout has a text for the model that is not empty."""
    assert explain(ToolTimedOut(0.5))
    assert explain(ToolTimedOut(0.5, running=True)) != explain(ToolTimedOut(0.5))

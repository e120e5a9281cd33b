"""Runs against llmock, a server by other people that breaks on demand and judges how its client took it.

Each run goes over a real socket, whole and streamed; `llmock.assert_resilient(strict=True)` is the server's own
verdict on what it saw: waits, tries, and answers that were taken though they were cut short.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from fnagents import (
    Agent,
    ContextTooLong,
    Failure,
    ModelFailed,
    Outcome,
    RateLimited,
    Restarted,
    Run,
    RunError,
    ServerFailed,
    Success,
    TextDelta,
    ToolCall,
    ToolOutput,
    dump_run,
    load_run,
    replay,
    responses_client,
    run,
    tool,
)
from fnagents.errors import ModelError
from fnagents.models import Delta, Emit, ModelClient, ModelRequest, ModelResponse
from fnagents.resilience import fallback, retrying

if importlib.util.find_spec("llmock") is None:
    reason = "llmock is not installed; it comes with pip install '.[dev]'"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
#: Seconds that a silent server is silent, and that its client gives it.
LONG, PATIENCE = 2.0, 0.8
#: What only streams can have, after so many of their chunks.
BREAKS: dict[str, Callable[[LLMock, int], LLMock]] = {
    "disconnect": lambda server, chunks: server.disconnect(after_chunks=chunks),
    "truncate": lambda server, chunks: server.truncate(after_chunks=chunks),
    "malformed": lambda server, chunks: server.corrupt(after_chunks=chunks),
    "stall": lambda server, chunks: server.stall(after_chunks=chunks, seconds=LONG),
}
SOLD: list[str] = []


@tool
async def sell(ticker: str, shares: int) -> str:
    """Sell shares."""
    SOLD.append(ticker)
    return f"sold {shares} of {ticker}"


BROKER = Agent("broker", "Trade as you are told.", tools=[sell])


def watched(client: ModelClient, seen: list[Delta]) -> ModelClient:
    """The client, with its deltas seen."""

    async def asked(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        return await client(request, seen.append)

    return asked


def play(stream: bool, seen: list[Delta] | None = None, seconds: float = 30.0, attempts: int = 3) -> Run:
    """A run of the broker, as any program has it: the fixture has put the server's address into the environment."""
    SOLD.clear()

    async def main() -> Run:
        async with responses_client(model="m", stream=stream, timeout=seconds) as inner:
            client = retrying(inner, attempts=attempts, initial=0.06)
            return await run(BROKER, "sell shares", client=client if seen is None else watched(client, seen))

    return asyncio.run(main())


def patience(kind: str) -> float:
    """Little where the server stalls, and much where a slow machine could look as if it did."""
    return PATIENCE if kind == "stall" else 30.0


def assert_whole(ended: Run) -> None:
    """It ended well, sold once, and is what it says: it replays, also from its file."""
    assert isinstance(ended.outcome, Success)
    assert len(SOLD) == 1
    assert replay(BROKER, load_run(dump_run(ended)).unwrap()) == Success(ended)


def failed(ended: Run) -> ModelError:
    """What the run's model call failed with."""
    error: RunError = ended.outcome.failure() if isinstance(ended.outcome, Failure) else pytest.fail("it ended well")
    assert isinstance(error, ModelFailed)
    return error.error


@BOTH
def test_nothing_is_wrong(llmock: LLMock, stream: bool) -> None:
    """Without a fault a run takes two requests, and the tool gets arguments made from its schema."""
    ended = play(stream)
    assert_whole(ended)
    assert ended.usage.requests == len(llmock.requests) == 2
    llmock.assert_resilient(strict=True)


@BOTH
def test_a_busy_server_is_given_its_time(llmock: LLMock, stream: bool) -> None:
    """429 with Retry-After, twice: both are waited for in full, and every try is counted."""
    llmock.rate_limit(times=2, retry_after=0.3)
    before = time.monotonic()
    ended = play(stream)
    assert time.monotonic() - before >= 0.6
    assert_whole(ended)
    assert ended.usage.requests == len(llmock.requests) == 4
    llmock.assert_resilient(strict=True)


@BOTH
@pytest.mark.parametrize("status", [408, 409, 500, 502])
def test_a_failing_server_is_asked_again(llmock: LLMock, stream: bool, status: int) -> None:
    """Without Retry-After the waits grow."""
    llmock.fail(status, times=2)
    assert_whole(play(stream))
    assert len(llmock.requests) == 4
    llmock.assert_resilient(strict=True)


@BOTH
@pytest.mark.parametrize("status", [503, 504, 529])
def test_an_overloaded_server_is_given_its_time(llmock: LLMock, stream: bool, status: int) -> None:
    """Retry-After is read of any error that can pass."""
    llmock.fail(status, times=2, retry_after=0.2)
    assert_whole(play(stream))
    assert len(llmock.requests) == 4
    llmock.assert_resilient(strict=True)


@BOTH
def test_an_outage_ends_the_run_as_a_value(llmock: LLMock, stream: bool) -> None:
    """The tries are as many as were allowed, and the last error is the run's outcome."""
    llmock.outage(status=500)
    error = failed(play(stream, attempts=4))
    assert isinstance(error, ServerFailed)
    assert error.status == 500
    assert len(llmock.requests) == 4
    llmock.assert_resilient(strict=True)


@BOTH
def test_a_server_that_wants_too_much_time_is_left_alone(llmock: LLMock, stream: bool) -> None:
    """Retry-After beyond the longest wait: the error comes back at once, and nothing was sent before its time."""
    llmock.rate_limit(times=None, retry_after=3600)
    error = failed(play(stream))
    assert isinstance(error, RateLimited)
    assert error.retry_after == 3600
    assert len(llmock.requests) == 1
    llmock.assert_resilient()


@BOTH
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_cannot_help_is_not_tried(llmock: LLMock, stream: bool, status: int) -> None:
    """A refusal is sent once."""
    llmock.fail(status, times=None)
    assert not failed(play(stream)).retryable
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


@BOTH
def test_a_conversation_that_is_too_long_is_said_so(llmock: LLMock, stream: bool) -> None:
    """The provider's 400 for it is an error of its own, and sent once."""
    llmock.context_overflow()
    assert isinstance(failed(play(stream)), ContextTooLong)
    llmock.assert_resilient(strict=True)


@BOTH
def test_a_silent_server_is_left_and_asked_again(llmock: LLMock, stream: bool) -> None:
    """Nothing comes within the client's time: that try is over."""
    llmock.delay(LONG)
    assert_whole(play(stream, seconds=PATIENCE))
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("kind", BREAKS)
def test_a_broken_stream_is_never_an_answer(llmock: LLMock, kind: str) -> None:
    """The final answer's stream breaks: the text that was shown is taken back, and told anew as a whole."""
    seen: list[Delta] = []
    llmock.tool_mode("off").reply("All of it was sold today.", times=2)
    BREAKS[kind](llmock, 6)
    ended = play(True, seen, seconds=patience(kind))
    assert ended.outcome == Success("All of it was sold today.")
    taken_back = next(index for index, delta in enumerate(seen) if isinstance(delta, Restarted))
    told = [
        "".join(one.text for one in part if isinstance(one, TextDelta))
        for part in (seen[:taken_back], seen[taken_back:])
    ]
    assert told[1] == "All of it was sold today."
    assert told[1].startswith(told[0])
    assert told[0] not in {"", told[1]}
    assert ended.usage.requests == 2
    llmock.assert_resilient()


@pytest.mark.parametrize("kind", BREAKS)
def test_half_a_call_is_never_run(llmock: LLMock, kind: str) -> None:
    """The stream breaks within a call's arguments: the call that runs is the second try's, once."""
    llmock.call_tool("sell", {"ticker": "A" * 40, "shares": 1})
    llmock.call_tool("sell", {"ticker": "B" * 40, "shares": 2})
    BREAKS[kind](llmock, 4)
    ended = play(True, seconds=patience(kind))
    assert_whole(ended)
    assert SOLD == ["B" * 40]
    llmock.assert_resilient()


@pytest.mark.parametrize("kind", BREAKS)
def test_streams_that_keep_breaking_end_the_run_as_a_value(llmock: LLMock, kind: str) -> None:
    """After the last try the failure is the outcome, and no tool has run."""
    for _ in range(2):
        BREAKS[kind](llmock, 4)
    assert failed(play(True, seconds=patience(kind), attempts=2)).retryable
    assert SOLD == []


@BOTH
@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_a_broken_call_is_feedback(llmock: LLMock, stream: bool, kind: str) -> None:
    """The model reads what was wrong with its call, by name, and ends the run itself; no tool has run."""
    llmock.break_tool_call(kind)
    ended = play(stream)
    assert isinstance(ended.outcome, Success)
    assert SOLD == []
    call, output = ended.items[1:3]
    told = llmock.last_request.body["input"][-1]
    assert told["type"] == "function_call_output"
    assert isinstance(call, ToolCall)
    assert isinstance(output, ToolOutput)
    assert told["call_id"] == call.id
    assert told["output"] == output.text
    problem = "not a valid JSON object" if kind == "malformed_arguments" else "The tools are: sell."
    assert problem in told["output"]
    llmock.assert_resilient(strict=True)


@BOTH
def test_a_bad_day(llmock: LLMock, stream: bool) -> None:
    """Every kind of fault in one run, and the run is as whole as without."""
    llmock.rate_limit(retry_after=0.1).fail(503, retry_after=0.1)
    if stream:
        llmock.disconnect(after_chunks=2).truncate(after_chunks=3)
    ended = play(stream, attempts=6)
    assert_whole(ended)
    assert ended.usage.requests == len(llmock.requests)
    llmock.assert_resilient()


def test_another_model_steps_in(llmock: LLMock) -> None:
    """One model is out and one has no key: `fallback` ends with the third, over the same socket."""
    llmock.fail(500, times=None, model="broken")
    llmock.fail(401, times=None, model="locked")

    async def main() -> Run:
        clients = [responses_client(model=model) for model in ("broken", "locked", "sound")]
        try:
            first, *others = clients
            return await run(BROKER, "sell shares", client=fallback(retrying(first, attempts=2, initial=0.06), *others))
        finally:
            for client in clients:
                await client.aclose()

    SOLD.clear()
    ended = asyncio.run(main())
    assert_whole(ended)
    assert [one.model for one in llmock.requests] == ["broken", "broken", "locked", "sound"] * 2
    assert ended.usage.requests == 8
    llmock.assert_resilient(strict=True)


def test_real_quotas(llmock: LLMock) -> None:
    """Requests per minute, refilled as time goes by: runs side by side wait as long as each is told, and all end."""
    llmock.limits(rpm=600)

    async def main() -> list[Run]:
        async with responses_client(model="m") as inner:
            client = retrying(inner, attempts=10)
            return await asyncio.gather(*(run(BROKER, f"sell {n} shares", client=client) for n in range(20)))

    SOLD.clear()
    for ended in asyncio.run(main()):
        assert isinstance(ended.outcome, Success)
    assert len(SOLD) == 20
    llmock.assert_resilient()

"""Clients that ask again or ask another, in virtual time and with functions for models."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

from fnagents import (
    Agent,
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    DeclarationError,
    Delta,
    Failure,
    Incomplete,
    Input,
    ItemDone,
    MalformedResponse,
    Message,
    ModelError,
    ModelRequest,
    ModelResponse,
    ModelTimedOut,
    NotFound,
    Outcome,
    RateLimited,
    Restarted,
    Sent,
    ServerFailed,
    Success,
    TextDelta,
    Unauthorized,
    Usage,
    explain,
    run,
)
from fnagents.models import Emit, ModelClient
from fnagents.resilience import Backoff, fallback, retrying
from fnagents.testing import Scripted, run_virtual, scripted

#: One of each that is worth another try, and of each that is not.
PASSING: list[ModelError] = [
    RateLimited("busy"),
    ServerFailed("oh"),
    ConnectionFailed("gone"),
    ModelTimedOut(9.0),
    MalformedResponse("what"),
]
LASTING: list[ModelError] = [
    BadRequest("no"),
    Unauthorized("who"),
    NotFound("where"),
    ContextTooLong("long"),
    Incomplete("max_output_tokens"),
]
#: Of what another client could cure, what another try could not.
ELSEWHERE: list[ModelError] = [
    Unauthorized("who"),
    NotFound("where"),
    ContextTooLong("long"),
    BadRequest("quota", 429),
    BadRequest("pay", 402),
]
ALONE = ModelRequest("a", 0, Sent(), Input((Message("user", "hi"),)))
CHAINED = evolve(ALONE, previous_response_id="resp_1")
CONVERSING = evolve(ALONE, conversation_id="conv_1")


def name(error: ModelError) -> str:
    return f"{type(error).__name__}-{getattr(error, 'status', '')}"


def asked(
    client: ModelClient, request: ModelRequest = ALONE
) -> tuple[Outcome[ModelResponse, ModelError], float, list[Delta]]:
    """What the client answers, the virtual seconds it took, and what it emitted."""
    seen: list[Delta] = []

    async def main() -> tuple[Outcome[ModelResponse, ModelError], float]:
        outcome = await client(request, seen.append)
        return outcome, asyncio.get_running_loop().time()

    return (*run_virtual(main()), seen)


def telling(deltas: Sequence[Delta], outcome: Outcome[ModelResponse, ModelError]) -> ModelClient:
    """A client that emits these and ends so."""

    async def client(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        for delta in deltas:
            emit(delta)
        return outcome

    return client


def in_turn(*clients: ModelClient) -> ModelClient:
    """A client that is another at each call."""
    left = iter(clients)

    async def client(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        return await next(left)(request, emit)

    return client


def again(client: ModelClient, **options: Any) -> ModelClient:
    """`retrying` without chance."""
    return retrying(client, **{"random": lambda: 0.0, **options})


# --- retrying ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", PASSING, ids=name)
def test_what_can_pass_is_tried_again(error: ModelError) -> None:
    """Every retryable error gets a second try, half a second later."""
    client = scripted(error, "Hello")
    outcome, seconds, seen = asked(again(client))
    assert outcome.unwrap().text == "Hello"
    assert seconds == 0.5
    assert seen == []
    client.assert_complete()


@pytest.mark.parametrize("error", LASTING, ids=name)
def test_what_cannot_pass_is_given_back(error: ModelError) -> None:
    """An error that another try cannot help is the outcome at once."""
    client = scripted(error)
    assert asked(again(client)) == (Failure(error), 0.0, [])


def test_the_lists_of_errors_are_whole() -> None:
    """Every model error is in one of the two lists, and says of itself in which."""
    assert {type(error) for error in PASSING + LASTING} == set(ModelError.__args__)
    assert [error.retryable for error in PASSING + LASTING] == [True] * 5 + [False] * 5


def test_the_waits_grow_up_to_the_longest() -> None:
    """Each wait is the one before times the multiplier, until the cap; the last error is given back."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    errors = [ServerFailed(str(number)) for number in range(6)]
    client = again(scripted(*errors), attempts=6, initial=1, multiplier=3, longest=10, sleep=sleep)
    assert asked(client) == (Failure(errors[-1]), 0.0, [])
    assert waits == [1, 3, 9, 10, 10]


def test_the_cap_comes_after_the_jitter() -> None:
    """Chance only lengthens a wait, and never over the cap."""
    backoff = Backoff(attempts=9, initial=4, multiplier=2, longest=9, jitter=0.5)
    assert [backoff.wait(tried, ServerFailed(""), 1.0) for tried in (1, 2, 3)] == [6, 9, 9]
    assert backoff.wait(1, RateLimited("", 8), 1.0) == 9


def test_the_servers_wait_comes_first() -> None:
    """Retry-After rules over the backoff, be it longer or shorter."""
    client = scripted(RateLimited("busy", 30), ServerFailed("busy", 503, 0.125), "Hello")
    assert asked(again(client))[1] == 30.125


def test_the_longest_wait_is_still_waited() -> None:
    """A server that asks for exactly the cap gets it."""
    assert asked(again(scripted(RateLimited("busy", 60), "Hello")))[1] == 60


@pytest.mark.parametrize("after", [0.0, -1.0, math.nan, None])
def test_a_wait_that_says_nothing_is_none(after: float | None) -> None:
    """A Retry-After in the past, or none: the backoff holds."""
    assert asked(again(scripted(RateLimited("busy", after), "Hello")))[1] == 0.5


@pytest.mark.parametrize("after", [60.5, 3600.0, math.inf])
def test_a_wait_beyond_the_longest_ends_the_tries(after: float) -> None:
    """A server is not asked before its time: the error comes back at once, for the caller to decide."""
    error = RateLimited("busy", after)
    assert asked(again(scripted(error))) == (Failure(error), 0.0, [])


def test_many_tries_and_large_numbers_do_not_overflow() -> None:
    """The wait of the two-thousandth try is the longest one."""
    assert Backoff(attempts=3000, multiplier=1e9, longest=7).wait(2000, ServerFailed(""), 1.0) == 7


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"attempts": 0}, "attempts counts the first try too"),
        ({"initial": -1}, "initial must be a finite number from 0, not -1"),
        ({"multiplier": 0.5}, "multiplier must be a finite number from 1"),
        ({"longest": math.inf}, "longest must be a finite number"),
        ({"jitter": math.nan}, "jitter must be a finite number"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any], problem: str) -> None:
    """Before any request is sent."""
    with pytest.raises(DeclarationError, match=problem):
        retrying(scripted(), **options)


def test_one_layer_retries() -> None:
    """Two layers would multiply their tries."""
    with pytest.raises(DeclarationError, match="retries already"):
        retrying(retrying(scripted()))


def test_a_bug_is_no_failure_of_the_world() -> None:
    """What a client raises goes through, and is not tried again."""
    client = scripted()
    with pytest.raises(AssertionError, match="add a reply"):
        asked(again(client))


def test_a_cancelled_wait_asks_no_more() -> None:
    """Who is cancelled between two tries is gone."""
    client = scripted(RateLimited("busy", 30), "Hello")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await again(client)(ALONE, lambda delta: None)

    run_virtual(main())
    assert len(client.requests) == 1


# --- what was shown, and what it cost ------------------------------------------------------------------


def test_what_was_shown_is_taken_back() -> None:
    """`Restarted` says why, and comes before the wait, only where something was shown since the last one."""
    cut, answer = ConnectionFailed("cut"), Success(ModelResponse((Message("assistant", "Hello"),)))
    client = in_turn(
        telling([TextDelta("Hel")], Failure(cut)),
        telling([], Failure(cut)),
        telling([TextDelta("He"), TextDelta("llo")], answer),
    )
    seen = asked(again(client))[2]
    assert seen == [TextDelta("Hel"), Restarted(explain(cut)), TextDelta("He"), TextDelta("llo")]


def test_nested_layers_take_back_once() -> None:
    """What the inner layer has taken back is not taken back by the outer one; what stands is."""
    cut = Failure(ConnectionFailed("cut"))
    silent = again(in_turn(telling([TextDelta("a")], cut), telling([], cut)), attempts=2)
    shown = telling([TextDelta("b")], cut)
    done = telling([ItemDone(Message("assistant", "c"))], Success(ModelResponse()))
    back = Restarted(explain(cut.failure()))
    seen = asked(fallback(silent, shown, done))[2]
    assert seen == [TextDelta("a"), back, TextDelta("b"), back, ItemDone(Message("assistant", "c"))]


def test_every_try_is_counted() -> None:
    """The answer's usage has a request for each try, and the tokens of those that told them."""
    arrived = ModelResponse(usage=Usage(1, 100, 10))
    client = scripted(
        MalformedResponse("what", arrived),
        MalformedResponse("what"),
        RateLimited("busy"),
        ModelResponse(usage=Usage(1, 100, 20)),
    )
    assert asked(again(client, attempts=4))[0].unwrap().usage == Usage(4, 200, 30)


@pytest.mark.parametrize("last", [Incomplete, MalformedResponse])
def test_a_failure_that_tells_its_usage_tells_all_of_it(last: type[Incomplete | MalformedResponse]) -> None:
    """The tries before a cut answer are in its usage."""
    error = last("cut", ModelResponse(usage=Usage(1, 100, 10)))
    outcome = asked(again(scripted(ServerFailed("oh"), error), attempts=2))[0]
    assert outcome.failure() == last("cut", ModelResponse(usage=Usage(2, 100, 10)))


def test_a_failure_without_usage_is_given_back_as_it_is() -> None:
    """Nothing is made up for an error that has no place for it."""
    error = Incomplete("cut")
    assert asked(again(scripted(ServerFailed("oh"), error)))[0] == Failure(error)


def test_layers_count_together() -> None:
    """The tries of an inner layer that gave up are in the answer's usage, though its error could not say so."""
    busy = again(scripted(RateLimited("busy"), RateLimited("busy")), attempts=2)
    other = fallback(scripted(ServerFailed("oh")), scripted(ServerFailed("oh")))
    assert asked(fallback(busy, other, scripted("Hello")))[0].unwrap().usage.requests == 5
    outer = again(fallback(scripted(ServerFailed("1"), "Hello"), scripted(ServerFailed("2"))))
    assert asked(outer)[0].unwrap().usage.requests == 3


# --- a conversation that the server holds --------------------------------------------------------------


@pytest.mark.parametrize("error", PASSING, ids=name)
@pytest.mark.parametrize("request_", [ALONE, CHAINED], ids=["alone", "chained"])
def test_what_the_server_cannot_hold_twice_is_sent_again(error: ModelError, request_: ModelRequest) -> None:
    """Without a conversation every try is safe: another response branches off the same one."""
    assert asked(again(scripted(error, "Hello")), request_)[0].unwrap().text == "Hello"
    assert asked(fallback(scripted(error), scripted("Hello")), request_)[0].unwrap().text == "Hello"


@pytest.mark.parametrize("error", [RateLimited("busy"), ServerFailed("oh"), ServerFailed("locked", 409)], ids=name)
def test_what_a_conversation_has_not_taken_in_is_sent_again(error: ModelError) -> None:
    """The server said itself that it refused or failed, so the response is not in the conversation."""
    assert asked(again(scripted(error, "Hello")), CONVERSING)[0].unwrap().text == "Hello"
    assert asked(fallback(scripted(error), scripted("Hello")), CONVERSING)[0].unwrap().text == "Hello"


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailed("gone"),
        ModelTimedOut(9.0),
        MalformedResponse("what"),
        ServerFailed("gateway", 502),
        ServerFailed("gateway", 504),
    ],
    ids=name,
)
def test_what_a_conversation_may_have_taken_in_is_not(error: ModelError) -> None:
    """An answer lost on the way may be in the conversation: to send it again would put it there twice."""
    assert asked(again(scripted(error)), CONVERSING)[0] == Failure(error)
    assert asked(fallback(scripted(error), scripted()), CONVERSING)[0] == Failure(error)


# --- fallback ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", PASSING + ELSEWHERE, ids=name)
def test_what_another_could_cure_goes_to_the_next(error: ModelError) -> None:
    """At once, and with the same request."""
    first, second = scripted(error), scripted("Hello")
    outcome, seconds, _ = asked(fallback(first, second))
    assert outcome.unwrap().text == "Hello"
    assert seconds == 0.0
    assert first.requests == second.requests == [ALONE]


@pytest.mark.parametrize("error", [BadRequest("no"), BadRequest("redirect", 307), Incomplete("cut")], ids=name)
def test_what_is_wrong_everywhere_is_given_back(error: ModelError) -> None:
    """A wrong request is not hidden behind the next client, and a cut answer is an answer."""
    assert asked(fallback(scripted(error), scripted()))[0] == Failure(error)


def test_the_last_error_is_given_back() -> None:
    """When no client is left."""
    assert asked(fallback(scripted(RateLimited("1")), scripted(NotFound("2"))))[0] == Failure(NotFound("2"))


def test_each_call_begins_with_the_first() -> None:
    """Nothing is remembered from call to call."""
    first, second = scripted(ServerFailed("oh"), "Hello"), scripted("Hi")
    client = fallback(first, second)
    assert [asked(client)[0].unwrap().text for _ in range(2)] == ["Hi", "Hello"]


def test_fallback_needs_a_client() -> None:
    """Of nothing nothing can be asked."""
    with pytest.raises(DeclarationError, match="needs a client"):
        fallback()


# --- a run over all of it ------------------------------------------------------------------------------


def test_a_run_knows_what_its_tries_cost() -> None:
    """The layers are clients like any other: a run goes through them and counts every request."""
    first: Scripted = scripted(ServerFailed("oh"), Unauthorized("expired"))
    client = fallback(again(first), scripted("Hello"))
    ended = run_virtual(run(Agent("a"), "hi", client=client))
    assert ended.outcome == Success("Hello")
    assert ended.usage.requests == 3

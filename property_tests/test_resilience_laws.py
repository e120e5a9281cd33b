"""The laws of trying again, in virtual time: how often, how long, and what is left of it.

*tries are exact*: the model is asked until it answers, until an error that cannot pass, until the server wants more
than the longest wait, or until the tries are used up, whichever comes first, and never once more.
*waits are bounded*: all of them together last at most the cap times the tries between them.
*a server is heard*: no try comes before its Retry-After, within the cap.
*nothing is lost*: usage counts every try, however the layers are nested; deltas of failed tries are taken back.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen
from hypothesis import Phase, event, find, given, settings
from hypothesis import strategies as st

from fnagents import (
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    Delta,
    Failure,
    Incomplete,
    Input,
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
)
from fnagents.models import Emit, ModelClient
from fnagents.resilience import fallback, retrying
from fnagents.testing import run_virtual

REQUEST = ModelRequest("a", 0, Sent(), Input((Message("user", "hi"),)))
SECONDS = st.floats(0, 100, allow_subnormal=False)
AFTER = st.none() | SECONDS | st.sampled_from([0.0, 1e9, math.inf, math.nan, -1.0])

responses = st.builds(ModelResponse, usage=st.builds(Usage, st.integers(0, 3), st.integers(0, 99), st.integers(0, 99)))
passing: st.SearchStrategy[ModelError] = st.one_of(
    st.builds(RateLimited, st.just("busy"), AFTER),
    st.builds(ServerFailed, st.just("oh"), st.sampled_from([408, 409, 500, 502, 503, 504, 529]), AFTER),
    st.builds(MalformedResponse, st.just("what"), st.none() | responses),
    st.sampled_from([ConnectionFailed("gone"), ModelTimedOut(1.0)]),
)
lasting: st.SearchStrategy[ModelError] = st.one_of(
    st.builds(Incomplete, st.just("cut"), st.none() | responses),
    st.sampled_from(
        [BadRequest("no"), BadRequest("pay", 429), Unauthorized("who"), NotFound("?"), ContextTooLong("!")]
    ),
)
#: Mostly what can pass: only that leads on.
KINDS = (passing, passing, passing, lasting)
outcomes: st.SearchStrategy[Outcome[ModelResponse, ModelError]] = st.one_of(
    *(st.builds(Failure, kind) for kind in KINDS), st.builds(Success, responses)
)


@frozen
class Try:
    """What one try emits, how it ends, and how many seconds it takes."""

    shows: bool
    outcome: Outcome[ModelResponse, ModelError]
    lasts: float


tries = st.builds(Try, st.booleans(), outcomes, st.sampled_from([0.0, 0.5]))
policies = st.fixed_dictionaries(
    {
        "attempts": st.integers(1, 7),
        "initial": SECONDS,
        "multiplier": st.floats(1, 1e6),
        "longest": SECONDS,
        "jitter": st.floats(0, 2),
    }
)


class Server:
    """A model that goes through the tries, and knows when each began and ended."""

    def __init__(self, script: list[Try]) -> None:
        self.script = script
        self.times: list[tuple[float, float]] = []

    async def __call__(self, request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        begun, one = asyncio.get_running_loop().time(), self.script[len(self.times)]
        if one.shows:
            emit(TextDelta("half"))
        await asyncio.sleep(one.lasts)
        self.times.append((begun, asyncio.get_running_loop().time()))
        return one.outcome

    @property
    def made(self) -> list[Try]:
        """The tries that were made."""
        return self.script[: len(self.times)]

    @property
    def gaps(self) -> list[float]:
        """The seconds between the tries."""
        return [after[0] - before[1] for before, after in zip(self.times, self.times[1:])]


def play(client: ModelClient) -> tuple[Outcome[ModelResponse, ModelError], list[Delta]]:
    """What the client answers and emits, in virtual time."""
    seen: list[Delta] = []

    async def main() -> Outcome[ModelResponse, ModelError]:
        return await client(REQUEST, seen.append)

    return run_virtual(main()), seen


def after(one: Try) -> float:
    """The seconds that the server asked to wait, 0 if none."""
    asked = getattr(one.outcome.failure(), "retry_after", None) or 0.0
    return asked if asked > 0 else 0.0  # nor is NaN


def expected(script: list[Try], attempts: int, longest: float) -> int:
    """How many tries there have to be."""
    for number, one in enumerate(script, 1):
        if number == attempts or isinstance(one.outcome, Success):
            return number
        if not one.outcome.failure().retryable or after(one) > longest:
            return number
    raise AssertionError("the script is too short")


def reach(script: list[Try], policy: dict[str, Any]) -> str:
    """Which of the ends this example comes to, for the test that all are reached."""
    number = expected(script, policy["attempts"], policy["longest"])
    last = script[number - 1].outcome
    if isinstance(last, Success):
        return f"answered after {min(number, 3)}"
    if not last.failure().retryable:
        return f"refused after {min(number, 3)}"
    return "used up" if number == policy["attempts"] else "told to wait too long"


SCRIPTS = st.lists(tries, min_size=7, max_size=7)
ENDS = [
    "answered after 1",
    "answered after 3",
    "refused after 1",
    "refused after 3",
    "used up",
    "told to wait too long",
]


@given(SCRIPTS, policies, st.integers(0, 9))
def test_tries_and_waits(script: list[Try], policy: dict[str, Any], seed: int) -> None:
    """Tries are exact, waits are bounded, and a server is heard."""
    event(reach(script, policy))
    server = Server(script)
    outcome, _ = play(retrying(server, **policy, random=random.Random(seed).random))

    assert len(server.made) == expected(script, policy["attempts"], policy["longest"])
    assert type(outcome) is type(server.made[-1].outcome)
    slack = 1e-6  # the clock adds up floats
    assert sum(server.gaps) <= policy["longest"] * (len(server.made) - 1) + slack
    for one, gap in zip(server.made, server.gaps):
        assert after(one) - slack <= gap <= policy["longest"] + slack


@given(SCRIPTS, policies, st.integers(0, 9))
def test_without_chance_or_server_the_waits_grow(script: list[Try], policy: dict[str, Any], seed: int) -> None:
    """Where no server asks for a wait, each grows by the multiplier up to the cap, plus its jitter."""
    server = Server(script)
    play(retrying(server, **policy, random=random.Random(seed).random))
    for number, (one, gap) in enumerate(zip(server.made, server.gaps)):
        if not after(one):
            least = min(policy["longest"], policy["initial"] * policy["multiplier"] ** number)
            most = min(policy["longest"], least * (1 + policy["jitter"]))
            assert least - 1e-6 <= gap <= most + 1e-6


@pytest.mark.parametrize("end", ENDS)
def test_every_end_is_reached(end: str) -> None:
    """The examples come to each of the ends."""
    looking = settings(max_examples=2_000, phases=[Phase.generate])
    find(st.tuples(SCRIPTS, policies), lambda example: reach(*example) == end, settings=looking)


def spent(made: list[Try]) -> Usage:
    """What these tries have cost."""
    total = Usage()
    for one in made:
        match one.outcome:
            case Success(response):
                total += response.usage
            case Failure(error):
                total += getattr(error, "usage", None) or Usage(requests=1)
    return total


def told(outcome: Outcome[ModelResponse, ModelError]) -> Usage | None:
    """The usage that an outcome tells, if it can."""
    match outcome:
        case Success(response):
            return response.usage
        case Failure(error):
            return getattr(error, "usage", None)


NESTED: list[Callable[[ModelClient], ModelClient]] = [
    lambda server: retrying(server, attempts=3),
    lambda server: fallback(server, server, server),
    lambda server: fallback(retrying(server, attempts=2), retrying(server, attempts=2)),
    lambda server: retrying(fallback(server, server), attempts=3),
    lambda server: fallback(fallback(server, server), retrying(fallback(server, server), attempts=2)),
]


@pytest.mark.parametrize("nested", NESTED)
@given(script=SCRIPTS)
def test_nothing_is_lost(nested: Callable[[ModelClient], ModelClient], script: list[Try]) -> None:
    """Usage counts every try of every layer, and what was shown stands only if the last try showed it."""
    server = Server(script)
    outcome, seen = play(nested(server))
    counted = told(outcome)
    event(f"{len(server.made)} tries, {'told' if counted is not None else 'not told'}")
    assert counted in {None, spent(server.made)}

    shown = False
    for delta in seen:
        assert isinstance(delta, Restarted) == shown, "text follows text, or nothing was there to be taken back"
        shown = not isinstance(delta, Restarted)
    assert shown == server.made[-1].shows
    assert sum(isinstance(delta, TextDelta) for delta in seen) == sum(one.shows for one in server.made)


def test_layers_try_as_often_as_they_say() -> None:
    """Where all fails in passing, the tries of the layers are those of the arithmetic."""
    counts = []
    for nested in NESTED:
        server = Server([Try(False, Failure(ConnectionFailed("gone")), 0.0)] * 9)
        play(nested(server))
        counts.append(len(server.made))
    assert counts == [3, 3, 4, 6, 6]

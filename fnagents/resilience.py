"""Clients for servers that fail: `retrying` asks again, `fallback` asks another, `timed` gives up in time.

Both take clients and are one, so they compose: `fallback(retrying(first), retrying(second))`.  Neither raises for
what the world does, and only the last try's outcome leaves them: what a try before it has emitted is taken back
with `Restarted`.

    a try ended with                          retrying           fallback
    RateLimited, ServerFailed                 asks again         asks the next client
    ConnectionFailed, ModelTimedOut,          asks again (1)     asks the next client (1)
      MalformedResponse
    Unauthorized, NotFound, ContextTooLong    gives it back      asks the next client: another key, model, window
    BadRequest of status 402 or 429           gives it back      asks the next client: the quota is used up
    any other BadRequest                      gives it back      gives it back: it is wrong everywhere
    Incomplete                                gives it back      gives it back: an answer, as far as it was let go

(1) Not with a `conversation_id`.  A conversation takes in a response when the response is finished, so a request
that the server refused or failed can be sent anew, before or after its stream began; one whose answer was lost
on the way (so too 502 and 504, where a gateway lost the server) may have been finished, and would stand in the
conversation twice.  With a `previous_response_id` nothing is lost: another response branches off the same one.
"""

from __future__ import annotations

import asyncio
import math
import random as randomness
from collections.abc import Awaitable, Callable, Iterable
from itertools import repeat
from typing import TypeAlias

from attrs import define, evolve, frozen

from fnagents.errors import (
    BadRequest,
    ConnectionFailed,
    DeclarationError,
    Incomplete,
    MalformedResponse,
    ModelError,
    ModelTimedOut,
    RateLimited,
    ServerFailed,
)
from fnagents.models import Delta, Emit, ModelClient, ModelRequest, ModelResponse, Restarted, Usage
from fnagents.outcome import Failure, Outcome, Success
from fnagents.prose import explain

__all__ = ["Backoff", "Fallback", "Retrying", "Sleep", "fallback", "retrying", "timed"]

#: Waits so many seconds.
Sleep: TypeAlias = Callable[[float], Awaitable[object]]

#: Refused for want of money: another provider has another account.
_UNPAID = frozenset({402, 429})
#: A gateway's words: the server behind it may be done, or may yet be.
_LOST = frozenset({502, 504})


# --- again ---------------------------------------------------------------------------------------------


@frozen
class Backoff:
    """How often to try, and how long to wait between tries: `attempts` in all, times in seconds.

    The waits are `initial`, then each `multiplier` times the one before; the server's Retry-After comes first,
    whatever it says.  To each wait up to its `jitter`th part is added, so that clients refused together do not
    come back together; it is never taken away, for a server that is asked before its time refuses again.  After
    that no wait is over `longest`.

    >>> backoff = Backoff(attempts=4)
    >>> [backoff.wait(tried, ServerFailed("no"), chance=0.0) for tried in (1, 2, 3, 4)]
    [0.5, 1.0, 2.0, None]
    >>> backoff.wait(1, RateLimited("no", retry_after=7), chance=1.0)
    8.75
    """

    attempts: int = 3
    initial: float = 0.5
    multiplier: float = 2.0
    longest: float = 60.0
    jitter: float = 0.25

    def __attrs_post_init__(self) -> None:
        if self.attempts < 1:
            raise DeclarationError("attempts counts the first try too: give 1 or more")
        for name, least in (("initial", 0), ("multiplier", 1), ("longest", 0), ("jitter", 0)):
            number = getattr(self, name)
            if not (math.isfinite(number) and number >= least):
                raise DeclarationError(f"{name} must be a finite number from {least}, not {number!r}")

    def wait(self, tried: int, error: ModelError, chance: float) -> float | None:
        """The seconds to wait after `tried` tries, the last of which ended so; None for no further try.

        `chance` is from 0 to 1.  A server that asks for more than `longest` is not asked again: before its time
        it would only refuse, and the caller knows better what to do meanwhile.  A Retry-After of 0 (a date that
        has passed on this clock) names no wait.
        """
        asked = error.retry_after if isinstance(error, RateLimited | ServerFailed) else None
        asks = asked if asked is not None and asked > 0 else None
        if tried >= self.attempts or not error.retryable or (asks is not None and asks > self.longest):
            return None
        wait = self._backoff(tried) if asks is None else asks
        return min(wait * (1 + self.jitter * chance), self.longest)

    def _backoff(self, tried: int) -> float:
        # By steps and capped at each: a power overflows.
        wait = min(self.initial, self.longest)
        for _ in range(tried - 1):
            wait = min(wait * self.multiplier, self.longest)
        return wait


@frozen
class Retrying:
    """A client that asks its client again, as `backoff` says; see `retrying`."""

    client: ModelClient
    backoff: Backoff
    sleep: Sleep
    random: Callable[[], float]

    async def __call__(self, request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        """Ask until there is an answer, or no use in asking."""
        return _charged(*await self.tries(request, emit))

    async def tries(self, request: ModelRequest, emit: Emit) -> tuple[Outcome[ModelResponse, ModelError], Usage]:
        """The last try's outcome, and what those before it have cost."""

        def wait(tried: int, error: ModelError) -> float | None:
            return self.backoff.wait(tried, error, self.random()) if _repeatable(request, error) else None

        return await _tries(repeat(self.client), request, emit, wait, self.sleep)


def retrying(
    client: ModelClient,
    *,
    attempts: int = 3,
    initial: float = 0.5,
    multiplier: float = 2.0,
    longest: float = 60.0,
    jitter: float = 0.25,
    sleep: Sleep = asyncio.sleep,
    random: Callable[[], float] = randomness.random,
) -> Retrying:
    """The client, asked up to `attempts` times in all while its errors are `retryable`; the last is given back.

    Times are in seconds, and `Backoff` says what each means; `sleep` waits, `random` gives numbers from 0 to 1.
    A Retry-After is waited for in full, up to `longest`; beyond it the error is given back at once.  What is
    tried again, and when a conversation forbids it, stands at the top of this module.

    Every try counts in the answer's usage: one request each, and the tokens of those that told them.  A last
    failure that has no usage of its own, such as `RateLimited`, cannot tell of the tries before it.

    Raises `DeclarationError` for numbers that make no sense, and for a client that retries already: two layers
    multiply their tries, and the outer one would start where the inner one has just given up.

    >>> import asyncio
    >>> from fnagents import Agent, run_sync
    >>> from fnagents.testing import scripted
    >>> client = retrying(scripted(ServerFailed("oh"), "Hello!"), initial=0)
    >>> ended = run_sync(Agent("greeter"), "hi", client=client)
    >>> ended.outcome, ended.usage.requests
    (<Success: Hello!>, 2)
    """
    if isinstance(client, Retrying):
        raise DeclarationError("this client retries already: give retrying() the client inside, with all attempts")
    return Retrying(client, Backoff(attempts, initial, multiplier, longest, jitter), sleep, random)


# --- another -------------------------------------------------------------------------------------------


@frozen
class Fallback:
    """A client that asks its clients in turn; see `fallback`."""

    clients: tuple[ModelClient, ...]

    async def __call__(self, request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        """Ask until there is an answer, or no use in asking."""
        return _charged(*await self.tries(request, emit))

    async def tries(self, request: ModelRequest, emit: Emit) -> tuple[Outcome[ModelResponse, ModelError], Usage]:
        """The last try's outcome, and what those before it have cost."""

        def wait(tried: int, error: ModelError) -> float | None:
            on = tried < len(self.clients) and _curable(error) and _repeatable(request, error)
            return 0.0 if on else None

        return await _tries(self.clients, request, emit, wait, asyncio.sleep)


def fallback(*clients: ModelClient) -> Fallback:
    """A client that asks each in turn until one answers; the last error is given back.

    The next one is asked at once, and only after a failure that another key, model or server could cure: the
    table stands at the top of this module.  Every client sees the same request, so give each its own model
    (`responses_client(model=...)`) and leave `Agent.model` empty.  Usage counts as in `retrying`.

    Raises `DeclarationError` without a client.

    >>> from fnagents import Agent, Unauthorized, run_sync
    >>> from fnagents.testing import scripted
    >>> client = fallback(scripted(Unauthorized("no key")), scripted("Hello!"))
    >>> run_sync(Agent("greeter"), "hi", client=client).outcome
    <Success: Hello!>
    """
    if not clients:
        raise DeclarationError("fallback() needs a client")
    return Fallback(clients)


def _curable(error: ModelError) -> bool:
    return not isinstance(error, BadRequest | Incomplete) or (isinstance(error, BadRequest) and error.status in _UNPAID)


def _repeatable(request: ModelRequest, error: ModelError) -> bool:
    """Whether to ask anew cannot put the same into the server's conversation twice."""
    lost = isinstance(error, ConnectionFailed | ModelTimedOut | MalformedResponse)
    gateway = isinstance(error, ServerFailed) and error.status in _LOST
    return request.conversation_id is None or not (lost or gateway)


# --- what both do --------------------------------------------------------------------------------------


@define
class _Watched:
    """Passes deltas on; `shown` tells whether any stands that no answer has made good."""

    emit: Emit
    shown: bool = False

    def __call__(self, delta: Delta) -> None:
        self.shown = not isinstance(delta, Restarted)
        self.emit(delta)


async def _tries(
    clients: Iterable[ModelClient],
    request: ModelRequest,
    emit: Emit,
    wait: Callable[[int, ModelError], float | None],
    sleep: Sleep,
) -> tuple[Outcome[ModelResponse, ModelError], Usage]:
    """Ask the clients in turn, as long as `wait(tries, error)` gives the seconds before the next."""
    watched, spent, tried, left = _Watched(emit), Usage(), 0, iter(clients)
    while True:
        outcome, before = await _once(next(left), request, watched)
        spent, tried = spent + before, tried + 1
        if isinstance(outcome, Success):
            return outcome, spent
        error = outcome.failure()
        seconds = wait(tried, error)
        if seconds is None:
            return outcome, spent
        spent += getattr(error, "usage", None) or Usage(requests=1)
        if watched.shown:
            watched(Restarted(explain(error)))
        await sleep(seconds)


async def _once(
    client: ModelClient, request: ModelRequest, emit: Emit
) -> tuple[Outcome[ModelResponse, ModelError], Usage]:
    # Most errors cannot carry what was spent, so a layer inside tells it here.
    if isinstance(client, Retrying | Fallback):
        return await client.tries(request, emit)
    return await client(request, emit), Usage()


def _charged(outcome: Outcome[ModelResponse, ModelError], spent: Usage) -> Outcome[ModelResponse, ModelError]:
    if isinstance(outcome, Success):
        response = outcome.unwrap()
        return Success(evolve(response, usage=response.usage + spent))
    error = outcome.failure()
    if isinstance(error, Incomplete | MalformedResponse) and error.arrived is not None:
        return Failure(evolve(error, arrived=evolve(error.arrived, usage=error.arrived.usage + spent)))
    return outcome


# --- in time -------------------------------------------------------------------------------------------


def timed(client: ModelClient) -> ModelClient:
    """The client, given up after `settings.timeout` seconds of the request: `Failure(ModelTimedOut)`.

    For clients made of functions; the HTTP clients keep that limit themselves.  Inside `retrying` it limits a try.
    """

    async def within(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        limit = request.settings.timeout
        timer = asyncio.timeout(limit)
        try:
            async with timer:
                return await client(request, emit)
        except TimeoutError:
            if limit is None or not timer.expired():
                raise
            return Failure(ModelTimedOut(limit))

    return within

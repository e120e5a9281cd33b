"""HTTP for model clients: a connection pool for each event loop, one exchange, every failure a value.

An `httpx.AsyncClient` belongs to the loop that it was first used in, while a model client is made once and used
from whatever loop runs (`run_sync` twice is two loops).  So `Pools` keeps one for each running loop.  Each is
held by an async generator: a loop that is shut down as `asyncio.run` does it finishes its generators first, and
with that the connections are closed before the loop is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from attrs import evolve, field, frozen

from fnagents.errors import BadRequest, ConnectionFailed, MalformedResponse, ModelError, ModelTimedOut
from fnagents.jsontext import read_json
from fnagents.models import Delta, Emit, ModelResponse
from fnagents.outcome import Failure, Outcome, Success
from fnagents.wire.hiding import NOTHING, Hidden
from fnagents.wire.problems import error_in, model_error, retry_after

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx

__all__ = ["Call", "Dialect", "LARGEST", "Pools", "exchange"]

#: The most bytes of one answer that are read.
LARGEST = 256 * 1024 * 1024
#: The most bytes of an error's body that are read.
_LARGEST_ERROR = 1024 * 1024
_SNIPPET = 200
#: The most characters of a connection's error, and of an address in one.
_LONGEST = 1_000
#: Seconds to wait for the end of a stream whose response is whole, so that its connection can be used again.
_GRACE = 0.5

S = TypeVar("S")


@frozen
class Dialect(Generic[S]):
    """How answers of an API are read: a whole body, and a stream as a fold from `begin` over its chunks.

    `read` and `begin` are told what no failure may repeat; only they see a text before it is cut.
    """

    read: Callable[[bytes, Hidden], Outcome[ModelResponse, ModelError]]
    begin: Callable[[Hidden], S]
    arrive: Callable[[S, bytes], tuple[S, list[Delta]]]
    over: Callable[[S], bool]
    arrived: Callable[[S], Outcome[ModelResponse, ModelError]]


@frozen
class Call:
    """One request: where to, with what, and how many seconds it may take (None for any number)."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    seconds: float | None
    stream: bool
    #: what must not show in any error
    hidden: Hidden = NOTHING


class Pools:
    """The HTTP client of each running event loop; a `given` one serves all and is never closed here."""

    def __init__(self, make: Callable[[], httpx.AsyncClient], given: httpx.AsyncClient | None = None) -> None:
        self._make = make
        self._given = given
        self._held: dict[
            asyncio.AbstractEventLoop, tuple[AsyncGenerator[httpx.AsyncClient, None], httpx.AsyncClient]
        ] = {}

    async def client(self) -> httpx.AsyncClient:
        """The client of the running loop, made when first asked for."""
        if self._given is not None:
            return self._given
        for loop in list(self._held):
            if loop.is_closed():
                del self._held[loop]
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            lease = self._lease(loop)
            held = self._held[loop] = (lease, await anext(lease))
        return held[1]

    async def _lease(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[httpx.AsyncClient, None]:
        async with self._make() as client:
            try:
                yield client
            finally:
                self._held.pop(loop, None)

    async def aclose(self) -> None:
        """Close the connections of the running loop; those of other loops are closed when they end."""
        held = self._held.get(asyncio.get_running_loop())
        if held is not None:
            await held[0].aclose()


async def exchange(
    pools: Pools, call: Call, dialect: Dialect[S], emit: Emit, now: Callable[[], float]
) -> Outcome[ModelResponse, ModelError]:
    """Send the request and read its answer; everything that the world does wrong is a `Failure`.

    No second try, no redirect followed (the key would go with it).  A cancelled exchange closes its connection.
    """
    import httpx

    limit = asyncio.timeout(call.seconds)
    try:
        async with limit:
            client = await pools.client()
            posting = client.stream(
                "POST", call.url, content=call.body, headers=dict(call.headers), timeout=None, follow_redirects=False
            )
            async with posting as response:
                outcome = await _outcome(response, call, dialect, emit, limit, now)
    except TimeoutError:
        if not limit.expired():
            raise
        return Failure(ModelTimedOut(call.seconds or 0.0))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        host = httpx.URL(call.url).host
        said = call.hidden.short(f"{type(error).__name__}: {error}", _LONGEST).removesuffix(": ")
        outcome = Failure(ConnectionFailed(f"{host}: {said}"))
    return _clean(outcome, call.hidden)


def _clean(outcome: Outcome[ModelResponse, ModelError], hidden: Hidden) -> Outcome[ModelResponse, ModelError]:
    # Servers and proxies repeat the key that they refuse.  Whatever cuts a text hides it first; this is for the rest.
    if isinstance(outcome, Success):
        return outcome
    worded: Any = outcome.failure()
    texts = {name: getattr(worded, name, None) for name in ("message", "reason")}
    changes = {name: hidden.text(text) for name, text in texts.items() if isinstance(text, str)}
    clean: ModelError = evolve(worded, **changes)
    return Failure(clean)


async def _outcome(
    response: httpx.Response,
    call: Call,
    dialect: Dialect[S],
    emit: Emit,
    limit: asyncio.Timeout,
    now: Callable[[], float],
) -> Outcome[ModelResponse, ModelError]:
    kind, packed = response.headers.get("content-type", ""), _packed(response, call.hidden)
    # httpx promises an iterator only; it is a generator, which has to be closed in its own loop.
    async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_bytes())) as chunks:
        if not response.is_success:
            return Failure(await _refusal(response, chunks, packed, call.hidden, now))
        if packed:
            return Failure(MalformedResponse(packed))
        if "event-stream" in kind or (call.stream and "json" not in kind and "html" not in kind):
            return await _streamed(chunks, dialect, call.hidden, emit, limit)
        body = await _whole(chunks, LARGEST)
        if len(body) > LARGEST:
            return Failure(MalformedResponse(f"the answer has more than {LARGEST} bytes"))
        return dialect.read(body, call.hidden)


def _packed(response: httpx.Response, hidden: Hidden) -> str:
    # What is wrong with the answer's encoding; "" for nothing.  To unpack it, as httpx would on the way, could make
    # gigabytes of a kilobyte, in one step that no limit interrupts.  It was not asked for: see `accept-encoding`.
    codings: list[str] = response.headers.get_list("content-encoding", split_commas=True)
    if all(coding.strip().lower() in {"", "identity"} for coding in codings):
        return ""
    return f"its body came in the content-encoding {hidden.short(', '.join(codings), _SNIPPET)!r}, which is not read"


async def _whole(chunks: AsyncIterator[bytes], most: int) -> bytes:
    # At most one chunk more than `most` bytes.
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > most:
            break
    return bytes(body)


async def _refusal(
    response: httpx.Response, chunks: AsyncIterator[bytes], packed: str, hidden: Hidden, now: Callable[[], float]
) -> ModelError:
    status, wait = response.status_code, retry_after(response.headers, now)
    if response.is_redirect:
        where = hidden.short(response.headers.get("location", ""), _LONGEST)
        return BadRequest(f"the server redirects to {where!r}; give that as base_url", status)
    if packed:
        return model_error(packed, status, wait)
    text = (await _whole(chunks, _LARGEST_ERROR)).decode("utf-8", "replace")
    match read_json(text):
        case Success(value) if (error := error_in(value)) is not None:
            return model_error(error, status, wait, hidden)
        case _:
            return model_error(hidden.short(text, _SNIPPET) or response.reason_phrase, status, wait, hidden)


async def _streamed(
    chunks: AsyncIterator[bytes], dialect: Dialect[S], hidden: Hidden, emit: Emit, limit: asyncio.Timeout
) -> Outcome[ModelResponse, ModelError]:
    state, size = dialect.begin(hidden), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > LARGEST:
            return Failure(MalformedResponse(f"the stream has more than {LARGEST} bytes"))
        state, deltas = dialect.arrive(state, chunk)
        for delta in deltas:
            emit(delta)
        if dialect.over(state):
            # The answer is there: from here on no limit can take it away.
            limit.reschedule(None)
            await _drain(chunks)
            break
    return dialect.arrived(state)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    import httpx

    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(_GRACE):
            async for _ in chunks:
                continue

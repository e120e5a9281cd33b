"""Model clients that speak over HTTP.  A client is a function of a request; these can be closed, too.

    >>> responses_client(api_key="a key", model="gpt-5.5")
    responses_client(base_url='https://api.openai.com/v1', model='gpt-5.5')

A key is read once, when the client is made.  No repr, no log line and no error has it, nor a header's value that was
given: where a server repeats one, the error says "[key]" (a word of fewer than 8 characters is no secret).  What the
server sends as the model's answer is kept as it came.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping
from functools import cache
from http.cookiejar import CookieJar
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from attrs import evolve, field, frozen
from typing_extensions import override

from fnagents.errors import BadRequest, DeclarationError, ModelError, Unauthorized
from fnagents.http import Call, Dialect, Pools, exchange
from fnagents.models import Emit, ModelRequest, ModelResponse
from fnagents.outcome import Failure, Outcome
from fnagents.wire.deltas import Arriving, arrive, arrived
from fnagents.wire.options import check_seconds, check_text, hidden_in, read_headers, sendable
from fnagents.wire.responses import encode_request, read_response

if TYPE_CHECKING:
    import httpx

__all__ = ["DEFAULT_MODEL", "Encode", "HttpClient", "Target", "responses_client", "target"]

S = TypeVar("S")

_OPENAI = "https://api.openai.com/v1"
#: What `responses_client` asks for where neither it, nor the agent, nor the environment names a model.
DEFAULT_MODEL = "gpt-5-mini"
_RESPONSES = Dialect(read_response, lambda hidden: Arriving(hidden=hidden), arrive, lambda state: state.over, arrived)


class Encode(Protocol):
    """How a request is written: its body, with the model's name where the request names none."""

    def __call__(self, request: ModelRequest, *, model_default: str, stream: bool) -> bytes:
        """The body in UTF-8.  Raises `DeclarationError` for a request that has no such form."""
        ...


@frozen
class Target:
    """Where a client's requests go, and what they say of who asks.

    `call` is the request without its body; `problem` what every call fails with, for want of a key.
    """

    name: str
    base_url: str
    model: str
    call: Call
    problem: ModelError | None = None


@frozen(eq=False, repr=False)
class HttpClient(Generic[S]):
    """A model client, a context manager too: leaving it, or `aclose`, closes its connections.

    Not to close it is no leak either: its connections are closed when their event loop ends.
    One client serves any number of calls at once, and one event loop after the other.
    """

    target: Target
    encode: Encode
    dialect: Dialect[S]
    pools: Pools
    now: Callable[[], float] = field(default=time.time)

    async def __call__(self, request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        """Ask the model once."""
        if self.target.problem is not None:
            return Failure(self.target.problem)
        call = self.target.call
        try:
            body = self.encode(request, model_default=self.target.model, stream=call.stream)
        except DeclarationError as error:
            return Failure(BadRequest(f"it was not sent: {error}"))
        limit = request.settings.timeout
        seconds = call.seconds if limit is None else limit
        return await exchange(self.pools, evolve(call, body=body, seconds=seconds), self.dialect, emit, self.now)

    def __repr__(self) -> str:
        return f"{self.target.name}(base_url={self.target.base_url!r}, model={self.target.model!r})"

    async def aclose(self) -> None:
        """Close the connections."""
        await self.pools.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class _NoCookies(CookieJar):
    # What a server sets in one run would come back to it in every other.  A policy that refuses all would do, too, but
    # only after the standard library has read the cookie, and it warns of some.

    @override
    def extract_cookies(self, response: object, request: object) -> None:
        pass


def _address(base: str, path: str) -> str:
    import httpx

    try:
        url = httpx.URL(base)
    except httpx.InvalidURL as error:
        raise DeclarationError(f"base_url is no address: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo:
        raise DeclarationError("base_url must be http:// or https://, with a host and without a password")
    return str(url.copy_with(path=url.path.rstrip("/") + path))


def target(
    name: str,
    path: str,
    *,
    model: str,
    base_url: str | None,
    api_key: str | None,
    stream: bool,
    timeout: float | None,
    headers: Mapping[str, str] | None,
    named: Mapping[str, str | None],
) -> Target:
    """The target of a client named `name`: arguments first, the environment where they are None.

    `headers` are the user's, `named` those that have options of their own (None for none).

    Raises `DeclarationError` for an address that cannot work or has a password in it, which would be logged, and
    for a value that is of no use where it stands.
    """
    check_text("model", model)
    check_seconds("timeout", timeout)
    more = {key: value for key, value in named.items() if value is not None}
    given = {**read_headers(more), **read_headers(headers if headers is not None else {})}
    base = (os.environ.get("OPENAI_BASE_URL", "").strip() or _OPENAI) if base_url is None else base_url
    check_text("base_url", base)
    key = os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key
    check_text("api_key", key)
    key, problem = key.strip(), None
    if not key:
        problem = Unauthorized("no key: set OPENAI_API_KEY or pass api_key=")
    elif not sendable(key):
        problem = Unauthorized("the key has characters that cannot stand in a header")
    # Packed answers are refused (see http.py), so none is asked for.
    ours = {"authorization": f"Bearer {key}", "content-type": "application/json", "accept-encoding": "identity"}
    call = Call(_address(base, path), {**ours, **given}, b"", timeout, stream, hidden_in(key, given))
    return Target(name, base, model, call, problem)


def _pools(url: str, given: object) -> Pools:
    import httpx

    @cache
    def context() -> ssl.SSLContext:
        # To load the certificates takes long, so once for all loops, and not at all where they are not needed:
        # no redirect is followed from http to https.  The bare context trusts nobody.
        secure = url.startswith("https:")
        return httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    if given is not None and not isinstance(given, httpx.AsyncClient):
        raise DeclarationError(f"http_client is a {type(given).__name__}, not an httpx.AsyncClient")
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    return Pools(lambda: httpx.AsyncClient(verify=context(), limits=limits, cookies=_NoCookies()), given)


def responses_client(
    *,
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    stream: bool = False,
    timeout: float | None = 600.0,
    headers: Mapping[str, str] | None = None,
    organization: str | None = None,
    project: str | None = None,
    http_client: httpx.AsyncClient | None = None,
    now: Callable[[], float] = time.time,
) -> HttpClient[Arriving]:
    """A client of the OpenAI Responses API and of servers that speak it.

    `model` is for requests that name none: by default `OPENAI_DEFAULT_MODEL` of the environment, else
    `DEFAULT_MODEL`; a program should name the model that it was tried with.  `base_url` and `api_key` are by
    default `OPENAI_BASE_URL` and `OPENAI_API_KEY` of the environment; without a key every call is
    `Failure(Unauthorized)`.  With `stream`, deltas are emitted while the model writes.  `timeout` counts the seconds
    of one whole call, connecting and streaming included (None for no limit); `ModelSettings.timeout` comes first.
    `headers` are sent beside its own; an answer that is packed all the same (with a content-encoding) is refused.
    `http_client` is used as it is, for its proxies and certificates, and never closed; its own time-outs do not
    apply.  `now` gives the seconds since 1970, for Retry-After dates.  Raises `DeclarationError` for what cannot work.

    No call is tried again here: that is `retrying`'s.
    """
    if not callable(now):
        raise DeclarationError(f"now is a {type(now).__name__}, not a function")
    where = target(
        "responses_client",
        "/responses",
        model=os.environ.get("OPENAI_DEFAULT_MODEL", DEFAULT_MODEL) if model is None else model,
        base_url=base_url,
        api_key=api_key,
        stream=stream,
        timeout=timeout,
        headers=headers,
        named={"openai-organization": organization, "openai-project": project},
    )
    return HttpClient(where, encode_request, _RESPONSES, _pools(where.call.url, http_client), now)

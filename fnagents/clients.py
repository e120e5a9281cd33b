"""Model clients that speak over HTTP.  A client is a function of a request; these can be closed, too.

    >>> responses_client(api_key="a key", model="gpt-5.5")
    responses_client(base_url='https://api.openai.com/v1', model='gpt-5.5')

A key is read once, when the client is made, and stands in no run, no repr, no error and no log line.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from attrs import evolve, field, frozen

from fnagents.errors import BadRequest, DeclarationError, ModelError, Unauthorized
from fnagents.http import Call, Dialect, Pools, exchange
from fnagents.models import Emit, ModelRequest, ModelResponse
from fnagents.outcome import Failure, Outcome
from fnagents.wire.deltas import Arriving, arrive, arrived
from fnagents.wire.responses import encode_request, read_response

if TYPE_CHECKING:
    import httpx

__all__ = ["DEFAULT_MODEL", "Encode", "HttpClient", "Target", "responses_client", "target"]

S = TypeVar("S")

_OPENAI = "https://api.openai.com/v1"
#: What `responses_client` asks for where neither it, nor the agent, nor the environment names a model.
DEFAULT_MODEL = "gpt-5-mini"
_RESPONSES = Dialect(read_response, Arriving(), arrive, lambda state: state.over, arrived)


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


def _sendable(text: str) -> bool:
    return text.isascii() and text.isprintable()


def target(
    name: str,
    path: str,
    *,
    model: str,
    base_url: str | None,
    api_key: str | None,
    stream: bool,
    timeout: float | None,
    headers: Mapping[str, str],
) -> Target:
    """The target of a client named `name`: arguments first, the environment where they are None.

    Raises `DeclarationError` for an address that cannot work or has a password in it, which would be logged.
    """
    import httpx

    base = (os.environ.get("OPENAI_BASE_URL", "").strip() or _OPENAI) if base_url is None else base_url
    try:
        url = httpx.URL(base)
    except httpx.InvalidURL as error:
        raise DeclarationError(f"base_url is no address: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo:
        raise DeclarationError("base_url must be http:// or https://, with a host and without a password")
    whole = url.copy_with(path=url.path.rstrip("/") + path)
    key = (os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key).strip()
    problem = None
    if not key:
        problem = Unauthorized("no key: set OPENAI_API_KEY or pass api_key=")
    elif not _sendable(key):
        problem = Unauthorized("the key has characters that cannot stand in a header")
    if bad := sorted(name for name, value in headers.items() if not _sendable(name + value)):
        raise DeclarationError(f"the header {bad[0]!r} has characters that cannot be sent")
    sent = {"authorization": f"Bearer {key}", "content-type": "application/json", **headers}
    return Target(name, base, model, Call(str(whole), sent, b"", timeout, stream, key), problem)


def _pools(url: str, http_client: httpx.AsyncClient | None) -> Pools:
    import httpx

    @cache
    def context() -> ssl.SSLContext:
        # To load the certificates takes long, so once for all loops, and not at all where they are not needed:
        # no redirect is followed from http to https.  The bare context trusts nobody.
        secure = url.startswith("https:")
        return httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    return Pools(lambda: httpx.AsyncClient(verify=context(), limits=limits), http_client)


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
    `headers` are sent beside its own.  `http_client` is used as it is, for its proxies and certificates, and never
    closed; its own time-outs do not apply.  `now` gives the seconds since 1970, for Retry-After dates.

    No call is tried again here: that is `retrying`'s.
    """
    more = {"openai-organization": organization, "openai-project": project}
    named = {name: value for name, value in more.items() if value is not None}
    where = target(
        "responses_client",
        "/responses",
        model=os.environ.get("OPENAI_DEFAULT_MODEL", DEFAULT_MODEL) if model is None else model,
        base_url=base_url,
        api_key=api_key,
        stream=stream,
        timeout=timeout,
        headers={**named, **{name.lower(): value for name, value in (headers or {}).items()}},
    )
    return HttpClient(where, encode_request, _RESPONSES, _pools(where.call.url, http_client), now)

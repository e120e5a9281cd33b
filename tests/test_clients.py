"""The Responses client over a real connection, to a server on loopback that keeps to a script."""

import asyncio
import email.utils
import gc
import gzip
import json
import time
import tracemalloc
from typing import Any

import httpx
import pytest
from attrs import evolve
from model_server import Answer, completed, cut, events, message, refused, serve, stalled, stream, whole

from fnagents import http as fnagents_http
from fnagents.clients import responses_client
from fnagents.errors import (
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    DeclarationError,
    Incomplete,
    MalformedResponse,
    ModelTimedOut,
    NotFound,
    RateLimited,
    ServerFailed,
    Unauthorized,
)
from fnagents.http import Pools
from fnagents.items import Message
from fnagents.models import Delta, ItemDone, ModelRequest, ModelSettings, Sent, TextDelta
from fnagents.outcome import Failure, Success
from fnagents.runs import Input
from fnagents.wire.problems import retry_after
from fnagents.wire.responses import read_response, write_request

KEY = "a-key-for-tests-only"
HELLO = completed(message("Hello"))
DELTAS = [{"type": "response.output_text.delta", "output_index": 0, "delta": text} for text in ("Hel", "lo")]


def request(**settings: Any) -> Any:
    """A request of one message."""
    return ModelRequest("a", 0, Sent(settings=ModelSettings(**settings)), Input((Message("user", "hé"),)))


def ask(*script: Any, times: Any = None, settings: Any = None, **options: Any) -> Any:
    """The outcomes of asking the script's server, one call after the other; the deltas; the server."""

    async def main() -> Any:
        seen: list[Delta] = []
        async with (
            serve(script) as server,
            responses_client(**{"api_key": KEY, "base_url": server.url} | options) as client,
        ):
            asked = request(**(settings or {}))
            outcomes = [await client(asked, seen.append) for _ in range(times or len(script))]
        return outcomes, seen, server

    return asyncio.run(main())


def outcome_of(*script: Any, **options: Any) -> Any:
    """What the one call came to."""
    return ask(*script, times=1, **options)[0][0]


# --- what is sent, what comes back -----------------------------------------------------------------------


def test_a_whole_answer() -> None:
    """The request goes to /responses with the key, and its answer is the response; nothing is emitted."""
    (outcome,), seen, server = ask(whole(HELLO), model="m")
    assert outcome == read_response(HELLO)
    assert not seen
    (received,) = server.requests
    assert (received.method, received.path) == ("POST", "/v1/responses")
    assert received.json == write_request(request(), model_default="m")
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.headers["content-type"] == "application/json"


@pytest.mark.parametrize("size", [1, 7, 0])
def test_a_streamed_answer(size: Any) -> None:
    """In chunks of any size, deltas are emitted on the way, and the response is the same as a whole one."""
    (outcome,), seen, server = ask(stream(events(HELLO, *DELTAS), size), stream=True)
    assert outcome == read_response(HELLO)
    assert [delta for delta in seen if isinstance(delta, TextDelta)] == [TextDelta("Hel"), TextDelta("lo")]
    assert [type(delta) for delta in seen] == [ItemDone, TextDelta, TextDelta]
    assert server.requests[0].json["stream"] is True


def test_the_answer_says_how_it_comes() -> None:
    """A server that does not stream when asked to, or does when it was not, is understood."""
    assert outcome_of(whole(HELLO), stream=True) == read_response(HELLO)
    assert outcome_of(stream(events(HELLO))) == read_response(HELLO)
    unnamed = Answer(chunks=(events(HELLO),))
    assert outcome_of(unnamed, stream=True) == read_response(HELLO)


def test_headers_of_ones_own() -> None:
    """Organisation, project and further headers are sent; a header of the same name replaces ours."""
    options = {"organization": "org", "project": "proj", "headers": {"X-Mine": "1", "Authorization": "Basic eA=="}}
    _, _, server = ask(whole(HELLO), **options)
    headers = server.requests[0].headers
    assert (headers["openai-organization"], headers["openai-project"], headers["x-mine"]) == ("org", "proj", "1")
    assert headers["authorization"] == "Basic eA=="


def test_certificates_are_loaded_for_https_alone() -> None:
    """A client of an https address verifies its server; the first call makes its connections."""

    async def main() -> Any:
        async with responses_client(api_key=KEY, base_url="https://127.0.0.1:1/v1", timeout=5.0) as client:
            return await client(request(), print)

    error = asyncio.run(main()).failure()
    assert isinstance(error, ConnectionFailed)


def test_an_address_keeps_its_query() -> None:
    """A base_url may have a query, and a slash at its end."""

    async def main() -> Any:
        async with serve([whole(HELLO)]) as server:
            async with responses_client(api_key=KEY, base_url=f"{server.url}/?api-version=1") as client:
                await client(request(), print)
            return server.requests[0].path

    assert asyncio.run(main()) == "/v1/responses?api-version=1"


def test_key_and_address_come_from_the_environment(monkeypatch: Any) -> None:
    """`OPENAI_API_KEY` and `OPENAI_BASE_URL` are read when the client is made; blanks around the key are none of it."""

    async def main() -> Any:
        async with serve([whole(HELLO)]) as server:
            monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            client = responses_client()
            monkeypatch.setenv("OPENAI_API_KEY", "another")
            async with client:
                assert isinstance(await client(request(), print), Success)
            return server.requests[0].headers["authorization"]

    assert asyncio.run(main()) == f"Bearer {KEY}"
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_DEFAULT_MODEL", raising=False)
    assert "model='gpt-5-mini'" in repr(responses_client())
    monkeypatch.setenv("OPENAI_DEFAULT_MODEL", "of-the-environment")
    assert "model='of-the-environment'" in repr(responses_client())
    assert repr(responses_client(model="m")) == "responses_client(base_url='https://api.openai.com/v1', model='m')"


# --- connections -----------------------------------------------------------------------------------------


def test_connections_are_used_again() -> None:
    """Whole answers, streams and refusals, one after the other, go over one connection."""
    script = [whole(HELLO), stream(events(HELLO), 5), refused(500), stream(events(HELLO)), whole(HELLO)]
    outcomes, _, server = ask(*script, stream=True)
    assert [received.connection for received in server.requests] == [0] * 5
    assert [type(outcome) for outcome in outcomes] == [Success, Success, Failure, Success, Success]


def test_calls_at_once_share_the_client() -> None:
    """Fifty calls side by side are answered, each with its own answer."""

    async def main() -> Any:
        script = [lambda received: whole(completed(message(received.json["input"][0]["content"])))] * 50
        async with serve(script) as server, responses_client(api_key=KEY, base_url=server.url) as client:
            asked = [ModelRequest("a", 0, Sent(), Input((Message("user", str(number)),))) for number in range(50)]
            outcomes = await asyncio.gather(*(client(one, print) for one in asked))
        return [outcome.unwrap().text for outcome in outcomes]

    assert asyncio.run(main()) == [str(number) for number in range(50)]


def test_one_client_in_one_loop_after_the_other() -> None:
    """A client that is never closed works in every new loop, and leaves no connection open (warnings are errors)."""
    client = None
    for _ in range(3):

        async def main() -> Any:
            nonlocal client
            async with serve([whole(HELLO), stream(events(HELLO))]) as server:
                client = responses_client(api_key=KEY, base_url=server.url)
                twin = responses_client(api_key=KEY, base_url=server.url)
                return await client(request(), print), await twin(request(), print)

        assert asyncio.run(main()) == (read_response(HELLO), read_response(HELLO))
        gc.collect()


def test_the_same_client_survives_its_loop() -> None:
    """The connections of a loop end with it; the next loop gets its own."""
    kept = []

    async def main(pools: Any) -> None:
        kept.append(await pools.client())
        assert await pools.client() is kept[-1]

    pools = Pools(httpx.AsyncClient)
    for _ in range(2):
        asyncio.run(main(pools))
    assert kept[0] is not kept[1]
    assert all(client.is_closed for client in kept)
    assert not pools._held


def test_a_loop_that_was_not_shut_down_is_forgotten() -> None:
    """A loop that was closed by hand leaves no trace once the client is used again."""

    pools, loop = Pools(httpx.AsyncClient), asyncio.new_event_loop()
    loop.run_until_complete(pools.client())
    loop.close()
    assert loop in pools._held
    asyncio.run(pools.client())
    assert loop not in pools._held


def test_a_closed_client_may_be_used_again() -> None:
    """Closing closes the connections, twice does no harm, and a new call opens a new one."""

    async def main() -> Any:
        async with serve([whole(HELLO), whole(HELLO)]) as server:
            client = responses_client(api_key=KEY, base_url=server.url)
            await client.aclose()
            for _ in range(2):
                await client(request(), print)
                await client.aclose()
            return [received.connection for received in server.requests]

    assert asyncio.run(main()) == [0, 1]


def test_no_cookie_is_kept() -> None:
    """What a server sets in one call does not come back to it in the next, and an absurd one is not even read."""
    for cookie in ("session=one; Path=/", f"session=one; max-age={'9' * 4000}"):
        outcomes, _, server = ask(whole(HELLO, 200, {"set-cookie": cookie}), whole(HELLO))
        assert outcomes == [read_response(HELLO)] * 2
        assert [received.connection for received in server.requests] == [0, 0]
        assert not any("cookie" in received.headers for received in server.requests)


def test_a_given_http_client_may_answer_by_itself() -> None:
    """A transport that holds its answers in memory, as caches and fakes do, is read like a connection."""

    async def main() -> Any:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json=HELLO))
        async with httpx.AsyncClient(transport=transport) as given:
            return await responses_client(api_key=KEY, base_url="http://model", http_client=given)(request(), print)

    assert asyncio.run(main()) == read_response(HELLO)


def test_a_given_http_client_is_used_and_left_open() -> None:
    """It sends the requests with what it was made with, its own time-outs do not apply, and it is not closed."""

    async def main() -> Any:
        async with (
            serve([Answer(200, {"content-type": "application/json"}, (b"{}",) * 0, "chunked"), stalled()]) as server,
            httpx.AsyncClient(headers={"x-theirs": "1"}, timeout=0.01, follow_redirects=True) as given,
        ):
            client = responses_client(api_key=KEY, base_url=server.url, http_client=given, timeout=0.2)
            async with client:
                first, second = await client(request(), print), await client(request(), print)
            assert not given.is_closed
            return first, second, server.requests[0].headers["x-theirs"]

    first, second, header = asyncio.run(main())
    assert isinstance(first.failure(), MalformedResponse)
    assert second == Failure(ModelTimedOut(0.2))
    assert header == "1"


# --- what goes wrong -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refused(400, message="bad"), BadRequest("bad")),
        (refused(400, code="context_length_exceeded", message="long"), ContextTooLong("long")),
        (refused(401, message="who"), Unauthorized("who")),
        (refused(403, message="no"), Unauthorized("no", 403)),
        (refused(404, message="what"), NotFound("what")),
        (refused(409, message="both"), ServerFailed("both", 409)),
        (refused(429, {"Retry-After": "3"}, message="slow"), RateLimited("slow", 3.0)),
        (refused(429, {"Retry-After": "3", "Retry-After-Ms": "250"}, message="slow"), RateLimited("slow", 0.25)),
        (refused(429, code="insufficient_quota", message="paid"), BadRequest("paid", 429)),
        (refused(500, message="oh"), ServerFailed("oh")),
        (refused(503, {"retry-after": "soon"}, message="oh"), ServerFailed("oh", 503)),
        (whole(b"<html>Bad gateway</html>", 502), ServerFailed("<html>Bad gateway</html>", 502)),
        (whole(b'{"ok": false}', 500), ServerFailed('{"ok": false}')),
        (whole(b"\xff\xfe", 500), ServerFailed("\ufffd\ufffd")),
        (whole(b"", 504), ServerFailed("Scripted", 504)),
    ],
)
def test_a_refusal_is_a_typed_error(answer: Any, error: Any) -> None:
    """Every status has its error, with the server's words and the seconds that it asks to wait."""
    assert outcome_of(answer) == Failure(error)
    assert outcome_of(answer, stream=True) == Failure(error)


def test_a_redirect_is_not_followed() -> None:
    """The key goes nowhere else, even with a client that would follow."""

    async def main() -> Any:
        async with serve([whole(HELLO)]) as elsewhere, serve([]) as server:
            away = Answer(307, {"location": f"{elsewhere.url}/responses"})
            server.script.append(away)
            async with httpx.AsyncClient(follow_redirects=True) as given:
                client = responses_client(api_key=KEY, base_url=server.url, http_client=given)
                return await client(request(), print), elsewhere

    outcome, elsewhere = asyncio.run(main())
    error = outcome.failure()
    assert isinstance(error, BadRequest)
    assert error.status == 307
    assert elsewhere.url in error.message
    assert not elsewhere.requests


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "answer",
    [cut(), cut(head=True), stream(events(HELLO)[:200], then="cut"), Answer(200, {}, (b'{"outp',), "chunked", "cut")],
)
def test_a_broken_connection_is_a_failure(answer: Any, streaming: Any) -> None:
    """Before the head, after it, or in the middle: `ConnectionFailed`, which names the host."""
    error = outcome_of(answer, stream=streaming).failure()
    assert isinstance(error, ConnectionFailed)
    assert error.message.startswith("127.0.0.1: RemoteProtocolError")


def test_nobody_listens() -> None:
    """A refused connection is `ConnectionFailed`."""

    async def main() -> Any:
        async with serve([]) as server:
            url = server.url
        async with responses_client(api_key=KEY, base_url=url) as client:
            return await client(request(), print)

    assert isinstance(asyncio.run(main()).failure(), ConnectionFailed)


def test_a_stream_that_ends_early_is_a_failure() -> None:
    """A stream that is closed properly before its terminal event has no response."""
    early = stream(events(HELLO)[:-20].rpartition(b"event:")[0])
    assert outcome_of(early, stream=True) == Failure(
        ConnectionFailed("the stream ended before the response was complete")
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (whole(b"<html>", 200, {"content-type": "text/html"}), "it is not JSON"),
        (whole(b'{"output": ['), "it is not JSON"),
        (whole([]), "it is not a JSON object"),
        (whole(b""), "it is not JSON"),
    ],
)
def test_a_body_that_is_no_response_is_malformed(answer: Any, said: Any) -> None:
    """Garbage and HTML are `MalformedResponse`, asked to stream or not."""
    for streaming in (False, True):
        error = outcome_of(answer, stream=streaming).failure()
        assert isinstance(error, MalformedResponse)
        assert error.message.startswith(said)


@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip", "Identity,GZIP", "deflate", "br", "made-up"])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_packed_answer_is_refused(coding: Any, streaming: Any) -> None:
    """No answer is unpacked, none is asked for: a success is malformed, a refusal keeps its status and its wait."""
    packed = gzip.compress(json.dumps(HELLO).encode())
    headers = {"content-encoding": coding, "retry-after": "3"}
    said = f"its body came in the content-encoding '{coding.replace(',', ', ').replace('  ', ' ')}', which is not read"
    outcomes, _, server = ask(whole(packed, 200, headers), whole(packed, 503, headers), stream=streaming)
    assert outcomes == [Failure(MalformedResponse(said)), Failure(ServerFailed(said, 503, 3.0))]
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_packed_answer_costs_nothing(status: Any, layers: Any) -> None:
    """A kilobyte that would unpack to a hundred million is refused unseen, in one layer or two."""
    packed = gzip.compress(b" " * 100_000_000, 1)
    packed = gzip.compress(packed) if layers == 2 else packed
    answer = whole(packed, status, {"content-encoding": ", ".join(["gzip"] * layers)})
    outcome_of(whole(HELLO))
    tracemalloc.start()
    try:
        outcome = outcome_of(answer)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert "content-encoding" in outcome.failure().message


def test_an_answer_may_say_that_it_is_not_packed() -> None:
    """`identity`, and nothing at all, are no encoding."""
    for coding in ("identity", "Identity, identity", ""):
        assert outcome_of(whole(HELLO, 200, {"content-encoding": coding})) == read_response(HELLO)


def test_an_answer_has_a_largest_size(monkeypatch: Any) -> None:
    """More bytes than the limit are not read, whole or streamed; of an error only the beginning is."""
    monkeypatch.setattr(fnagents_http, "LARGEST", 1_000)
    monkeypatch.setattr(fnagents_http, "_LARGEST_ERROR", 1_000)
    error = outcome_of(whole(b" " * 100_000)).failure()
    assert error == MalformedResponse("the answer has more than 1000 bytes")
    error = outcome_of(stream(b": waiting\n\n" * 10_000, 500), stream=True).failure()
    assert error == MalformedResponse("the stream has more than 1000 bytes")
    error = outcome_of(whole(b"x" * 1_000_000, 500)).failure()
    assert isinstance(error, ServerFailed)
    assert len(error.message) < 300


@pytest.mark.parametrize("streaming", [False, True])
def test_an_answer_has_a_most_of_items(streaming: Any) -> None:
    """Fifty thousand calls are no answer, whole or streamed; ten thousand are, and take no time to speak of."""
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    for count in (10_000, 50_000):
        calls = completed(*({**call, "id": f"fc_{number}"} for number in range(count)))
        began = time.monotonic()
        outcome = outcome_of(stream(events(calls), 65_536) if streaming else whole(calls), stream=streaming)
        assert time.monotonic() - began < 20
        if count == 10_000:
            assert outcome == read_response(calls)
        else:
            assert outcome.failure().message == "it has more than 10000 items"
            assert len(outcome.failure().arrived.items) == 10_000


def test_an_incomplete_answer_carries_what_arrived() -> None:
    """The token limit is `Incomplete`, streamed or not."""
    short = completed(message("Hel"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    error = Incomplete("max_output_tokens", read_response(completed(message("Hel"))).unwrap())
    assert outcome_of(whole(short)) == Failure(error)
    assert outcome_of(stream(events(short)), stream=True) == Failure(error)


def test_a_request_that_cannot_be_written_is_not_sent() -> None:
    """The call fails with the reason, and the server is not asked."""
    (outcome,), _, server = ask(times=1, settings={"extra": {"input": []}})
    assert outcome == Failure(BadRequest("it was not sent: settings.extra has input, which the request says already"))
    assert not server.requests


# --- time --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [stalled(), stream(events(HELLO)[:200], then="stall")])
def test_a_stalled_answer_times_out(answer: Any) -> None:
    """The limit is for the whole call, a stream that stops in the middle included, and the connection is closed."""
    began = time.monotonic()
    outcomes, _, server = ask(answer, whole(HELLO), stream=True, timeout=0.2)
    assert outcomes == [Failure(ModelTimedOut(0.2)), read_response(HELLO)]
    assert 0.15 < time.monotonic() - began < 5
    assert [received.connection for received in server.requests] == [0, 1]


def test_a_slow_stream_times_out() -> None:
    """Bytes that keep coming do not put the limit off."""
    slow = stream(events(HELLO), 20, pause=0.05)
    assert outcome_of(slow, stream=True, timeout=0.2) == Failure(ModelTimedOut(0.2))


def test_the_settings_limit_comes_first() -> None:
    """`ModelSettings.timeout` holds for its request, longer or shorter than the client's; None is no limit."""
    assert outcome_of(stalled(), settings={"timeout": 0.1}) == Failure(ModelTimedOut(0.1))
    slow = stream(events(HELLO), 200, pause=0.05)
    assert outcome_of(slow, settings={"timeout": 60.0}, timeout=0.1) == read_response(HELLO)
    assert outcome_of(whole(HELLO), timeout=None) == read_response(HELLO)


def test_a_whole_response_is_not_lost_to_a_server_that_stays() -> None:
    """Once the terminal event is there, nothing that follows takes the response away, not even the limit."""
    for then in ("stall", "cut"):
        told = Answer(200, {"content-type": "text/event-stream"}, (events(HELLO), b": still here\n\n"), "chunked", then)
        began = time.monotonic()
        assert outcome_of(evolve(told, pause=0.1), stream=True, timeout=0.3) == read_response(HELLO)
        assert time.monotonic() - began < 3


def test_cancelling_closes_the_connection() -> None:
    """A cancelled call raises `CancelledError`, never a failure, and the server sees the connection go."""

    async def main() -> None:
        answers = [stalled(), stream(events(HELLO)[:200], then="stall")]
        async with serve(answers) as server, responses_client(api_key=KEY, base_url=server.url, stream=True) as client:
            for number in (1, 2):
                task = asyncio.create_task(client(request(), print))
                await server.until(lambda server: len(server.requests) == number)  # noqa: B023
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await server.until(lambda server: server.closed == 2)

    asyncio.run(asyncio.wait_for(main(), 10))


@pytest.mark.parametrize("error", [ZeroDivisionError, TimeoutError])
def test_a_listener_that_raises_is_not_hidden(error: Any) -> None:
    """What the listener raises is its owner's to see, a `TimeoutError` too."""

    def listen(delta: Any) -> None:
        raise error

    async def main() -> None:
        async with (
            serve([stream(events(HELLO, *DELTAS))]) as server,
            responses_client(api_key=KEY, base_url=server.url, stream=True) as client,
        ):
            with pytest.raises(error):
                await client(request(), listen)

    asyncio.run(main())


NOW = 784_111_777.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": email.utils.formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"retry-after": email.utils.formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": "Sun, 99 Nov 99999 08:49:37 GMT"}, None),
    ],
)
def test_the_time_to_wait_is_read(headers: Any, seconds: Any) -> None:
    """Milliseconds, seconds and dates are read by an injected clock; garbage is None, the past is now."""
    assert retry_after(headers, lambda: NOW) == seconds


def test_the_clients_clock_is_injected() -> None:
    """A date in Retry-After is counted from the clock that the client was given."""
    date = email.utils.formatdate(NOW + 5, usegmt=True)
    assert outcome_of(refused(429, {"retry-after": date}), now=lambda: NOW) == Failure(
        RateLimited("it was refused", 5.0)
    )


# --- the key -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "", " \n"])
def test_without_a_key_every_call_fails(monkeypatch: Any, key: Any) -> None:
    """No key is a value, not an exception, and says the way out; nothing is sent."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (outcome,), _, server = ask(times=1, api_key=key)
    assert outcome == Failure(Unauthorized("no key: set OPENAI_API_KEY or pass api_key="))
    assert not server.requests


@pytest.mark.parametrize("key", ["a\nkey", "schlüssel", "a\x00key"])
def test_a_key_that_is_no_header_fails_without_being_shown(key: Any) -> None:
    """Characters that cannot be sent are an error that does not repeat them."""
    assert outcome_of(api_key=key) == Failure(Unauthorized("the key has characters that cannot stand in a header"))


@pytest.mark.parametrize(
    "answer",
    [
        refused(401, message=f"Incorrect API key provided: {KEY}"),
        whole(f"<pre>Authorization: Bearer {KEY}</pre>".encode(), 502),
        whole(f"<pre>Authorization: Bearer {KEY}</pre>".encode()),
        stream(f"data: {KEY}\n\n".encode()),
    ],
)
def test_the_key_shows_in_no_error(answer: Any, caplog: Any) -> None:
    """Servers that repeat the key are not repeated; neither repr nor log has it."""
    caplog.set_level(0)
    error = outcome_of(answer, stream=True).failure()
    assert KEY not in repr(error)
    assert "[key]" in error.message
    assert KEY not in caplog.text
    client = responses_client(api_key=KEY, headers={"x-more": KEY})
    assert KEY not in repr(client)
    assert KEY not in repr(client.target)


def pieces(text: str, least: int = 6) -> list[str]:
    """Every piece of the key, of at least so many characters, that is in the text."""
    cut = [KEY[start:end] for start in range(len(KEY)) for end in range(start + least, len(KEY) + 1)]
    return [piece for piece in cut if piece in text]


FAR = "x" * 2_000
AT_THE_CUT = [
    answer
    for before in (70, 95, 150, 175, 185, 195, 960, 980, 990)
    for fill in [("." * before)]
    for answer in (
        whole(f"{fill}{KEY}{FAR}".encode(), 401),
        whole({"error": {"message": f"{fill}{KEY}{FAR}"}}, 401),
        whole({"error": {"type": f"{fill}{KEY}{FAR}"}}, 400),
        whole({"detail": f"{fill}{KEY}{FAR}"}, 422),
        whole(completed(status="failed", error={"code": "server_error", "message": f"{fill}{KEY}{FAR}"})),
        whole(f"{fill}{KEY}{FAR}".encode()),
        whole(f'{{"{fill}{KEY}": 1, "{fill}{KEY}": 2}}'.encode()),
        whole(completed(status="incomplete", incomplete_details={"reason": f"{fill}{KEY}{FAR}"})),
        whole(completed({"type": "function_call", "name": f"{fill}{KEY}{FAR}"})),
        stream(f"data: {{{fill}{KEY}{FAR}\n\n".encode()),
        stream(f'data: {{"{fill}{KEY}": 1, "{fill}{KEY}": 2}}\n\n'.encode()),
        stream(f'data: {{"type": "error", "message": "{fill}{KEY}{FAR}"}}\n\n'.encode()),
        stream(events(completed(status="incomplete", incomplete_details={"reason": f"{fill}{KEY}{FAR}"}))),
        Answer(307, {"location": f"{fill}{KEY}{FAR}"}),
        whole(b"{}", 200, {"content-encoding": f"{fill}{KEY}{FAR}"}),
    )
]


@pytest.mark.parametrize("streaming", [False, True])
def test_no_half_of_the_key_shows_where_an_error_is_cut(streaming: Any) -> None:
    """Wherever in a text the key stands, it is taken out before the text is shortened."""
    outcomes, _, _ = ask(*AT_THE_CUT, stream=streaming)
    assert all(isinstance(outcome, Failure) for outcome in outcomes)
    assert [pieces(repr(outcome)) for outcome in outcomes] == [[]] * len(AT_THE_CUT)


@pytest.mark.parametrize("streaming", [False, True])
def test_the_key_shows_in_nothing_that_arrived(streaming: Any) -> None:
    """An answer that failed carries its items without the key; one that succeeded is what the server said."""
    items = [message(f"key {KEY}"), {"type": "odd", KEY: [KEY, 1, None]}, {"type": "reasoning", "summary": [KEY]}]
    for cut_short in (
        completed(*items, status="incomplete", id=KEY, model=KEY),
        completed(*items, {"type": "function_call", "name": KEY, "arguments": None}),
    ):
        for answer in (whole(cut_short), stream(events(cut_short))):
            error = outcome_of(answer, stream=streaming).failure()
            assert error.arrived is not None
            assert pieces(repr(error)) == []
    begun = events(completed(*items)).rpartition(b"event:")[0]
    error = outcome_of(stream(begun + f"data: {KEY}\n\n".encode()), stream=True).failure()
    assert "key [key]" in repr(error.arrived)
    assert pieces(repr(error)) == []
    assert outcome_of(whole(completed(*items))) == read_response(completed(*items))


def test_a_connections_error_has_no_key() -> None:
    """What breaks the protocol is quoted without the key, and not at any length."""

    async def main() -> Any:
        async def answer(reader: Any, writer: Any) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n" + f"{KEY} {KEY} {FAR}".encode() + b"\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            async with responses_client(api_key=KEY, base_url=f"http://127.0.0.1:{port}") as client:
                return await client(request(), print)

    error = asyncio.run(main()).failure()
    assert isinstance(error, ConnectionFailed)
    assert "[key] [key]" in error.message
    assert pieces(error.message) == []
    assert len(error.message) < 1_100


@pytest.mark.parametrize(
    ("header", "echoed"),
    [
        ({"X-Api-Key": "another-secret"}, "another-secret"),
        ({"Authorization": "Token another-secret"}, "another-secret"),
        ({"X-Json": '{"k": "a secret"}'}, '{"k": "a secret"}'),
    ],
)
@pytest.mark.parametrize("before", ["", "." * 190])
def test_the_value_of_a_header_shows_in_no_error(header: Any, echoed: Any, before: Any) -> None:
    """What is given as a header is as secret as the key, without its scheme and in JSON, too."""
    for answer in (
        refused(401, message=f"{before}{echoed}"),
        whole(f"{before}{echoed}".encode(), 401),
        stream(f"data: !{before[:-100]}{echoed}\n\n".encode()),
        whole({"error": {"codes": [f"{before}{echoed}"]}}, 400),
    ):
        error = outcome_of(answer, headers=header, stream=True).failure()
        assert "secret" not in repr(error)
        assert "[key]" in error.message


def test_headers_that_are_no_secret_may_be_told() -> None:
    """Names of formats, programs and organisations, and short values, are left in errors."""
    said = "application/json from my-program/1.0 of org-12345678 for team"
    headers = {"accept": "application/json", "user-agent": "my-program/1.0", "x-team": "team"}
    outcome = outcome_of(refused(400, message=said), headers=headers, organization="org-12345678")
    assert outcome == Failure(BadRequest(said))


def test_a_short_key_is_no_secret() -> None:
    """The word that stands in for a key does not blot out parts of messages."""
    assert outcome_of(refused(400, message="none of it"), api_key="none") == Failure(BadRequest("none of it"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "ftp://example.org"}, "base_url must be http:// or https://"),
        ({"base_url": "example.org/v1"}, "base_url must be http:// or https://"),
        ({"base_url": "https://"}, "base_url must be http:// or https://"),
        ({"base_url": "https://user:hidden-word@example.org"}, "without a password"),
        ({"base_url": "https://example.org:port"}, "base_url is no address: Invalid port"),
        ({"headers": {"x-a": "hidden-word\n"}}, "the header 'x-a' has characters that cannot be sent"),
        ({"headers": {"x-a": b"hidden-word"}}, "the header 'x-a' is a bytes, not text"),
        ({"headers": {"x-a": None}}, "the header 'x-a' is a NoneType, not text"),
        ({"headers": {b"x-a": "hidden-word"}}, "the name of a header is a bytes, not text"),
        ({"headers": [("x-a", "hidden-word")]}, "headers is a list, not a mapping of names to texts"),
        ({"organization": 7}, "the header 'openai-organization' is a int, not text"),
        ({"api_key": b"hidden-word"}, "api_key is a bytes, not text"),
        ({"base_url": httpx.URL("https://example.org")}, "base_url is a URL, not text"),
        ({"model": 5}, "model is a int, not text"),
        ({"now": 5.0}, "now is a float, not a function"),
        ({"http_client": httpx.Client}, "http_client is a type, not an httpx.AsyncClient"),
        *(
            ({"timeout": seconds}, "timeout=.* is not a positive number of seconds, or None for no limit")
            for seconds in (-1, 0, 0.0, True, "5", float("nan"), float("inf"), 10**400)
        ),
    ],
)
def test_an_option_that_cannot_work_is_a_mistake(options: Any, said: Any) -> None:
    """It is refused when the client is made, and what should stay hidden does."""
    with pytest.raises(DeclarationError, match=said) as caught:
        responses_client(**{"api_key": KEY} | options)
    assert "hidden-word" not in str(caught.value)

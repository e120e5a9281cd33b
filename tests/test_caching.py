"""A client that asks once: what is kept, under which key, and what happens when the store fails."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from helpers import call, given

from fnagents import (
    Agent,
    Delta,
    Failure,
    Input,
    Message,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    Opaque,
    Reasoning,
    Replied,
    Sent,
    ServerFailed,
    Success,
    TextDelta,
    Usage,
    dump_event,
    run_sync,
)
from fnagents.caching import Store, cached, request_digest
from fnagents.outcome import Outcome
from fnagents.testing import run_virtual, scripted

HI = ModelRequest("a", 0, Sent(), Input((Message("user", "hi"),)))


def store(texts: dict[str, str]) -> Store:
    return Store(texts.get, texts.__setitem__)


def asked(client: Any, request: ModelRequest = HI) -> Outcome[ModelResponse, Any]:
    outcome: Outcome[ModelResponse, Any] = run_virtual(client(request, lambda delta: None))
    return outcome


def test_an_equal_request_gets_an_equal_answer() -> None:
    """All of the answer comes back: every kind of item, usage, id, unpaired surrogates."""
    items = (Reasoning(("r",)), Message("assistant", "Hello \ud83d"), call("f", x=1), Opaque("new", '{"type":"new"}'))
    answer = ModelResponse(items, Usage(3, 10, 5, 2, 1), "resp_1", "m")
    client = cached(scripted(answer), store({}))
    assert asked(client) == asked(client) == Success(answer)


def test_a_run_from_the_store_is_equal() -> None:
    """A run whose model is never asked is the run that filled the store, calls and usage included."""
    texts: dict[str, str] = {}
    agent = Agent("a", tools=[given("f", "done")])
    first = run_sync(agent, "hi", client=cached(scripted(call("f"), "Hello"), store(texts)))
    assert run_sync(agent, "hi", client=cached(scripted(), store(texts))) == first
    assert len(texts) == 2


def test_failures_are_not_kept() -> None:
    """The next request asks again."""
    client = cached(scripted(ServerFailed("oh"), "Hello"), store({}))
    assert asked(client) == Failure(ServerFailed("oh"))
    assert asked(client).unwrap().text == "Hello"


def test_an_answer_from_the_store_is_silent() -> None:
    """Deltas are for watching a model write; from the store there is nothing to watch."""

    async def typing(request: ModelRequest, emit: Any) -> Outcome[ModelResponse, Any]:
        emit(TextDelta("Hello"))
        return Success(ModelResponse((Message("assistant", "Hello"),)))

    seen: list[Delta] = []
    client = cached(typing, store({}))
    for _ in range(2):
        run_virtual(client(HI, seen.append))  # type: ignore[arg-type]
    assert seen == [TextDelta("Hello")]


def test_a_store_may_be_async() -> None:
    """Its two functions are awaited if they are awaitable."""
    texts: dict[str, str] = {}

    async def get(key: str) -> str | None:
        await asyncio.sleep(1)
        return texts.get(key)

    async def put(key: str, text: str) -> None:
        await asyncio.sleep(1)
        texts[key] = text

    client = cached(scripted("Hello"), Store(get, put))
    assert asked(client) == asked(client)


def test_a_conversation_is_always_asked() -> None:
    """What the server holds is not in the key, and has to hear every request."""
    texts: dict[str, str] = {}
    client = cached(scripted("1", "2"), store(texts))
    talking = evolve(HI, conversation_id="conv_1")
    assert [asked(client, talking).unwrap().text for _ in range(2)] == ["1", "2"]
    assert texts == {}


def test_a_request_that_cannot_be_written_is_the_clients_to_refuse() -> None:
    """The cache has no key for it, and says nothing."""
    wrong = evolve(HI, sent=Sent(settings=ModelSettings(extra={"input": []})))
    texts: dict[str, str] = {}
    assert asked(cached(scripted("Hello"), store(texts)), wrong).unwrap().text == "Hello"
    assert texts == {}


@pytest.mark.parametrize(
    "text",
    ["", "hello", "{}", 7, dump_event(Replied(0, None)), dump_event(Replied(0, Failure(ServerFailed("oh"))))],
    ids=["empty", "no JSON", "no event", "no text", "no answer", "a failure"],
)
def test_what_cannot_be_read_is_asked_for_anew(text: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, the model answers, and the answer takes its place."""
    texts: dict[str, str] = {request_digest(HI): text}
    client = cached(scripted("Hello"), store(texts))
    assert asked(client).unwrap().text == "Hello"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert asked(client).unwrap().text == "Hello"
    assert len(caplog.records) == 1


def test_a_store_that_fails_costs_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    """A full disk is logged, both ways, and the model is asked."""

    def full(*given: str) -> None:
        raise OSError("no space left")

    assert asked(cached(scripted("Hello"), Store(full, full))).unwrap().text == "Hello"
    assert [record.getMessage()[:25] for record in caplog.records] == [
        "the store could not give ",
        "the store could not keep ",
    ]


@pytest.mark.parametrize(
    "other",
    [
        evolve(HI, sent=Sent(instructions="Be brief.")),
        evolve(HI, sent=Sent(model="m")),
        evolve(HI, sent=Sent(settings=ModelSettings(temperature=0.5))),
        evolve(HI, input=Input((Message("user", "hello"),))),
        evolve(HI, input=Input((Message("user", "hi"), Message("user", "hi")))),
        evolve(HI, previous_response_id="resp_1"),
    ],
    ids=["instructions", "model", "settings", "text", "items", "previous"],
)
def test_whatever_the_server_would_see_is_in_the_key(other: ModelRequest) -> None:
    """Two requests with different bodies have different digests."""
    assert request_digest(other) != request_digest(HI)


def test_whatever_the_server_would_not_see_is_not() -> None:
    """Who asks, at which turn and for how long is not in the key; a model's name is, wherever it comes from."""
    same = evolve(HI, agent="b", turn=7, sent=Sent(settings=ModelSettings(timeout=3.0)))
    assert request_digest(same) == request_digest(HI)
    assert request_digest(HI, model="m") == request_digest(evolve(HI, sent=Sent(model="m")), model="other")


def test_a_conversation_has_one_key_however_it_came_about() -> None:
    """Said in turns, or given as input: the same body, the same answer."""
    agent = Agent("a", tools=[given("f", "done")])
    client = scripted(call("f"), "Hello")
    run_sync(agent, "hi", client=client)
    requests = client.requests
    flat = evolve(requests[1], input=Input(requests[1].items), turns=())
    assert requests[1].turns
    assert request_digest(flat) == request_digest(requests[1])


def test_another_process_finds_the_answer(tmp_path: Path) -> None:
    """Files as a store: a second interpreter, with hashes of its own, asks no model."""
    file = tmp_path / "kept"
    code = """
import sys
from pathlib import Path
from fnagents import Agent, run_sync
from fnagents.caching import Store, cached
from fnagents.testing import scripted

folder = Path(sys.argv[1])
def get(key):
    return (folder / key).read_text() if (folder / key).exists() else None
def put(key, text):
    (folder / key).write_text(text)
client = cached(scripted(*sys.argv[2:]), Store(get, put))
print(run_sync(Agent("a", "Greet.", output_type=list[int]), "hi", client=client).outcome)
"""
    file.mkdir()
    said = [
        subprocess.run(
            [sys.executable, "-c", code, str(file), *replies], capture_output=True, text=True, check=True
        ).stdout
        for replies in (['{"response": [1, 2]}'], [])
    ]
    assert said == ["<Success: [1,2]>\n"] * 2

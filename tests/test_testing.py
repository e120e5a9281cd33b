"""What other people's tests are made of: scripted models, virtual time, a network that refuses."""

import asyncio
import socket
from datetime import datetime
from typing import Annotated, Any, Literal

import attrs
import pytest
from annotated_types import Ge, Le
from helpers import call

from fnagents.agent import Agent
from fnagents.define import tool
from fnagents.errors import ServerFailed
from fnagents.items import Message, Reasoning, ToolOutput
from fnagents.models import ModelRequest, ModelResponse, Sent, Usage
from fnagents.outcome import Failure, Success
from fnagents.running import output, run_sync
from fnagents.runs import Input
from fnagents.schemas.output import schema
from fnagents.testing import (
    NetworkForbiddenError,
    VirtualLoop,
    from_function,
    inventive,
    no_network,
    run_virtual,
    scripted,
)
from fnagents.tools import Tool

REQUEST = ModelRequest("a", 0, Sent(), Input((Message("user", "hi"),)))
HELLO = ModelResponse((Message("assistant", "hello"),))


def ignore(delta):
    raise AssertionError("a script emits nothing")


def answer(client):
    return run_virtual(client(REQUEST, ignore))


async def coroutine(request):
    return request.items[0].text


REPLIES = [
    ("hello", Success(HELLO)),
    (call("t"), Success(ModelResponse((call("t"),)))),
    ([Reasoning(), call("t")], Success(ModelResponse((Reasoning(), call("t"))))),
    ((), Success(ModelResponse())),
    (ModelResponse((), Usage(1, 2, 3)), Success(ModelResponse((), Usage(1, 2, 3)))),
    (ServerFailed("down"), Failure(ServerFailed("down"))),
    (lambda request: request.agent, Success(ModelResponse((Message("assistant", "a"),)))),
    (coroutine, Success(ModelResponse((Message("assistant", "hi"),)))),
]


@pytest.mark.parametrize(("reply", "outcome"), REPLIES)
def test_a_reply_in_its_shortest_form(reply, outcome) -> None:
    """Text, a call, items, a response, an error, or a function of the request."""
    assert answer(scripted(reply)) == outcome
    assert answer(from_function(lambda request: reply(request) if callable(reply) else reply)) == outcome


@pytest.mark.parametrize(("reply", "name"), [([{"role": "user"}], "dict"), ([None], "NoneType"), (["a"], "str")])
def test_what_is_no_reply_is_a_mistake(reply, name) -> None:
    """The message says what may be given."""
    with pytest.raises(TypeError) as caught:
        answer(scripted(reply))
    assert str(caught.value) == f"a reply cannot hold a {name}; give text, items, a response or an error"


def test_a_script_remembers_what_it_was_asked() -> None:
    """Requests are values, so they can be looked at later."""
    client = scripted("hello")
    answer(client)
    assert client.requests == [REQUEST]


def test_a_script_that_is_too_short_says_so() -> None:
    """With the agent and the turn that asked for more."""
    client = scripted("hello")
    answer(client)
    with pytest.raises(AssertionError) as caught:
        answer(client)
    assert str(caught.value) == (
        "the script has 1 replies, and request 2 came (agent 'a', turn 0): add a reply to scripted(...)"
    )


def test_a_script_that_is_too_long_says_so() -> None:
    """If it is asked."""
    client = scripted("hello", "and more")
    answer(client)
    with pytest.raises(AssertionError) as caught:
        client.assert_complete()
    assert str(caught.value) == "1 of 2 replies were not asked for"
    answer(client)
    client.assert_complete()


def test_a_script_that_was_asked_too_much_is_complete() -> None:
    """The failed request told it already."""
    client = scripted()
    with pytest.raises(AssertionError):
        answer(client)
    client.assert_complete()


def test_a_function_is_a_model() -> None:
    """Sync or async, from request to reply."""
    assert run_sync(Agent("a"), "hi", client=from_function(coroutine)).outcome == Success("hi")


# --- virtual time --------------------------------------------------------------------------------------


def test_time_jumps_to_the_next_timer() -> None:
    """Nothing waits; what is due later happens later."""
    order = []

    async def after(seconds):
        await asyncio.sleep(seconds)
        order.append((seconds, asyncio.get_running_loop().time()))

    async def main():
        await asyncio.gather(after(3_600), after(0.001), after(60))

    run_virtual(main())
    assert order == [(0.001, 0.001), (60, 60.0), (3_600, 3_600.0)]


def test_time_stands_still_while_there_is_work() -> None:
    """A loop that is busy is not waiting."""

    async def main():
        for _ in range(100):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 0.0


def test_nothing_to_wait_for_is_an_error_and_no_hang() -> None:
    """In virtual time a deadlock can be seen."""

    async def main():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="deadlock in virtual time"):
        run_virtual(main())


def test_exceptions_come_through() -> None:
    """As from `asyncio.run`."""

    async def main():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_virtual(main())


def test_the_clock_can_be_read() -> None:
    """`now` is in seconds, from 0."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(asyncio.sleep(2.5))
        assert (loop.now, loop.time()) == (2.5, 2.5)
    finally:
        loop.close()


# --- no network ----------------------------------------------------------------------------------------


def test_inside_the_block_every_connection_is_refused() -> None:
    """By name of the address, for streams and datagrams."""
    with no_network(), socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagram:
        for tried in (stream.connect, stream.connect_ex):
            with pytest.raises(NetworkForbiddenError) as caught:
                tried(("192.0.2.1", 80))
            assert str(caught.value) == "a connection to ('192.0.2.1', 80) was tried"
        with pytest.raises(NetworkForbiddenError):
            datagram.sendto(b"x", ("127.0.0.1", 9))


@pytest.mark.parametrize("address", [("192.0.2.1", 80), "name", ()])
def test_loopback_may_be_let_through(address) -> None:
    """Other addresses are refused as before."""
    with socket.create_server(("127.0.0.1", 0)) as server, no_network(loopback=True):
        with socket.create_connection(server.getsockname()) as connection:
            assert connection.getpeername() == server.getsockname()
        with socket.socket() as other, pytest.raises(NetworkForbiddenError):
            other.connect(address)


def test_sockets_of_this_machine_are_no_network(tmp_path) -> None:
    """Files that are sockets stay usable."""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client, no_network():
        server.bind(str(tmp_path / "s"))
        server.listen()
        client.connect(str(tmp_path / "s"))


def test_after_the_block_all_is_as_before() -> None:
    """Also if the block raised."""
    with pytest.raises(ValueError, match="no"), no_network():
        raise ValueError("no")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


# --- inventive -----------------------------------------------------------------------------------------


@attrs.frozen
class Tree:
    """A recursive type."""

    name: str
    children: "list[Tree]"


SEEN: list[Any] = []


@tool
def everything(
    number: Annotated[int, Ge(3), Le(5)],
    ratio: float,
    color: Literal["red", "blue"],
    tree: Tree,
    when: datetime,
    pair: tuple[int, str],
    flag: bool,
    maybe: int | None = None,
    only: Literal["x"] = "x",
) -> str:
    """All kinds of parameters."""
    SEEN.append(number)
    return "fine"


RAW = {
    "properties": {
        "odd": True,
        "all": {"allOf": [{"type": "string"}, {"minLength": 12, "maxLength": 14}]},
        "several": {"type": ["null", "boolean"]},
        "even": {"type": "integer", "multipleOf": 2, "exclusiveMinimum": 0, "exclusiveMaximum": 9},
        "closed": {"type": "array", "prefixItems": [{"const": 1}], "items": False, "minItems": 1},
        "implied": {"properties": {"a": {}}},
    },
    "required": ["odd", "all", "several", "even", "closed", "implied"],
}


@pytest.mark.parametrize("seed", range(12))
def test_an_inventive_model_calls_every_tool_with_fitting_arguments(seed: int) -> None:
    """Once each, then it ends; the output fits its type."""
    raw = Tool("raw", "", RAW, lambda context, text: "raw fine", strict=False, inline=True)
    hosted = Tool("hosted", definition_text='{"type": "web_search"}')
    agent = Agent("a", tools=[everything, raw, hosted], output_type=Tree)
    run = run_sync(agent, "go", client=inventive(seed))
    assert [item.text for item in run.items if isinstance(item, ToolOutput)] == ["fine", "raw fine"]
    assert isinstance(output(agent, run).unwrap(), Tree)
    assert run_sync(agent, "go", client=inventive(seed)) == run
    assert 3 <= SEEN[-1] <= 5


def test_an_inventive_model_may_only_talk() -> None:
    """Without tools it says that it is done; an output that is not strict is invented too."""
    assert run_sync(Agent("a"), "go", client=inventive()).outcome == Success("done")
    loose = Agent("a", output_type=schema({"type": "object", "properties": {"n": {"type": "null"}}}, strict=False))
    assert isinstance(run_sync(loose, "go", client=inventive(1)).outcome, Success)

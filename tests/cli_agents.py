"""Agents, tools and models for the command line's tests, which name them as `cli_agents:NAME`."""

import asyncio
from typing import Any

from attrs import define

from fnagents import (
    Agent,
    Delegate,
    Emit,
    Message,
    ModelError,
    ModelRequest,
    ModelResponse,
    Outcome,
    Restarted,
    ServerFailed,
    Success,
    TextDelta,
    Tool,
    ToolCall,
    ToolContext,
    agents,
    tool,
)
from fnagents.testing import from_function, scripted

#: Steers a terminal that obeys it.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202ered"


@tool(needs_approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return f"{amount} paid to {to}"


@tool
def look(where: str) -> str:
    """Look somewhere."""
    print("looking", where)
    return f"{HOSTILE} in {where}"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError(HOSTILE)


@tool
async def wait() -> str:
    """Wait until the process ends."""
    print("waiting")
    await asyncio.sleep(60)
    return "waited"


banker = Agent("banker", "Pay.", tools=[pay, look, fail, wait])
curt = Agent("banker", "Pay, and say nothing.", tools=[pay, look, fail, wait])
named = Agent("named", "Pay.", model="gpt-x")
pair = agents(banker, named)
nobody: dict[str, Agent] = {}
twins = {"one": Agent("twin"), "two": Agent("twin")}
nested = Agent("boss", tools=[Tool("ask", "", {}, lambda context, text: Delegate("banker", "pay!"), agents=(banker,))])
number = 7


def factory() -> Agent:
    """What stands behind a function."""
    return banker


def broken() -> Agent:
    """A function that cannot give an agent."""
    raise SystemExit("no agent today")


async def late() -> Agent:
    """A function that gives no agent but a coroutine."""
    return banker


def paying(*amounts: int) -> list[ToolCall]:
    """Calls of `pay`."""
    return [ToolCall(f"c{n}", "pay", f'{{"amount": {amount}, "to": "ann"}}') for n, amount in enumerate(amounts)]


def said(*replies: Any) -> Any:
    """A function that gives a model of these replies, anew each time."""
    return lambda: scripted(*replies)


done = said("all done")
hostile = said([ToolCall("1", "look", '{"where": "here"}'), ToolCall("2", "fail")], HOSTILE)
pays = said(paying(3), "all done")
pays_both = said(paying(3, 4), "all done")
pays_twice = said(paying(3), paying(5), "all done")
pays_nested = said(ToolCall("n", "ask"), paying(3), "inner done", "all done")
waits = said(ToolCall("w", "wait"), "never")
down = said(ServerFailed("down"))
raises = from_function(lambda request: [HOSTILE][request.turn + 1])


async def streaming(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
    """A model whose first words do not count."""
    emit(TextDelta("wrong words"))
    await asyncio.sleep(0.3)
    emit(Restarted("again"))
    for word in ("right ", f"words {HOSTILE}"):
        emit(TextDelta(word))
        await asyncio.sleep(0.3)
    return Success(ModelResponse((Message("assistant", "right words"),)))


async def pays_slowly(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
    """A model that takes its time before it pays."""
    await asyncio.sleep(1)
    return Success(ModelResponse(tuple(paying(3)) if request.turn == 0 else (Message("assistant", "all done"),)))


@define
class Closing:
    """A model with connections to close."""

    closed: bool = False

    async def __call__(self, request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        return Success(ModelResponse((Message("assistant", f"closed: {self.closed}"),)))

    async def aclose(self) -> None:
        self.closed = True


closing = Closing()


class Shop:
    """A context, made by its class."""

    def __init__(self) -> None:
        self.name = "Nuts & Co"


@tool
def shop_name(context: ToolContext[Shop]) -> str:
    """Say the shop's name."""
    return context.context.name


keeper = Agent("keeper", tools=[shop_name])
shop = Shop()
asks_name = said(ToolCall("s", "shop_name"), "all done")

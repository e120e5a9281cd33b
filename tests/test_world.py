"""What performers share: contexts, deltas, and what tool sources have listed."""

import asyncio
import logging

import pytest
from helpers import given, made

from fnagents.agent import Agent, agents
from fnagents.errors import FunctionRaised
from fnagents.models import TextDelta
from fnagents.runs import Run, start
from fnagents.testing import scripted
from fnagents.world import World, enabled, function_raised


def context_of(world, turn=0, path=()):
    return world.context_of("a", turn, path, start("a", "hi"))


def test_functions_are_given_the_callers_context() -> None:
    """The caller's own object, the run so far and its structured input."""
    seen = Run("b", "go", tool_input='{"q":1}')
    world = World({}, scripted(), {"user": 1})
    context = world.context_of("b", 2, ("0.1",), seen)
    assert (context.context, context.agent, context.turn, context.path, context.tool_input) == (
        {"user": 1},
        "b",
        2,
        ("0.1",),
        '{"q":1}',
    )
    assert context.seen is seen


def test_deltas_go_to_whoever_watches() -> None:
    """With the path and turn of their model call; without a watcher they are dropped."""
    watched = []
    World({}, scripted(), watch=lambda *args: watched.append(args)).tell(("0.1",), 2, TextDelta("x"))
    World({}, scripted()).tell((), 0, TextDelta("y"))
    assert watched == [(("0.1",), 2, TextDelta("x"))]


def test_a_source_is_asked_at_most_once_a_turn() -> None:
    """Nested runs have turns of their own; only the last turn is remembered."""
    asked = []

    async def source(context):
        asked.append((context.path, context.turn))
        return (made("t"),)

    agent = Agent("a", tools=[source])
    world = World(agents(agent), scripted())

    async def main():
        for turn, path in [(0, ()), (0, ()), (0, ("0.0",)), (1, ()), (1, ()), (0, ("0.0",))]:
            await world.tools_of(agent, context_of(world, turn, path))

    asyncio.run(main())
    assert asked == [((), 0), (("0.0",), 0), ((), 1)]


def test_the_agents_own_tools_come_first() -> None:
    """Then the sources' in their order; a name that is taken is not given again."""
    own, first, second = given("t", "own"), given("u", "first"), given("u", "second")

    async def one(context):
        return (given("t", "source"), first)

    async def two(context):
        return (second, given("v", "x"))

    agent = Agent("a", tools=[one, own, two])
    world = World(agents(agent), scripted())
    tools = asyncio.run(world.tools_of(agent, context_of(world)))
    assert [tool.name for tool in tools] == ["t", "u", "v"]
    assert tools[:2] == (own, first)


async def yes(context):
    return "yes"


@pytest.mark.parametrize(
    ("rule", "there"),
    [(True, True), (False, False), (lambda context: True, True), (lambda context: None, False), (yes, True)],
)
def test_whether_a_tool_is_there(rule, there) -> None:
    """A bool or a predicate, sync or async."""
    world = World({}, scripted())
    assert asyncio.run(enabled(made("t", is_enabled=rule), context_of(world))) is there


def test_what_an_agents_function_raised_is_a_value(caplog) -> None:
    """Its traceback goes to the log."""
    with caplog.at_level(logging.WARNING, "fnagents.agents"):
        assert function_raised("instructions", KeyError("k")) == FunctionRaised("instructions", "KeyError", "'k'")
    (record,) = caplog.records
    assert record.getMessage() == "a function of an agent raised"


def test_a_source_cannot_take_the_name_of_a_handoff() -> None:
    """The handoff is planned as one, so it must be the handoff that is called."""

    async def source(context):
        return (made("leave", lambda context, text: "stayed"), made("t"))

    agent = Agent("a", tools=[source], handoffs=[made("leave")])
    world = World(agents(agent), scripted())
    assert [tool.name for tool in asyncio.run(world.tools_of(agent, context_of(world)))] == ["t"]

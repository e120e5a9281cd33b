"""Recorded calls run again on the real tools."""

import asyncio

import pytest

from fnagents.agent import Agent
from fnagents.decisions import approve, interruptions, reject
from fnagents.define import tool
from fnagents.errors import ToolRaised
from fnagents.items import ToolCall
from fnagents.outcome import Failure, Success
from fnagents.reexecution import _no_model, reexecute
from fnagents.running import resume, run_sync
from fnagents.testing import scripted
from fnagents.tools import Delegate, Output, Tool, ToolContext

RAN: list[str] = []


@tool
def double(number: int) -> int:
    """Double a number."""
    RAN.append(f"double {number}")
    return 2 * number


@tool(needs_approval=True)
def gated(context: ToolContext[str], number: int) -> str:
    """Say who asked."""
    RAN.append(f"gated {number}")
    return f"{context.context} {number}"


INNER = Agent("inner", tools=[double])
NESTING = Tool("nesting", "", {}, lambda context, text: Delegate("inner", "go"), agents=(INNER,))
AGENT = Agent("outer", tools=[double, gated, NESTING])
CALLS = [
    ToolCall("a", "double", '{"number": 2}'),
    ToolCall("b", "gated", '{"number": 3}'),
    ToolCall("c", "gated", '{"number": 4}'),
    ToolCall("d", "nesting"),
    ToolCall("e", "double", '{"number": "x"}'),
]


def recorded():
    client = scripted(CALLS, ToolCall("f", "double", '{"number": 5}'), "inner done", "done")
    run = run_sync(AGENT, "go", client=client, context="ann")
    first, second = interruptions(run)
    run = reject(approve(run, first), second)
    return asyncio.run(resume(AGENT, run, client=client, context="ann"))


def again(agent, run, **options):
    RAN.clear()
    return asyncio.run(reexecute(agent, run, **options))


def test_unchanged_tools_say_the_same() -> None:
    """Every call that was run is run once more, nested ones too; declined ones are not."""
    run = recorded()
    comparisons = again(AGENT, run, context="ann")
    assert [(one.path, one.place, one.call.name, one.same) for one in comparisons] == [
        ((), "0.0", "double", True),
        ((), "0.1", "gated", True),
        ((), "0.3", "nesting", True),
        (("0.3",), "0.0", "double", True),
        ((), "0.4", "double", True),
    ]
    assert RAN == ["double 2", "gated 3", "double 5"]


def test_what_differs_is_shown() -> None:
    """Another context, a tool that raises now: the recorded outcome beside today's."""
    run = recorded()
    (said,) = (one for one in again(AGENT, run, context="bob") if not one.same)
    assert (said.recorded, said.today) == (Success(Output("ann 3")), Success(Output("bob 3")))

    @tool(name="double")
    def broken(number: int) -> int:
        raise ValueError("no")

    first, *_ = again(Agent("outer", tools=[broken, gated, NESTING]), run, context="ann")
    assert (first.same, first.today) == (False, Failure(ToolRaised("ValueError", "no")))


def test_only_the_tools_that_are_named_are_run() -> None:
    """Effects are real, so one may choose."""
    comparisons = again(AGENT, recorded(), only=["double"])
    assert [one.call.name for one in comparisons] == ["double", "double", "double"]
    assert RAN == ["double 2", "double 5"]


def test_an_approval_does_not_hold_for_other_arguments() -> None:
    """Where today's tool reads the arguments differently, it is not run."""

    @tool(name="gated", needs_approval=True)
    def changed(number: int, more: int = 7) -> str:
        raise AssertionError("not run")

    comparisons = again(Agent("outer", tools=[double, changed, NESTING]), recorded())
    assert [(one.call.id, one.today) for one in comparisons if not one.same] == [("b", None)]


def test_no_model_is_asked() -> None:
    """The answers are the recorded ones; should one be asked for all the same, it is a fault here."""
    with pytest.raises(AssertionError, match="no model is asked"):
        asyncio.run(_no_model(None, None))


def test_calls_that_nobody_asks_for_today_are_left_out() -> None:
    """An agent that is not there plans no call."""
    assert again(Agent("another"), recorded()) == ()

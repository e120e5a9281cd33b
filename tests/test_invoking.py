"""`invoke`: the whole pipeline of one call, for tests of tools."""

import asyncio

import pytest
from helpers import NUMBER, call, given, made, raising

from fnagents.agent import Agent
from fnagents.errors import (
    InvalidArguments,
    InvalidJson,
    NestedFailed,
    ToolRaised,
    ToolRejected,
    ToolTimedOut,
    UnknownTool,
    UnrenderableOutput,
)
from fnagents.invoking import invoke
from fnagents.items import Image, Text
from fnagents.outcome import Failure, Success
from fnagents.schemas.arguments import Arguments
from fnagents.testing import run_virtual, scripted
from fnagents.tools import Allow, Delegate, Handoff, Output, Reject, Trip

DOUBLE = made("double", lambda context, text: f"{context.context} {text}", NUMBER)


def explode(*args):
    raise ValueError("no")


async def own_cancellation(*args):
    raise asyncio.CancelledError


@pytest.mark.parametrize("arguments", ['{"x": 21}', {"x": 21}, ' { "x":21 } '])
def test_arguments_are_text_or_data(arguments) -> None:
    """As a model writes them, or as plain data."""
    assert run_virtual(invoke(DOUBLE, arguments, context="mine")) == Success(Output('mine {"x":21}'))


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome"),
    [
        (DOUBLE, "{}", Failure(InvalidArguments(("$: 'x' is a required property",)))),
        (DOUBLE, "[", Failure(InvalidJson("Expecting value at line 1 column 2 (of 1 characters)"))),
        (given("t", None), "", Success(Output("null"))),
        (given("t", [Text("a"), Image(file_id="i")]), "{}", Success(Output((Text("a"), Image(file_id="i"))))),
        (given("t", b""), "{}", Failure(UnrenderableOutput("a value of type bytes has no form for a model; return text or plain data"))),
        (raising("t", ValueError("no")), "{}", Failure(ToolRaised("ValueError", "no"))),
        (made("t", lambda context, text: asyncio.sleep(9), timeout=2), "{}", Failure(ToolTimedOut(2))),
        (given("t", "x", input_guardrails=[lambda *args: Reject("not now")]), "{}", Failure(ToolRejected("not now", by="guardrail"))),
        (given("t", "x", output_guardrails=[lambda *args: Allow()]), "{}", Success(Output("x"))),
        (given("t", "x", is_enabled=False), "{}", Failure(UnknownTool("t"))),
        (given("t", "x", is_enabled=lambda context: False), "{}", Failure(UnknownTool("t"))),
        (given("t", "x", is_enabled=lambda context: True), "{}", Success(Output("x"))),
        (given("t", "x", is_enabled=explode), "{}", Failure(ToolRaised("ValueError", "no"))),
        (given("t", "x", is_enabled=own_cancellation), "{}", Failure(ToolRaised("CancelledError"))),
        (given("t", Handoff("b")), "{}", Success(Output('{"assistant":"b"}'))),
        (made("t"), "{}", Failure(UnrenderableOutput("the tool t is run by the provider, not here"))),
    ],
)  # fmt: skip
def test_one_call_runs_as_in_a_run(tool, arguments, outcome) -> None:
    """Parsing, validation, guardrails, timeout and rendering; it never raises."""
    assert run_virtual(invoke(tool, arguments)) == outcome


def test_a_tripped_guardrail_is_a_refusal() -> None:
    """Its name is in the reason."""

    def stop(context, judged):
        return Trip()

    error = ToolRejected("The guardrail 'stop' ended the run.", by="guardrail")
    assert run_virtual(invoke(given("t", "x", output_guardrails=[stop]))) == Failure(error)


ASK = Failure(ToolRejected("The call needs approval: invoke(..., approved=True)."))


@pytest.mark.parametrize(
    ("rule", "approved", "outcome"),
    [
        (True, False, ASK),
        (True, True, Success(Output("x"))),
        (lambda context, values: False, False, Success(Output("x"))),
        (lambda context, values: None, False, ASK),
        (explode, True, Failure(ToolRaised("ValueError", "in its approval rule: no"))),
    ],
)
def test_a_gated_call_must_be_approved(rule, approved, outcome) -> None:
    """The predicate is asked as in a run."""
    assert run_virtual(invoke(given("t", "x", needs_approval=rule), approved=approved)) == outcome


def test_a_tool_that_reads_its_arguments_differently_each_time_is_refused() -> None:
    """What was approved would not be what runs."""
    read = iter(range(9))
    tool = made(
        "t",
        lambda context, text: "x",
        needs_approval=True,
        read=lambda text: Success(Arguments({"n": next(read)}, {}, "")),
    )
    error = ToolRejected("The tool reads its arguments differently each time.")
    assert run_virtual(invoke(tool, approved=True)) == Failure(error)


INNER = Agent("inner", tools=[given("gated", "x", needs_approval=True)])


def nesting(agent="inner", extract=None):
    return given("nest", Delegate(agent, "go", extract=extract is not None), agents=(INNER,), extract=extract)


@pytest.mark.parametrize(
    ("tool", "replies", "outcome"),
    [
        (nesting(), ["inner answer"], Success(Output("inner answer"))),
        (nesting(extract=lambda context, run: run.outcome.unwrap().upper()), ["inner"], Success(Output("INNER"))),
        (nesting(extract=explode), ["inner"], Failure(ToolRaised("ValueError", "no"))),
        (nesting(extract=own_cancellation), ["inner"], Failure(ToolRaised("CancelledError"))),
        (nesting(extract=lambda context, run: Handoff("b")), ["inner"], Failure(UnrenderableOutput("an extractor can neither hand over nor delegate"))),
        (nesting(), [call("gated")], Failure(NestedFailed("it is paused: a call in it waits for approval"))),
        (nesting("z"), [], Failure(NestedFailed("There is no agent named 'z'. The agents are: inner."))),
    ],
)  # fmt: skip
def test_a_tool_that_delegates_runs_its_agent(tool, replies, outcome) -> None:
    """With the client that is given."""
    assert run_virtual(invoke(tool, client=scripted(*replies))) == outcome


def test_without_a_client_nothing_can_be_delegated() -> None:
    """The message names the argument."""
    error = NestedFailed("there is no model to run it: invoke(..., client=...)")
    assert run_virtual(invoke(nesting())) == Failure(error)


def test_approved_is_a_yes_or_a_no() -> None:
    """Nothing else runs a gated tool."""
    with pytest.raises(TypeError, match="approved='no' is neither True nor False"):
        asyncio.run(invoke(given("t", "x", needs_approval=True), approved="no"))

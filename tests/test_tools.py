"""Tools as data: what is declared, what is refused at once, and what a function is given."""

import functools
from typing import Any

import pytest
from attrs import evolve
from helpers import NUMBER, call, folded, given, made, replied

from fnagents.agent import Agent
from fnagents.errors import DeclarationError, InvalidArguments, ToolRaised
from fnagents.items import Image, Message, Text
from fnagents.models import TextDelta, ToolDefinition, Usage
from fnagents.outcome import Failure, Success
from fnagents.protocol import Returned
from fnagents.runs import start
from fnagents.tools import AgentContext, Delegate, Fatal, Handoff, Output, Tool, ToolContext, check_name, fatal, is_tool


@pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 64])
def test_a_name_that_a_provider_takes(name) -> None:
    """1 to 64 characters of letters, digits, _ and -."""
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 65, "a.b", "a\n", "'", None, 3])
def test_any_other_name_is_refused_with_the_way_out(name) -> None:
    """When the tool is made, not when a request is refused."""
    with pytest.raises(DeclarationError) as caught:
        made(name)
    assert str(caught.value) == (
        f"tool name {name!r}: a name has 1 to 64 characters of a-z, A-Z, 0-9, _ and -; give one with name="
    )


@pytest.mark.parametrize("seconds", [0, -1, True, "1", float("nan"), float("inf")])
def test_a_timeout_is_a_positive_finite_number(seconds) -> None:
    """Booleans and text are none."""
    with pytest.raises(DeclarationError) as caught:
        made("slow", timeout=seconds)
    assert str(caught.value) == f"tool slow: timeout={seconds!r} is not a positive number of seconds"


@pytest.mark.parametrize("seconds", [None, 1, 0.001])
def test_a_timeout_that_is_taken(seconds) -> None:
    """None means no limit."""
    assert made("slow", timeout=seconds).timeout == seconds


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        (NUMBER, {"type": "object", **NUMBER}),
        ('{"type":"object","properties":{}}', {"type": "object", "properties": {}}),
    ],
)
def test_a_schema_is_given_as_data_or_as_text(parameters, schema) -> None:
    """What makes an object schema whole is added: its type and its properties."""
    assert Tool("t", "", parameters).parameters == schema


def test_a_schema_that_is_no_object_is_left_to_its_author() -> None:
    """A type that is given is not given another one; what is wrong with it comes out of strict conversion."""
    assert Tool("t", "", {"type": "string"}, strict=False).parameters == {"type": "string"}


def test_a_schema_is_plain_data() -> None:
    """What has no JSON form is refused where it is declared."""
    with pytest.raises(DeclarationError, match=r"^parameters must be a JSON Schema of plain data: "):
        Tool("t", "", {"properties": {"x": {"enum": {1}}}})


def test_a_schema_that_is_none_is_refused_when_the_tool_is_made() -> None:
    """A call can then only fail for what the model wrote."""
    with pytest.raises(DeclarationError, match="it is no JSON Schema"):
        Tool("t", "", {"properties": {"x": {"type": "objekt"}}}, strict=False)


def test_what_a_tool_shows_is_the_callers_own() -> None:
    """Changing the data that was given back changes no tool."""
    tool = made("t", None, NUMBER)
    tool.parameters["properties"].clear()
    tool.definition.clear()
    assert tool.parameters["properties"] == NUMBER["properties"]
    assert tool.definition["name"] == "t"


def test_what_is_sent_of_a_tool() -> None:
    """Strict is the default; the definition is JSON text."""
    tool: Tool[..., Any, Any] = Tool("add", "Add.", NUMBER)
    assert tool.definition == {
        "type": "function",
        "name": "add",
        "description": "Add.",
        "parameters": {"type": "object", **NUMBER},
        "strict": True,
    }
    assert tool.told == ToolDefinition("add", tool.definition_text, "", "function_call")


def test_a_lenient_or_deferred_tool_says_so() -> None:
    """`strict=False` sends the schema as it is, `defer_loading` a flag."""
    tool: Tool[..., Any, Any] = Tool("t", "", {"properties": {"x": {}}}, strict=False, defer_loading=True)
    assert tool.definition == {
        "type": "function",
        "name": "t",
        "description": "",
        "parameters": {"type": "object", "properties": {"x": {}}},
        "strict": False,
        "defer_loading": True,
    }


def test_arguments_of_a_tool_by_hand_are_judged() -> None:
    """A hand-written schema is not only sent."""
    tool = made("t", None, NUMBER)
    assert tool.read('{"x": "1"}') == Failure(InvalidArguments(("$.x: '1' is not of type 'integer'",)))
    assert tool.read('{"x": 1}').unwrap().given == '{"x":1}'


async def async_function(context, text):
    return text


class AsyncCallable:
    async def __call__(self, context, text):
        return text


class SyncCallable:
    def __call__(self, context, text):
        return text


@pytest.mark.parametrize(
    ("function", "asynchronous"),
    [
        (async_function, True),
        (AsyncCallable(), True),
        (functools.partial(async_function), True),
        (SyncCallable(), False),
        (lambda context, text: text, False),
        (None, False),
    ],
)
def test_a_function_that_is_async_is_known_as_such(function, asynchronous) -> None:
    """Callables and partials included."""
    assert made("t", function).asynchronous is asynchronous


def test_a_tool_is_still_its_plain_function() -> None:
    """Called as a function, it runs what it was made of."""
    tool = made("t", plain=lambda left, right=1: left + right)
    assert tool(2) == 3
    assert tool(2, right=5) == 7


def test_a_tool_by_hand_has_no_plain_function() -> None:
    """The message names what to do instead."""
    with pytest.raises(TypeError) as caught:
        made("t")()
    assert str(caught.value) == "the tool 't' was not made of a plain function; use invoke(tool, arguments)"


def test_a_tool_is_told_from_a_source() -> None:
    """Anything else in an agent's tools is a function that lists tools."""
    assert is_tool(made("t")) is True
    assert is_tool(async_function) is False


def test_a_changed_tool_keeps_its_policy() -> None:
    """`evolve` changes what it is told to and nothing else."""
    tool = made("t", timeout=2.0, on_error=fatal, serial=True)
    other = evolve(tool, name="u")
    assert (other.name, other.timeout, other.on_error, other.serial) == ("u", 2.0, fatal, True)


def test_what_answers_a_call() -> None:
    """Outputs have text, handoffs a text that is never empty, delegates an input made of items."""
    assert Output("a").text == "a"
    assert Output((Text("a"), Image(url="u"), Text("b"))).text == "ab"
    assert Handoff("billing").output == '{"assistant":"billing"}'
    assert Handoff("billing", "over to them").output == "over to them"
    assert Delegate("clerk", "go").input == (Message("user", "go"),)


def test_fatal_ends_the_run() -> None:
    """As `on_error` it answers `Fatal`, whatever went wrong."""
    context = ToolContext(None, "a", 0, (), start("a", ""), tool=made("t"))
    assert fatal(context, ToolRaised("ValueError")) == Fatal()


def test_a_context_shows_the_run_so_far() -> None:
    """Usage and items are those of the run that it was planned from."""
    run = folded(start("a", "hi"), replied(0, "hello"))
    context = AgentContext({"user": 1}, "a", 1, (), run)
    assert context.usage == Usage(requests=1)
    assert context.items == (Message("user", "hi"), Message("assistant", "hello"))


def test_a_context_by_hand_has_quiet_defaults() -> None:
    """Nobody has cancelled the call, nobody listens, nothing is remembered."""
    context = ToolContext(None, "a", 0, (), start("a", ""), tool=made("t"))
    context.emit(TextDelta("x"))
    assert (context.cancelled(), context.memory, context.arguments) == (False, "", "{}")


def test_a_context_remembers_what_its_tool_last_left() -> None:
    """Memory belongs to one tool of one agent; an output without memory does not erase it."""
    run = folded(
        start("a", "hi"),
        replied(0, call("t"), call("u")),
        Returned("0.0", Success(Output("1", memory="first"))),
        Returned("0.1", Success(Output("2", memory="other"))),
        replied(1, call("t"), call("t")),
        Returned("1.0", Success(Output("3", memory="second"))),
        Returned("1.1", Failure(ToolRaised("ValueError"))),
        replied(2, call("t")),
        Returned("2.0", Success(Output("4"))),
    )
    asked = [("a", "t"), ("a", "u"), ("a", "v"), ("b", "t")]
    memories = [ToolContext(None, agent, 2, (), run, tool=made(name)).memory for agent, name in asked]
    assert memories == ["second", "other", "", ""]


def test_tools_and_agents_compare_by_identity() -> None:
    """Two that look alike are two: they hold functions, which have no equality."""
    assert given("t", 1) != given("t", 1)
    assert Agent("a") != Agent("a")


@pytest.mark.parametrize("option", ["needs_approval", "is_enabled"])
def test_a_rule_is_a_bool_or_a_function(option) -> None:
    """What could only be refused when the tool is called is refused when it is made."""
    with pytest.raises(DeclarationError, match=f"tool t: {option}='always' is neither a bool nor a function"):
        Tool("t", "", {}, print, **{option: "always"})

"""What is read off a run and its agents: who speaks, with which tools, and what the model is told."""

import pytest
from helpers import call, folded, given, listed, made, replied

from fnagents.agent import Agent, StopAt
from fnagents.errors import FunctionRaised, ServerFailed, ToolRaised
from fnagents.items import Message, Opaque, Reasoning, Refusal, Text, ToolCall, ToolOutput
from fnagents.models import ModelResponse, ModelSettings, Sent
from fnagents.outcome import Failure, Success
from fnagents.protocol import Finished, Listing, Prepared, Refused, Reopened, Replied, Returned
from fnagents.runs import Turn, start
from fnagents.schemas.output import schema
from fnagents.tools import Handoff, Output
from fnagents.transcript import (
    Known,
    final_text,
    identity,
    is_dynamic,
    known_tools,
    listing,
    request,
    speaker,
    stopping_output,
)

TURN = Turn("a")


async def source(context):
    return ()


def test_a_call_is_resolved_by_kind_namespace_and_name() -> None:
    """The id plays no part."""
    assert identity(ToolCall("c", "n", kind="k", namespace="s")) == ("k", "s", "n")


def test_the_speaker_changes_with_a_handoff() -> None:
    """The root speaks first, then the last turn's agent, then whom it handed over to."""
    run = start("a", "hi")
    assert speaker(run) == "a"
    run = folded(run, replied(0, call("to_b")))
    assert speaker(run) == "a"
    run = folded(run, Returned("0.0", Success(Handoff("b"))))
    assert speaker(run) == "b"
    assert speaker(folded(run, replied(1, "hello"))) == "b"


@pytest.mark.parametrize(
    ("options", "serial", "gate"),
    [
        ({}, False, False),
        ({"serial": True}, True, False),
        ({"needs_approval": True}, False, True),
        ({"needs_approval": lambda context, values: False}, False, True),
    ],
)
def test_what_the_core_knows_of_a_tool(options, serial, gate) -> None:
    """A predicate is a gate, whatever it will say."""
    tool = made("t", **options)
    assert listing(tool) == Listing(tool.told, serial, gate)


@pytest.mark.parametrize(
    ("options", "dynamic"),
    [
        ({}, False),
        ({"instructions": "text", "tools": [made("t", is_enabled=False)]}, False),
        ({"instructions": lambda context: "text"}, True),
        ({"tools": [source]}, True),
        ({"tools": [made("t", is_enabled=lambda context: True)]}, True),
        ({"handoffs": [made("t", is_enabled=lambda context: True)]}, True),
    ],
)
def test_a_turn_is_prepared_only_where_something_is_a_function(options, dynamic) -> None:
    """Instructions, a predicate or a source."""
    assert is_dynamic(Agent("a", **options)) is dynamic


def test_the_tools_of_a_turn_are_those_it_was_opened_with() -> None:
    """Without a `Prepared`, the agent's own that are enabled; handoffs are known as such."""
    on, off, over = made("on"), made("off", is_enabled=False), made("over")
    agent = Agent("a", tools=[on, off], handoffs=[over, made("out", is_enabled=False)])
    static = {
        ("function_call", "", "on"): Known(listing(on), handoff=False),
        ("function_call", "", "over"): Known(listing(over), handoff=True),
    }
    assert known_tools(agent, None) == static
    assert known_tools(agent, TURN) == static
    prepared = Turn("a", Prepared(0, tools=(listed("x"),), handoffs=(listed("y"),)))
    assert known_tools(agent, prepared) == {
        ("function_call", "", "x"): Known(listed("x"), handoff=False),
        ("function_call", "", "y"): Known(listed("y"), handoff=True),
    }


def test_the_model_is_told_what_the_agent_says() -> None:
    """Instructions, enabled tools, settings, model and the schema of the output."""
    tool = made("t")
    agent = Agent("a", "Help.", model="m", tools=[tool], settings=ModelSettings(top_p=0.5), output_type=int)
    asked = request(agent, start("a", "hi"))
    assert asked.sent == Sent("Help.", (tool.told,), ModelSettings(top_p=0.5), "m", schema(int).text)
    assert (asked.agent, asked.turn, asked.items) == ("a", 0, (Message("user", "hi"),))


def test_a_lenient_output_schema_says_so() -> None:
    """The whole format is sent where the schema is not strict."""
    lenient = schema({"type": "object", "properties": {}}, strict=False, name="n")
    asked = request(Agent("a", output_type=lenient), start("a", "hi"))
    assert asked.sent.output_schema == (f'{{"type":"json_schema","name":"n","schema":{lenient.text},"strict":false}}')


def test_an_opened_turn_is_the_one_that_is_asked_for() -> None:
    """With the instructions and tools that were recorded, and nothing of its own in the conversation."""
    agent = Agent("a", lambda context: "now")
    run = folded(start("a", "hi"), Prepared(0, "then", (listed("x"),)))
    asked = request(agent, run)
    assert (asked.turn, asked.sent.instructions, asked.sent.tools) == (0, "then", (listed("x").definition,))


def test_a_turn_that_could_not_be_opened_is_not_asked_for() -> None:
    """After the run was reopened, the next turn is."""
    agent = Agent("a", lambda context: "now")
    failure = FunctionRaised("instructions", "OSError")
    run = folded(
        start("a", "hi"),
        Prepared(0, failure=failure),
        Finished(1, Failure(failure)),
        Reopened(1, 10),
    )
    assert (request(agent, run).turn, request(agent, run).sent.instructions) == (1, None)


USED = (replied(0, call("t")), Returned("0.0", Success(Output("x"))))


@pytest.mark.parametrize(
    ("choice", "reset", "events", "expected"),
    [
        ("required", True, (), "required"),
        ("required", True, (replied(0, "x"), Refused(1, "no")), "required"),
        ("required", True, USED, None),
        ("t", True, USED, None),
        ("required", False, USED, "required"),
        ("auto", True, USED, "auto"),
        ("none", True, USED, "none"),
        (None, True, USED, None),
    ],
)
def test_a_forced_tool_choice_holds_until_the_agent_has_used_a_tool(choice, reset, events, expected) -> None:
    """Unless `reset_tool_choice` is off; what forces nothing is never reset."""
    agent = Agent("a", tools=[made("t")], settings=ModelSettings(tool_choice=choice), reset_tool_choice=reset)
    run = folded(start("a", "hi"), *events)
    assert request(agent, run).settings == ModelSettings(tool_choice=expected)


def test_another_agents_tool_use_resets_nothing() -> None:
    """Use is counted per agent."""
    agent = Agent("b", settings=ModelSettings(tool_choice="required"))
    run = folded(start("a", "hi"), replied(0, call("to_b")), Returned("0.0", Success(Handoff("b"))))
    assert request(agent, run).settings.tool_choice == "required"


def test_a_server_that_holds_the_conversation_is_sent_its_tail() -> None:
    """First the input, later only the outputs since its last reply; a failed call changes nothing."""
    agent = Agent("a", tools=[made("t")])
    run = start("a", "hi", previous_response_id="r0")
    first = request(agent, run)
    assert (first.items, first.previous_response_id) == ((Message("user", "hi"),), "r0")
    answer = Replied(0, Success(ModelResponse((call("t"),), id="r1")))
    run = folded(run, answer, Returned("0.0", Success(Output("x"))))
    second = request(agent, run)
    assert (second.turn, second.items, second.previous_response_id) == (1, (ToolOutput("c", "x"),), "r1")
    down = ServerFailed("down")
    again = request(agent, folded(run, Replied(1, Failure(down))))
    assert (again.turn, again.items, again.previous_response_id) == (2, (ToolOutput("c", "x"),), "r1")


def test_a_conversation_keeps_its_id() -> None:
    """The tail is sent under the same id each time."""
    run = folded(start("a", "hi", conversation_id="v"), replied(0, "{}"), Refused(1, "no"))
    asked = request(Agent("a"), run)
    told = "The final output is not of the expected type: no. Answer again in that type."
    assert (asked.items, asked.conversation_id, asked.previous_response_id) == ((Message("user", told),), "v", None)


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ((), ""),
        ((Message("assistant", "hello"),), "hello"),
        ((Message("assistant", "one"), Reasoning(("r",)), Message("assistant", "two")), "two"),
        ((Message("assistant", (Text("a"), Text("b"))),), "ab"),
        ((Message("assistant", (Refusal("no"),)),), ""),
        ((Reasoning(("r",)),), ""),
        ((Opaque("web_search_call", "{}"),), None),
        ((Opaque("web_search_call", "{}"), Message("assistant", "found")), "found"),
        ((Message("assistant", "wait"), call("t")), None),
    ],
)
def test_the_answer_that_ends_a_run(items, text) -> None:
    """The last message of an answer that calls no tool; a hosted step without words is not the end."""
    assert final_text(folded(start("a", ""), replied(0, *items)).turns[0]) == text


def test_no_answer_is_no_final_text() -> None:
    """A failed model call ends nothing by words."""
    assert final_text(Turn("a", replied=Replied(0, Failure(ServerFailed("x"))))) is None


def turn(*answers):
    calls = [ToolCall(str(index), name, namespace=space) for index, (name, space, _) in enumerate(answers)]
    events = [Returned(f"0.{index}", answer) for index, (_, _, answer) in enumerate(answers)]
    return folded(start("a", ""), replied(0, *calls), *events).turns[0]


FAILED = Failure(ToolRaised("OSError"))


@pytest.mark.parametrize(
    ("behavior", "answers", "text"),
    [
        ("run_llm_again", [("t", "", Success(Output("1")))], None),
        (lambda context, results: "x", [("t", "", Success(Output("1")))], None),
        ("stop_on_first_tool", [("t", "", Success(Output("1"))), ("u", "", Success(Output("2")))], "1"),
        ("stop_on_first_tool", [("t", "", FAILED), ("u", "", Success(Output("2")))], "2"),
        ("stop_on_first_tool", [("t", "", FAILED)], None),
        (StopAt("u", "v"), [("t", "", Success(Output("1"))), ("u", "", Success(Output("2")))], "2"),
        (StopAt("n.t"), [("t", "", Success(Output("1"))), ("t", "n", Success(Output("2")))], "2"),
        (StopAt("u"), [("t", "", Success(Output("1")))], None),
        (StopAt("t"), [("t", "", FAILED)], None),
    ],
)
def test_an_output_that_ends_a_run(behavior, answers, text) -> None:
    """The first successful one in call order that the behaviour names; a failure is feedback, not an answer."""
    agent = Agent("a", tools=[given("t", "")], tool_use_behavior=behavior)
    assert stopping_output(agent, turn(*answers)) == text


def test_only_function_calls_stop_a_run() -> None:
    """A shell's or a computer's output is for the model."""
    run = folded(
        start("a", ""),
        replied(0, ToolCall("c", "shell", kind="shell_call")),
        Returned("0.0", Success(Output("x"))),
    )
    assert stopping_output(Agent("a", tool_use_behavior="stop_on_first_tool"), run.turns[0]) is None

"""Runs as values: what is read off their calls and turns."""

import gc
import weakref

import pytest
from helpers import call, folded, given, replied

from fnagents import run_sync
from fnagents.agent import Agent
from fnagents.errors import (
    ConnectionFailed,
    Incomplete,
    NestedFailed,
    ToolRaised,
    ToolRejected,
    TurnsExhausted,
    UnknownTool,
)
from fnagents.items import Message, Text, ToolCall, ToolOutput
from fnagents.models import ModelResponse, Usage
from fnagents.outcome import Failure, Success
from fnagents.protocol import Approved, Checked, Checkup, Declined, Finished, Refused, Replied, Returned
from fnagents.runs import ALREADY_HANDED_OVER, CallState, Input, Run, Turn, start
from fnagents.testing import scripted
from fnagents.tools import Delegate, Handoff, Output

CHECKUP = Checkup("{}", "d", needed=True)


def test_a_run_begins_with_its_input() -> None:
    """Nothing is invented: no id, no time."""
    run = start(Agent("a"), "hi")
    assert run == Run("a", "hi") == start("a", [Message("user", "hi")])
    assert (run.id, run.max_turns, run.turns, run.outcome, run.usage) == ("", 10, (), None, Usage())
    assert run.items == (Message("user", "hi"),)
    assert Run("a", Input((Message("user", "hi"),))) == run


def test_a_run_prints_how_many_turns_it_has() -> None:
    """Not all of them."""
    assert "turns=<1 turns>" in repr(folded(start("a", "hi"), replied(0, "hello")))


def test_a_limit_below_zero_is_a_mistake() -> None:
    """None is no limit, 0 is a limit."""
    assert [start("a", "", max_turns=limit).max_turns for limit in (None, 0, 3)] == [None, 0, 3]
    with pytest.raises(ValueError, match=r"^max_turns=-1 is neither a count of turns nor None$"):
        start("a", "", max_turns=-1)


def test_a_conversation_has_one_place_to_be_kept() -> None:
    """The server's response or its conversation, not both."""
    assert start("a", "", previous_response_id="r").previous_response_id == "r"
    assert start("a", "", conversation_id="c").conversation_id == "c"
    with pytest.raises(ValueError, match="a conversation has one place to be kept"):
        start("a", "", previous_response_id="r", conversation_id="c")


def child(outcome):
    ended = () if outcome is None else (Finished(0, outcome),)
    return Run("b", "go", ends=ended)


ANSWERS = [
    (CallState(call("t"), "c"), None, None),
    (CallState(call("t"), "c", gate=(Checked("0.0", Success(CHECKUP)),)), None, None),
    (
        CallState(call("t"), "c", gate=(Checked("0.0", Failure(UnknownTool("t"))),)),
        Failure(UnknownTool("t")),
        "There is no tool named 't'. There are no tools.",
    ),
    (
        CallState(call("t"), "c", gate=(Checked("0.0", Failure(UnknownTool("t")), "no such thing"),)),
        Failure(UnknownTool("t")),
        "no such thing",
    ),
    (
        CallState(call("t"), "c", gate=(Checked("0.0", Success(CHECKUP)),), decision=Approved("0.0", "d")),
        None,
        None,
    ),
    (
        CallState(call("t"), "c", gate=(Checked("0.0", Success(CHECKUP)),), decision=Declined("0.0", "d", "no")),
        Failure(ToolRejected("no")),
        "no",
    ),
    (
        CallState(call("t"), "c", decision=Declined("0.0", "d")),
        Failure(ToolRejected("")),
        "The tool call was not approved.",
    ),
    (CallState(call("t"), "c", returned=Returned("0.0", Success(Output("42")))), Success(Output("42")), "42"),
    (
        CallState(call("t"), "c", returned=Returned("0.0", Success(Output((Text("a"),))))),
        Success(Output((Text("a"),))),
        "a",
    ),
    (
        CallState(call("t"), "c", returned=Returned("0.0", Success(Handoff("b")))),
        Success(Handoff("b")),
        '{"assistant":"b"}',
    ),
    (
        CallState(call("t"), "c", returned=Returned("0.0", Failure(ToolRaised("OSError")))),
        Failure(ToolRaised("OSError")),
        "The tool failed: OSError",
    ),
    (
        CallState(call("t"), "c", returned=Returned("0.0", Failure(ToolRaised("OSError")), "try later")),
        Failure(ToolRaised("OSError")),
        "try later",
    ),
    (CallState(call("t"), "c", returned=Returned("0.0", Success(Delegate("b", "go")))), None, None),
    (
        CallState(call("t"), "c", returned=Returned("0.0", Success(Delegate("b", "go"))), child=child(None)),
        None,
        None,
    ),
    (
        CallState(call("t"), "c", returned=Returned("0.0", Success(Delegate("b", "go"))), child=child(Success("x"))),
        Success(Output("x")),
        "x",
    ),
    (
        CallState(
            call("t"),
            "c",
            returned=Returned("0.0", Success(Delegate("b", "go"))),
            child=child(Failure(TurnsExhausted(1))),
        ),
        Failure(NestedFailed("No final output after 1 turns, the limit of this run.")),
        "The agent that was to answer failed: No final output after 1 turns, the limit of this run.",
    ),
    (
        CallState(
            call("t"),
            "c",
            returned=Returned("0.0", Success(Delegate("b", "go", extract=True))),
            child=child(Success("x")),
        ),
        None,
        None,
    ),
    (
        CallState(
            call("t"),
            "c",
            returned=Returned("0.0", Success(Delegate("b", "go", extract=True))),
            child=child(Success("x")),
            extracted=Returned("0.0", Success(Output("X"))),
        ),
        Success(Output("X")),
        "X",
    ),
]


@pytest.mark.parametrize(("state", "answer", "text"), ANSWERS)
def test_what_answers_a_call(state, answer, text) -> None:
    """The answer, and what the model reads of it: the tool's feedback or the explanation of the error."""
    assert state.answer == answer
    assert (None if state.output is None else state.output.text) == text


def test_the_last_check_counts() -> None:
    """A check that failed leaves no checkup, a later one replaces an earlier one."""
    passed, failed = Checked("0.0", Success(CHECKUP)), Checked("0.0", Failure(UnknownTool("t")))
    assert CallState(call("t"), "c").checkup is None
    assert CallState(call("t"), "c", gate=(passed, Approved("0.0", "d"))).checkup == CHECKUP
    assert CallState(call("t"), "c", gate=(passed, failed)).checkup is None


@pytest.mark.parametrize(
    ("state", "usage"),
    [
        (CallState(call("t"), "c"), None),
        (CallState(call("t"), "c", returned=Returned("0.0", Failure(ToolRaised("OSError")))), None),
        (CallState(call("t"), "c", returned=Returned("0.0", Success(Output("x")))), None),
        (CallState(call("t"), "c", returned=Returned("0.0", Success(Output("x", Usage(1, 2, 3))))), Usage(1, 2, 3)),
        (CallState(call("t"), "c", child=folded(start("b", ""), replied(0, "x"))), Usage(1)),
        (
            CallState(
                call("t"),
                "c",
                child=folded(start("b", ""), replied(0, "x")),
                extracted=Returned("0.0", Success(Output("x", Usage(1, 2, 3)))),
            ),
            Usage(2, 2, 3),
        ),
    ],
)
def test_what_a_call_cost_beyond_the_runs_own_model_calls(state, usage) -> None:
    """The nested run, and what a tool says that it asked of models itself."""
    assert state.usage == usage


@pytest.mark.parametrize(
    ("event", "usage"),
    [
        (None, Usage()),
        (Replied(0, None), Usage()),
        (Replied(0, Success(ModelResponse((), Usage(1, 5, 6)))), Usage(1, 5, 6)),
        (Replied(0, Failure(ConnectionFailed("x"))), Usage(1)),
        (Replied(0, Failure(Incomplete("cut", ModelResponse((), Usage(1, 7, 8))))), Usage(1, 7, 8)),
    ],
)
def test_what_a_turn_cost(event, usage) -> None:
    """A failed request is a request, and what arrived of it was paid for."""
    assert Turn("a", replied=event).usage == usage


def test_usage_is_folded_from_events() -> None:
    """Ten calls in one turn lose none of their costs: nothing is counted by the side."""
    calls = [call("t", f"c{index}") for index in range(10)]
    answers = [Returned(f"0.{index}", Success(Output("x", Usage(1, index, 1)))) for index in range(10)]
    run = folded(start("a", "hi"), replied(0, *calls), *reversed(answers))
    assert run.usage == Usage(11, 45, 10)


def test_repeated_and_missing_call_ids_get_one_of_their_own() -> None:
    """Providers repeat ids and leave them out; on the wire each call has its own, the answer under the same one."""
    run = folded(
        start("a", [ToolCall("taken", "old")]),
        replied(0, call("t", "c"), call("t", "c"), call("t", ""), call("t", "taken"), call("t", "call_0_5")),
        *(Returned(f"0.{index}", Success(Output(str(index)))) for index in range(5)),
        replied(1, call("t", "c"), call("t", "call_1_0")),
    )
    ids = [state.id for turn in run.turns for state in turn.calls]
    assert ids == ["c", "call_0_1", "call_0_2", "call_0_3", "call_0_5", "call_1_0", "call_1_1"]
    assert [item.id for item in run.items if isinstance(item, ToolCall)] == ["taken", *ids]
    assert [(one.call_id, one.text) for one in run.turns[0].outputs] == list(zip(ids[:5], "01234", strict=True))


def test_a_made_id_that_is_taken_is_made_longer() -> None:
    """Whatever ids a provider thinks of, no two calls share one."""
    run = folded(start("a", [ToolCall("call_0_0", "old")]), replied(0, call("t", ""), call("t", "call_0_0")))
    assert [state.id for state in run.turns[0].calls] == ["call_0_0_", "call_0_1"]


def test_outputs_stand_in_call_order() -> None:
    """Whatever the order in which the calls were answered."""
    run = folded(
        start("a", "hi"),
        replied(0, call("t", "1"), call("t", "2"), call("t", "3")),
        Returned("0.2", Success(Output("c"))),
        Returned("0.0", Success(Output("a"))),
        Returned("0.1", Failure(ToolRaised("OSError"))),
    )
    assert [item for item in run.items if isinstance(item, ToolOutput)] == [
        ToolOutput("1", "a"),
        ToolOutput("2", "The tool failed: OSError"),
        ToolOutput("3", "c"),
    ]


def test_after_a_handoff_the_other_calls_of_the_turn_read_as_not_run() -> None:
    """Every call has an output, and none of them is open."""
    run = folded(
        start("a", "hi"),
        replied(0, call("to_b", "1"), call("to_c", "2")),
        Returned("0.0", Success(Handoff("b", "to b"))),
    )
    turn = run.turns[0]
    assert turn.handoff == Handoff("b", "to b")
    assert turn.open == ()
    assert list(turn.outputs) == [ToolOutput("1", "to b"), ToolOutput("2", ALREADY_HANDED_OVER)]


def test_a_refused_output_is_followed_by_the_reason() -> None:
    """The model reads why, as a user's message."""
    run = folded(start("a", "hi"), replied(0, "{}"), Refused(1, "no x"))
    told = "The final output is not of the expected type: no x. Answer again in that type."
    assert run.items[-1] == Message("user", told)


def test_a_turn_without_an_answer_adds_nothing() -> None:
    """A failed model call leaves the conversation as it was."""
    run = folded(start("a", "hi"), Replied(0, Failure(ConnectionFailed("x"))))
    assert run.turns[0].response is None
    assert run.items == (Message("user", "hi"),)


def test_a_dropped_run_is_forgotten() -> None:
    """A run holds names and data: it keeps no agent, and nothing keeps the run or the agent."""
    agent = Agent("a", tools=[given("t", "x")])
    run = run_sync(agent, "hi", client=scripted(call("t"), "done"))
    of_agent, of_turn = weakref.ref(agent), weakref.ref(run.turns[0])
    del agent
    gc.collect()
    assert of_agent() is None
    assert run.outcome == Success("done")
    del run
    gc.collect()
    assert of_turn() is None

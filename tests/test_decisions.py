"""Questions of a paused run and their answers; going on after a failure."""

import asyncio

import pytest
from helpers import call, folded, given, replied, texts

from fnagents.agent import Agent
from fnagents.codec import dump_run, load_run
from fnagents.decisions import approve, interruptions, reject, reopen
from fnagents.errors import ServerFailed, TurnsExhausted, UnexpectedEventError
from fnagents.items import ToolCall
from fnagents.outcome import Failure, Success
from fnagents.protocol import Approved, Checked, Checkup, Declined, Finished, Reopened, Replied, Returned
from fnagents.running import resume, run_sync
from fnagents.runs import start
from fnagents.testing import scripted
from fnagents.tools import Delegate, Output
from fnagents.unfolding import events

TWO = ToolCall("c2", "pay", namespace="bank")


def asked(place, digest="d", definition="v", path=()):
    return Checked(place, Success(Checkup('{"eur":5}', digest, needed=True, definition=definition)), path=path)


def paused():
    """Four questions: two about one tool, one about another server's, and one in a nested run."""
    return folded(
        start("a", "hi"),
        replied(0, call("pay", "c0"), call("nest"), TWO, call("pay", "c3"), call("free")),
        asked("0.0"),
        asked("0.2"),
        asked("0.3", "e"),
        Returned("0.1", Success(Delegate("b", "go"))),
        replied(0, call("pay", "c9"), path=("0.1",)),
        asked("0.0", path=("0.1",)),
        Returned("0.4", Success(Output("free"))),
    )


def where(run):
    return [(*ask.path, ask.place) for ask in interruptions(run)]


def test_the_questions_of_a_run_are_read_off_it() -> None:
    """At any depth, in call order, with what a person needs to know."""
    run = paused()
    assert where(run) == [("0.0",), ("0.1", "0.0"), ("0.2",), ("0.3",)]
    first, nested = interruptions(run)[:2]
    assert (first.agent, first.tool, first.call_id, first.arguments) == ("a", "pay", "c0", '{"eur":5}')
    assert (nested.agent, nested.call_id) == ("b", "c9")


@pytest.mark.parametrize(
    "run",
    [
        start("a", "hi"),
        folded(start("a", "hi"), replied(0, call("pay"))),
        folded(start("a", "hi"), replied(0, call("pay")), asked("0.0"), Finished(1, Failure(TurnsExhausted(1)))),
    ],
)
def test_a_run_that_waits_for_nobody_has_no_questions(run) -> None:
    """Before a check and after the end."""
    assert interruptions(run) == ()


def test_a_decision_answers_its_own_call() -> None:
    """With the reason where it is declined; the other questions stay."""
    run = paused()
    one, two, three, four = interruptions(run)
    run = reject(approve(run, two), one, "too much")
    assert where(run) == [("0.2",), ("0.3",)]
    assert texts(run) == ["too much", "free"]
    child = run.turns[0].calls[1].child
    assert child is not None
    assert child.turns[0].calls[0].decision == Approved("0.0", "d")
    assert where(reject(approve(run, three), four)) == []


def test_deciding_always_answers_the_same_questions_of_that_run() -> None:
    """About the same tool of the same agent in the same nested run; one event each."""
    run = paused()
    first = interruptions(run)[0]
    approved = approve(run, first, always=True)
    assert where(approved) == [("0.1", "0.0"), ("0.2",)]
    assert [event for event in events(approved) if isinstance(event, Approved)] == [
        Approved("0.0", "d", always=True),
        Approved("0.3", "e"),
    ]
    rejected = reject(run, first, "no", always=True)
    assert [event for event in events(rejected) if isinstance(event, Declined)] == [
        Declined("0.0", "d", "no", always=True),
        Declined("0.3", "e", "no"),
    ]


def test_deciding_always_inside_stays_inside() -> None:
    """A nested run's sticky decision says nothing of its parents' calls."""
    run = paused()
    nested = interruptions(run)[1]
    assert where(approve(run, nested, always=True)) == [("0.0",), ("0.2",), ("0.3",)]


@pytest.mark.parametrize("decide", [approve, reject])
def test_a_question_is_answered_once(decide) -> None:
    """A second answer, or one for a call that the model never made, is a programmer's mistake."""
    run = paused()
    first = interruptions(run)[0]
    with pytest.raises(UnexpectedEventError):
        decide(decide(run, first), first)
    with pytest.raises(UnexpectedEventError):
        decide(folded(start("a", "hi"), replied(0, "x")), first)


def test_an_approval_is_for_the_arguments_that_were_shown() -> None:
    """A question that was kept while the call was checked again approves nothing."""
    run = folded(start("a", "hi"), replied(0, call("pay")), asked("0.0"))
    (old,) = interruptions(run)
    newer = folded(run, Approved("0.0", "d"), asked("0.0", "e"))
    (ask,) = interruptions(newer)
    assert (ask.attempt, ask.checkup.digest) == (3, "e")
    with pytest.raises(UnexpectedEventError, match="other arguments"):
        approve(newer, old)


@pytest.mark.parametrize(
    ("options", "limit"), [({}, 1), ({"max_turns": 5}, 5), ({"max_turns": None}, None), ({"max_turns": 0}, 0)]
)
def test_a_failed_run_can_be_reopened(options, limit) -> None:
    """With its limit or a new one; that it was is an event."""
    run = folded(start("a", "hi", max_turns=1), Replied(0, Failure(ServerFailed("x"))))
    run = folded(run, Finished(1, Failure(TurnsExhausted(1))))
    opened = reopen(run, **options)
    assert (opened.outcome, opened.max_turns) == (None, limit)
    assert events(opened) == (*events(run), Reopened(1, limit))


@pytest.mark.parametrize(
    "run", [start("a", "hi"), folded(start("a", "hi"), replied(0, "x"), Finished(1, Success("x")))]
)
def test_only_a_failed_run_can_be_reopened(run) -> None:
    """The message says how to go on with a finished one."""
    with pytest.raises(UnexpectedEventError) as caught:
        reopen(run)
    assert str(caught.value) == "only a failed run can be reopened; go on with a finished one by start(...)"


def test_a_sticky_approval_is_of_one_kind_of_call() -> None:
    """Another tool of the same name that answers calls of another kind is asked about."""
    both = [given("x", "ran", needs_approval=True, kind=kind) for kind in ("function_call", "custom_tool_call")]
    first, second = ToolCall("1", "x"), ToolCall("2", "x", kind="custom_tool_call")
    run = run_sync(Agent("a", tools=both), "hi", client=scripted([first, second], second, "end"))
    run = approve(run, interruptions(run)[0], always=True)
    assert [ask.call.kind for ask in interruptions(run)] == ["custom_tool_call"]
    run = reject(run, interruptions(run)[0])
    run = asyncio.run(resume(Agent("a", tools=both), run, client=scripted(second)))
    assert [ask.call.kind for ask in interruptions(run)] == ["custom_tool_call"]


def test_decisions_are_about_questions() -> None:
    """And `always` is a yes or a no."""
    run = run_sync(
        Agent("a", tools=[given("x", "ran", needs_approval=True)]), "hi", client=scripted(ToolCall("1", "x"))
    )
    with pytest.raises(TypeError, match="not about a str"):
        approve(run, "1")
    with pytest.raises(TypeError, match="always='no'"):
        reject(run, interruptions(run)[0], always="no")


def test_sticky_decisions_of_several_tools_are_loaded_again() -> None:
    """They are not saved but folded anew, and answer later calls as before."""
    names = ("x", "y", "z")
    agent = Agent("a", tools=[given(name, "ran", needs_approval=True) for name in names])
    run = run_sync(agent, "hi", client=scripted([ToolCall(name, name) for name in names]))
    for ask in interruptions(run):
        run = approve(run, ask, always=True)
    loaded = load_run(dump_run(run)).unwrap()
    assert (loaded, loaded.sticky) == (run, run.sticky)
    again = scripted([ToolCall(f"{name}2", name) for name in names], "done")
    assert asyncio.run(resume(agent, loaded, client=again)).outcome == Success("done")

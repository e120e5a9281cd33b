"""`step`, `fold` and `events`: what is folded into a run, and what does not fit."""

import itertools

import pytest
from helpers import call, folded, listed, replied

from fnagents.errors import (
    ServerFailed,
    ToolRaised,
    TurnsExhausted,
    UnexpectedEvent,
    UnexpectedEventError,
)
from fnagents.folding import fold, step
from fnagents.items import Message
from fnagents.outcome import Failure, Success
from fnagents.protocol import (
    Approved,
    Checked,
    Checkup,
    Decided,
    Declined,
    Finished,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
)
from fnagents.runs import DEEPEST_RUN, MOST_CALLS, MOST_GATES, start
from fnagents.tools import Delegate, Handoff, Output
from fnagents.unfolding import events

ERROR = ToolRaised("OSError")
OUTPUT = Returned("0.0", Success(Output("x")))
DELEGATED = Returned("0.0", Success(Delegate("b", "go")))
EXTRACTING = Returned("0.0", Success(Delegate("b", "go", extract=True)))
CALLED = replied(0, call("t"))
NESTED_END = Finished(1, Success("x"), path=("0.0",))


def checked(place="0.0", *, digest="d", needed=True, definition="", path=()):
    return Checked(place, Success(Checkup("{}", digest, needed, definition)), path=path)


REFUSED = [
    ((), replied(1, "x"), "Replied at turn 1", "the next turn is 0"),
    ((), Prepared(1), "Prepared at turn 1", "the next turn is 0"),
    ((CALLED,), replied(1, "x"), "Replied at turn 1", "the call 0.0 is not answered"),
    ((CALLED,), Prepared(1), "Prepared at turn 1", "the call 0.0 is not answered"),
    ((Prepared(0),), Prepared(0), "Prepared at turn 0", "turn 0 is already open"),
    ((Prepared(0),), replied(1, "x"), "Replied at turn 1", "the turn that waits for the model is 0"),
    ((), Decided(0), "Decided at turn 0", "that turn is not the last one, or not all answered"),
    ((CALLED,), Decided(0), "Decided at turn 0", "that turn is not the last one, or not all answered"),
    ((CALLED, OUTPUT), Decided(1), "Decided at turn 1", "that turn is not the last one, or not all answered"),
    ((CALLED, OUTPUT, Decided(0)), Decided(0), "Decided at turn 0", "the turn is already decided"),
    ((Prepared(0),), Refused(1, ""), "Refused at turn 1", "that turn is not the last one, or not all answered"),
    ((replied(0, "x"), Refused(1, "")), Refused(1, ""), "Refused at turn 1", "the output is already refused"),
    ((), Finished(1, Success("")), "Finished at turn 1", "the run is at turn 0"),
    ((), Finished(0, Success("")), "Finished at turn 0", "there is no answered turn that could have a final output"),
    (
        (Replied(0, Failure(ServerFailed(""))),),
        Finished(1, Success("")),
        "Finished at turn 1",
        "there is no answered turn that could have a final output",
    ),
    ((CALLED,), Finished(1, Success("")), "Finished at turn 1", "there is no answered turn that could have a final output"),
    ((replied(0, "x"), Finished(1, Success("x"))), replied(1, "y"), "Replied at turn 1", "the run has ended"),
    ((replied(0, "x"), Finished(1, Success("x"))), Reopened(1, 5), "Reopened at turn 1", "only a failed run can be reopened"),
    ((), Reopened(0, 5), "Reopened at turn 0", "only a failed run can be reopened"),
    ((Finished(0, Failure(TurnsExhausted(0))),), Reopened(1, 5), "Reopened at turn 1", "the run is at turn 0"),
    (
        (CALLED, DELEGATED, Finished(0, Failure(TurnsExhausted(0)), path=("0.0",)), Finished(1, Failure(TurnsExhausted(1)))),
        Reopened(0, 5, path=("0.0",)),
        "Reopened at 0.0/turn 0",
        "the run has ended",
    ),
    ((), OUTPUT, "Returned at 0.0", "there is no such call in the last turn"),
    ((CALLED, OUTPUT, replied(1, call("t"))), OUTPUT, "Returned at 0.0", "there is no such call in the last turn"),
    ((CALLED,), Returned("0.1", OUTPUT.outcome), "Returned at 0.1", "there is no such call in the last turn"),
    ((CALLED,), Returned("0.00", OUTPUT.outcome), "Returned at 0.00", "there is no such call in the last turn"),
    ((CALLED,), Returned("0.-1", OUTPUT.outcome), "Returned at 0.-1", "there is no such call in the last turn"),
    ((CALLED,), Returned("0.\u0660", OUTPUT.outcome), "Returned at 0.\u0660", "there is no such call in the last turn"),
    ((CALLED,), Returned("0." + "9" * 10, OUTPUT.outcome), "Returned at 0.9999999999", "there is no such call in the last turn"),
    ((CALLED,), Returned("", OUTPUT.outcome), "Returned at turn ?", "there is no such call in the last turn"),
    ((CALLED, OUTPUT), OUTPUT, "Returned at 0.0", "the call is already answered"),
    ((CALLED, OUTPUT), checked(), "Checked at 0.0", "the call is already answered"),
    ((CALLED, checked()), OUTPUT, "Returned at 0.0", "the call waits for a decision"),
    ((CALLED, checked()), checked(), "Checked at 0.0", "the call is not waiting for a check"),
    ((CALLED, DELEGATED), checked(), "Checked at 0.0", "the call is not waiting for a check"),
    ((CALLED,), Approved("0.0", "d"), "Approved at 0.0", "the call does not wait for a decision"),
    ((CALLED, checked(needed=False)), Approved("0.0", "d"), "Approved at 0.0", "the call does not wait for a decision"),
    ((CALLED, checked(), Approved("0.0", "d")), Declined("0.0", "d"), "Declined at 0.0", "the call does not wait for a decision"),
    ((CALLED, checked(), Declined("0.0", "d")), Approved("0.0", "d"), "Approved at 0.0", "the call is already answered"),
    (
        (CALLED, checked()),
        Approved("0.0", "e"),
        "Approved at 0.0",
        "the decision is about other arguments than the call has now",
    ),
    ((CALLED, DELEGATED), OUTPUT, "Returned at 0.0", "its nested run answers the call"),
    ((CALLED, EXTRACTING), OUTPUT, "Returned at 0.0", "its nested run answers the call"),
    (
        (CALLED, EXTRACTING, replied(0, "x", path=("0.0",)), NESTED_END),
        DELEGATED,
        "Returned at 0.0",
        "the call was delegated already",
    ),
    (
        (replied(0, call("h"), call("h")), Returned("0.0", Success(Handoff("b")))),
        Returned("0.1", Success(Handoff("b"))),
        "Returned at 0.1",
        "the call is already answered",
    ),
    ((CALLED,), replied(0, "x", path=("0.0",)), "Replied at 0.0/turn 0", "the call 0.0 has no nested run"),
    ((CALLED,), replied(0, "x", path=("1.0",)), "Replied at 1.0/turn 0", "there is no such call in the last turn"),
    (
        (CALLED, DELEGATED, replied(0, "x", path=("0.0",)), NESTED_END),
        replied(1, "x", path=("0.0",)),
        "Replied at 0.0/turn 1",
        "the call 0.0 is already answered",
    ),
    (
        (CALLED, EXTRACTING, Finished(0, Failure(TurnsExhausted(0)), path=("0.0",))),
        Reopened(0, 5, path=("0.0",)),
        "Reopened at 0.0/turn 0",
        "the nested run has ended",
    ),
    (
        (replied(0, call("a"), call("h")), DELEGATED, Returned("0.1", Success(Handoff("b")))),
        replied(0, "x", path=("0.0",)),
        "Replied at 0.0/turn 0",
        "the call 0.0 is already answered",
    ),
    ((), replied(0, *[call("t")] * (MOST_CALLS + 1)), "Replied at turn 0", "it has more than 1000 calls"),
    (
        (CALLED, *[checked(needed=False)] * MOST_GATES),
        checked(),
        "Checked at 0.0",
        "the call has 100 checks and decisions behind it",
    ),
    (
        (),
        Prepared(0, path=("0.0",) * (DEEPEST_RUN + 9)),
        f"Prepared at {'0.0/' * (DEEPEST_RUN + 1)}turn 0",
        "it goes on deeper than runs are nested",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "event", "at", "why"), REFUSED)
def test_an_event_that_does_not_fit_is_refused(before, event, at, why) -> None:
    """By name, place and reason; the run is a value and stays what it was."""
    run = folded(start("a", "hi"), *before)
    kept = events(run)
    with pytest.raises(UnexpectedEventError) as caught:
        step(run, event)
    assert str(caught.value) == f"{at} does not fit the run: {why}"
    assert events(run) == kept


@pytest.mark.parametrize(("before", "event", "at", "why"), REFUSED)
def test_fold_is_the_total_form_of_step(before, event, at, why) -> None:
    """It names the first event that does not fit by its index, and raises nothing."""
    given = [*before, event, event]
    reason = f"{at} does not fit the run: {why}"
    assert fold(start("a", "hi"), given) == Failure(UnexpectedEvent(reason, len(before)))


def test_the_message_of_a_misfit_inside_names_the_inner_place() -> None:
    """What the nested run refuses is said of its own place."""
    run = folded(start("a", "hi"), CALLED, DELEGATED)
    with pytest.raises(UnexpectedEventError, match=r"^Returned at 0.0 does not fit the run: there is no such call"):
        step(run, Returned("0.0", OUTPUT.outcome, path=("0.0",)))


LONG = (
    Prepared(0, "be brief", (listed("t"),)),
    replied(0, call("t", "1"), call("nest", "2"), call("gated", "3")),
    OUTPUT,
    Returned("0.1", Success(Delegate("b", "go", extract=True))),
    Prepared(0, path=("0.1",)),
    replied(0, call("deep"), path=("0.1",)),
    Returned("0.0", Success(Delegate("c", "deeper", max_turns=2, tool_input="{}")), path=("0.1",)),
    replied(0, "deep down", path=("0.1", "0.0")),
    Refused(1, "no", path=("0.1", "0.0")),
    Finished(1, Failure(TurnsExhausted(1)), path=("0.1", "0.0")),
    replied(1, "inner", path=("0.1",)),
    Finished(2, Success("inner"), path=("0.1",)),
    Returned("0.1", Success(Output("INNER"))),
    checked("0.2"),
    Approved("0.2", "d", always=True),
    checked("0.2", digest="e"),
    Declined("0.2", "e", "no"),
    Decided(0),
    Replied(1, Failure(ServerFailed("down"))),
    Finished(2, Failure(TurnsExhausted(2))),
    Reopened(2, None),
    replied(2, "{}"),
    Refused(3, "not this"),
    replied(3, "done"),
    Finished(4, Success("done")),
)


def test_a_run_is_the_fold_of_its_events() -> None:
    """Read back in canonical order, they make the same run again."""
    run = folded(start("a", "hi"), *LONG)
    assert events(run) == LONG
    assert fold(start("a", "hi"), events(run)) == Success(run)


@pytest.mark.parametrize("cut", range(len(LONG) + 1))
def test_a_fold_splits_anywhere(cut) -> None:
    """Folding the rest into what was folded before is folding all."""
    first = fold(start("a", "hi"), LONG[:cut]).unwrap()
    assert events(first) == LONG[:cut]
    assert fold(first, LONG[cut:]) == Success(folded(start("a", "hi"), *LONG))


def test_a_fold_is_the_steps_whatever_is_known_beside() -> None:
    """What is not compared is the same, too: ids on the wire, sticky decisions, the turn's handoff."""
    begun = start("a", "hi")
    hidden = [
        (run.ids, run.sticky, [turn.handoff for turn in run.turns])
        for run in (fold(begun, LONG).unwrap(), folded(begun, *LONG))
    ]
    assert hidden[0] == hidden[1]
    assert fold(begun, ()) == Success(begun)


def test_folding_leaves_the_run_alone() -> None:
    """A run is a value: what is folded into it makes another, sticky decisions included."""
    begun = folded(start("a", "hi"), *STICKY, Approved("0.0", "d", always=True), checked())
    kept = (events(begun), dict(begun.sticky))
    assert step(begun, Declined("0.0", "d", always=True)).sticky != begun.sticky
    assert (events(begun), begun.sticky) == kept


def test_a_turn_has_room_for_many_calls() -> None:
    """The most that a reply may have are answered in any order, and a call that many were made before is decided."""
    last = MOST_CALLS - 1
    run = folded(
        start("a", "hi"),
        replied(0, *[call("t")] * MOST_CALLS),
        *[checked(f"0.{last}", needed=False)] * (MOST_GATES - 1),
        checked(f"0.{last}"),
        Approved(f"0.{last}", "d"),
        *(Returned(f"0.{index}", OUTPUT.outcome) for index in reversed(range(MOST_CALLS))),
    )
    assert run.turns[0].open == ()
    assert len(run.turns[0].calls[last].gate) == MOST_GATES + 1


def nested(depth: int):
    """The events of runs nested so deep, each planted by the first call of the one above."""
    paths = [("0.0",) * level for level in range(depth)]
    return [
        event
        for path in paths
        for event in (replied(0, call("t"), path=path), Returned("0.0", DELEGATED.outcome, path=path))
    ]


def test_runs_are_nested_so_deep_and_no_deeper() -> None:
    """One stands below the deepest, to fail there: no file holds what nothing can walk."""
    lowest = DEEPEST_RUN + 1
    run = folded(start("a", "hi"), *nested(lowest))
    below = folded(run, replied(0, call("t"), path=("0.0",) * lowest))
    assert folded(below, Returned("0.0", OUTPUT.outcome, path=("0.0",) * lowest)) != below
    failed = fold(run, nested(lowest + 1)[2 * lowest :]).failure()
    assert failed.index == 1
    assert failed.reason.endswith("does not fit the run: no run is planted deeper than 17")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_siblings_may_answer_in_any_order(order) -> None:
    """The run is the same, and so is the order of its events."""
    answers = [Returned("0.0", Success(Output("x"))), Returned("0.1", Failure(ERROR)), checked("0.2")]
    begun = folded(start("a", "hi"), replied(0, call("t"), call("t"), call("g")))
    assert folded(begun, *(answers[index] for index in order)) == folded(begun, *answers)


def test_a_nested_run_is_planted_on_its_call() -> None:
    """It begins with what the tool delegated, and knows the structured arguments."""
    delegate = Delegate("b", "go", max_turns=2, tool_input='{"q":1}')
    run = folded(start("a", "hi"), CALLED, Returned("0.0", Success(delegate)))
    child = run.turns[0].calls[0].child
    assert child is not None
    assert (child.agent, child.input.items, child.max_turns, child.tool_input) == (
        "b",
        (Message("user", "go"),),
        2,
        '{"q":1}',
    )


def test_a_reopened_run_has_its_new_limit() -> None:
    """Also none at all."""
    run = folded(start("a", "hi", max_turns=0), Finished(0, Failure(TurnsExhausted(0))), Reopened(0, None))
    assert (run.outcome, run.max_turns) == (None, None)


STICKY = (CALLED, checked(definition="v1"))


@pytest.mark.parametrize(
    ("decision", "later"),
    [
        (Approved("0.0", "d", always=True), Approved("", "e")),
        (Declined("0.0", "d", "never", always=True), Declined("", "e", "never")),
        (Approved("0.0", "d"), None),
        (Declined("0.0", "d", "never"), None),
    ],
)
def test_a_sticky_decision_answers_calls_of_later_turns(decision, later) -> None:
    """One that is not `always` answers its own call alone."""
    run = folded(start("a", "hi"), *STICKY, decision)
    run = run if run.turns[0].calls[0].answer else folded(run, OUTPUT)
    run = folded(run, replied(1, call("t")), checked("1.0", digest="e", definition="v1"))
    assert run.turns[1].calls[0].decision == later


def test_a_sticky_decision_does_not_touch_the_turn_it_was_made_in() -> None:
    """Siblings are asked about (or answered by `approve`), whatever the order of their checks."""
    run = folded(
        start("a", "hi"),
        replied(0, call("t"), call("t")),
        checked("0.0", definition="v1"),
        Approved("0.0", "d", always=True),
        checked("0.1", definition="v1"),
    )
    assert run.turns[0].calls[1].decision is None


def test_the_last_sticky_decision_wins() -> None:
    """A person may change their mind."""
    run = folded(
        start("a", "hi"),
        replied(0, call("t"), call("t")),
        checked("0.0", definition="v1"),
        checked("0.1", definition="v1"),
        Approved("0.0", "d", always=True),
        Declined("0.1", "d", always=True),
        Returned("0.0", Success(Output("x"))),
        replied(1, call("t")),
        checked("1.0", digest="e", definition="v1"),
    )
    assert run.turns[1].calls[0].decision == Declined("", "e")


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_sticky_decision_is_last_in_call_order(first) -> None:
    """Whoever answered first; and those that can never count again are forgotten."""
    decisions = [Approved("1.0", "d", always=True), Declined("1.1", "d", always=True)]
    given = [
        *STICKY,
        Approved("0.0", "d", always=True),
        OUTPUT,
        replied(1, call("t"), call("t")),
        *(checked(f"1.{index}", definition="v2") for index in range(2)),
        decisions[first],
        decisions[1 - first],
        Returned("1.0", OUTPUT.outcome),
        replied(2, call("t")),
        checked("2.0", digest="e", definition="v2"),
    ]
    run = fold(start("a", "hi"), given).unwrap()
    assert run.sticky == folded(start("a", "hi"), *given).sticky
    assert run.turns[2].calls[0].decision == Declined("", "e")
    assert sorted(len(kept) for kept in run.sticky.values()) == [1, 1]


@pytest.mark.parametrize(
    ("name", "namespace", "definition", "agent"),
    [("u", "", "v1", "a"), ("t", "n", "v1", "a"), ("t", "", "v2", "a"), ("t", "", "v1", "b")],
)
def test_a_sticky_decision_is_about_one_tool_of_one_agent(name, namespace, definition, agent) -> None:
    """Another server's tool of that name, a changed definition or another agent is asked about anew."""
    over = Returned("0.0", Success(Handoff("b") if agent == "b" else Output("x")))
    from_call = call(name)
    run = folded(
        start("a", "hi"),
        *STICKY,
        Approved("0.0", "d", always=True),
        over,
        replied(1, type(from_call)("c", name, "{}", namespace=namespace)),
        checked("1.0", digest="e", definition=definition),
    )
    assert run.turns[1].agent == agent
    assert run.turns[1].calls[0].decision is None


def test_a_new_check_takes_an_approval_back() -> None:
    """What was approved is a digest; with other arguments the call is asked about again."""
    run = folded(start("a", "hi"), CALLED, checked(), Approved("0.0", "d"), checked(digest="e", needed=False))
    assert run.turns[0].calls[0].decision is None

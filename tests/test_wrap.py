"""Wrappers of the outside world: what each adds, and that it adds nothing else."""

import asyncio
import logging
from typing import Any

import pytest
from helpers import call, given, keys, made, replied, texts

from fnagents import (
    Agent,
    Approved,
    Ask,
    Checked,
    Checkup,
    Decided,
    Declined,
    Delegate,
    Effect,
    Event,
    Failure,
    Finished,
    ModelFailed,
    Output,
    Perform,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
    Run,
    Success,
    ToolRejected,
    agents,
    drive,
    events,
    explain,
    interruptions,
    key,
    performer,
    reopen,
    replay,
    start,
)
from fnagents.errors import BudgetSpent, ModelTimedOut, TurnsExhausted
from fnagents.matching import keyed
from fnagents.testing import run_virtual, scripted
from fnagents.wrap import approved_by, limited, observed, recorded, replayed

ADD = given("add", "3")
PAY = given("pay", "paid", needs_approval=True)
ASK = given("ask", Delegate("expert", "why?"))
CLERK = Agent("clerk", "Help.", tools=[ADD, PAY, ASK])
EXPERT = Agent("expert", "Know.", tools=[ADD, PAY])
EVERYONE = agents(CLERK, EXPERT)
BEGUN = start(CLERK, "hi")


def world(*replies: Any) -> Perform:
    return performer(EVERYONE, scripted(*replies))


def driven(perform: Perform, run: Run = BEGUN) -> Run:
    return asyncio.run(drive(EVERYONE, run, perform))


class Notes:
    """A record in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reached: list[str] = []

    def reach(self, effect: Effect) -> None:
        self.reached.append(key(effect))

    def append(self, event: Event) -> None:
        self.events.append(event)


# --- recorded and replayed -----------------------------------------------------------------------------


def test_recorded_writes_each_event_down_before_the_run_goes_on() -> None:
    """Every event is in the record in the order of arrival; a question that nobody answers leaves none."""
    notes = Notes()
    run = driven(recorded(world([call("add", "a"), call("pay", "b")]), notes))

    assert notes.reached == ["model-0", "call-0.0", "check-0.1", "ask-0.1"]
    assert tuple(notes.events) == events(run)


def test_replayed_answers_by_key_and_does_nothing() -> None:
    """The whole run comes back from its events, nested ones and decisions included, without a model or a tool."""
    run = driven(approved_by(world([call("ask", "a"), call("pay", "b")], call("pay"), "so", "done"), lambda ask: True))

    assert run.outcome == Success("done")
    assert driven(replayed(run)) == run
    assert driven(replayed(events(run))) == run


def test_replayed_goes_as_far_as_the_record() -> None:
    """What is not in the record is nobody's to answer: the run comes back unfinished."""
    run = driven(world(call("add"), "done"))
    half = driven(replayed(events(run)[:2]))

    assert half.outcome is None
    assert keys(EVERYONE, half) == ["model-1"]


def test_replayed_asks_the_other_world_for_the_rest() -> None:
    """Offline as far as the record goes, then live."""
    run = driven(world(call("add"), "done"))

    assert driven(replayed(events(run)[:2], world("something else"))).outcome == Success("something else")


def test_a_reopened_run_is_replayed_on_both_sides_of_its_reopening() -> None:
    """Effects that come after a reopening have keys of their own."""
    limited_run = start(CLERK, "hi", max_turns=1)
    failed = driven(world(call("add")), limited_run)
    ended = driven(world("done"), reopen(failed, max_turns=3))
    again = driven(replayed(ended), limited_run)

    assert again == failed
    assert driven(replayed(ended), reopen(again, max_turns=3)) == ended


def test_events_are_known_by_the_key_of_their_effect() -> None:
    """A call that is checked again, a nested run with an extractor, a refused output, an end and its reopening."""
    checkup, stale = Success(Checkup("{}", "b", True)), Success(Checkup("{}", "a", True))
    answer, delegate = Success(Output("3")), Success(Delegate("expert", "why?", extract=True))
    failed = Failure(TurnsExhausted(1))
    told: list[Event] = [
        Prepared(0),
        Decided(0),
        replied(0, call("pay"), call("ask")),
        Checked("0.0", stale),
        Approved("0.0", "a"),
        Checked("0.0", checkup),
        Declined("0.0", "b"),
        Returned("0.0", answer),
        Returned("0.1", delegate),
        replied(0, "so", path=("0.1",)),
        Finished(1, Success("so"), path=("0.1",)),
        Returned("0.1", answer),
        Refused(1, "not a number"),
        Finished(1, failed),
        Reopened(1, 5),
        Finished(1, Success("7")),
    ]

    assert list(keyed(told)) == [
        "prepare-0",
        "decide-0",
        "model-0",
        "check-0.0",
        "ask-0.0",
        "call-0.0",
        "ask-0.0~3",
        "call-0.0~4",
        "call-0.1",
        "0.1/model-0",
        "0.1/finish-1",
        "extract-0.1",
        "finish-1",
        "finish-1~1",
        "finish-1~3",
    ]
    assert list(keyed(told).values()) == [event for event in told if not isinstance(event, Reopened)]


# --- approved_by ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "read"),
    [(True, "paid"), (False, explain(ToolRejected())), ("no money", "no money"), ("", explain(ToolRejected()))],
)
def test_a_policy_answers_questions(said: bool | str, read: str) -> None:
    """True approves, False and a reason decline; the model reads the reason, or that there is none."""
    asked: list[Ask] = []

    def decide(ask: Ask) -> bool | str:
        asked.append(ask)
        return said

    run = driven(approved_by(world(call("pay"), "done"), decide))

    assert run.outcome == Success("done")
    assert [(ask.tool, ask.place) for ask in asked] == [("pay", "0.0")]
    assert texts(run) == [read]


def test_a_policy_may_be_async() -> None:
    """It is awaited."""

    async def decide(ask: Ask) -> bool:
        await asyncio.sleep(0)
        return True

    assert driven(approved_by(world(call("pay"), "done"), decide)).outcome == Success("done")


def test_a_policy_that_does_not_know_leaves_it_to_the_next() -> None:
    """None goes to the wrapped world: to another policy, or to nobody, and then the run pauses."""
    asked: list[str] = []

    def first(ask: Ask) -> None:
        asked.append("first")

    def second(ask: Ask) -> bool:
        asked.append("second")
        return True

    paused = driven(approved_by(world(call("pay")), first))
    assert len(interruptions(paused)) == 1
    run = driven(approved_by(approved_by(world(call("pay"), "done"), second), first))
    assert run.outcome == Success("done")
    assert asked == ["first", "first", "second"]


def test_nested_questions_are_answered_where_they_are() -> None:
    """The answer carries the path of the question."""
    run = driven(approved_by(world(call("ask"), call("pay"), "so", "done"), lambda ask: True))

    assert [event.path for event in events(run) if isinstance(event, Approved)] == [("0.0",)]


def test_a_policy_that_raises_has_not_decided(caplog: pytest.LogCaptureFixture) -> None:
    """The question stays open, the log has the traceback, and the run is not lost."""

    def decide(ask: Ask) -> bool:
        raise LookupError("no policy")

    with caplog.at_level(logging.WARNING, "fnagents.agents"):
        run = driven(approved_by(world(call("pay")), decide))

    assert len(interruptions(run)) == 1
    assert "no policy" in caplog.text
    assert "ask-0.0" in caplog.text


def test_a_policy_that_says_something_else_is_a_mistake() -> None:
    """1 is not True: what approves has to be meant."""
    with pytest.raises(TypeError, match="not a int"):
        driven(approved_by(world(call("pay")), lambda ask: 1))  # type: ignore[arg-type, return-value]


# --- observed ------------------------------------------------------------------------------------------


def test_an_observer_is_told_of_effects_and_events() -> None:
    """Of each effect as it begins, of each event with its effect; of an open question the beginning only."""
    told: list[tuple[str, str]] = []

    async def observer(effect: Effect, event: Event | None) -> None:
        await asyncio.sleep(0)
        told.append((key(effect), type(event).__name__))

    run = driven(observed(world(call("pay")), observer))

    assert run == driven(world(call("pay")))
    assert told == [
        ("model-0", "NoneType"),
        ("model-0", "Replied"),
        ("check-0.0", "NoneType"),
        ("check-0.0", "Checked"),
        ("ask-0.0", "NoneType"),
    ]


@pytest.mark.parametrize("report", [False, True])
@pytest.mark.parametrize("error", [ValueError("blind"), asyncio.CancelledError("blind")])
def test_an_observer_that_raises_changes_nothing(
    report: bool, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """The run is the same; what was raised goes to the log and to who wants to know."""
    reports: list[tuple[str, BaseException]] = []

    def observer(effect: Effect, event: Event | None) -> None:
        raise error

    on_raised = (lambda effect, raised: reports.append((key(effect), raised))) if report else None
    with caplog.at_level(logging.WARNING, "fnagents.agents"):
        run = driven(observed(world("done"), observer, on_raised))

    assert run == driven(world("done"))
    assert "blind" in caplog.text
    assert reports == ([(name, error) for name in ("model-0", "model-0", "finish-1", "finish-1")] if report else [])


def test_cancelling_passes_an_observer_and_a_policy() -> None:
    """Who cancels the drive is not held up by foreign code that waits."""

    async def for_ever(*told: object) -> None:
        await asyncio.sleep(1000)

    async def main(perform: Perform) -> bool:
        task = asyncio.ensure_future(drive(EVERYONE, BEGUN, perform))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run_virtual(main(observed(world("done"), for_ever)))
    assert run_virtual(main(approved_by(world(call("pay")), for_ever)))


# --- limited -------------------------------------------------------------------------------------------


def after(seconds: float, *replies: Any) -> Perform:
    """A world in which every model call takes this long."""
    client = scripted(*replies)

    async def slow(request: Any, emit: Any) -> Any:
        await asyncio.sleep(seconds)
        return await client(request, emit)

    return performer(EVERYONE, slow)


def test_within_the_limit_nothing_changes() -> None:
    """A limit that is not reached is not felt."""
    run = run_virtual(drive(EVERYONE, BEGUN, limited(after(1, call("add"), "done"), 3)))

    assert run == driven(world(call("add"), "done"))


def test_a_model_call_is_cut_at_the_limit() -> None:
    """The run fails with a model error that says the limit, at the limit; it can be reopened and replayed."""

    async def timed() -> tuple[Run, float]:
        run = await drive(EVERYONE, BEGUN, limited(after(2, call("add"), "done"), 3))
        return run, asyncio.get_running_loop().time()

    run, seconds = run_virtual(timed())

    assert run.outcome == Failure(ModelFailed(ModelTimedOut(3)))
    assert seconds == 3
    assert replay(EVERYONE, run) == Success(run)
    assert driven(replayed(run)) == run
    assert driven(world("done"), reopen(run)).outcome == Success("done")


def test_calls_and_the_model_are_not_begun_after_the_limit() -> None:
    """Calls are answered, gated ones without a question, then the model call fails without being made."""
    now = iter([0.0, 5.0, 5.0, 5.0, 5.0, 5.0])
    perform = limited(world([call("add", "a"), call("pay", "b")]), 5, clock=lambda: next(now))
    run = driven(perform)

    spent = Failure(BudgetSpent("seconds"))
    assert [state.answer for state in run.turns[0].calls] == [spent, spent]
    assert run.outcome == Failure(ModelFailed(ModelTimedOut(5)))
    assert replay(EVERYONE, run) == Success(run)


def test_the_verdict_reaches_nested_runs_by_their_path() -> None:
    """The nested run fails, its call is answered, and then the run ends too."""
    run = run_virtual(drive(EVERYONE, BEGUN, limited(after(2, call("ask"), "so", "done"), 3)))

    failed = Failure(ModelFailed(ModelTimedOut(3)))
    child = run.turns[0].calls[0].child
    assert child is not None
    assert child.outcome == failed
    assert run.outcome == failed
    assert "3" in next(run.turns[0].outputs).text


def test_a_call_under_way_goes_on_and_an_answer_that_is_there_is_kept() -> None:
    """What a tool did has to be known; a final answer at the limit is the run's outcome."""

    async def slow(context: Any, text: str) -> str:
        await asyncio.sleep(10)
        return "done"

    alone = agents(Agent("clerk", tools=[made("work", slow)], tool_use_behavior="stop_on_first_tool"))
    run = run_virtual(drive(alone, BEGUN, limited(performer(alone, scripted(call("work"))), 3)))

    assert run.outcome == Success("done")


def test_a_timeout_that_is_not_the_limits_passes() -> None:
    """An exception of the wrapped world is its own."""

    async def broken(effect: Effect) -> Event | None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        driven(limited(broken, 3))


def test_no_time_at_all_is_a_limit_and_less_is_a_mistake() -> None:
    """Zero seconds: the model is never asked."""
    assert driven(limited(world(), 0)).outcome == Failure(ModelFailed(ModelTimedOut(0)))
    for seconds in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="no span of time"):
            limited(world(), seconds)


def test_what_the_wrappers_say_is_recorded() -> None:
    """A record outside of the others has the policy's and the limit's verdicts."""
    notes = Notes()
    now = iter([0.0, 0.0, 9.0, 9.0, 9.0, 9.0])
    inner = approved_by(limited(world(call("pay")), 5, clock=lambda: next(now)), lambda ask: True)
    run = driven(recorded(inner, notes))

    assert tuple(notes.events) == events(run)
    assert [type(event) for event in notes.events] == [Replied, Checked, Approved, Returned, Replied, Finished]

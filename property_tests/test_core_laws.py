"""Laws 1 to 7, 15 and 19 on random worlds (worlds.py), and that those worlds reach the deep cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, example, given, seed, settings
from hypothesis import strategies as st
from worlds import FEATURES, AgentSpec, CallSpec, Stage, ToolSpec, TurnSpec, Watch, World, features, hidden, worlds

from fnagents import (
    CallModel,
    CallTool,
    Event,
    Failure,
    GuardrailTripped,
    Run,
    Success,
    ToolCall,
    ToolOutput,
    drive,
    events,
    fold,
    interrupt,
    interruptions,
    key,
    lockstep,
    plan,
    step,
)
from fnagents.codec import dump_run, load_run
from fnagents.testing import run_virtual

ORDERS = st.lists(st.integers(0, 11), max_size=40)


def examples(of_ci: float) -> settings:
    """A share of the profile's examples: laws that play a world many times take fewer."""
    assert settings.default is not None
    return settings(max_examples=max(5, int(settings.default.max_examples * of_ci)))


def assert_equal(left: Run, right: Run) -> None:
    """Equal in what is compared, and in what is kept beside it."""
    if left != right:  # events say where, runs print long
        for one, other in zip(events(left), events(right)):
            assert one == other
        assert len(events(left)) == len(events(right))
    assert left == right
    assert list(hidden(left)) == list(hidden(right))


def saved(run: Run) -> Run:
    """The run, saved and loaded."""
    return load_run(dump_run(run)).unwrap()


class Recorded:
    """The events of a play, in the order in which they arrived."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.events: list[Event] = []

    async def __call__(self, effect: Any) -> Event | None:
        event = await self.stage.slowly(effect)
        if event is not None:
            self.events.append(event)
        return event


def uninterrupted(world: World) -> Run:
    """The world played by `drive` in virtual time, each effect taking a while of its own."""
    stage = world.stage()
    return run_virtual(stage.played(world.start))


#: Ann may always use her tool; Bob, whom she hands over to, has one of the same name and was never allowed to.
NAMESAKES = World(
    (
        AgentSpec(
            "ann",
            (ToolSpec("tool_0", gate="yes"),),
            (ToolSpec("to_0", "handoff", "bob"),),
            (
                TurnSpec("calls", (CallSpec(0, id="c1"),)),
                TurnSpec("calls", (CallSpec(0, id="c1"),)),
                TurnSpec("calls", (CallSpec(-1),)),
            ),
        ),
        AgentSpec(
            "bob",
            (ToolSpec("tool_0", gate="yes"),),
            script=(*[TurnSpec("text")] * 3, TurnSpec("calls", (CallSpec(0), CallSpec(0)))),
        ),
    ),
    max_turns=6,
    decisions=("yes always",),
)


# --- 1 to 4 --------------------------------------------------------------------------------------------


@examples(1)
@given(worlds(), ORDERS)
def test_fold(world: World, order: list[int]) -> None:
    """Law 1, fold: a run is the fold of its events, in canonical order, split anywhere."""
    stage = world.stage()
    run = run_virtual(stage.by_hand(world.start, order))
    whole = events(run)
    state = world.start
    for index, event in enumerate(whole):
        assert_equal(fold(world.start, whole[:index]).unwrap(), state)
        state = step(state, event)
    assert_equal(state, run)
    for index in range(0, len(whole), 7):
        assert_equal(fold(fold(world.start, whole[:index]).unwrap(), whole[index:]).unwrap(), run)


@examples(1)
@given(worlds(), ORDERS)
def test_events_of_every_moment(world: World, order: list[int]) -> None:
    """Law 1 at every moment: each run on the way is the fold of its own events, not only the last one."""
    stage, log = world.stage(), [world.start]
    run_virtual(stage.by_hand(world.start, order, log=log))
    for run in log:
        assert_equal(fold(world.start, events(run)).unwrap(), run)


@examples(1.5)
@given(worlds(), ORDERS, st.integers(0, 6))
def test_crash_anywhere(world: World, order: list[int], offset: int) -> None:
    """Law 2, crash anywhere: cut after an event, saved, loaded and resumed, a run ends as if it had not been cut."""
    stage, log = world.stage(), [world.start]
    run = run_virtual(stage.by_hand(world.start, order, log=log))
    stride = 1 + len(log) // 25
    for index in range(offset % stride, len(log), stride):
        cut = saved(log[index])
        assert_equal(cut, log[index])
        assert_equal(run_virtual(world.stage().played(cut)), run)
    assert stage.breaches == []


@examples(1)
@given(worlds(), ORDERS)
def test_siblings_commute(world: World, order: list[int]) -> None:
    """Law 3, siblings commute: any order of answers, delays in virtual time and rounds give equal runs."""
    stage = world.stage()
    run = run_virtual(stage.by_hand(world.start, order))
    assert_equal(run_virtual(world.stage().by_hand(world.start)), run)
    assert_equal(run_virtual(world.stage().by_hand(world.start, [-1] * 10_000)), run)
    assert_equal(uninterrupted(world), run)
    assert_equal(run_virtual(world.stage().played(world.start, lockstep)), run)
    assert_equal(run_virtual(world.stage().played(world.start, drive, slowly=False)), run)


@examples(1)
@given(worlds(), ORDERS)
def test_arrival_order(world: World, order: list[int]) -> None:
    """Law 3 for what is folded: events in the order of arrival and in canonical order fold to equal runs."""
    stage = world.stage()
    recorded, run = Recorded(stage), world.start
    run = run_virtual(drive(stage.agents, run, recorded))
    assert_equal(fold(world.start, recorded.events).unwrap(), run)
    assert sorted(map(repr, recorded.events)) == sorted(map(repr, events(run)))


@examples(2)
@given(worlds(), ORDERS, st.booleans())
@example(NAMESAKES, [], False)
def test_never_unapproved(world: World, order: list[int], reload: bool) -> None:
    """Law 4, never unapproved: no gated function runs without leave for exactly these arguments.

    Whoever answers is noted in a ledger, and each function looks there: under any order of answers, across
    handoffs, nesting, reloads at every pause, and sticky decisions, which answer later turns of that run alone.
    """
    stage = world.stage()
    if reload:
        run = world.start
        while run.outcome is None:
            run = saved(run_virtual(drive(stage.agents, run, stage.slowly)))
            run = stage.answered(run) if run.outcome is None else run
    else:
        run_virtual(stage.by_hand(world.start, order))
    assert stage.breaches == []


# --- 5, 6, 7, 19 ---------------------------------------------------------------------------------------


@examples(3)
@given(worlds(), ORDERS)
def test_watched(world: World, order: list[int]) -> None:
    """Laws 5, 7 and 19: `plan` is () exactly at the end, keys never come again, what is planned stays planned.

    Looked at after every event of a whole life, pauses and reopening included.
    """
    stage = world.stage()
    watch = Watch(stage.agents)
    watch.see(world.start)
    run_virtual(stage.by_hand(world.start, order, watch))


@examples(1)
@given(worlds())
def test_a_pause_holds_questions_only(world: World) -> None:
    """Law 6: when `drive` comes back before the end, the plan is the questions that `interruptions` shows."""
    stage = world.stage()
    for driver in (drive, lockstep):
        run = run_virtual(driver(stage.agents, world.start, stage.slowly))
        if run.outcome is None:
            assert plan(stage.agents, run) == interruptions(run) != ()
            assert [key(one) for one in plan(stage.agents, run)] == [key(one) for one in interruptions(run)]
        else:
            assert interruptions(run) == ()


# --- 15 ------------------------------------------------------------------------------------------------


def _within(run: Run) -> Iterator[Run]:
    yield run
    for turn in run.turns:
        for state in turn.calls:
            if state.child is not None:
                yield from _within(state.child)


def assert_paired(run: Run) -> None:
    """Each call in the conversation has an id of its own and exactly one output, which comes after it."""
    for one in _within(run):
        tripped = isinstance(one.outcome, Failure) and isinstance(one.outcome.failure(), GuardrailTripped)
        if tripped and one.outcome.failure().place == "input":  # type: ignore[union-attr]
            continue  # no tool of that turn runs
        if one.outcome is None:
            continue
        waiting: set[str] = set()
        used: set[str] = set()
        for item in one.items:
            if isinstance(item, ToolCall):
                assert item.id, "an empty id on the wire"
                assert item.id not in used, f"the id {item.id} is used twice"
                used.add(item.id)
                waiting.add(item.id)
            elif isinstance(item, ToolOutput):
                assert item.call_id in waiting, f"an output for {item.call_id}, which does not wait for one"
                assert item.text, "an empty output"
                waiting.remove(item.call_id)
        assert not waiting, f"calls without an output: {waiting}"


@examples(2)
@given(worlds(), ORDERS)
def test_one_output_per_call(world: World, order: list[int]) -> None:
    """Law 15: ids repeated or missing or not, every call of a run that has ended has exactly one output."""
    stage = world.stage()
    assert_paired(run_virtual(stage.by_hand(world.start, order)))


@examples(1)
@given(worlds(), ORDERS, st.integers(0, 60))
def test_one_output_per_call_after_interrupts(world: World, order: list[int], cut: int) -> None:
    """Law 15 after `interrupt`: what was under way reads as interrupted, and the run goes on to a paired end.

    Interrupting answers exactly the calls that are planned, and is the one exception to law 19.
    """
    stage, log = world.stage(), [world.start]
    run_virtual(stage.by_hand(world.start, order, log=log))
    run = log[cut % len(log)]
    under_way = {key(one) for one in plan(stage.agents, run) if isinstance(one, CallTool)}
    stopped = interrupt(stage.agents, run, "the process ended")
    left = {key(one) for one in plan(stage.agents, stopped)}
    assert not under_way & left
    assert {key(one) for one in plan(stage.agents, run)} - under_way <= left
    assert len(events(stopped)) == len(events(run)) + len(under_way)
    assert_paired(run_virtual(world.stage().played(stopped)))


@examples(1)
@given(worlds(), ORDERS)
def test_requests_are_paired(world: World, order: list[int]) -> None:
    """Law 15 for what is sent: every request's conversation has each call followed by its one output."""
    stage = world.stage()
    asked: list[tuple[Any, ...]] = []
    answer = stage.answer

    async def noted(effect: Any) -> Event | None:
        if isinstance(effect, CallModel):
            asked.append(effect.request.items)
        return await answer(effect)

    stage.answer = noted
    run_virtual(stage.by_hand(world.start, order))
    for items in asked:
        calls = [item.id for item in items if isinstance(item, ToolCall)]
        outputs = [item.call_id for item in items if isinstance(item, ToolOutput)]
        assert len(set(calls)) == len(calls)
        assert sorted(calls) == sorted(outputs)


# --- the worlds are deep enough ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reached() -> Counter[str]:
    """How many of the worlds that are tried reach each feature; a rare one may take another round."""
    found: Counter[str] = Counter()

    @settings(settings.get_profile("ci"), max_examples=400, phases=[Phase.generate])
    @given(worlds(), ORDERS)
    def look(world: World, order: list[int]) -> None:
        stage, log = world.stage(), [world.start]
        run_virtual(stage.by_hand(world.start, order, log=log))
        found.update(features(stage, log))

    for number in range(4):
        if not all(found[feature] for feature in FEATURES):
            seed(number)(look)()
    return found


@pytest.mark.parametrize("feature", FEATURES)
def test_worlds_reach(reached: Counter[str], feature: str) -> None:
    """A strategy that never reaches the deep case is a silent test: the laws above are tried on worlds with this."""
    assert reached[feature] >= 1


def test_namesakes_run_three_times() -> None:
    """The example of law 4 reaches what it is for: one sticky approval answers Ann's second call, none of Bob's."""
    stage = NAMESAKES.stage()
    run = run_virtual(stage.by_hand(NAMESAKES.start))
    assert run.outcome == Success('{"response":7}')
    assert [place for _, place, name in stage.executed if name == "tool_0"] == ["0.0", "1.0", "3.0", "3.1"]
    assert [(one.agent, one.place) for one in stage.said] == [("ann", "0.0"), ("bob", "3.0"), ("bob", "3.1")]


def test_every_feature_is_listed(reached: Counter[str]) -> None:
    """What worlds reach is what the table says, so that a new feature is asked for too."""
    unlisted = {one for one in reached if one not in FEATURES and not one.startswith("nested ")}
    assert unlisted == set()

"""The core under any answers: planned effects are answered with whatever fits, in any order, and misfits are thrown in.

Nothing is performed here.  Where worlds.py gives what real functions say, this gives what any world could say; so
the laws hold for the two pure functions alone, whoever drives them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest
from attrs import evolve
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from worlds import NAMES, AgentSpec, Stage, ToolSpec, Watch, World, features, hidden, worlds

from fnagents import (
    Agents,
    Approved,
    Ask,
    CallModel,
    CallTool,
    Check,
    Checked,
    Checkup,
    Decide,
    Decided,
    Declined,
    Delegate,
    Effect,
    Event,
    Extract,
    Failure,
    Finish,
    Finished,
    Handoff,
    Message,
    ModelResponse,
    Opaque,
    Output,
    Prepare,
    Prepared,
    Refusal,
    Refused,
    Reopened,
    Replied,
    Returned,
    Run,
    ServerFailed,
    Success,
    Tool,
    ToolCall,
    UnexpectedEventError,
    Usage,
    Verdict,
    approve,
    events,
    fold,
    interrupt,
    interruptions,
    key,
    plan,
    reject,
    reopen,
    step,
)
from fnagents.codec import dump_run, load_run
from fnagents.errors import (
    FunctionRaised,
    GuardrailTripped,
    Incomplete,
    InvalidArguments,
    ToolRaised,
    ToolTimedOut,
    TurnsExhausted,
)
from fnagents.transcript import identity, known_tools, listing


def _one(*weighted: tuple[int, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """One of these strategies, each so often (`one_of` drops those that are there twice)."""
    urn = [strategy for count, strategy in weighted for _ in range(count)]
    return st.sampled_from(urn).flatmap(lambda strategy: strategy)


# --- what a world could say ----------------------------------------------------------------------------

IDS = st.sampled_from(["", "c1", "c1", "c2", "call_0_0", "call_1_0", "call_0_0_"])
TEXTS = st.sampled_from(["", "hi", '{"response":7}', "nein"])
FAILURES = st.sampled_from([InvalidArguments(("$: no",)), ToolRaised("ValueError", "no"), ToolTimedOut(2.0, True)])
VERDICTS = st.sampled_from([()] * 16 + [(Verdict("g", "fine"),), (Verdict("g"), Verdict("h", "no", tripped=True))])
FATAL = st.sampled_from([False] * 7 + [True])
FEEDBACK = st.sampled_from(["", "", "try again"])
DIGESTS = st.sampled_from(["d1", "d2"])
CHECKUPS = st.builds(Checkup, st.just('{"n":1}'), DIGESTS, st.sampled_from([True, True, False]), st.just("def"))
CHECKS = _one((5, CHECKUPS.map(Success)), (1, FAILURES.map(Failure)))
AGENTS = st.sampled_from([*NAMES, *NAMES, "ghost"])
DELEGATES = st.builds(
    Delegate, AGENTS, st.just("go"), st.sampled_from([3, 2, 1, 0]), st.just(""), st.sampled_from([False, True])
)
OUTPUTS = st.builds(Output, TEXTS, st.sampled_from([None, Usage(requests=1)]))
HANDOFFS = st.builds(Handoff, AGENTS, st.sampled_from(["", "over"]))
RAISED = FunctionRaised("instructions", "ValueError", "no")


def _items(names: list[str]) -> st.SearchStrategy[Any]:
    call = st.builds(ToolCall, IDS, st.sampled_from([*names * 4, "nobody"]))
    calls = st.lists(call, min_size=1, max_size=4)
    other = st.sampled_from(
        [
            Message("assistant", "hi"),
            Message("assistant", (Refusal("no"),)),
            Opaque("web_search_call", '{"type":"web_search_call"}'),
        ]
    )
    return _one((7, calls), (1, st.lists(other | call, max_size=2))).map(tuple)


def _replied(effect: CallModel) -> st.SearchStrategy[Event]:
    names = [tool.name for tool in effect.request.sent.tools] or ["tool_0"]
    responses = _items(names).map(lambda items: Success(ModelResponse(items)))
    failures = st.sampled_from([ServerFailed("down"), Incomplete("cut", ModelResponse((ToolCall("c", "x"),)))]).map(
        Failure
    )
    said = st.builds(
        lambda outcome, verdicts: Replied(effect.turn, outcome, effect.request.sent, verdicts, effect.path),
        _one((9, responses), (1, failures)),
        VERDICTS,
    )
    tripped = Replied(effect.turn, None, effect.request.sent, (Verdict("g", "no", tripped=True),), effect.path)
    return _one((19, said), (1, st.just(tripped)))


def _prepared(agents: Agents, effect: Prepare) -> st.SearchStrategy[Event]:
    agent = agents[effect.agent]
    tools = tuple(listing(tool) for tool in agent.tools if isinstance(tool, Tool))
    handoffs = tuple(listing(tool) for tool in agent.handoffs)
    return st.sampled_from(
        [
            *[Prepared(effect.turn, "now", tools, handoffs, path=effect.path)] * 8,
            Prepared(effect.turn, None, tools[:1], handoffs[:1], path=effect.path),
            Prepared(effect.turn, failure=RAISED, path=effect.path),
        ]
    )


def _returned(agents: Agents, effect: CallTool) -> st.SearchStrategy[Event]:
    turn = effect.seen.turns[-1]
    known = known_tools(agents[effect.agent], turn).get(identity(effect.call))
    handoffs = 6 if known is not None and known.handoff else 0
    good = st.builds(
        lambda answer, verdicts: Returned(effect.place, Success(answer), "", False, verdicts, effect.path),
        _one((2, OUTPUTS), (2, DELEGATES), (handoffs, HANDOFFS)),
        VERDICTS,
    )
    bad = st.builds(
        lambda error, feedback, fatal: Returned(effect.place, Failure(error), feedback, fatal, path=effect.path),
        FAILURES,
        FEEDBACK,
        FATAL,
    )
    return _one((6, good), (1, bad), (1 if effect.digest else 0, _checked(effect)))


def _checked(effect: Check | CallTool) -> st.SearchStrategy[Event]:
    return st.builds(
        lambda outcome, feedback, fatal: Checked(
            effect.place, outcome, feedback, fatal and isinstance(outcome, Failure), effect.path
        ),
        CHECKS,
        FEEDBACK,
        FATAL,
    )


def fitting(agents: Agents, effect: Effect) -> st.SearchStrategy[Event]:
    """Any event that a performer could answer this effect with."""
    match effect:
        case Prepare():
            return _prepared(agents, effect)
        case CallModel():
            return _replied(effect)
        case Check():
            return _checked(effect)
        case Ask(place=place, checkup=checkup, path=path):
            return st.sampled_from(
                [
                    Approved(place, checkup.digest, path=path),
                    Approved(place, checkup.digest, True, path),
                    Declined(place, checkup.digest, "no", path=path),
                    Declined(place, checkup.digest, "never", True, path),
                ]
            )
        case CallTool():
            return _returned(agents, effect)
        case Extract(place=place, path=path):
            outcomes = _one((3, OUTPUTS.map(Success)), (1, FAILURES.map(Failure)))
            return st.builds(lambda outcome, fatal: Returned(place, outcome, "", fatal, path=path), outcomes, FATAL)
        case Decide(turn=turn, path=path):
            return st.sampled_from(
                [
                    Decided(turn, path=path),
                    Decided(turn, "decided", path=path),
                    Decided(turn, failure=RAISED, path=path),
                ]
            )
        case Finish(turn=turn, outcome=Success() as outcome, path=path):
            tripped = Failure(GuardrailTripped("g", "no", "output"))
            return st.sampled_from(
                [
                    Finished(turn, outcome, path=path),
                    Finished(turn, tripped, (Verdict("g", "no", tripped=True),), path),
                    Refused(turn, "not a number", path),
                    Refused(turn, "still no number", path),
                ]
            )
        case Finish(turn=turn, outcome=outcome, path=path):
            return st.just(Finished(turn, outcome, path=path))


#: Turns and places that are there, nearly there, and nowhere.
TURNS = st.integers(-1, 6)
PLACES = st.sampled_from(
    [f"{turn}.{index}" for turn in range(4) for index in range(4)] * 2
    + [
        "",
        "0",
        ".",
        "0.",
        ".0",
        "0.00",
        "00.0",
        "-1.0",
        "0.-1",
        "0.0.0",
        "\u0660.\u0660",
        "0.²",
        "x.y",
        "0.99999999999999999999",
    ]
)
PATHS = st.lists(PLACES, max_size=2).map(tuple)
WILD: st.SearchStrategy[Event] = st.one_of(
    st.builds(Prepared, TURNS, path=PATHS),
    st.builds(Replied, TURNS, _items(["tool_0"]).map(lambda items: Success(ModelResponse(items))), path=PATHS),
    st.builds(Checked, PLACES, CHECKS, path=PATHS),
    st.builds(Approved, PLACES, DIGESTS, st.booleans(), PATHS),
    st.builds(Declined, PLACES, DIGESTS, st.just("no"), st.booleans(), PATHS),
    st.builds(Returned, PLACES, st.one_of(OUTPUTS, DELEGATES, HANDOFFS).map(Success), path=PATHS),
    st.builds(Returned, PLACES, FAILURES.map(Failure), path=PATHS),
    st.builds(Decided, TURNS, st.none() | TEXTS, path=PATHS),
    st.builds(Refused, TURNS, TEXTS, PATHS),
    st.builds(Finished, TURNS, TEXTS.map(Success), path=PATHS),
    st.builds(Finished, TURNS, st.just(Failure(TurnsExhausted(1))), path=PATHS),
    st.builds(Reopened, TURNS, st.integers(0, 9), PATHS),
)


def misfits(run: Run) -> list[Event]:
    """Events of which it is plain that this run does not wait for them, at its root."""
    turns, output = len(run.turns), Success(Output("late"))
    wrong: list[Event] = [
        *(Prepared(turn) for turn in (turns - 1, turns + 1, -1)),
        *(Replied(turn, Success(ModelResponse(()))) for turn in (turns - 2, turns + 1, -1)),
        *(Decided(turn) for turn in (turns - 2, turns, -1)),
        *(Refused(turn, "no") for turn in (turns - 1, turns + 1, -1)),
        *(Finished(turn, Failure(TurnsExhausted(1))) for turn in (turns - 1, turns + 1, -1)),
        Returned(f"{turns}.0", output),
        Returned(f"{turns - 2}.0", output),
        Reopened(turns + 1, 9),
        Approved("0.0", "d1", path=("7.7",)),
        Reopened(turns, 9, ("0.0",)),
    ]
    if not isinstance(run.outcome, Failure):
        wrong.append(Reopened(turns, 9))
    if run.outcome is not None:
        ended = [*events(run), *(event for turn in range(turns + 1) for event in (Replied(turn, None), Prepared(turn)))]
        return [*wrong, *(event for event in ended if not isinstance(event, Reopened))]
    if run.turns:
        wrong += _misfits_of_calls(run, run.turns[-1], turns)
    return wrong


def _misfits_of_calls(run: Run, turn: Any, turns: int) -> list[Event]:
    wrong: list[Event] = []
    if turn.open:
        wrong += [Replied(turns, None), Prepared(turns), Decided(turns - 1), Refused(turns, "no")]
        wrong += [Finished(turns, Success("early"))]
    for index, state in enumerate(turn.calls):
        place = f"{turns - 1}.{index}"
        asked = state.checkup is not None and state.checkup.needed and state.decision is None
        if index in turn.open and asked:
            wrong += [Approved(place, "other"), Declined(place, "other"), Returned(place, Success(Output("unasked")))]
            wrong += [Checked(place, Failure(ToolRaised("E")))]
        else:
            digest = state.checkup.digest if state.checkup is not None else ""
            wrong += [Approved(place, digest), Declined(place, digest, always=True)]
        if index not in turn.open:
            wrong += [Returned(place, Success(Output("twice"))), Checked(place, Failure(ToolRaised("E")))]
            wrong += [Returned(place, Success(Delegate("ann", "again")))]
        if state.child is not None:
            wrong += [Checked(place, Failure(ToolRaised("E"))), Returned(place, Success(Delegate("ann", "again")))]
        if state.child is not None and state.child.outcome is None:
            wrong += [Returned(place, Success(Output("before its run")))]
        if state.child is not None and index in turn.open:
            wrong += [evolve(event, path=(place,)) for event in misfits(state.child) if not event.path]
        if state.child is None:
            wrong += [Replied(0, None, path=(place,))]
        else:  # a nested run is reopened by nobody: its failure is its parent's to answer
            wrong += [Reopened(len(state.child.turns), 9, (place,))]
    return wrong


# --- the machine ---------------------------------------------------------------------------------------


#: Few tools, all of which ask: so that decisions meet the same tool again.
ASKING = World(
    tuple(
        AgentSpec(
            name,
            (ToolSpec("tool_0", gate="yes"), ToolSpec("tool_1", "extract", "bob", gate="odd", serial=True)),
            (ToolSpec("to_0", "handoff", "cyd", gate="yes"), ToolSpec("to_1", "handoff", "ann")),
            numbers=name == "cyd",
        )
        for name in NAMES
    ),
    max_turns=9,
)


class AnyAnswers(RuleBasedStateMachine):
    """A run to which anything that fits may happen."""

    reached: ClassVar[Counter[str]] = Counter()

    @initialize(world=_one((1, worlds()), (1, worlds(gated=True)), (2, st.just(ASKING))))
    def begin(self, world: Any) -> None:
        self.stage: Stage = world.stage()
        self.start = self.run = world.start
        self.watch = Watch(self.stage.agents)
        self.planned = self.watch.see(self.run)

    def _now(self, run: Run, *answered: str, interrupted: bool = False) -> None:
        self.run = run
        self.planned = self.watch.see(run, *answered, interrupted=interrupted)

    @precondition(lambda self: self.planned != ())
    @rule(data=st.data(), count=st.sampled_from([1, 2, 3, 5, 8, 13, 21]))
    def answer(self, data: st.DataObject, count: int) -> None:
        """One planned effect after the other is answered: runs must become long."""
        for _ in range(count):
            if self.planned:
                effect = data.draw(st.sampled_from(self.planned))
                event = data.draw(fitting(self.stage.agents, effect))
                self._now(step(self.run, event), key(effect))

    @precondition(lambda self: self.planned != ())
    @rule(data=st.data())
    def answer_all(self, data: st.DataObject) -> None:
        """All planned effects are answered with what fitted when they were planned, in any order: law 19 at work."""
        answers = [(key(effect), data.draw(fitting(self.stage.agents, effect))) for effect in self.planned]
        for name, event in data.draw(st.permutations(answers)):
            self._now(step(self.run, event), name)

    @precondition(lambda self: interruptions(self.run) != ())
    @rule(data=st.data(), always=st.booleans(), approved=st.booleans())
    def decide(self, data: st.DataObject, always: bool, approved: bool) -> None:
        """A person answers a question that is shown, which is planned too; with `always` also those like it."""
        shown = interruptions(self.run)
        ask = data.draw(st.sampled_from(shown))
        alike = [one for one in shown if (one.path, one.agent, one.tool) == (ask.path, ask.agent, ask.tool)]
        run = approve(self.run, ask, always) if approved else reject(self.run, ask, "no", always)
        answered = [key(one) for one in alike if always or one == ask]
        left = {key(one) for one in interruptions(run)}
        assert left == {key(one) for one in shown} - set(answered)
        self._now(run, *answered)
        with pytest.raises(UnexpectedEventError):
            approve(run, ask)

    @rule(reason=st.sampled_from(["", "ctrl-c"]))
    def interrupt(self, reason: str) -> None:
        """Calls under way are answered as interrupted; everything else stays planned."""
        under_way = [key(effect) for effect in self.planned if isinstance(effect, CallTool)]
        self._now(interrupt(self.stage.agents, self.run, reason), *under_way, interrupted=True)
        if under_way:
            self.reached["interrupted"] += 1

    @precondition(lambda self: isinstance(self.run.outcome, Failure))
    @rule(more=st.integers(0, 3) | st.none())
    def reopen(self, more: int | None) -> None:
        """A failed run goes on."""
        limit = None if more is None else len(self.run.turns) + more
        self._now(reopen(self.run, max_turns=limit))

    @rule()
    def save_and_load(self) -> None:
        """The run is what its document says: nothing that plans depend on is kept beside it."""
        loaded = load_run(dump_run(self.run)).unwrap()
        assert loaded == self.run
        assert list(hidden(loaded)) == list(hidden(self.run))
        self.run = loaded
        assert plan(self.stage.agents, loaded) == self.planned

    @rule(event=WILD)
    def wild(self, event: Event) -> None:
        """Any event is folded or refused; where it is folded, the result is a run that folds and plans."""
        try:
            run = step(self.run, event)
        except UnexpectedEventError:
            return
        self.reached["a wild event fits"] += 1
        assert fold(self.start, events(run)) == Success(run)
        assert (plan(self.stage.agents, run) == ()) == (run.outcome is not None)
        assert run.items is not None

    @invariant()
    def misfits_are_refused(self) -> None:
        """What plainly does not fit is refused, and the run stays as it was."""
        if not hasattr(self, "run"):
            return
        before = events(self.run)
        for event in misfits(self.run):
            refused = fold(self.run, [event])
            assert isinstance(refused, Failure), f"it fits: {event}"
            assert refused.failure().reason
        assert events(self.run) == before

    @invariant()
    def law_1(self) -> None:
        """fold."""
        if hasattr(self, "run"):
            again = fold(self.start, events(self.run)).unwrap()
            assert again == self.run
            assert list(hidden(again)) == list(hidden(self.run))

    @invariant()
    def law_6(self) -> None:
        """A pause holds questions only, and every planned question is shown."""
        if hasattr(self, "run"):
            questions = tuple(one for one in self.planned if isinstance(one, Ask))
            assert questions == interruptions(self.run)

    def teardown(self) -> None:
        if hasattr(self, "run"):
            self.reached.update(features(self.stage, [self.run]))


#: What answers that are drawn must reach, however shallow most of them are.
FEATURES = (
    "interrupted",
    "a wild event fits",
    "nested 2 deep",
    "a handoff",
    "several handoffs in a turn",
    "everything waits for a person",
    "checked again",
    "reopened",
    "extracted",
    "an approval",
    "a rejection",
    "a sticky approval",
    "a fatal error",
    "a refused output",
    "turns exhausted",
    "an id is repeated",
)


def test_any_answers() -> None:
    """Laws 1, 2, 5, 6, 7 and 19 under any answers in any order, and only `UnexpectedEventError` for misfits.

    And the runs are deep enough: what is rare may take another round.
    """
    assert settings.default is not None
    count = settings.default.max_examples
    AnyAnswers.reached.clear()
    for number in range(6 if count >= 100 else 1):
        if number < 2 or not all(AnyAnswers.reached[feature] for feature in FEATURES):
            machine = seed(number)(type("AnyAnswers", (AnyAnswers,), {}))
            run_state_machine_as_test(machine, settings=settings(max_examples=count, stateful_step_count=20))
    if count >= 100:
        assert [feature for feature in FEATURES if not AnyAnswers.reached[feature]] == []

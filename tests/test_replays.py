"""Recorded runs against today's agents: an unchanged agent replays its runs, a changed one diverges where it differs."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from helpers import made

from fnagents import (
    Agent,
    Approved,
    Checked,
    Checkup,
    Decided,
    Declined,
    Delegate,
    Divergence,
    Event,
    Failure,
    Finished,
    FunctionRaised,
    GuardrailTripped,
    Handoff,
    InvalidOutput,
    Listing,
    Message,
    ModelResponse,
    ModelSettings,
    Output,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
    Run,
    ServerFailed,
    StopAt,
    Success,
    ToolCall,
    ToolCancelled,
    TurnsExhausted,
    Verdict,
    agents,
    events,
    fold,
    plan,
    replay,
    start,
)
from fnagents.protocol import CallModel

PAY = made("pay", needs_approval=True)
EXPERT = Agent("expert", "You know.", tools=(PAY,))
OTHER = Agent("other", lambda context: "Be brief.", tools=(made("add"),))
ROOT = Agent(
    "root",
    "You add.",
    tools=(made("add"), PAY, made("move", serial=True), made("ask", agents=(EXPERT,))),
    handoffs=(made("to_other", agents=(OTHER,)),),
)


def told(run: Run, path: tuple[str, ...] = ()) -> Any:
    """What the model is told at this moment in the (nested) run."""
    (effect,) = [one for one in plan(agents(ROOT), run) if isinstance(one, CallModel) and one.path == path]
    return effect.request.sent


def says(*items: Any, path: tuple[str, ...] = ()) -> Callable[[Run], Event]:
    def reply(run: Run) -> Event:
        (effect,) = [one for one in plan(agents(ROOT), run) if isinstance(one, CallModel) and one.path == path]
        return Replied(effect.turn, Success(ModelResponse(items)), effect.request.sent, path=path)

    return reply


def lived(*steps: Event | Callable[[Run], Event], max_turns: int | None = 10) -> Run:
    """The run of these events; a function makes one of the run so far."""
    run = start("root", "hi", max_turns=max_turns)
    for one in steps:
        run = fold(run, [one(run) if callable(one) else one]).unwrap()
    return run


def call(name: str) -> ToolCall:
    return ToolCall("c", name)


CHECKED = Checked("0.0", Success(Checkup("{}", "abc", needed=True)))
DONE = Returned("0.0", Success(Output("1")))
LATER = Returned("1.0", Success(Output("1")))
END = Message("assistant", "Done.")
PAID = (says(call("pay")), CHECKED, Approved("0.0", "abc"), DONE)
NESTED = (
    says(call("ask"), call("add")),
    Returned("0.0", Success(Delegate("expert", "?"))),
    says(call("pay"), path=("0.0",)),
    evolve(CHECKED, path=("0.0",)),
)
RUNS = {
    "not begun": lived(),
    "finished": lived(says(call("add")), DONE, says(END), Finished(2, Success("Done."))),
    "waiting for a call": lived(says(call("add"), call("add")), Returned("0.1", Success(Output("2")))),
    "paused": lived(says(call("pay")), CHECKED),
    "approved": lived(*PAID),
    "checked again": lived(*PAID[:3], Checked("0.0", Success(Checkup("{}", "def", needed=True)))),
    "declined": lived(says(call("pay")), CHECKED, Declined("0.0", "abc", "no")),
    "nested and paused": lived(*NESTED),
    "nested and finished": lived(
        *NESTED,
        Approved("0.0", "abc", path=("0.0",)),
        evolve(DONE, path=("0.0",)),
        says(END, path=("0.0",)),
        Finished(2, Success("Done."), path=("0.0",)),
        Returned("0.1", Success(Output("2"))),
    ),
    "extracted": lived(
        says(call("ask")),
        Returned("0.0", Success(Delegate("expert", "?", extract=True))),
        says(END, path=("0.0",)),
        Finished(1, Success("Done."), path=("0.0",)),
        Returned("0.0", Success(Output("extract"))),
    ),
    "interrupted": lived(says(call("add"), call("move")), Returned("0.0", Failure(ToolCancelled()))),
    "handed over before a call in call order": lived(
        says(call("to_other"), call("add")),
        Returned("0.1", Success(Output("2"))),
        Returned("0.0", Success(Handoff("other"))),
        Prepared(1, "Be brief.", (Listing(made("add").told),)),
    ),
    "preparing failed": lived(
        says(call("to_other")),
        Returned("0.0", Success(Handoff("other"))),
        Prepared(1, failure=FunctionRaised("instructions", "KeyError")),
        Finished(2, Failure(FunctionRaised("instructions", "KeyError"))),
    ),
    "refused and mended": lived(says(END), Refused(1, "no number"), says(END), Finished(2, Success("Done."))),
    "refused after a failure at the same turn": lived(
        lambda run: evolve(says(END)(run), verdicts=(Verdict("g", tripped=True),)),
        Finished(1, Failure(GuardrailTripped("g", place="input"))),
        Reopened(1, None),
        Refused(1, "no number"),
        says(END),
    ),
    "refused after a guardrail raised": lived(
        says(END),
        Finished(1, Failure(FunctionRaised("output guardrail g", "KeyError"))),
        Reopened(1, None),
        Refused(1, "no number"),
        says(END),
    ),
    "refused once too often": lived(
        says(END), Refused(1, "no"), says(END), Refused(2, "no"), Finished(2, Failure(InvalidOutput("no")))
    ),
    "refused at last": lived(says(END), Finished(1, Failure(InvalidOutput("no number")))),
    "failed": lived(lambda run: Replied(0, Failure(ServerFailed("down")), told(run))),
    "reopened": lived(
        lambda run: Replied(0, Failure(ServerFailed("down")), told(run)),
        lambda run: Finished(1, plan(agents(ROOT), run)[0].outcome),
        Reopened(1, 1),
        says(END),
    ),
    "reopened with more turns": lived(Finished(0, Failure(TurnsExhausted(0))), Reopened(0, 3), says(END), max_turns=0),
    "tripped before the model": lived(lambda run: Replied(0, None, told(run), (Verdict("g", tripped=True),))),
}


@pytest.mark.parametrize("what", RUNS)
def test_an_unchanged_agent_replays_its_runs(what: str) -> None:
    """Ended, paused, unfinished: the run is made again, event by event."""
    assert Success(RUNS[what]) == replay(ROOT, RUNS[what])


@pytest.mark.parametrize(
    "given", [ROOT, agents(ROOT), [ROOT], (OTHER, EXPERT, ROOT)], ids=["one", "named", "list", "more"]
)
def test_agents_are_given_as_elsewhere(given: Any) -> None:
    """One agent, several, or a mapping."""
    assert Success(RUNS["finished"]) == replay(given, RUNS["finished"])


def test_a_function_of_the_agent_is_not_called() -> None:
    """What the instructions said is in the record."""
    forbidden = evolve(OTHER, instructions=lambda context: 1 / 0)
    changed = evolve(ROOT, handoffs=(made("to_other", agents=(forbidden,)),))
    run = RUNS["handed over before a call in call order"]

    assert Success(run) == replay(changed, run)


def tools(*kept: Any) -> Agent[Any, Any]:
    return evolve(ROOT, tools=kept)


ADD, MOVE, ASK = ROOT.tools[0], ROOT.tools[2], ROOT.tools[3]
#: what changed: the run, today's agent, what is said of the first difference
CHANGED: dict[str, tuple[str, Agent[Any, Any], tuple[int, str, tuple[str, ...], str, str, str]]] = {
    "instructions": (
        "finished",
        evolve(ROOT, instructions="You subtract."),
        (0, "model-0", (), "instructions", "You add.", "You subtract."),
    ),
    "instructions left out": (
        "finished",
        evolve(ROOT, instructions=None),
        (0, "model-0", (), "instructions", "You add.", ""),
    ),
    "instructions of a nested agent": (
        "nested and paused",
        evolve(ROOT, tools=(ADD, PAY, MOVE, evolve(ASK, agents=(evolve(EXPERT, instructions="No."),)))),
        (2, "0.0/model-0", ("0.0",), "instructions", "You know.", "No."),
    ),
    "a tool's description": (
        "finished",
        tools(made("add", parameters={"properties": {"x": {}}}), PAY, MOVE, ASK),
        (
            0,
            "model-0",
            (),
            "tool definition",
            ADD.definition_text,
            made("add", parameters={"properties": {"x": {}}}).definition_text,
        ),
    ),
    "a tool removed": (
        "finished",
        tools(ADD, PAY, ASK),
        (0, "model-0", (), "tool definition", MOVE.definition_text, ""),
    ),
    "a tool added": (
        "finished",
        tools(*ROOT.tools, made("new")),
        (0, "model-0", (), "tool definition", "", made("new").definition_text),
    ),
    "tools in another order": (
        "finished",
        tools(PAY, ADD, MOVE, ASK),
        (0, "model-0", (), "tool definition", "add, pay, move, ask, to_other", "pay, add, move, ask, to_other"),
    ),
    "settings": (
        "finished",
        evolve(ROOT, settings=ModelSettings(temperature=0)),
        (0, "model-0", (), "settings", f"settings={ModelSettings()!r}", f"settings={ModelSettings(temperature=0)!r}"),
    ),
    "model": ("finished", evolve(ROOT, model="gpt"), (0, "model-0", (), "settings", "model=''", "model='gpt'")),
    "a check that was not needed": (
        "finished",
        tools(evolve(ADD, needs_approval=True), PAY, MOVE, ASK),
        (1, "check-0.0", (), "surplus effect", "call-0.0", "check-0.0"),
    ),
    "a check that is no longer needed": (
        "approved",
        tools(ADD, evolve(PAY, needs_approval=False), MOVE, ASK),
        (1, "check-0.0", (), "missing effect", "check-0.0", "call-0.0"),
    ),
    "instructions made a function": (
        "finished",
        evolve(ROOT, instructions=lambda context: "You add."),
        (0, "prepare-0", (), "surplus effect", "model-0", "prepare-0"),
    ),
    "the agent renamed": ("finished", EXPERT, (0, "model-0", (), "missing effect", "model-0", "finish-0")),
    "the run ends earlier": (
        "finished",
        evolve(ROOT, tool_use_behavior=StopAt("add")),
        (2, "model-1", (), "missing effect", "model-1", "finish-1"),
    ),
    "the output is judged less often": (
        "refused and mended",
        evolve(ROOT, output_retries=0),
        (2, "model-1", (), "missing effect", "model-1", "finish-1~1"),
    ),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_changed_agent_diverges_where_it_differs(what: str) -> None:
    """Its index in the events, the effect's key and path, the cause, and both sides."""
    name, agent, (index, key, path, cause, expected, got) = CHANGED[what]
    divergence = replay([agent, EXPERT, OTHER] if what == "the agent renamed" else agent, RUNS[name]).failure()

    assert Divergence(index, key, path, cause, expected, got) == divergence  # type: ignore[arg-type]
    assert isinstance(events(RUNS[name])[index], Event)


def test_an_end_that_is_another_today_diverges() -> None:
    """A planned failure is what ends a run; the text of an end without output type is the model's."""
    recorded = lived(says(END), Finished(1, Success("Other.")))
    exhausted = lived(Finished(0, Failure(ServerFailed("down"))), max_turns=0)  # type: ignore[arg-type]

    for run in (recorded, exhausted):
        divergence = replay(ROOT, run).failure()
        assert divergence.cause == "missing effect"
        assert repr(run.outcome) == divergence.expected
        assert divergence.got != divergence.expected


def test_an_end_that_was_decoded_is_not_compared() -> None:
    """Its text is the canonical form of what the model said."""
    counting = Agent("root", "Count.", output_type=int)
    (effect,) = plan(agents(counting), start("root", "hi"))
    assert isinstance(effect, CallModel)
    reply = Replied(0, Success(ModelResponse((Message("assistant", '{"response": 1 }'),))), effect.request.sent)
    run = fold(start("root", "hi"), [reply, Finished(1, Success("1"))]).unwrap()

    assert Success(run) == replay(counting, run)


def test_a_decision_of_a_function_is_replayed() -> None:
    """`Decide` is answered by what was decided."""
    deciding = evolve(ROOT, tool_use_behavior=lambda context, results: None)
    run = lived(says(call("add")), DONE, Decided(0, "Enough."), Finished(1, Success("Enough.")))

    assert Success(run) == replay(deciding, run)
    missing = replay(ROOT, run).failure()
    assert (missing.cause, missing.key) == ("missing effect", "decide-0")


def test_a_decision_that_was_not_asked_for_is_surplus() -> None:
    """Today a function decides whether the outputs end the run."""
    deciding = evolve(ROOT, tool_use_behavior=lambda context, results: None)
    surplus = replay(deciding, RUNS["finished"]).failure()

    assert (surplus.index, surplus.cause, surplus.key) == (2, "surplus effect", "decide-0")


def test_events_beyond_the_end_of_today_are_missing() -> None:
    """The record goes on where today's run has ended."""
    run = lived(says(END), Finished(1, Failure(InvalidOutput("x"))), Reopened(1, 10), says(call("add")), LATER)
    odd = evolve(run, ends=run.ends[:1])

    divergence = replay(ROOT, odd).failure()
    assert (divergence.cause, divergence.got) == ("missing effect", "nothing: the run has ended")


def test_a_divergence_says_itself_in_a_line() -> None:
    """What differs, where, and both sides, shortened."""
    line = Divergence(3, "model-1", (), "instructions", "Be kind. " * 100, "Be curt.").problem
    assert line.startswith("instructions at model-1 (event 3): then 'Be kind. Be kind.")
    assert line.endswith("now 'Be curt.'")
    assert len(line) < 400

"""`plan`: what a run needs in each state, by the names of the effects."""

import pytest
from helpers import call, folded, keys, listed, made, replied

from fnagents.agent import Agent, StopAt, agents
from fnagents.errors import (
    FunctionRaised,
    GuardrailTripped,
    InvalidOutput,
    ModelFailed,
    ModelRefused,
    NestedTooDeep,
    ServerFailed,
    ToolFailed,
    ToolRaised,
    TurnsExhausted,
    UnknownAgent,
)
from fnagents.items import Message, Refusal
from fnagents.outcome import Failure, Success
from fnagents.planning import DEEPEST_RUN, plan
from fnagents.protocol import (
    Approved,
    CallTool,
    Checked,
    Checkup,
    Decided,
    Declined,
    Finish,
    Finished,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
    Verdict,
)
from fnagents.runs import start
from fnagents.tools import Delegate, Handoff, Output

INNER = Agent("inner", tools=[made("ask", needs_approval=True)])
AGENT = Agent(
    "a",
    tools=[
        made("t"),
        made("gated", needs_approval=True),
        made("s1", serial=True),
        made("s2", serial=True),
        made("s3", serial=True, needs_approval=True),
        made("nested", agents=(INNER,)),
    ],
    handoffs=[made("to_b", agents=(Agent("b"),)), made("to_c"), made("to_d", needs_approval=True)],
)
ERROR = ToolRaised("OSError")
DOWN = ServerFailed("down")


def checked(place, *, needed=True, digest="d", path=()):
    return Checked(place, Success(Checkup("{}", digest, needed)), path=path)


def answered(place, output="x", path=()):
    return Returned(place, Success(Output(output)), path=path)


def inner(*events):
    """A run whose only call was delegated; the events belong to the nested run."""
    return (replied(0, call("nested")), Returned("0.0", Success(Delegate("inner", "go"))), *events)


STATES = [
    ("a run that has not begun", (), ["model-0"]),
    ("a final answer", (replied(0, "hello"),), ["finish-1"]),
    ("a finished run", (replied(0, "hello"), Finished(1, Success("hello"))), []),
    ("an answer with calls", (replied(0, call("t"), call("t")),), ["call-0.0", "call-0.1"]),
    ("a call that is answered", (replied(0, call("t"), call("t")), answered("0.1")), ["call-0.0"]),
    ("all calls answered", (replied(0, call("t")), answered("0.0")), ["model-1"]),
    ("a call that failed", (replied(0, call("t")), Returned("0.0", Failure(ERROR))), ["model-1"]),
    ("a call to no tool", (replied(0, call("invalid tool")),), ["call-0.0"]),
    ("a gated call", (replied(0, call("gated"), call("t")),), ["check-0.0", "call-0.1"]),
    ("a call that needs a person", (replied(0, call("gated")), checked("0.0")), ["ask-0.0"]),
    ("a call that needs none", (replied(0, call("gated")), checked("0.0", needed=False)), ["call-0.0"]),
    ("an approved call", (replied(0, call("gated")), checked("0.0"), Approved("0.0", "d")), ["call-0.0"]),
    ("a declined call", (replied(0, call("gated")), checked("0.0"), Declined("0.0", "d")), ["model-1"]),
    ("a check that failed", (replied(0, call("gated")), Checked("0.0", Failure(ERROR))), ["model-1"]),
    (
        "an approved call with other arguments now",
        (replied(0, call("gated")), checked("0.0"), Approved("0.0", "d"), checked("0.0", digest="e")),
        ["ask-0.0~3"],
    ),
    (
        "one that was approved again",
        (
            replied(0, call("gated")),
            checked("0.0"),
            Approved("0.0", "d"),
            checked("0.0", digest="e"),
            Approved("0.0", "e"),
        ),
        ["call-0.0~4"],
    ),
    ("serial calls", (replied(0, call("s1"), call("t"), call("s2")),), ["call-0.0", "call-0.1"]),
    ("the next serial call", (replied(0, call("s1"), call("t"), call("s2")), answered("0.0")), ["call-0.1", "call-0.2"]),
    ("serial calls behind a check", (replied(0, call("s3"), call("s1")),), ["check-0.0"]),
    ("serial calls behind a question", (replied(0, call("s3"), call("s1")), checked("0.0")), ["ask-0.0"]),
    ("checks beside serial calls", (replied(0, call("s1"), call("s3")),), ["call-0.0", "check-0.1"]),
    ("handoffs beside other calls", (replied(0, call("to_b"), call("t")),), ["call-0.1"]),
    ("handoffs beside a question", (replied(0, call("to_b"), call("gated")), checked("0.1")), ["ask-0.1"]),
    ("handoffs at last, one at a time", (replied(0, call("to_b"), call("to_c")),), ["call-0.0"]),
    ("a gated handoff", (replied(0, call("to_d"), call("to_b")),), ["check-0.0"]),
    (
        "a handoff that failed",
        (replied(0, call("to_b"), call("to_c")), Returned("0.0", Failure(ERROR))),
        ["call-0.1"],
    ),
    (
        "a conversation that was handed over",
        (replied(0, call("to_b"), call("to_c")), Returned("0.0", Success(Handoff("b")))),
        ["model-1"],
    ),
    ("a nested run", inner(), ["0.0/model-0"]),
    ("a nested call", inner(replied(0, call("ask"), path=("0.0",))), ["0.0/check-0.0"]),
    (
        "a nested question",
        inner(replied(0, call("ask"), path=("0.0",)), checked("0.0", path=("0.0",))),
        ["0.0/ask-0.0"],
    ),
    ("a nested answer", inner(replied(0, "x", path=("0.0",))), ["0.0/finish-1"]),
    (
        "a nested run that has ended",
        inner(replied(0, "x", path=("0.0",)), Finished(1, Success("x"), path=("0.0",))),
        ["model-1"],
    ),
    (
        "a nested run beside its uncles",
        (
            replied(0, call("nested"), call("s1"), call("s2")),
            Returned("0.0", Success(Delegate("inner", "go"))),
        ),
        ["0.0/model-0", "call-0.1"],
    ),
    (
        "a nested run whose output is extracted",
        (
            replied(0, call("nested")),
            Returned("0.0", Success(Delegate("inner", "go", extract=True))),
            replied(0, "x", path=("0.0",)),
            Finished(1, Success("x"), path=("0.0",)),
        ),
        ["extract-0.0"],
    ),
    ("a failed model call", (Replied(0, Failure(DOWN)),), ["finish-1"]),
    ("a tripped guardrail", (Replied(0, None, verdicts=(Verdict("g", tripped=True),)),), ["finish-1"]),
    ("a refused output", (replied(0, "x"), Refused(1, "no")), ["model-1"]),
    ("a fatal error beside an open call", (replied(0, call("t"), call("t")), Returned("0.0", Failure(ERROR), fatal=True)), ["call-0.1"]),
]  # fmt: skip


@pytest.mark.parametrize(("events", "planned"), [state[1:] for state in STATES], ids=[state[0] for state in STATES])
def test_what_a_run_needs(events, planned) -> None:
    """The table is the specification of `plan`."""
    assert keys(AGENT, folded(start("a", "hi"), *events)) == planned


@pytest.mark.parametrize("events", [state[1] for state in STATES], ids=[state[0] for state in STATES])
def test_planning_changes_nothing(events) -> None:
    """Asked twice, it says the same; each effect knows the (nested) run that it was derived from."""
    run = folded(start("a", "hi"), *events)
    planned = plan(agents(AGENT), run)
    assert plan(agents(AGENT), run) == planned
    for effect in planned:
        seen = run
        for place in effect.path:
            child = seen.turns[-1].calls[int(place.partition(".")[2])].child
            assert child is not None
            seen = child
        assert effect.seen is seen


def test_a_call_carries_the_digest_that_was_approved() -> None:
    """An ungated call has none."""
    run = folded(start("a", "hi"), replied(0, call("gated"), call("t")), checked("0.0"), Approved("0.0", "d"))
    assert plan(agents(AGENT), run) == (
        CallTool("a", "0.0", call("gated"), "d", approved=True),
        CallTool("a", "0.1", call("t")),
    )


def outcome_of(agent, run):
    """That of the `Finish` which alone is planned."""
    (finish,) = plan(agents(agent), run)
    assert isinstance(finish, Finish)
    return finish.outcome


REFUSAL = Message("assistant", (Refusal("I cannot."),))


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ((replied(0, "hello"),), Success("hello")),
        ((replied(0, REFUSAL),), Failure(ModelRefused("I cannot."))),
        ((replied(0),), Success("")),
        ((Replied(0, Failure(DOWN)),), Failure(ModelFailed(DOWN))),
        (
            (Replied(0, None, verdicts=(Verdict("f"), Verdict("g", "why", tripped=True))),),
            Failure(GuardrailTripped("g", "why", "input")),
        ),
        ((replied(0, call("t"), verdicts=(Verdict("g", tripped=True),)),), Failure(GuardrailTripped("g", "", "input"))),
        (
            (
                replied(0, call("t"), call("t"), call("t")),
                Returned("0.2", Failure(ERROR), fatal=True),
                Returned("0.1", Failure(ERROR), fatal=True, feedback="read"),
                answered("0.0"),
            ),
            Failure(ToolFailed("0.1", ERROR)),
        ),
        (
            (
                replied(0, call("t"), call("t")),
                Returned("0.0", Success(Output("x")), verdicts=(Verdict("g", "i", tripped=True),)),
                Returned("0.1", Failure(ERROR), fatal=True),
            ),
            Failure(GuardrailTripped("g", "i", "0.0")),
        ),
        (
            (replied(0, call("gated")), Checked("0.0", Failure(ERROR), fatal=True)),
            Failure(ToolFailed("0.0", ERROR)),
        ),
        ((replied(0, "x"), Refused(1, "no"), replied(1, "y"), Refused(2, "still no")), Failure(InvalidOutput("still no"))),
        ((Prepared(0, failure=FunctionRaised("f", "OSError")),), Failure(FunctionRaised("f", "OSError"))),
    ],
)  # fmt: skip
def test_how_a_run_is_to_end(events, outcome) -> None:
    """The outcome of the planned `Finish`; of several fatal errors the first in call order counts."""
    run = folded(start("a", "hi"), *events)
    assert outcome_of(AGENT, run) == outcome


@pytest.mark.parametrize(
    ("limit", "turns", "planned"),
    [
        (None, 20, ["model-20"]),
        (0, 0, ["finish-0"]),
        (1, 0, ["model-0"]),
        (1, 1, ["finish-1"]),
        (2, 1, ["model-1"]),
    ],
)
def test_turns_are_counted_as_model_calls(limit, turns, planned) -> None:
    """A limit of 0 asks no model, None asks it without end."""
    events = [event for n in range(turns) for event in (replied(n, call("t")), answered(f"{n}.0"))]
    run = folded(start("a", "hi", max_turns=limit), *events)
    assert keys(AGENT, run) == planned
    if planned[0].startswith("finish"):
        assert outcome_of(AGENT, run) == Failure(TurnsExhausted(limit))


def test_an_unknown_agent_ends_the_run() -> None:
    """At the start and after a handoff; the failure names the agents that there are."""
    begun = start("z", "hi")
    assert plan(agents(AGENT), begun) == (Finish("z", 0, Failure(UnknownAgent("z", ("a", "inner", "b")))),)
    over = folded(start("a", "hi"), replied(0, call("to_c")), Returned("0.0", Success(Handoff("c"))))
    assert plan(agents(AGENT), over) == (Finish("c", 1, Failure(UnknownAgent("c", ("a", "inner", "b")))),)


def test_nested_runs_may_be_16_deep() -> None:
    """One deeper, the innermost ends with a failure, which is feedback to its parent."""
    loop = Agent("loop", tools=[made("again")])
    run = start("loop", "hi")
    path: tuple[str, ...] = ()
    for depth in range(DEEPEST_RUN + 1):
        run = folded(
            run,
            replied(0, call("again"), path=path),
            Returned("0.0", Success(Delegate("loop", "go")), path=path),
        )
        path = (*path, "0.0")
        (effect,) = plan(agents(loop), run)
        assert effect.path == path
        assert isinstance(effect, Finish) is (depth == DEEPEST_RUN)
    assert outcome_of(loop, run) == Failure(NestedTooDeep(16))


@pytest.mark.parametrize(
    ("behavior", "events", "planned"),
    [
        ("stop_on_first_tool", (replied(0, call("t")), answered("0.0")), ["finish-1"]),
        ("stop_on_first_tool", (replied(0, call("t"), call("t")), answered("0.0")), ["call-0.1"]),
        ("stop_on_first_tool", (replied(0, call("t")), Returned("0.0", Failure(ERROR))), ["model-1"]),
        (StopAt("t"), (replied(0, call("t")), answered("0.0")), ["finish-1"]),
        (StopAt("u"), (replied(0, call("t")), answered("0.0")), ["model-1"]),
        (StopAt("u"), (replied(0, "hello"),), ["finish-1"]),
        (len, (replied(0, call("t"), call("t")), answered("0.0")), ["call-0.1"]),
        (len, (replied(0, call("t")), answered("0.0")), ["decide-0"]),
        (len, (replied(0, call("t")), answered("0.0"), Decided(0, "x")), ["finish-1"]),
        (len, (replied(0, call("t")), answered("0.0"), Decided(0)), ["model-1"]),
        (len, (replied(0, call("t")), answered("0.0"), Decided(0, failure=FunctionRaised("f", "E"))), ["finish-1"]),
        (len, (replied(0, "hello"),), ["finish-1"]),
    ],
)
def test_tool_outputs_may_end_a_run(behavior, events, planned) -> None:
    """When all calls of the turn are answered, by the agent's `tool_use_behavior`."""
    agent = Agent("a", tools=[made("t")], tool_use_behavior=behavior)
    assert keys(agent, folded(start("a", "hi"), *events)) == planned


def test_an_agent_with_functions_has_its_turns_prepared() -> None:
    """Each turn anew, before the model is asked."""
    agent = Agent("a", lambda context: "now", tools=[made("t")])
    run = start("a", "hi")
    assert keys(agent, run) == ["prepare-0"]
    run = folded(run, Prepared(0, "now", (listed("t", gate=True),)))
    assert keys(agent, run) == ["model-0"]
    run = folded(run, replied(0, call("t")))
    assert keys(agent, run) == ["check-0.0"]
    assert keys(agent, folded(run, Checked("0.0", Failure(ERROR)))) == ["prepare-1"]


@pytest.mark.parametrize(
    ("retries", "refusals", "planned"),
    [(0, 1, ["finish-1~1"]), (1, 1, ["model-1"]), (1, 2, ["finish-2~1"]), (2, 2, ["model-2"]), (2, 3, ["finish-3~1"])],
)
def test_the_model_may_mend_its_output(retries, refusals, planned) -> None:
    """`output_retries` times in a row; the name of the last `Finish` differs from that of the refused one."""
    events = [event for n in range(refusals) for event in (replied(n, "x"), Refused(n + 1, "no"))]
    assert keys(Agent("a", output_retries=retries), folded(start("a", "hi"), *events)) == planned


def test_only_refusals_in_a_row_count() -> None:
    """A turn with calls between them begins the count anew."""
    run = folded(
        start("a", "hi"), replied(0, "x"), Refused(1, "no"), replied(1, call("t")), answered("1.0"), replied(2, "y"),
        Refused(3, "no"),
    )  # fmt: skip
    assert keys(AGENT, run) == ["model-3"]


def ended(outcome, *events, limit=10):
    """A run that failed and was reopened."""
    run = folded(start("a", "hi", max_turns=limit), *events)
    return folded(run, Finished(len(run.turns), Failure(outcome)), Reopened(len(run.turns), limit))


TRIPPED = (Verdict("g", tripped=True),)


@pytest.mark.parametrize(
    ("run", "planned"),
    [
        (ended(ModelFailed(DOWN), Replied(0, Failure(DOWN))), ["model-1"]),
        (ended(ModelFailed(DOWN), Replied(0, Failure(DOWN)), limit=1), ["model-1"]),
        (ended(GuardrailTripped("g", "", "input"), Replied(0, None, verdicts=TRIPPED)), ["model-1"]),
        (ended(GuardrailTripped("g", "", "input"), replied(0, call("t"), verdicts=TRIPPED)), ["call-0.0"]),
        (ended(GuardrailTripped("g", "", "output"), replied(0, "x")), ["model-1"]),
        (ended(ModelRefused("I cannot."), replied(0, REFUSAL)), ["model-1"]),
        (
            ended(ToolFailed("0.0", ERROR), replied(0, call("t")), Returned("0.0", Failure(ERROR), fatal=True)),
            ["model-1"],
        ),
        (
            ended(InvalidOutput("no"), replied(0, "x"), Refused(1, "no"), replied(1, "x"), Refused(2, "no")),
            ["model-2"],
        ),
        (ended(FunctionRaised("f", "E"), Prepared(0, failure=FunctionRaised("f", "E"))), ["model-1"]),
        (ended(TurnsExhausted(0), limit=0), ["finish-0~2"]),
        (ended(UnknownAgent("a")), ["model-0"]),
    ],
)
def test_a_reopened_run_goes_on_behind_its_failure(run, planned) -> None:
    """A failed model call costs no turn; what was tripped or refused is not judged again; a limit still holds."""
    assert keys(AGENT, run) == planned


def test_a_reopened_decision_that_failed_asks_the_model() -> None:
    """The function that raised is not called again for that turn."""
    failure = FunctionRaised("tool_use_behavior", "E")
    events = (replied(0, call("t")), answered("0.0"), Decided(0, failure=failure))
    agent = Agent("a", tools=[made("t")], tool_use_behavior=lambda context, results: None)
    assert keys(agent, ended(failure, *events)) == ["model-1"]

"""One tool call, from the model's text to the event that answers it."""

import asyncio
import contextvars
import logging
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest
from helpers import NUMBER, given, made, raising

from fnagents.define import tool as tool_of
from fnagents.errors import (
    InvalidArguments,
    InvalidJson,
    NestedFailed,
    ToolRaised,
    ToolRejected,
    ToolTimedOut,
    TurnsExhausted,
    UnrenderableOutput,
)
from fnagents.items import Text, ToolCall
from fnagents.jsontext import canonical, digest
from fnagents.outcome import Failure, Success
from fnagents.pipeline import Calling, Flag, arguments_digest, check_call, failed, run_call, run_extract
from fnagents.prose import explain
from fnagents.protocol import Checked, Checkup, Finished, Returned, Verdict
from fnagents.runs import Run, start
from fnagents.schemas.arguments import Arguments
from fnagents.testing import run_virtual
from fnagents.tools import Allow, Delegate, Fatal, Handoff, Output, Reject, Tool, ToolContext, Trip, fatal


def calling(tool, arguments="{}", **options):
    """One call of a tool at place 0.0 of agent `a`."""
    flag = Flag()
    context = ToolContext(
        "context", "a", 0, ("9.9",), start("a", "hi"), tool=tool, place="0.0", arguments=arguments, cancelled=flag.read
    )
    return Calling(tool, ToolCall("c", tool.name, arguments), context, flag, **options)


def ran(tool, arguments="{}", checked="", approved=False, **options):
    """The event of a call, in virtual time."""
    return run_virtual(run_call(calling(tool, arguments, **options), checked, approved=approved))


def check(tool, arguments="{}", **options):
    return run_virtual(check_call(calling(tool, arguments, **options)))


def returned(outcome, **options):
    return Returned("0.0", outcome, path=("9.9",), **options)


def checkup(tool, arguments="{}", needed=True):
    """What a check that passes says."""
    name = digest(canonical(["a", "function_call", "", tool.name, arguments]))
    return Checkup(arguments, name, needed, digest(tool.definition_text))


async def later(value):
    await asyncio.sleep(0.01)
    return value


def own_cancellation(*args):
    raise asyncio.CancelledError


# --- arguments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ('{"x":', InvalidJson("Expecting value at line 1 column 6 (of 5 characters)")),
        ("null", InvalidJson("it is null, not an object")),
        ("[1]", InvalidJson("it is an array, not an object")),
        ('"{\\"x\\":1}"', InvalidJson("it is a string, not an object")),
        ("", InvalidArguments(("$: 'x' is a required property",))),
        ("   ", InvalidArguments(("$: 'x' is a required property",))),
        ('{"x": "1"}', InvalidArguments(("$.x: '1' is not of type 'integer'",))),
        ('{"x": true}', InvalidArguments(("$.x: True is not of type 'integer'",))),
        ('{"x": 1, "y": 2}', InvalidArguments(("$: Additional properties are not allowed ('y' was unexpected)",))),
    ],
)
def test_arguments_that_do_not_fit_are_feedback(arguments, error) -> None:
    """The function never runs; a predicate is never asked about values that nobody wrote."""
    asked = []
    tool = made("t", lambda context, text: asked.append(text), NUMBER, needs_approval=lambda *args: asked.append(args))
    assert check(tool, arguments) == Checked("0.0", Failure(error), path=("9.9",))
    assert ran(tool, arguments, checked="d") == returned(Failure(error))
    assert asked == []


def test_the_function_takes_the_context_and_what_was_read() -> None:
    """A tool by hand is given the canonical text of its arguments, integers exact."""
    taken = []
    tool = made("t", lambda context, text: taken.append((context.context, context.place, text)), NUMBER)
    assert ran(tool, '{ "x": 1234567890123456789 }') == returned(Success(Output("null")))
    assert taken == [("context", "0.0", '{"x":1234567890123456789}')]


def test_a_reader_that_raises_is_feedback() -> None:
    """So is whatever a default factory of the user's own does."""

    def read(text):
        raise ZeroDivisionError("odd")

    tool = made("t", lambda context, text: "x", read=read)
    assert ran(tool) == returned(Failure(ToolRaised("ZeroDivisionError", "odd")))


# --- approval ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "needed"),
    [
        (True, True),
        (False, False),
        (lambda context, values: True, True),
        (lambda context, values: False, False),
        (lambda context, values: None, True),
        (lambda context, values: 0, True),
        (lambda context, values: "no", True),
        (lambda context, values: values["x"] > 3, False),
        (lambda context, values: later(False), False),
        (lambda context, values: later(True), True),
        (lambda context, values: later(None), True),
    ],
)
def test_only_a_predicate_that_says_false_lets_a_call_pass_unasked(rule, needed) -> None:
    """It sees the validated arguments; anything but False asks a person."""
    tool = made("t", None, NUMBER, needs_approval=rule)
    assert check(tool, '{"x":3}') == Checked("0.0", Success(checkup(tool, '{"x":3}', needed)), path=("9.9",))


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (lambda context, values: 1 / 0, ToolRaised("ZeroDivisionError", "in its approval rule: division by zero")),
        (own_cancellation, ToolRaised("CancelledError", "in its approval rule")),
    ],
)
def test_a_predicate_that_raises_lets_nothing_pass(rule, error) -> None:
    """The call is answered by the failure, and nobody is asked."""
    assert check(made("t", needs_approval=rule)) == Checked("0.0", Failure(error), path=("9.9",))


def test_a_digest_covers_agent_tool_and_arguments() -> None:
    """How the arguments were written plays no part; any other value does."""
    tool = made("t", None, NUMBER)

    def of(agent, tool, text):
        return arguments_digest(agent, tool, tool.read(text).unwrap())

    same = of("a", tool, '{"x": 1}')
    assert of("a", tool, ' {"x":1}\n') == same
    others = [
        of("a", tool, '{"x":2}'),
        of("b", tool, '{"x":1}'),
        of("a", made("u", None, NUMBER), '{"x":1}'),
        of("a", made("t", None, NUMBER, namespace="n"), '{"x":1}'),
        of("a", made("t", None, NUMBER, kind="custom_tool_call"), '{"x":1}'),
    ]
    assert len({same, *others}) == 6


def test_an_approved_call_runs_if_its_digest_holds() -> None:
    """If it does not, the call is checked again instead."""
    tool = given("t", "ran", needs_approval=True)
    assert ran(tool, checked=checkup(tool).digest, approved=True) == returned(Success(Output("ran")))
    assert ran(tool, checked="other", approved=True) == Checked("0.0", Success(checkup(tool)), path=("9.9",))


def test_a_tool_that_has_come_to_need_approval_asks_for_it() -> None:
    """That a predicate let the call pass before is no approval."""
    tool = given("t", "ran", needs_approval=True)
    assert ran(tool, checked=checkup(tool).digest) == Checked("0.0", Success(checkup(tool)), path=("9.9",))
    judged = given("t", "ran", needs_approval=lambda context, arguments: False)
    assert ran(judged, checked=checkup(judged).digest) == returned(Success(Output("ran")))


def test_a_guardrail_cannot_change_what_runs() -> None:
    """It judges arguments of its own."""

    def adds(context, arguments):
        arguments["to"].append("eve")
        return Allow()

    @tool_of(input_guardrails=[adds], inline=True)
    def pay(to: list[str]) -> list[str]:
        return to

    assert ran(pay, '{"to": ["bob"]}').outcome == Success(Output('["bob"]'))


class Abrupt(BaseException):
    """What is no Exception either."""


def abruptly(*args):
    raise Abrupt("stop")


@pytest.mark.parametrize(
    "options",
    [
        {"function": abruptly},
        {"needs_approval": abruptly},
        {"input_guardrails": [abruptly]},
        {"output_guardrails": [abruptly]},
        {"on_error": abruptly, "function": lambda context, text: 1 / 0},
        {"read": abruptly},
    ],
    ids=lambda options: next(iter(options)),
)
def test_nothing_that_foreign_code_raises_ends_the_run(options) -> None:
    """Whatever its class: an exception that is no Exception is an answer like any other."""
    tool = made("t", **{"function": lambda context, text: "x", **options})
    event = check(tool) if "needs_approval" in options else ran(tool)
    verdicts = getattr(event, "verdicts", ())
    assert isinstance(event.outcome, Failure) or verdicts[0].tripped


def test_on_raised_may_raise() -> None:
    """Whoever is told of a failure must not make another of it."""
    tool = made("t", lambda context, text: 1 / 0)
    assert ran(tool, on_raised=abort).outcome == Failure(ToolRaised("ZeroDivisionError", "division by zero"))


def abort(call, error):
    raise RuntimeError("nobody wants to know")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Output("x", memory=5), "Output.memory is a int, not str"),
        (Output("x", usage={}), "Output.usage is a dict, not Usage | None"),
        (Text(5), "Output.parts is a tuple, not str | tuple[Part, ...]"),
        (Delegate(made("t"), "x"), "Delegate.agent is a Tool, not str"),
        (Delegate("a", "x", "3"), "Delegate.max_turns is a str, not int | None"),
        (Failure(ToolRejected(5)), "ToolRejected.reason is a int, not str"),
        (Failure(ToolTimedOut(float("nan"))), "ToolTimedOut.seconds is a float, not float"),
    ],
)
def test_what_a_tool_returns_is_what_it_claims_to_be(answer, problem) -> None:
    """A value that could not be saved is feedback."""
    assert ran(given("t", answer)).outcome == Failure(UnrenderableOutput(problem))


@pytest.mark.parametrize("verdict", [Allow(5), Reject(None), Trip(5)])
def test_a_verdict_that_is_unreadable_trips(verdict) -> None:
    """A guardrail that does not say what it means lets nothing through."""
    event = ran(given("t", "x", input_guardrails=[lambda context, judged: verdict]))
    assert event.verdicts[0].tripped


def test_a_tool_that_has_become_gated_is_not_run_unasked() -> None:
    """A call that was planned without a gate is refused, and the model may call again."""
    error = ToolRejected("The tool needs approval now. Call it again to ask for it.")
    assert ran(given("t", "ran", needs_approval=True)) == returned(Failure(error))


# --- what the function does ----------------------------------------------------------------------------


async def asynchronous(context, text):
    return await later("async")


class AsyncCallable:
    async def __call__(self, context, text):
        return "callable"


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (lambda context, text: "sync", "sync"),
        (asynchronous, "async"),
        (AsyncCallable(), "callable"),
        (lambda context, text: later("awaitable"), "awaitable"),
        (lambda context, text: {"a": [1]}, '{"a":[1]}'),
        (lambda context, text: Success(1), "1"),
    ],
)
@pytest.mark.parametrize("inline", [True, False])
def test_what_a_function_returns_is_rendered(function, output, inline) -> None:
    """Sync or async, on the loop or in a thread; an awaitable is awaited."""
    event = asyncio.run(run_call(calling(made("t", function, inline=inline)), "")) if not inline else ran(
        made("t", function)
    )  # fmt: skip
    assert event == returned(Success(Output(output)))


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError


class Odd(BaseException):
    """Not an Exception."""


def endless(context, text):
    return endless(context, text)


RAISED = [
    (ValueError("no"), ToolRaised("ValueError", "no")),
    (ValueError(), ToolRaised("ValueError")),
    (KeyError("k"), ToolRaised("KeyError", "'k'")),
    (StopIteration(1), ToolRaised("StopIteration", "1")),
    (StopAsyncIteration(), ToolRaised("StopAsyncIteration")),
    (TimeoutError(), ToolRaised("TimeoutError")),
    (asyncio.CancelledError(), ToolRaised("CancelledError")),
    (Unspeakable(), ToolRaised("Unspeakable")),
    (Odd("x"), ToolRaised("Odd", "x")),
]


@pytest.mark.parametrize(("error", "value"), RAISED)
@pytest.mark.parametrize("way", ["inline", "thread", "async", "limited"])
def test_whatever_a_tool_raises_is_feedback(error, value, way) -> None:
    """Nothing of it ends the run or hangs the loop, wherever it was raised."""

    def function(context, text):
        raise error

    async def coroutine(context, text):
        raise error

    if way == "async" and isinstance(error, StopIteration):
        value = ToolRaised("RuntimeError", "coroutine raised StopIteration")
    tool = {
        "inline": made("t", function),
        "thread": made("t", function, inline=False),
        "async": made("t", coroutine),
        "limited": made("t", function, timeout=60),
    }[way]
    assert asyncio.run(run_call(calling(tool), "")) == returned(Failure(value))


def test_recursion_without_end_is_feedback() -> None:
    """It is an exception like any other."""
    event = ran(made("t", endless))
    assert event.outcome.failure().kind == "RecursionError"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("options", [{}, {"inline": False}, {"timeout": 60}])
def test_leaving_the_process_passes_through(error, options) -> None:
    """A person's interrupt and an exit are no feedback."""
    with pytest.raises(type(error)):
        asyncio.run(run_call(calling(raising("t", error, **options)), ""))


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_the_callers_cancellation_passes_through(timeout) -> None:
    """The function is cancelled, and its context says so."""
    seen = []

    async def function(context, text):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    one = calling(made("t", function, timeout=timeout))

    async def main():
        task = asyncio.ensure_future(run_call(one, ""))
        await asyncio.sleep(1)
        assert not one.context.cancelled()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        return one.context.cancelled()

    assert run_virtual(main()) is True
    assert seen == ["cancelled"]


def waiting(context, *args):
    return asyncio.sleep(30)


@pytest.mark.parametrize(
    "tool",
    [
        made("t", lambda context, text: "x", needs_approval=waiting),
        raising("t", ValueError(), on_error=waiting),
        made("t", lambda context, text: "x", input_guardrails=[waiting]),
    ],
)
def test_cancellation_passes_through_a_tools_other_functions(tool) -> None:
    """Predicates, explanations and guardrails are no place to lose it."""

    async def main():
        stage = check_call(calling(tool)) if tool.needs_approval else run_call(calling(tool), "")
        task = asyncio.ensure_future(stage)
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 1.0


def test_a_call_that_is_closed_ends_at_once() -> None:
    """A loop that goes away throws GeneratorExit into what waits; the call does not go on."""
    coroutine = run_call(calling(made("t", waiting_sleep, output_guardrails=[waiting])), "")
    coroutine.send(None)
    coroutine.close()


class _Pause:
    def __await__(self):
        yield


async def waiting_sleep(context, text):
    await _Pause()


def test_the_exception_is_told_and_logged(caplog) -> None:
    """Its traceback goes to the log and to `on_raised`, never to the model."""
    error, told = ValueError("secret place"), []
    with caplog.at_level(logging.WARNING, "fnagents.tools"):
        ran(raising("t", error), on_raised=lambda call, raised: told.append((call.name, raised)))
    assert told == [("t", error)]
    (record,) = caplog.records
    assert record.getMessage() == "tool t raised at call 0.0"
    assert record.exc_info[1] is error


def test_a_tool_of_the_provider_is_not_run_here() -> None:
    """It has a definition and no function."""
    error = UnrenderableOutput("the tool t is run by the provider, not here")
    assert ran(made("t")) == returned(Failure(error))


def test_only_a_handoff_tool_hands_over() -> None:
    """Delegating is free to all."""
    error = UnrenderableOutput("only a tool among the agent's handoffs can hand the conversation over")
    assert ran(given("t", Handoff("b"))) == returned(Failure(error))
    assert ran(given("t", Handoff("b")), handoff=True) == returned(Success(Handoff("b")))
    assert ran(given("t", Delegate("b", "go"))) == returned(Success(Delegate("b", "go")))


# --- threads -------------------------------------------------------------------------------------------

VARIABLE = contextvars.ContextVar("VARIABLE", default="outside")


def test_sync_tools_run_side_by_side_off_the_loop() -> None:
    """Each waits for the other, and the loop goes on beside them."""
    barrier = threading.Barrier(3, timeout=30)
    tool = made("t", lambda context, text: barrier.wait() >= 0, inline=False)

    async def main():
        beside = asyncio.to_thread(barrier.wait)
        events = await asyncio.gather(run_call(calling(tool), ""), run_call(calling(tool), ""), beside)
        return events[:2]

    assert asyncio.run(main()) == [returned(Success(Output("true")))] * 2


def test_context_variables_reach_a_sync_tool() -> None:
    """As they reach an async one."""
    tool = made("t", lambda context, text: VARIABLE.get(), inline=False)

    async def main():
        VARIABLE.set("inside")
        return await run_call(calling(tool), "")

    assert asyncio.run(main()) == returned(Success(Output("inside")))


# --- timeouts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "limit", "outcome", "elapsed"),
    [
        (0.019, 0.02, Success(Output("null")), 0.019),
        (0.021, 0.02, Failure(ToolTimedOut(0.02)), 0.02),
        (5, 2.0, Failure(ToolTimedOut(2.0)), 2.0),
        (5, None, Success(Output("null")), 5),
        (timedelta(days=1).total_seconds(), 86_399, Failure(ToolTimedOut(86_399)), 86_399),
    ],
)
def test_a_call_times_out_if_it_outlasts_its_limit(seconds, limit, outcome, elapsed) -> None:
    """And it takes the lesser of the two."""

    async def main():
        tool = made("t", lambda context, text: asyncio.sleep(seconds), timeout=limit)
        return await run_call(calling(tool), ""), asyncio.get_running_loop().time()

    assert run_virtual(main()) == (returned(Failure(outcome.failure()) if isinstance(outcome, Failure) else outcome), elapsed)  # fmt: skip


async def cancels_itself(context, text):
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


def test_a_function_that_cancels_its_own_task_is_feedback() -> None:
    """With a limit it runs in a task of its own, so nothing else is cancelled."""
    assert ran(made("t", cancels_itself, timeout=60)) == returned(Failure(ToolRaised("CancelledError")))


async def stubborn(context, text):
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        await asyncio.sleep(30)
    return "late"


async def returns_when_cancelled(context, text):
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        return "cancelled" if context.cancelled() else "not told"


async def raises_when_cancelled(context, text):
    try:
        await asyncio.sleep(30)
    finally:
        raise ValueError("late")


@pytest.mark.parametrize(
    ("function", "running"), [(stubborn, True), (returns_when_cancelled, False), (raises_when_cancelled, False)]
)
def test_a_late_result_changes_nothing(function, running) -> None:
    """The call has timed out whatever the function then does; one that goes on is said to."""
    assert ran(made("t", function, timeout=1)) == returned(Failure(ToolTimedOut(1, running=running)))


def test_a_sync_tool_that_hangs_times_out() -> None:
    """Its thread cannot be stopped, the feedback says so, and its context tells it that nobody waits."""
    entered, told = threading.Event(), threading.Event()

    def function(context, text):
        entered.set()
        while not context.cancelled():
            told.wait(0.001)
        told.set()

    tool = made("t", function, inline=False, timeout=0.05)
    event = asyncio.run(run_call(calling(tool), ""))
    assert event == returned(Failure(ToolTimedOut(0.05, running=True)))
    assert explain(event.outcome.failure()) == (
        "The tool timed out after 0.05 seconds. It could not be stopped and may still be running."
    )
    assert entered.is_set()
    assert told.wait(30)


HANGING = """
import asyncio, threading
from fnagents import Tool, invoke

tool = Tool("hang", "", {}, lambda context, text: threading.Event().wait(), strict=False, timeout=0.1)
print(asyncio.run(invoke(tool)), flush=True)
"""


def test_a_hung_tool_does_not_keep_the_process() -> None:
    """The interpreter exits though the thread never will."""
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False)
    expected = "<Failure: ToolTimedOut(seconds=0.1, running=True)>\n"
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0)


# --- on_error ------------------------------------------------------------------------------------------

ERROR = ToolRaised("ValueError", "no")


@pytest.mark.parametrize(
    ("rule", "feedback", "ends"),
    [
        (None, "", False),
        (lambda context, error: f"{context.tool.name}: {error.kind}", "t: ValueError", False),
        (lambda context, error: later("later"), "later", False),
        (lambda context, error: "", "", False),
        (lambda context, error: 42, "", False),
        (lambda context, error: None, "", False),
        (lambda context, error: Fatal(), "", True),
        (lambda context, error: later(Fatal()), "", True),
        (fatal, "", True),
        (lambda context, error: 1 / 0, "", False),
        (own_cancellation, "", False),
    ],
)
def test_a_tool_words_its_own_failures(rule, feedback, ends) -> None:
    """Text replaces the explanation, `Fatal` ends the run; anything else, or raising, leaves the explanation."""
    event = ran(raising("t", ValueError("no"), on_error=rule))
    assert event == returned(Failure(ERROR), feedback=feedback, fatal=ends)


def raise_value_error(*args):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        (made("t", None, NUMBER, on_error=fatal), "{", InvalidJson),
        (made("t", None, NUMBER, on_error=fatal), "{}", InvalidArguments),
        (raising("t", ValueError(), on_error=fatal), "{}", ToolRaised),
        (made("t", lambda context, text: asyncio.sleep(9), timeout=1, on_error=fatal), "{}", ToolTimedOut),
        (made("t", own_cancellation, on_error=fatal), "{}", ToolRaised),
        (given("t", b"", on_error=fatal), "{}", UnrenderableOutput),
        (given("t", "x", on_error=fatal, input_guardrails=[lambda *args: Reject("no")]), "{}", ToolRejected),
    ],
)
def test_a_fatal_tool_is_fatal_for_every_cause(tool, arguments, error) -> None:
    """Bad JSON, bad arguments, raising, a timeout, a cancellation, no form, a refusal."""
    event = ran(tool, arguments)
    assert event.fatal is True
    assert type(event.outcome.failure()) is error


def test_a_check_that_fails_is_worded_too() -> None:
    """The same rule holds before a call runs."""
    tool = made("t", None, NUMBER, needs_approval=True, on_error=lambda context, error: "mind the x")
    event = check(tool)
    assert (event.feedback, event.fatal) == ("mind the x", False)
    tool = made("t", None, needs_approval=raise_value_error, on_error=fatal)
    raised = ToolRaised(ERROR.kind, f"in its approval rule: {ERROR.message}")
    assert check(tool) == Checked("0.0", Failure(raised), fatal=True, path=("9.9",))


# --- guardrails ----------------------------------------------------------------------------------------


def allow(context, judged):
    return Allow("fine")


def reject(context, judged):
    return Reject("not this", "why")


def trip(context, judged):
    return Trip("stop")


async def slow_allow(context, judged):
    return await later(Allow())


class Guard:
    """A guardrail without a name of its own."""

    def __call__(self, context, judged):
        return Allow()


NOT_THIS = Failure(ToolRejected("not this", by="guardrail"))
ENDED = Failure(ToolRejected("The guardrail 'trip' ended the run.", by="guardrail"))


def nonsense(context, judged):
    return True


VERDICTS = [
    ([allow], Success(Output("ran")), [Verdict("allow", "fine")]),
    ([slow_allow, Guard()], Success(Output("ran")), [Verdict("slow_allow"), Verdict("Guard")]),
    ([allow, reject, trip], NOT_THIS, [Verdict("allow", "fine"), Verdict("reject", "why")]),
    ([trip, reject], ENDED, [Verdict("trip", "stop", tripped=True)]),
    (
        [raise_value_error],
        Failure(ToolRejected("The guardrail 'raise_value_error' ended the run.", by="guardrail")),
        [Verdict("raise_value_error", "the guardrail raised ValueError", tripped=True)],
    ),
    (
        [own_cancellation],
        Failure(ToolRejected("The guardrail 'own_cancellation' ended the run.", by="guardrail")),
        [Verdict("own_cancellation", "the guardrail raised CancelledError", tripped=True)],
    ),
    (
        [nonsense],
        Failure(ToolRejected("The guardrail 'nonsense' ended the run.", by="guardrail")),
        [Verdict("nonsense", "the guardrail said bool, which is none of Allow, Reject and Trip", tripped=True)],
    ),
]


@pytest.mark.parametrize(("guardrails", "outcome", "verdicts"), VERDICTS)
def test_input_guardrails_judge_a_call_before_it_runs(guardrails, outcome, verdicts) -> None:
    """One after the other; the first that does not allow the call answers it, and one that fails trips."""
    ranks = []

    def work(context, text):
        ranks.append(1)
        return "ran"

    tool = made("t", work, input_guardrails=guardrails)
    assert ran(tool) == returned(outcome, verdicts=tuple(verdicts))
    assert len(ranks) == isinstance(outcome, Success)


@pytest.mark.parametrize(("guardrails", "outcome", "verdicts"), VERDICTS)
def test_output_guardrails_judge_what_the_model_would_read(guardrails, outcome, verdicts) -> None:
    """The call has run by then, whatever they say."""
    ranks = []

    def work(context, text):
        ranks.append(1)
        return "ran"

    tool = made("t", work, output_guardrails=guardrails)
    assert ran(tool) == returned(outcome, verdicts=tuple(verdicts))
    assert ranks == [1]


def test_guardrails_see_what_they_judge() -> None:
    """Input ones the validated arguments, output ones the rendered output; nothing else is judged."""
    seen = []

    def look(context, judged):
        seen.append((context.place, judged))
        return Allow()

    options = {"input_guardrails": [look], "output_guardrails": [look]}
    ran(made("t", lambda context, text: {"y": 2}, NUMBER, **options), '{"x": 1}')
    assert seen == [("0.0", {"x": 1}), ("0.0", Output('{"y":2}'))]
    seen.clear()
    ran(raising("t", ValueError(), **options))
    ran(given("t", Delegate("b", "go"), **options))
    assert [judged for _, judged in seen] == [{}, {}]


def test_the_stages_of_a_call_come_in_order() -> None:
    """Approval, input guardrails, the function, output guardrails."""
    order = []

    def said(word, value):
        def function(*args):
            order.append(word)
            return value

        return function

    tool = made(
        "t",
        said("run", "x"),
        needs_approval=said("approve", False),
        input_guardrails=[said("in", Allow())],
        output_guardrails=[said("out", Allow())],
    )
    passed = check(tool).outcome.unwrap()
    ran(tool, checked=passed.digest)
    assert order == ["approve", "in", "run", "out"]


# --- extraction ----------------------------------------------------------------------------------------

DONE = Run("b", "go", ends=(Finished(0, Success("inner")),))
BROKEN = Run("b", "go", ends=(Finished(0, Failure(TurnsExhausted(0))),))


@pytest.mark.parametrize(
    ("extract", "child", "outcome"),
    [
        (lambda context, run: run.outcome.unwrap().upper(), DONE, Success(Output("INNER"))),
        (lambda context, run: later({"a": 1}), DONE, Success(Output('{"a":1}'))),
        (raise_value_error, DONE, Failure(ERROR)),
        (own_cancellation, DONE, Failure(ToolRaised("CancelledError"))),
        (lambda context, run: b"", DONE, Failure(UnrenderableOutput("a value of type bytes has no form for a model; return text or plain data"))),
        (lambda context, run: Handoff("b"), DONE, Failure(UnrenderableOutput("an extractor can neither hand over nor delegate"))),
        (raise_value_error, BROKEN, Failure(NestedFailed("No final output after 0 turns, the limit of this run."))),
        (None, DONE, Failure(UnrenderableOutput("the tool t has no extractor"))),
    ],
)  # fmt: skip
def test_an_extractor_makes_the_output_of_a_nested_run(extract, child, outcome) -> None:
    """Of one that succeeded, and only of that; what it raises is feedback."""
    event = run_virtual(run_extract(calling(made("t", extract=extract)), child))
    assert event == returned(outcome)


def test_a_failed_call_is_an_event() -> None:
    """With what was judged before it failed."""
    verdicts = (Verdict("g"),)
    assert run_virtual(failed(calling(made("t")), ERROR, verdicts)) == returned(Failure(ERROR), verdicts=verdicts)


def test_a_reader_may_give_anything_to_the_function() -> None:
    """What `Arguments.given` is goes to the function, what `values` is to the predicate."""
    tool: Tool[..., Any, Any] = Tool(
        "t",
        "",
        NUMBER,
        lambda context, given: given * 2,
        read=lambda text: Success(Arguments({"x": 1}, {"x": "one"}, "given")),
        inline=True,
        needs_approval=lambda context, values: values == {"x": "one"},
    )
    assert check(tool).outcome.unwrap().needed is True
    assert ran(tool, checked=checkup(tool, '{"x":1}').digest, approved=True) == returned(Success(Output("givengiven")))

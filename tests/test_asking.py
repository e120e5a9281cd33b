"""Effects of a turn: the agent's own functions, the model, and the end of the run."""

import asyncio

import pytest
from attrs import frozen
from helpers import call, given, made, raising, texts

from fnagents.agent import Agent, ToolResult, agents, blocking
from fnagents.decisions import reopen
from fnagents.driving import drive
from fnagents.errors import (
    FunctionRaised,
    GuardrailTripped,
    InvalidOutput,
    MalformedResponse,
    ModelFailed,
    ModelRefused,
    ModelTimedOut,
    ServerFailed,
    ToolRaised,
)
from fnagents.items import Message, Refusal, ToolCall
from fnagents.models import ModelResponse, ModelSettings, Usage
from fnagents.outcome import Failure, Success
from fnagents.perform import performer
from fnagents.protocol import Verdict
from fnagents.resilience import timed
from fnagents.running import output
from fnagents.runs import MOST_CALLS, start
from fnagents.testing import run_virtual, scripted
from fnagents.tools import Allow, Output, Trip


def ran(agent, *replies, run=None, **options):
    """The run of an agent against a script, in virtual time."""
    everyone = agents(agent)
    client = replies[0] if len(replies) == 1 and callable(replies[0]) else scripted(*replies)
    begun = start(agent, "hi") if run is None else run
    return run_virtual(drive(everyone, begun, performer(everyone, client, **options)))


async def later(value, seconds=1):
    await asyncio.sleep(seconds)
    return value


def explode(*args):
    raise ValueError("no")


async def own_cancellation(*args):
    raise asyncio.CancelledError


def test_an_answer_with_too_many_calls_is_malformed() -> None:
    """None of them runs, what it cost is kept; the most that a turn may have do run."""
    agent = Agent("a", tools=[given("t", "x")])
    many, usage = [call("t")] * (MOST_CALLS + 1), Usage(1, 5, 7)
    run = ran(agent, ModelResponse(tuple(many), usage))
    error = run.outcome.failure().error
    assert (type(error), error.message) == (MalformedResponse, "it has 1001 calls, more than 1000")
    assert (run.usage, texts(run)) == (usage, [])
    assert texts(ran(agent, many[1:], "done")) == ["x"] * MOST_CALLS


# --- opening a turn ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "instructions",
    [
        lambda context: f"Turn {context.turn} for {context.context}",
        lambda context: later(f"Turn {context.turn} for {context.context}"),
    ],
)
def test_instructions_may_be_a_function_of_the_context(instructions) -> None:
    """Sync or async, asked anew each turn."""
    client = scripted(call("t"), "done")
    ran(Agent("a", instructions, tools=[given("t", "x")]), client, context="Ann")
    assert [request.instructions for request in client.requests] == ["Turn 0 for Ann", "Turn 1 for Ann"]


async def broken_source(context):
    raise OSError("no server")


async def odd_source(context):
    return ("not a tool",)


@pytest.mark.parametrize(
    ("options", "failure"),
    [
        ({"instructions": explode}, FunctionRaised("instructions", "ValueError", "no")),
        ({"instructions": own_cancellation}, FunctionRaised("instructions", "CancelledError")),
        ({"instructions": lambda context: 42}, FunctionRaised("instructions", "TypeError", "it gave a int, not text")),
        ({"tools": [broken_source]}, FunctionRaised("tool source", "OSError", "no server")),
        ({"tools": [odd_source]}, FunctionRaised("tool source", "AttributeError", "'str' object has no attribute 'kind'")),
        ({"tools": [own_cancellation]}, FunctionRaised("tool source", "CancelledError")),
        ({"tools": [made("t", is_enabled=explode)]}, FunctionRaised("is_enabled", "ValueError", "no")),
        ({"handoffs": [made("t", is_enabled=explode)]}, FunctionRaised("is_enabled", "ValueError", "no")),
    ],
)  # fmt: skip
def test_a_function_that_raises_ends_the_run_as_a_value(options, failure) -> None:
    """The model is not asked with half of what the agent says."""
    client = scripted()
    run = ran(Agent("a", **options), client)
    assert run.outcome == Failure(failure)
    assert client.requests == []


def test_a_run_that_failed_while_a_turn_was_opened_can_be_reopened() -> None:
    """The functions are asked again, in a turn of its own, and the input guardrails have not been skipped."""
    answers, judged = ["raise", "Help."], []

    def instructions(context):
        word = answers.pop(0)
        return 1 / 0 if word == "raise" else word

    def guard(context, items):
        judged.append(items)
        return Allow()

    agent = Agent("a", instructions, input_guardrails=[guard])
    run = ran(agent)
    assert run.outcome == Failure(FunctionRaised("instructions", "ZeroDivisionError", "division by zero"))
    assert ran(agent, "done", run=reopen(run)).outcome == Success("done")
    assert judged == [(Message("user", "hi"),)]


def test_a_tool_may_be_there_in_one_turn_and_not_in_the_next() -> None:
    """The model is told of the tools that are there now."""
    tool = given("t", "x", is_enabled=lambda context: context.turn == 0)
    client = scripted(call("t"), "done")
    run = ran(Agent("a", tools=[tool]), client)
    assert [[one.name for one in request.tools] for request in client.requests] == [["t"], []]
    assert texts(run) == ["x"]


# --- input guardrails ----------------------------------------------------------------------------------


def allow(context, items):
    return Allow("fine")


def trip(context, items):
    return Trip("homework")


async def slow_trip(context, items):
    return await later(Trip("homework"), 5)


async def slow_allow(context, items):
    return await later(Allow(), 5)


def test_guardrails_see_the_input_at_the_first_model_call_only() -> None:
    """Their verdicts are kept in the run."""
    seen = []

    def look(context, items):
        seen.append((context.turn, items))
        return Allow("looked")

    run = ran(Agent("a", tools=[given("t", "x")], input_guardrails=[look, blocking(allow)]), call("t"), "done")
    assert seen == [(0, (Message("user", "hi"),))]
    assert [turn.replied.verdicts for turn in run.turns] == [(Verdict("allow", "fine"), Verdict("look", "looked")), ()]


def test_a_blocking_guardrail_that_trips_asks_no_model() -> None:
    """Those behind it are not asked either."""
    client = scripted()
    run = ran(Agent("a", input_guardrails=[blocking(allow), blocking(trip), allow]), client)
    assert run.outcome == Failure(GuardrailTripped("trip", "homework", "input"))
    assert run.turns[0].replied.verdicts == (Verdict("allow", "fine"), Verdict("trip", "homework", tripped=True))
    assert (client.requests, run.usage) == ([], Usage())


def test_a_response_that_came_before_the_trip_is_kept() -> None:
    """With what it cost; no tool of that turn runs."""
    ranks = []
    tool = made("t", lambda context, text: ranks.append(1))
    run = ran(Agent("a", tools=[tool], input_guardrails=[slow_trip]), call("t"))
    assert run.outcome == Failure(GuardrailTripped("slow_trip", "homework", "input"))
    assert (run.turns[0].response.calls, run.usage, ranks) == ((call("t"),), Usage(1), [])


@pytest.mark.parametrize("ending", [None, OSError])
def test_a_model_call_still_under_way_is_cancelled_by_a_trip(ending) -> None:
    """The run does not wait for it, and what it raises on its way out is nobody's business."""
    cancelled = []

    async def client(request, emit):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(request.turn)
            if ending is not None:
                raise ending from None
            raise

    async def main():
        everyone = agents(Agent("a", input_guardrails=[slow_trip]))
        run = await drive(everyone, start("a", "hi"), performer(everyone, client))
        elapsed = asyncio.get_running_loop().time()
        await asyncio.sleep(1)
        return run, elapsed

    run, elapsed = run_virtual(main())
    assert run.outcome == Failure(GuardrailTripped("slow_trip", "homework", "input"))
    assert (run.turns[0].replied.outcome, elapsed, cancelled) == (None, 5.0, [0])


@pytest.mark.parametrize(("guard", "elapsed"), [(slow_allow, 10.0), (blocking(slow_allow), 15.0)])
def test_guardrails_run_beside_the_model_unless_they_block(guard, elapsed) -> None:
    """Beside it they cost no time."""

    async def main():
        everyone = agents(Agent("a", input_guardrails=[guard]))

        async def client(request, emit):
            return await later(Success(ModelResponse((Message("assistant", "hello"),))), 10)

        run = await drive(everyone, start("a", "hi"), performer(everyone, client))
        return run.outcome, asyncio.get_running_loop().time()

    assert run_virtual(main()) == (Success("hello"), elapsed)


@pytest.mark.parametrize("wrap", [blocking, lambda guard: guard])
def test_a_guardrail_that_raises_lets_nothing_through(wrap) -> None:
    """It counts as tripped."""
    run = ran(Agent("a", input_guardrails=[wrap(explode)]), "hello")
    assert run.outcome == Failure(GuardrailTripped("explode", "the guardrail raised ValueError", "input"))


class Guard:
    def __call__(self, context, items):
        return Trip()


def test_a_guardrail_without_a_name_is_known_by_its_class() -> None:
    """Callable objects may judge too."""
    run = ran(Agent("a", input_guardrails=[Guard()], output_guardrails=[Guard()]), "hello")
    assert run.outcome == Failure(GuardrailTripped("Guard", "", "input"))


# --- the model -----------------------------------------------------------------------------------------


def test_a_model_call_may_take_so_many_seconds() -> None:
    """`settings.timeout` of a `timed` client makes it a failure, at that time exactly."""

    @timed
    async def client(request, emit):
        return await later(Success(ModelResponse((Message("assistant", "hello"),))), 10)

    outcomes = [ran(Agent("a", settings=ModelSettings(timeout=limit)), client).outcome for limit in (None, 9.5, 10.5)]
    assert outcomes == [Success("hello"), Failure(ModelFailed(ModelTimedOut(9.5))), Success("hello")]


def test_a_client_that_raises_is_a_programmers_mistake() -> None:
    """Also with a limit, and if what it raises is a TimeoutError of its own."""

    @timed
    async def client(request, emit):
        raise TimeoutError("mine")

    for settings in (ModelSettings(), ModelSettings(timeout=9)):
        with pytest.raises(TimeoutError, match="mine"):
            ran(Agent("a", settings=settings), client)


def test_a_model_error_is_the_end_of_the_run_and_not_of_the_conversation() -> None:
    """Reopened, the run asks the model again."""
    agent = Agent("a")
    run = ran(agent, ServerFailed("down", 503))
    assert run.outcome == Failure(ModelFailed(ServerFailed("down", 503)))
    assert ran(agent, "hello", run=reopen(run)).outcome == Success("hello")


# --- tool_use_behavior ---------------------------------------------------------------------------------


@pytest.mark.parametrize("decide", [lambda text: text, later])
def test_a_function_may_end_a_run_by_its_tool_outputs(decide) -> None:
    """Sync or async; it sees context and answered calls in order, failures included."""
    seen = []

    def behavior(context, results):
        seen.append((context.context, results))
        return decide("enough" if context.turn == 1 else None)

    agent = Agent("a", tools=[given("t", "x"), raising("u", ValueError())], tool_use_behavior=behavior)
    run = ran(agent, [call("t", "1"), call("u", "2")], call("t", "3"), context="mine")
    assert run.outcome == Success("enough")
    assert seen == [
        (
            "mine",
            (
                ToolResult(call("t", "1"), Success(Output("x"))),
                ToolResult(call("u", "2"), Failure(ToolRaised("ValueError"))),
            ),
        ),
        ("mine", (ToolResult(call("t", "3"), Success(Output("x"))),)),
    ]


@pytest.mark.parametrize(
    ("behavior", "failure"),
    [
        (explode, FunctionRaised("tool_use_behavior", "ValueError", "no")),
        (own_cancellation, FunctionRaised("tool_use_behavior", "CancelledError")),
        (lambda context, results: 42, FunctionRaised("tool_use_behavior", "TypeError", "it gave a int, not text")),
    ],
)
def test_such_a_function_that_fails_ends_the_run_as_a_value(behavior, failure) -> None:
    """Reopened, the model goes on."""
    agent = Agent("a", tools=[given("t", "x")], tool_use_behavior=behavior)
    run = ran(agent, call("t"))
    assert run.outcome == Failure(failure)
    assert ran(agent, "done", run=reopen(run)).outcome == Success("done")


# --- the end -------------------------------------------------------------------------------------------


@frozen
class City:
    name: str
    people: int


def test_a_final_output_is_decoded_and_kept_as_canonical_json() -> None:
    """`output` gives the value."""
    agent = Agent("a", output_type=City)
    run = ran(agent, ' {"people": 7, "name": "Ås"} ')
    assert run.outcome == Success('{"name":"Ås","people":7}')
    assert output(agent, run) == Success(City("Ås", 7))


def test_the_model_is_told_what_is_wrong_with_its_output() -> None:
    """And may mend it, which costs a turn."""
    agent = Agent("a", output_type=City)
    client = scripted('{"name": "Ås"}', '{"name": "Ås", "people": 7}')
    run = ran(agent, client)
    assert output(agent, run) == Success(City("Ås", 7))
    assert client.requests[1].items[-1] == Message(
        "user",
        "The final output is not of the expected type: $: 'people' is a required property. Answer again in that type.",
    )


def test_an_output_that_never_fits_ends_the_run() -> None:
    """After `output_retries` tries to mend it; reopened, it has another try."""
    agent = Agent("a", output_type=int, output_retries=1)
    run = ran(agent, "x", "y")
    assert isinstance(run.outcome.failure(), InvalidOutput)
    assert ran(agent, '{"response": 3}', run=reopen(run)).outcome == Success("3")


def test_a_tools_output_that_ends_a_run_is_decoded_too() -> None:
    """What the schema does not accept is told to the model, never passed on."""
    agent = Agent("a", tools=[given("t", "{}")], output_type=City, tool_use_behavior="stop_on_first_tool")
    run = ran(agent, call("t"), '{"name": "Ås", "people": 7}')
    assert output(agent, run) == Success(City("Ås", 7))


def test_a_model_that_declines_ends_the_run() -> None:
    """Its words are in the failure; nothing is decoded."""
    run = ran(Agent("a", output_type=City), Message("assistant", (Refusal("I cannot."),)))
    assert run.outcome == Failure(ModelRefused("I cannot."))


def test_output_guardrails_judge_the_final_text() -> None:
    """In order, up to the first that trips; a failed run is not judged."""
    seen = []

    def look(context, text):
        seen.append(text)
        return Allow("looked")

    def stop(context, text):
        return later(Trip("rude"))

    run = ran(Agent("a", output_type=int, output_guardrails=[look]), '{"response": 3}')
    assert (run.outcome, run.ends[0].verdicts, seen) == (Success("3"), (Verdict("look", "looked"),), ["3"])
    agent = Agent("a", output_guardrails=[look, stop, look])
    run = ran(agent, "hello")
    assert run.outcome == Failure(GuardrailTripped("stop", "rude", "output"))
    assert run.ends[0].verdicts == (Verdict("look", "looked"), Verdict("stop", "rude", tripped=True))
    assert ran(Agent("a", output_guardrails=[look]), ServerFailed("x")).ends[0].verdicts == ()
    assert seen == ["3", "hello"]


def test_an_output_guardrail_that_raises_lets_nothing_through() -> None:
    """It counts as tripped."""
    run = ran(Agent("a", output_guardrails=[explode]), "hello")
    assert run.outcome == Failure(GuardrailTripped("explode", "the guardrail raised ValueError", "output"))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Success(ModelResponse((ToolCall(None, "add"),))), "ToolCall.id is a NoneType, not str"),
        (Failure(ModelTimedOut("9")), "ModelTimedOut.seconds is a str, not float"),
    ],
)
def test_what_a_client_answers_is_what_it_claims_to_be(answer, problem) -> None:
    """A client whose values could not be saved is a programmer's mistake."""

    async def client(request, emit):
        return answer

    with pytest.raises(TypeError, match=f"in what this one gave, {problem}"):
        ran(Agent("a"), client)

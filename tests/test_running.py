"""The everyday functions."""

import asyncio
import subprocess
import sys

import pytest
from attrs import frozen
from helpers import NUMBER, call, folded, given, made, raising, replied, texts

from fnagents.agent import Agent, agents
from fnagents.decisions import approve, interruptions, reopen
from fnagents.errors import (
    AwaitingApproval,
    DeclarationError,
    Incomplete,
    InvalidOutput,
    ModelFailed,
    ServerFailed,
    ToolCancelled,
    ToolFailed,
    ToolRaised,
    TurnsExhausted,
)
from fnagents.items import Message, ToolCall, ToolOutput
from fnagents.models import ModelResponse, Usage
from fnagents.outcome import Failure, Success
from fnagents.protocol import Finished
from fnagents.running import as_function, output, resume, run, run_sync
from fnagents.runs import start
from fnagents.testing import from_function, run_virtual, scripted
from fnagents.tools import Delegate, Handoff, fatal


def text_of(item):
    assert isinstance(item, Message)
    return item.text


AGENT = Agent("a", tools=[given("t", "x"), given("gated", "y", needs_approval=True)])


def test_a_run_takes_what_start_takes() -> None:
    """Input as text or items; no id is invented."""
    ended = run_sync(AGENT, [Message("user", "hi")], client=scripted("hello"), id="r1", max_turns=3)
    assert (ended.id, ended.max_turns, ended.items[0], ended.outcome) == (
        "r1",
        3,
        Message("user", "hi"),
        Success("hello"),
    )
    assert run_sync(AGENT, "hi", client=scripted("hello")).id == ""


def test_run_is_for_event_loops() -> None:
    """`run_sync` is the same outside of one."""
    assert asyncio.run(run(AGENT, "hi", client=scripted("hello"))) == run_sync(AGENT, "hi", client=scripted("hello"))


def test_the_first_of_several_agents_begins() -> None:
    """The others may be handed over to by name."""
    others = agents(Agent("a", handoffs=[given("to_b", Handoff("b"))]), Agent("b"))
    ended = run_sync(others, "hi", client=scripted(call("to_b"), "from b"))
    assert ([turn.agent for turn in ended.turns], ended.outcome) == (["a", "b"], Success("from b"))


def test_no_agents_is_a_mistake() -> None:
    """Nobody could begin."""
    with pytest.raises(DeclarationError, match="at least one agent"):
        run_sync({}, "hi", client=scripted())


def test_the_context_reaches_every_function() -> None:
    """The caller's own object, untouched."""
    seen = []
    mine = object()

    def instructions(context):
        seen.append(context.context)
        return "x"

    agent = Agent(
        "a",
        instructions,
        tools=[made("t", lambda context, text: seen.append(context.context))],
    )
    run_sync(agent, "hi", client=scripted(call("t"), "done"), context=mine)
    assert seen == [mine, mine, mine]


def test_exceptions_of_tools_are_told() -> None:
    """The run goes on."""
    told = []
    agent = Agent("a", tools=[raising("t", ValueError("no"))])
    ended = run_sync(
        agent, "hi", client=scripted(call("t"), "done"), on_raised=lambda call, error: told.append(str(error))
    )
    assert (told, ended.outcome) == (["no"], Success("done"))


@pytest.mark.parametrize(
    ("limit", "replies", "outcome"),
    [
        (0, [], Failure(TurnsExhausted(0))),
        (1, ["done"], Success("done")),
        (1, [call("t")], Failure(TurnsExhausted(1))),
        (2, [call("t"), "done"], Success("done")),
        (None, [*[call("t")] * 15, "done"], Success("done")),
        (10, [call("t")] * 10, Failure(TurnsExhausted(10))),
    ],
)
def test_turns_are_limited(limit, replies, outcome) -> None:
    """Every call of the last turn is answered before the run ends."""
    client = scripted(*replies)
    ended = run_sync(AGENT, "hi", client=client, max_turns=limit)
    assert ended.outcome == outcome
    assert len(texts(ended)) == sum(not isinstance(reply, str) for reply in replies)
    client.assert_complete()


def test_exhausted_turns_can_be_reopened() -> None:
    """With a new limit the run goes on; without one it has none left."""
    ended = run_sync(AGENT, "hi", client=scripted(call("t")), max_turns=1)
    again = asyncio.run(resume(AGENT, reopen(ended), client=scripted()))
    assert again.outcome == Failure(TurnsExhausted(1))
    more = asyncio.run(resume(AGENT, reopen(again, max_turns=2), client=scripted("done")))
    assert more.outcome == Success("done")
    unlimited = asyncio.run(resume(AGENT, reopen(ended, max_turns=None), client=scripted("done")))
    assert unlimited.outcome == Success("done")


def test_a_server_error_is_not_the_end_of_a_conversation() -> None:
    """The failed call costs no turn."""
    ended = run_sync(AGENT, "hi", client=scripted(call("t"), ServerFailed("down")), max_turns=2)
    assert asyncio.run(resume(AGENT, reopen(ended), client=scripted("done"))).outcome == Success("done")


def test_a_fatal_tool_ends_the_run_when_its_siblings_are_done() -> None:
    """Nothing is cancelled or lost; reopened, the model reads what happened."""
    ranks = []

    async def slow(context, text):
        await asyncio.sleep(5)
        ranks.append("slow")
        return "slow"

    agent = Agent("a", tools=[raising("bad", ValueError("no"), on_error=fatal), made("slow", slow)])
    ended = run_virtual(run(agent, "hi", client=scripted([call("bad"), call("slow")])))
    assert ended.outcome == Failure(ToolFailed("0.0", ToolRaised("ValueError", "no")))
    assert (ranks, texts(ended)) == (["slow"], ["The tool failed: ValueError: no", "slow"])
    assert asyncio.run(resume(agent, reopen(ended), client=scripted("done"))).outcome == Success("done")


def test_a_run_that_has_ended_is_given_back() -> None:
    """Resuming it does nothing."""
    ended = run_sync(AGENT, "hi", client=scripted("hello"))
    assert asyncio.run(resume(AGENT, ended, client=scripted())) is ended


def test_a_paused_run_goes_on_when_it_is_answered() -> None:
    """With the finished outputs of the turn kept."""
    paused = run_sync(AGENT, "hi", client=scripted([call("t"), call("gated")]))
    assert (paused.outcome, texts(paused)) == (None, ["x"])
    ended = asyncio.run(resume(AGENT, approve(paused, interruptions(paused)[0]), client=scripted("done")))
    assert (ended.outcome, texts(ended)) == (Success("done"), ["x", "y"])


def test_two_pauses_in_one_run_double_nothing() -> None:
    """The conversation has each call once."""
    one = run_sync(AGENT, "hi", client=scripted(call("gated", "1")))
    two = asyncio.run(resume(AGENT, approve(one, interruptions(one)[0]), client=scripted(call("gated", "2"))))
    three = asyncio.run(resume(AGENT, approve(two, interruptions(two)[0]), client=scripted("done")))
    assert [type(item).__name__ for item in three.items] == [
        "Message",
        "ToolCall",
        "ToolOutput",
        "ToolCall",
        "ToolOutput",
        "Message",
    ]


@pytest.mark.parametrize(("interrupted", "ranks", "read"), [("rerun", 1, "x"), ("answer", 0, None)])
def test_calls_cut_off_by_the_end_of_a_process(interrupted, ranks, read) -> None:
    """They are run again, or answered as interrupted so that nothing is done twice."""
    done = []

    def work(context, text):
        done.append(1)
        return "x"

    agent = Agent("a", tools=[made("t", work)])
    cut = folded(start("a", "hi"), replied(0, call("t")))
    ended = asyncio.run(resume(agent, cut, client=scripted("done"), interrupted=interrupted))
    assert (len(done), ended.outcome) == (ranks, Success("done"))
    cancelled = "The tool call was interrupted: the process ended. It may have had effects already."
    assert texts(ended) == [read or cancelled]
    if read is None:
        assert ended.turns[0].calls[0].answer == Failure(ToolCancelled("the process ended"))


def test_a_call_is_corrected_after_feedback() -> None:
    """Bad arguments are named, the model mends them, and the run ends well."""
    agent = Agent("a", tools=[made("double", lambda context, text: "42", NUMBER)])
    client = scripted(call("double", x="21"), call("double", x=21), "42")
    ended = run_sync(agent, "hi", client=client)
    assert texts(ended) == [
        "Invalid arguments: $.x: '21' is not of type 'integer'. Correct them and call the tool again.",
        "42",
    ]
    assert client.requests[1].items[-1] == ToolOutput("c", texts(ended)[0])
    assert ended.outcome == Success("42")


def test_an_answer_that_was_cut_short_runs_no_tool() -> None:
    """Half an argument is no argument; what arrived is kept and was paid for."""
    arrived = ModelResponse((ToolCall("c", "t", '{"path": "/et'),), Usage(1, 5, 6))
    cut = Incomplete("max_output_tokens", arrived)
    ended = run_sync(AGENT, "hi", client=scripted(cut))
    assert (ended.outcome, ended.usage) == (Failure(ModelFailed(cut)), Usage(1, 5, 6))
    assert ended.turns[0].calls == ()


def test_a_text_that_cannot_be_encoded_ends_no_run() -> None:
    """In an argument it is feedback, in an output it is kept as it is."""
    agent = Agent("a", tools=[given("t", "bad \udcff byte"), made("u", None, NUMBER)])
    client = scripted(
        [call("t"), ToolCall("u", "u", '{"x": "\\ud800"}'), ToolCall("v", "u", '{"x": "\ud800"}')], "done"
    )
    ended = run_sync(agent, "hi", client=client)
    surrogate = (
        "The arguments are not a valid JSON object: it has an unpaired surrogate, which is no character. "
        "Send one JSON object."
    )
    assert (ended.outcome, texts(ended)) == (Success("done"), ["bad \udcff byte", surrogate, surrogate])


def test_arguments_of_any_size_are_answered_in_a_few_words() -> None:
    """Two million characters that do not fit come back as less than four thousand; the run goes on."""
    agent = Agent("a", tools=[made("t", None, NUMBER)])
    huge = '{"x": "' + "y" * 2_000_000
    client = scripted([ToolCall("1", "t", huge), ToolCall("2", "t", huge + '"}')], "done")
    ended = run_sync(agent, "hi", client=client)
    assert ended.outcome == Success("done")
    assert [len(text) < 4_000 for text in texts(ended)] == [True, True]
    assert ended.turns[0].calls[0].call.arguments == huge


def test_an_agent_may_call_itself_and_pause_inside() -> None:
    """A question is known by its path, so agents of one name are no trouble at any depth."""
    again = made("again", lambda context, text: Delegate("a", "deeper"))
    agent = Agent("a", tools=[again, given("gated", "y", needs_approval=True)])
    paused = run_sync(agent, "hi", client=scripted(call("again"), call("again"), call("gated")))
    (ask,) = interruptions(paused)
    assert (ask.path, ask.place) == (("0.0", "0.0"), "0.0")
    client = scripted("inner", "middle", "outer")
    ended = asyncio.run(resume(agent, approve(paused, ask), client=client))
    assert (ended.outcome, texts(ended)) == (Success("outer"), ["middle"])
    client.assert_complete()


@frozen
class City:
    name: str


CITY = Agent("c", output_type=City)


def test_the_output_of_a_run() -> None:
    """The decoded value, the failure, or the pause."""
    ended = run_sync(CITY, "hi", client=scripted('{"name": "Oslo"}'))
    assert output(CITY, ended) == Success(City("Oslo"))
    assert output(AGENT, run_sync(AGENT, "hi", client=scripted("hello"))) == Success("hello")
    assert output(AGENT, run_sync(AGENT, "hi", client=scripted(), max_turns=0)) == Failure(TurnsExhausted(0))
    paused = run_sync(AGENT, "hi", client=scripted(call("gated")))
    assert output(AGENT, paused) == Failure(AwaitingApproval(paused))


def test_an_output_of_another_type_is_a_failure() -> None:
    """A run of yesterday, and today's output type."""
    old = folded(start("c", "hi"), replied(0, "x"), Finished(1, Success('{"title":"Oslo"}')))
    failure = output(CITY, old).failure()
    assert isinstance(failure, InvalidOutput)
    assert "'name' is a required property" in failure.problem


def test_an_agent_as_a_function() -> None:
    """From input to decoded output, to be used with whatever takes an outcome."""
    ask = as_function(CITY, client=scripted('{"name": "Oslo"}', ServerFailed("down")))
    assert (ask.__name__, ask.__qualname__) == ("c", "c")
    assert asyncio.run(ask("where?")) == Success(City("Oslo"))
    assert asyncio.run(ask("where?")) == Failure(ModelFailed(ServerFailed("down")))


def test_a_pause_of_a_function_is_a_failure_that_carries_the_run() -> None:
    """It can be answered and resumed."""
    ask = as_function(AGENT, client=scripted(call("gated")), context="mine", max_turns=4)
    failure: object = asyncio.run(ask("hi")).failure()
    assert isinstance(failure, AwaitingApproval)
    assert (failure.run.max_turns, len(interruptions(failure.run))) == (4, 1)


def test_agents_compose_as_functions() -> None:
    """Side by side, one for each input."""
    shout = as_function(Agent("shout"), client=from_function(lambda request: text_of(request.items[-1]).upper()))

    async def main():
        return await asyncio.gather(shout("a"), shout("b"))

    assert asyncio.run(main()) == [Success("A"), Success("B")]


def test_an_option_that_is_none_is_a_mistake() -> None:
    """A misspelt option is not dropped in silence."""
    with pytest.raises(TypeError, match="'max_turn' is no option of a run; there are max_turns, id"):
        run_sync(Agent("a"), "hi", client=scripted("x"), max_turn=3)  # type: ignore[call-overload]


def test_run_sync_says_what_to_do_inside_of_a_loop() -> None:
    """In a notebook an event loop is running already."""

    async def main():
        with pytest.raises(RuntimeError, match=r"use `await run\(...\)`"):
            run_sync(Agent("a"), "hi", client=scripted("x"))

    asyncio.run(main())


def test_only_a_run_can_be_resumed() -> None:
    """What `load_run` gave is to be unwrapped first."""
    with pytest.raises(TypeError, match="unwrap it"):
        asyncio.run(resume(Agent("a"), Success(start("a", "hi")), client=scripted("x")))  # type: ignore[arg-type]


@pytest.mark.parametrize("client", ["gpt-5", scripted, lambda request, emit: "hello"])
def test_what_is_no_client_is_a_mistake(client) -> None:
    """It is said what a client is, before anything was asked."""
    with pytest.raises(TypeError, match="a model client is an async function"):
        run_sync(Agent("a"), "hi", client=client)


@pytest.mark.parametrize("answer", ["hello", ModelResponse(), Success("hello"), Failure("no"), None])
def test_a_client_that_answers_with_anything_else_is_a_mistake(answer) -> None:
    """The model is not asked again and again for what the client does wrong."""

    async def client(request, emit):
        return answer

    with pytest.raises(TypeError, match="this one gave"):
        run_sync(Agent("a"), "hi", client=client)


def test_a_cancellation_passes_whatever_a_tool_makes_of_it() -> None:
    """A tool that turns it into an error, or swallows it, does not keep the run going."""

    async def turns(context, text):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("db aborted") from None

    async def swallows(context, text):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "fine"

    async def main(function):
        task = asyncio.ensure_future(
            run(Agent("a", tools=[made("t", function)]), "hi", client=scripted(call("t"), "done"))
        )
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for function in (turns, swallows):
        run_virtual(main(function))


def test_a_client_that_swallows_a_cancellation_does_not_keep_the_run_going() -> None:
    """The same for the model."""

    async def client(request, emit):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return Success(ModelResponse())

    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await run(Agent("a"), "hi", client=client)

    run_virtual(main())


CLINGING = """
import asyncio
from fnagents import Agent, ToolCall, run_sync, tool
from fnagents.testing import scripted

@tool(timeout=0.1)
async def clings() -> str:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

print(run_sync(Agent("a", tools=[clings]), "hi", client=scripted(ToolCall("c", "clings"), "done")).items[-2].text)

@tool
async def clings_too() -> str:
    return await clings()

async def main():
    try:
        async with asyncio.timeout(0.1):
            from fnagents import run
            await run(Agent("a", tools=[clings_too]), "hi", client=scripted(ToolCall("c", "clings_too")))
    except TimeoutError:
        print("in time")

asyncio.run(main())
"""


def test_a_tool_that_will_not_be_cancelled_does_not_keep_the_process() -> None:
    """Left behind, it holds up neither its run, nor the end of the event loop, nor the caller's own limit."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", CLINGING], timeout=30, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "The tool timed out after 0.1 seconds. It could not be stopped and may still be running.",
        "in time",
    ]
    assert done.stderr == ""


def test_how_to_resume_is_one_of_two_words() -> None:
    """A misspelt one does not run calls twice."""
    with pytest.raises(ValueError, match="'answr' is neither 'rerun' nor 'answer'"):
        asyncio.run(resume(Agent("a"), start("a", "hi"), client=scripted("x"), interrupted="answr"))  # type: ignore[arg-type]

"""Driving a run: side by side, in rounds, and leaving early."""

import asyncio

import pytest
from helpers import NUMBER, call, folded, given, keys, made, raising, replied, texts

from fnagents.agent import Agent, agents
from fnagents.decisions import approve, interruptions
from fnagents.driving import drive, interrupt, lockstep
from fnagents.errors import ToolCancelled, UnexpectedEventError
from fnagents.folding import fold
from fnagents.items import Message
from fnagents.models import ModelResponse
from fnagents.outcome import Failure, Success
from fnagents.perform import performer
from fnagents.planning import plan
from fnagents.protocol import Ask, Checked, Checkup, Replied, Returned, key
from fnagents.runs import start
from fnagents.testing import from_function, run_virtual, scripted
from fnagents.tools import Delegate, Handoff
from fnagents.unfolding import events


def sleeper(name, **options):
    """A tool that takes `x` seconds."""
    return made(name, slept, NUMBER, **options)


async def slept(context, text):
    seconds = int(text.removeprefix('{"x":').removesuffix("}"))
    await asyncio.sleep(seconds)
    return f"slept {seconds}"


def timed(agent, *replies, drive=drive):
    """The run and how long it took."""
    everyone = agents(agent)

    async def main():
        run = await drive(everyone, start(agent, "hi"), performer(everyone, scripted(*replies)))
        return run, asyncio.get_running_loop().time()

    return run_virtual(main())


@pytest.mark.parametrize("way", [drive, lockstep])
def test_calls_of_a_turn_run_side_by_side(way) -> None:
    """The time is that of the longest; outputs stand in call order whatever was ready first."""
    run, elapsed = timed(
        Agent("a", tools=[sleeper("t")]), [call("t", x=3), call("t", x=1), call("t", x=2)], "done", drive=way
    )
    assert (elapsed, texts(run)) == (3, ["slept 3", "slept 1", "slept 2"])


@pytest.mark.parametrize("way", [drive, lockstep])
def test_serial_tools_run_one_at_a_time_in_the_models_order(way) -> None:
    """Other calls go on beside them."""
    tools = [sleeper("s1", serial=True), sleeper("s2", serial=True), sleeper("t")]
    run, elapsed = timed(Agent("a", tools=tools), [call("s1", x=3), call("t", x=5), call("s2", x=2)], "done", drive=way)
    assert texts(run) == ["slept 3", "slept 5", "slept 2"]
    assert elapsed == (5 if way is drive else 7)


def test_drive_plans_again_at_once() -> None:
    """A nested run does not wait for its slow uncles, as it does in rounds."""
    inner = Agent("inner", tools=[sleeper("t")])
    nest = given("nest", Delegate("inner", "go"), agents=(inner,))
    agent = Agent("a", tools=[nest, sleeper("t")])
    client = from_function(
        lambda request: {
            ("a", 0): [call("nest", "1"), call("t", "2", x=5)],
            ("inner", 0): call("t", "3", x=4),
            ("inner", 1): "inner done",
            ("a", 1): "done",
        }[request.agent, request.turn]
    )
    everyone = agents(agent)

    async def main(way):
        run = await way(everyone, start(agent, "hi"), performer(everyone, client))
        return run, asyncio.get_running_loop().time()

    fast, rounds = run_virtual(main(drive)), run_virtual(main(lockstep))
    assert (fast[1], rounds[1]) == (5, 9)
    assert fast[0] == rounds[0]


@pytest.mark.parametrize("way", [drive, lockstep])
def test_a_failing_call_leaves_its_siblings_alone(way) -> None:
    """All outputs are kept, in call order; the failure is that call's output."""
    tools = [sleeper("t"), raising("bad", ValueError("no")), raising("gone", asyncio.CancelledError())]
    run, _ = timed(Agent("a", tools=tools), [call("bad"), call("t", x=2), call("gone")], "done", drive=way)
    assert texts(run) == ["The tool failed: ValueError: no", "slept 2", "The tool failed: CancelledError"]
    assert run.outcome == Success("done")


@pytest.mark.parametrize("way", [drive, lockstep])
def test_a_run_pauses_when_only_questions_are_left(way) -> None:
    """Everything else is done first, and each question is asked once."""
    asked = []
    agent = Agent("a", tools=[given("gated", "x", needs_approval=True), sleeper("t")])
    standard = performer(agents(agent), scripted([call("gated", "1"), call("t", x=2), call("gated", "3")], "done"))

    async def perform(effect):
        asked.append(key(effect))
        return await standard(effect)

    run = run_virtual(way(agents(agent), start(agent, "hi"), perform))
    assert run.outcome is None
    assert [ask.place for ask in interruptions(run)] == ["0.0", "0.2"]
    assert sorted(asked) == ["ask-0.0", "ask-0.2", "call-0.1", "check-0.0", "check-0.2", "model-0"]
    for ask in interruptions(run):
        run = approve(run, ask)
    assert run_virtual(way(agents(agent), run, perform)).outcome == Success("done")


@pytest.mark.parametrize("way", [drive, lockstep])
def test_a_question_may_be_answered_by_the_world(way) -> None:
    """`perform` may ask a person while the rest goes on."""
    agent = Agent("a", tools=[given("gated", "x", needs_approval=True)])
    standard = performer(agents(agent), scripted(call("gated"), "done"))

    async def perform(effect):
        if isinstance(effect, Ask):
            await asyncio.sleep(5)
            return approve(effect.seen, effect).turns[-1].calls[0].gate[-1]
        return await standard(effect)

    assert run_virtual(way(agents(agent), start(agent, "hi"), perform)).outcome == Success("done")


@pytest.mark.parametrize("way", [drive, lockstep])
def test_a_run_that_has_ended_is_given_back(way) -> None:
    """Nothing is performed."""
    agent = Agent("a")
    everyone = agents(agent)
    run = run_virtual(drive(everyone, start(agent, "hi"), performer(everyone, scripted("hello"))))
    assert run_virtual(way(everyone, run, performer(everyone, scripted()))) is run


@pytest.mark.parametrize("way", [drive, lockstep])
def test_what_was_driven_is_the_fold_of_its_events(way) -> None:
    """However it was driven."""
    tools = [sleeper("t"), sleeper("s", serial=True), raising("bad", ValueError())]
    agent = Agent("a", tools=tools, handoffs=[given("over", Handoff("b"), agents=(Agent("b"),))])
    script = ([call("t", x=2), call("over"), call("s", x=1), call("bad")], "from b")
    run, _ = timed(agent, *script, drive=way)
    assert fold(start(agent, "hi"), events(run)) == Success(run)
    assert run == timed(agent, *script)[0]


class BoomError(Exception):
    pass


@pytest.mark.parametrize("place", ["0.0", "0.1"])
def test_what_perform_raises_passes_through(place) -> None:
    """After the siblings under way were cancelled and have cleaned up."""
    agent = Agent("a", tools=[sleeper("t")])
    cleaned = []

    async def perform(effect):
        if key(effect) == f"call-{place}":
            await asyncio.sleep(1)
            raise BoomError
        try:
            await asyncio.sleep(50)
        except asyncio.CancelledError:
            await asyncio.sleep(0.5)
            cleaned.append(key(effect))
            raise

    async def main():
        run = folded(start("a", "hi"), replied(0, call("t", x=1), call("t", x=1)))
        with pytest.raises(BoomError):
            await drive(agents(agent), run, perform)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 1.5
    assert cleaned == [f"call-{'0.1' if place == '0.0' else '0.0'}"]


def test_what_will_not_stop_is_left_behind() -> None:
    """After a second; an exception that it ends with is nobody's business."""
    agent = Agent("a", tools=[sleeper("t")])

    async def perform(effect):
        if key(effect) == "call-0.0":
            raise BoomError
        try:
            await asyncio.sleep(50)
        except asyncio.CancelledError:
            if key(effect) == "call-0.1":
                raise OSError from None
            await asyncio.sleep(3)

    async def main():
        run = folded(start("a", "hi"), replied(0, *(call("t", x=1) for _ in range(3))))
        with pytest.raises(BoomError):
            await drive(agents(agent), run, perform)
        left = asyncio.get_running_loop().time()
        await asyncio.sleep(5)
        return left

    assert run_virtual(main()) == 1.0


def test_a_lone_effect_that_raises_passes_through() -> None:
    """There is nothing to cancel."""

    async def perform(effect):
        raise BoomError

    with pytest.raises(BoomError):
        run_virtual(drive(agents(Agent("a")), start("a", "hi"), perform))


def test_cancelling_a_drive_cancels_what_is_under_way() -> None:
    """The run before it is a value and can be driven again."""
    stopped = []

    async def waits(context, text):
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(context.place)

    agent = Agent("a", tools=[made("t", waits)])

    async def main():
        run = folded(start("a", "hi"), replied(0, call("t"), call("t")))
        task = asyncio.ensure_future(drive(agents(agent), run, performer(agents(agent), scripted())))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())
    assert sorted(stopped) == ["0.0", "0.1"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("options", [{}, {"inline": False}])
def test_leaving_the_process_passes_through(error, calls, options) -> None:
    """A person's interrupt and an exit end the drive, beside siblings and alone, from a thread too."""
    agent = Agent("a", tools=[raising("t", error(), **options)])
    client = scripted([call("t")] * calls)
    with pytest.raises(error):
        asyncio.run(drive(agents(agent), start(agent, "hi"), performer(agents(agent), client)))


# --- leaving early -------------------------------------------------------------------------------------

INNER = Agent("inner", tools=[given("t", "x")])
AGENT = Agent(
    "a",
    tools=[
        given("t", "x"),
        given("gated", "x", needs_approval=True),
        given("s", "x", serial=True),
        given("nest", Delegate("inner", "go"), agents=(INNER,)),
    ],
)
CHECKED = Checked("0.1", Success(Checkup("{}", "d", needed=True)))


def test_interrupting_answers_the_calls_under_way() -> None:
    """Innermost first; nested runs, questions and calls that have not begun stay open."""
    run = folded(
        start("a", "hi"),
        replied(0, call("t"), call("gated"), call("nest"), call("s"), call("s")),
        CHECKED,
        Returned("0.2", Success(Delegate("inner", "go"))),
        replied(0, call("t"), path=("0.2",)),
    )
    assert keys(AGENT, run) == ["call-0.0", "ask-0.1", "0.2/call-0.0", "call-0.3"]
    left = interrupt(agents(AGENT), run, "the user left")
    cancelled = Failure(ToolCancelled("the user left"))
    assert [state.answer for state in left.turns[0].calls] == [cancelled, None, None, cancelled, None]
    child = left.turns[0].calls[2].child
    assert child is not None
    assert child.turns[0].calls[0].answer == cancelled
    assert keys(AGENT, left) == ["ask-0.1", "0.2/model-1", "call-0.4"]


def test_interrupting_a_model_call_leaves_nothing() -> None:
    """It is asked again."""
    run = start("a", "hi")
    assert interrupt(agents(AGENT), run) is run
    assert [key(effect) for effect in plan(agents(AGENT), run)] == ["model-0"]


def test_an_interrupted_conversation_can_be_continued() -> None:
    """Every call has its output, which says that the work may have been done."""
    run = folded(start("a", "hi"), replied(0, call("t")))
    left = interrupt(agents(AGENT), run)
    assert texts(left) == ["The tool call was interrupted. It may have had effects already."]
    again = start("a", (*left.items, Message("user", "go on")))
    client = from_function(lambda request: str(len(request.items)))
    ended = run_virtual(drive(agents(AGENT), again, performer(agents(AGENT), client)))
    assert ended.outcome == Success("4")


def test_events_are_folded_as_they_arrive() -> None:
    """A model call that answers out of order is a misfit, told by name."""

    async def perform(effect):
        return Replied(7, Success(ModelResponse()))

    with pytest.raises(UnexpectedEventError, match="the next turn is 0"):
        run_virtual(drive(agents(AGENT), start("a", "hi"), perform))

"""The standard world: calls are looked up anew, checked, run and extracted."""

import asyncio

import pytest
from helpers import NUMBER, at_once, call, folded, given, made, raising, replied, texts

from fnagents.agent import Agent, agents
from fnagents.decisions import approve, interruptions, reject
from fnagents.driving import drive
from fnagents.errors import ToolRaised, ToolRejected, UnknownAgent, UnknownTool
from fnagents.items import Message, ToolCall
from fnagents.models import TextDelta, Usage
from fnagents.outcome import Failure, Success
from fnagents.perform import performer
from fnagents.planning import plan
from fnagents.protocol import Ask, Checked, Returned
from fnagents.running import run_sync
from fnagents.runs import MOST_GATES, start
from fnagents.schemas.arguments import Arguments
from fnagents.testing import run_virtual, scripted
from fnagents.tools import Delegate, Handoff, Output, Tool


def ran(agent, *replies, run=None, **options):
    """The run of an agent against a script, in virtual time."""
    everyone = agents(agent)
    begun = start(agent, "hi") if run is None else run
    return run_virtual(drive(everyone, begun, performer(everyone, scripted(*replies), **options)))


def answered(agent, effect):
    """The event of one effect."""

    async def main():
        return await performer(agents(agent), scripted())(effect)

    return run_virtual(main())


def explode(*args):
    raise ValueError("no")


async def own_cancellation(*args):
    raise asyncio.CancelledError


def test_a_question_is_nobodys_to_answer_here() -> None:
    """The standard world says None, and the run is paused."""
    agent = Agent("a", tools=[given("t", "x", needs_approval=True)])
    run = ran(agent, call("t"))
    (ask,) = plan(agents(agent), run)
    assert isinstance(ask, Ask)
    assert answered(agent, ask) is None


@pytest.mark.parametrize("name", ["nope", "invalid tool", "it's", "x" * 500, ""])
def test_a_call_to_no_tool_is_answered_with_the_names_there_are(name) -> None:
    """Whatever the name; the pair of call and output is closed and the run goes on."""
    agent = Agent("a", tools=[given("add", "x"), given("sub", "y")], handoffs=[given("to_b", Handoff("b"))])
    run = ran(agent, ToolCall("c", name), "done")
    assert run.turns[0].calls[0].answer == Failure(UnknownTool(name, ("add", "sub", "to_b")))
    assert texts(run)[0].endswith("The tools are: add, sub, to_b.")
    assert run.outcome == Success("done")


def test_invented_names_are_bounded_by_turns_alone() -> None:
    """Three of them in three turns use up nothing of the tools that exist."""
    run = ran(Agent("a", tools=[given("t", "x")]), call("n1"), call("n2"), call("n3"), call("t"), "done")
    assert texts(run)[3:] == ["x"]
    assert run.outcome == Success("done")


def test_a_tool_is_found_by_kind_and_namespace_too() -> None:
    """The same name in another namespace is another tool."""
    tools = [given("t", "plain"), given("t", "spaced", namespace="n"), given("t", "custom", kind="custom_tool_call")]
    calls = [
        ToolCall("1", "t"),
        ToolCall("2", "t", namespace="n"),
        ToolCall("3", "t", kind="custom_tool_call"),
        ToolCall("4", "t", namespace="m"),
    ]
    run = ran(Agent("a", tools=tools), calls, "done")
    assert texts(run) == ["plain", "spaced", "custom", "There is no tool named 't'. The tools are: t, t, t."]


def flipping(*answers):
    """A predicate that gives these answers in order."""
    left = list(answers)
    return lambda context: left.pop(0)


def test_a_tool_that_was_disabled_since_it_was_listed_is_feedback() -> None:
    """It is looked up anew when it is called."""
    tool = given("t", "x", is_enabled=flipping(True, False, True))
    run = ran(Agent("a", tools=[tool, given("u", "y")]), call("t"), "done")
    assert run.turns[0].calls[0].answer == Failure(UnknownTool("t", ("u",)))


def test_a_gated_tool_that_was_disabled_is_feedback_and_no_question() -> None:
    """The check fails before anybody is asked."""
    tool = given("t", "x", is_enabled=flipping(True, False, True), needs_approval=True)
    run = ran(Agent("a", tools=[tool]), call("t"), "done")
    assert run.outcome == Success("done")
    assert run.turns[0].calls[0].gate == (Checked("0.0", Failure(UnknownTool("t"))),)


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (explode, ToolRaised("ValueError", "no")),
        (own_cancellation, ToolRaised("CancelledError")),
    ],
)
def test_a_predicate_that_raises_when_a_tool_is_called_is_feedback(rule, error) -> None:
    """The turn was opened without it."""
    agent = Agent("a", tools=[made("t", explode, is_enabled=rule)])
    run = folded(start("a", "hi"), replied(0, call("t")))
    (effect,) = plan(agents(agent), run)
    assert answered(agent, effect) == Returned("0.0", Failure(error))


def test_a_tool_of_a_source_is_called() -> None:
    """It is listed when the turn opens and found again when it is called."""
    asked = []

    async def source(context):
        asked.append(context.turn)
        return [given("t", f"from turn {context.turn}")]

    run = ran(Agent("a", tools=[source]), call("t"), call("t"), "done")
    assert texts(run) == ["from turn 0", "from turn 1"]
    assert asked == [0, 1, 2]


def test_a_tools_context_says_where_it_is_called() -> None:
    """Place, call id, arguments as they were written, and the conversation up to the response that called it."""
    seen = []

    def look(context, text):
        seen.append((context.agent, context.place, context.call_id, context.arguments, context.items[-1]))
        context.emit(TextDelta("half way"))

    watched = []
    tool = made("t", look, NUMBER)
    ran(Agent("a", tools=[tool]), ToolCall("c7", "t", '{ "x":1}'), "done", watch=lambda *args: watched.append(args))
    assert seen == [("a", "0.0", "c7", '{ "x":1}', ToolCall("c7", "t", '{ "x":1}'))]
    assert watched == [((), 0, TextDelta("half way"))]


def test_sync_tools_run_where_the_caller_says() -> None:
    """Tests with virtual time give a function instead of threads; `on_raised` is told what was raised."""
    told = []
    tools = [made("t", lambda context, text: "x", inline=False), raising("u", ValueError("no"))]
    run = ran(
        Agent("a", tools=tools),
        [call("t"), call("u")],
        "done",
        in_thread=at_once,
        on_raised=lambda call, error: told.append((call.name, str(error))),
    )
    assert texts(run) == ["x", "The tool failed: ValueError: no"]
    assert told == [("u", "no")]


# --- approval ------------------------------------------------------------------------------------------


def test_a_siblings_work_is_done_once_around_a_pause() -> None:
    """What needs no approval runs before the pause and not again after it; what is approved runs once."""
    ranks = []
    free = made("free", lambda context, text: ranks.append("free"))
    gated = made("gated", lambda context, text: ranks.append("gated"), needs_approval=True)
    agent = Agent("a", tools=[free, gated])
    paused = ran(agent, [call("free"), call("gated")])
    assert (ranks, paused.outcome) == (["free"], None)
    run = ran(agent, "done", run=approve(paused, interruptions(paused)[0]))
    assert (ranks, run.outcome) == (["free", "gated"], Success("done"))


def test_a_missing_decision_runs_nothing() -> None:
    """Driven again without one, the run is paused as it was."""
    agent = Agent("a", tools=[made("t", explode, needs_approval=True)])
    paused = ran(agent, call("t"))
    assert ran(agent, run=paused) == paused
    assert [ask.call_id for ask in interruptions(paused)] == ["c"]


def test_decisions_belong_to_the_run_and_not_to_the_context() -> None:
    """Another context, given when the run goes on, carries and loses none."""
    agent = Agent("a", tools=[made("t", lambda context, text: context.context, needs_approval=True)])
    paused = ran(agent, call("t"), context="first")
    run = ran(agent, "done", run=approve(paused, interruptions(paused)[0]), context="second")
    assert texts(run) == ["second"]


def test_a_declined_call_is_answered_with_the_reason() -> None:
    """And the model goes on."""
    agent = Agent("a", tools=[made("t", explode, needs_approval=True)])
    paused = ran(agent, call("t"))
    run = ran(agent, "done", run=reject(paused, interruptions(paused)[0], "too much"))
    assert run.turns[0].calls[0].answer == Failure(ToolRejected("too much"))
    assert (texts(run), run.outcome) == (["too much"], Success("done"))


def test_a_handoff_never_overtakes_a_pending_approval() -> None:
    """The gated call is asked about first; after the decision the handoff happens."""
    other = Agent("b")
    gated = given("gated", "ran", needs_approval=True)
    agent = Agent("a", tools=[gated], handoffs=[given("to_b", Handoff("b"), agents=(other,))])
    paused = ran(agent, [call("to_b", "1"), call("gated", "2")])
    assert [ask.tool for ask in interruptions(paused)] == ["gated"]
    run = ran(agent, "from b", run=approve(paused, interruptions(paused)[0]))
    assert (texts(run), [turn.agent for turn in run.turns]) == (['{"assistant":"b"}', "ran"], ["a", "b"])


def test_only_one_handoff_of_a_turn_happens() -> None:
    """The other one reads as not run."""
    agents_of = (Agent("b"), Agent("c"))
    agent = Agent("a", handoffs=[given("to_b", Handoff("b"), agents=agents_of), made("to_c", explode)])
    client = [call("to_b", "1"), call("to_c", "2")]
    run = ran(agent, client, "from b")
    assert texts(run) == [
        '{"assistant":"b"}',
        "Not run: the conversation was already handed over in this turn.",
    ]


def test_after_a_handoff_the_new_agent_reads_the_whole_conversation() -> None:
    """Under its own instructions and with its own tools."""
    other = Agent("b", "You are b.", tools=[given("t", "x")])
    agent = Agent("a", handoffs=[given("to_b", Handoff("b", "over"), agents=(other,))])
    client = scripted(call("to_b"), call("t"), "done")
    run = run_virtual(drive(agents(agent), start(agent, "hi"), performer(agents(agent), client)))
    assert [request.agent for request in client.requests] == ["a", "b", "b"]
    assert client.requests[1].items[0] == Message("user", "hi")
    assert (client.requests[1].instructions, [one.name for one in client.requests[1].tools]) == ("You are b.", ["t"])
    assert run.outcome == Success("done")


def test_a_handoff_to_nobody_ends_the_run_as_a_value() -> None:
    """The failure names who is there."""
    run = ran(Agent("a", handoffs=[given("to_b", Handoff("b"))]), call("to_b"))
    assert run.outcome == Failure(UnknownAgent("b", ("a",)))


# --- nested runs ---------------------------------------------------------------------------------------


def nesting(extract=None, **options):
    inner = Agent("inner", "Inside.", tools=[given("deep", "deep down", **options)])
    delegate = Delegate("inner", "go", tool_input='{"q":1}', extract=extract is not None)
    tool = given("nest", delegate, agents=(inner,), extract=extract)
    return Agent("a", tools=[tool])


def test_a_nested_run_sees_its_own_input_only() -> None:
    """Its final output is the output of the call, its usage is counted."""
    agent = nesting()
    client = scripted(call("nest"), call("deep"), "inner answer", "done")
    run = run_virtual(drive(agents(agent), start(agent, "hi"), performer(agents(agent), client)))
    assert client.requests[1].items == (Message("user", "go"),)
    assert (texts(run), run.outcome, run.usage) == (["inner answer"], Success("done"), Usage(4))
    assert run.turns[0].calls[0].usage == Usage(2)


def test_a_failure_inside_is_a_failed_call_outside() -> None:
    """Not the end of the root."""
    agent = nesting()
    agent = Agent("a", tools=[given("nest", Delegate("inner", "go", max_turns=0), agents=(agents(agent)["inner"],))])
    run = ran(agent, call("nest"), "done")
    assert run.outcome == Success("done")
    assert texts(run) == ["The agent that was to answer failed: No final output after 0 turns, the limit of this run."]


def test_an_extractor_words_the_output_of_a_nested_run() -> None:
    """It sees the whole nested run, once, when that has ended."""
    seen = []

    def extract(context, child):
        seen.append((context.place, child.tool_input, len(child.turns)))
        return f"<{child.outcome.unwrap()}>"

    run = ran(nesting(extract), call("nest"), call("deep"), "inner answer", "done")
    assert texts(run) == ["<inner answer>"]
    assert seen == [("0.0", '{"q":1}', 2)]


def test_an_extractor_whose_tool_is_gone_is_feedback() -> None:
    """The tool was disabled while its nested run went on."""
    inner = Agent("inner")
    tool = given(
        "nest",
        Delegate("inner", "go", extract=True),
        agents=(inner,),
        extract=explode,
        is_enabled=flipping(True, True, False, True),
    )
    run = ran(Agent("a", tools=[tool]), call("nest"), "inner answer", "done")
    assert run.turns[0].calls[0].answer == Failure(UnknownTool("nest"))
    assert run.outcome == Success("done")


def test_a_question_inside_comes_out_with_its_path() -> None:
    """Answered, the nested run goes on where it was; no model call is made again."""
    agent = nesting(needs_approval=True)
    paused = ran(agent, call("nest"), call("deep", "9"))
    (ask,) = interruptions(paused)
    assert (ask.path, ask.place, ask.agent, ask.call_id) == (("0.0",), "0.0", "inner", "9")
    run = ran(agent, "inner answer", "done", run=approve(paused, ask))
    assert (texts(run), run.outcome) == (["inner answer"], Success("done"))


def test_what_a_tool_cost_is_counted() -> None:
    """`Output.usage` adds to the run's."""
    run = ran(Agent("a", tools=[given("t", Output("x", Usage(2, 30, 4)))]), call("t"), "done")
    assert run.usage == Usage(4, 30, 4)


def test_a_serial_tool_finds_what_it_left() -> None:
    """In a later turn and in the same one: the next call of it waits for the last."""

    def count(context, text):
        number = str(int(context.memory or 0) + 1)
        return Output(number, memory=number)

    agent = Agent("a", tools=[made("count", count, serial=True)])
    run = ran(agent, [call("count", "1"), call("count", "2")], call("count", "3"), "done")
    assert texts(run) == ["1", "2", "3"]


def test_a_tool_that_reads_differently_each_time_does_not_go_round_for_ever() -> None:
    """A call that is checked again and again, with nobody asked between, is answered in the end."""
    numbers = iter(range(100))

    def read(text):
        number = next(numbers)
        return Success(Arguments({"n": number}, {"n": number}, number))

    never = Tool("t", "", {}, lambda context, given: given, read=read, needs_approval=lambda context, arguments: False)
    run = run_sync(Agent("a", tools=[never]), "go", client=scripted(ToolCall("c", "t"), "done"))
    assert run.items[-2].text == "The tool reads its arguments differently each time."
    assert next(numbers) < 10


def test_a_person_is_not_asked_about_one_call_for_ever() -> None:
    """A tool that reads its arguments differently after each approval is answered in the end."""
    numbers = iter(range(10_000))

    def read(text):
        number = next(numbers)
        return Success(Arguments({"n": number}, {"n": number}, f'{{"n":{number}}}'))

    never = Tool("t", "", {}, lambda context, given: given, read=read, needs_approval=True)
    agent = Agent("a", tools=[never])
    run = ran(agent, call("t"))
    while run.outcome is None:
        run = ran(agent, "done", run=approve(run, interruptions(run)[0]))
    assert texts(run) == ["The tool reads its arguments differently each time."]
    assert len(run.turns[0].calls[0].gate) == MOST_GATES

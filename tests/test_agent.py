"""Agents as data: what is declared, and what cannot work is refused at once."""

import pytest
from attrs import frozen
from helpers import given, made

from fnagents.agent import Agent, InputGuardrail, StopAt, agents, blocking
from fnagents.errors import DeclarationError
from fnagents.schemas.output import schema
from fnagents.tools import Allow


def guard(context, items):
    return Allow()


def test_an_agent_needs_a_name() -> None:
    """Without one nothing could hand over to it."""
    with pytest.raises(DeclarationError) as caught:
        Agent("")
    assert str(caught.value) == "an agent needs a name, as text: Agent('triage', ...)"


@pytest.mark.parametrize(
    "behavior", ["run_llm_again", "stop_on_first_tool", StopAt("a"), lambda context, results: None]
)
def test_a_tool_use_behavior_that_is_taken(behavior) -> None:
    """One of two words, the names to stop at, or a function."""
    assert Agent("a", tool_use_behavior=behavior).tool_use_behavior is behavior


@pytest.mark.parametrize("behavior", ["stop", None, {"stop_at_tool_names": ["a"]}])
def test_any_other_tool_use_behavior_is_refused(behavior) -> None:
    """When the agent is made."""
    with pytest.raises(DeclarationError) as caught:
        Agent("a", tool_use_behavior=behavior)
    assert str(caught.value) == (
        f"agent 'a': tool_use_behavior={behavior!r} is none of 'run_llm_again', "
        "'stop_on_first_tool', StopAt('name', ...) and a function"
    )


def test_guardrails_run_beside_the_model_unless_they_block() -> None:
    """A plain function is one beside it; `blocking` makes one that runs before it."""
    agent = Agent("a", input_guardrails=[guard, blocking(guard), InputGuardrail(guard)])
    assert agent.input_guardrails == (
        InputGuardrail(guard),
        InputGuardrail(guard, blocking=True),
        InputGuardrail(guard),
    )


def test_tools_are_kept_as_a_tuple() -> None:
    """Any iterable of tools and sources is taken."""
    one, two = made("one"), made("two")
    assert Agent("a", tools=[one], handoffs=iter([two])).tools == (one,)


@pytest.mark.parametrize(
    "options",
    [
        {"tools": [made("t"), made("t")]},
        {"tools": [made("t")], "handoffs": [made("t")]},
        {"handoffs": [made("t", namespace="n"), made("t", namespace="n")]},
    ],
)
def test_tools_whose_names_collide_are_refused(options) -> None:
    """Also across tools and handoffs: a call must mean one tool."""
    with pytest.raises(DeclarationError) as caught:
        Agent("a", **options)
    assert str(caught.value) == "agent 'a' has two tools named 't'; rename one with name="


def test_names_of_different_namespaces_or_kinds_do_not_collide() -> None:
    """A tool is known by kind, namespace and name."""
    tools = (made("t"), made("t", namespace="n"), made("t", kind="custom_tool_call"))
    assert Agent("a", tools=tools).tools == tools


def test_what_is_no_tool_is_refused() -> None:
    """The message names the way out."""
    with pytest.raises(DeclarationError) as caught:
        Agent("a", tools=["search"])  # type: ignore[list-item]
    assert str(caught.value) == (
        "agent 'a': 'search' is neither a Tool nor a tool source (an async function of the agent's context); make a tool of a function with tool(...)"
    )


@frozen
class Answer:
    text: str


SCHEMA = schema(Answer)


@pytest.mark.parametrize("given", [None, str])
def test_plain_text_needs_no_schema(given) -> None:
    """No output type and `str` are the same thing."""
    assert Agent("a", output_type=given).output is None


def test_an_output_type_is_a_schema_made_once() -> None:
    """A schema that was given is the one that is used."""
    agent = Agent("a", output_type=Answer)
    made_once = agent.output
    assert made_once is not None
    assert agent.output is made_once
    assert made_once.text == SCHEMA.text
    assert Agent("a", output_type=SCHEMA).output is SCHEMA


def test_agents_are_found_through_their_tools_and_handoffs() -> None:
    """Breadth first, each once, also in a circle."""
    leaf = Agent("leaf")
    inner = Agent("inner", tools=[made("to_leaf", agents=(leaf,))])
    other = Agent("other", handoffs=[made("to_inner", agents=(inner,)), made("to_leaf", agents=(leaf,))])

    async def source(context):
        return ()

    root = Agent(
        "root", tools=[made("to_inner", agents=(inner,)), source], handoffs=[made("to_other", agents=(other,))]
    )
    assert list(agents(root)) == ["root", "inner", "other", "leaf"]
    assert dict(agents({"x": other}, root, root)) == {"root": root, "inner": inner, "other": other, "leaf": leaf}
    assert list(agents()) == []


def test_two_agents_of_one_name_are_refused() -> None:
    """A run names its agents, so a name means one of them."""
    with pytest.raises(DeclarationError) as caught:
        agents(Agent("a", tools=[made("t", agents=(Agent("b"),))]), Agent("b"))
    assert str(caught.value) == "two different agents are named 'b'; names are unique in a run"


async def no_argument():
    return ()


async def one_argument(context):
    return ()


class Source:
    async def __call__(self, context):
        return ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": given("t", "x")}, r"tools takes several tools: tools=\[t\]"),
        ({"tools": [len]}, "nor a tool source"),
        ({"tools": [no_argument]}, "nor a tool source"),
        ({"model": one_argument}, "model is a model's name; a client is given to run"),
        ({"settings": {}}, r"settings is ModelSettings\(...\), not a dict"),
        ({"instructions": ["x"]}, "instructions is text or a function, not a list"),
        ({"output_type": print}, "final_output"),
        ({"output_type": dict[str, int]}, r"made by schema\(...\): its schema cannot be strict"),
    ],
)
def test_an_agent_is_checked_where_it_is_declared(options, message) -> None:
    """A mistake is not left for the first run."""
    with pytest.raises(DeclarationError, match=message):
        Agent("a", **options)


def test_a_tool_source_is_an_async_function_of_the_context() -> None:
    """Or an object with such a `__call__`."""
    assert len(Agent("a", tools=[one_argument, Source()]).tools) == 2


def test_agents_takes_agents() -> None:
    """Several are given one by one, or by name."""
    with pytest.raises(TypeError, match="neither an Agent nor agents by name"):
        agents([Agent("a")])

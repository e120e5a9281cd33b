"""The API's types, stated; read by mypy and pyright, never executed.

Each expected error stands under a `type: ignore` with its code: both checkers are told to complain about an
ignore that is not needed, so a type that becomes too loose fails the build.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, assert_type

from attrs import frozen

from fnagents import (
    Agent,
    AgentContext,
    Ask,
    Event,
    Failure,
    LoadError,
    ModelClient,
    Outcome,
    Output,
    Run,
    RunError,
    Success,
    ToolContext,
    ToolError,
    UnexpectedEvent,
    agents,
    approve,
    as_function,
    events,
    explain,
    fold,
    interruptions,
    invoke,
    load_run,
    output,
    plan,
    resume,
    run,
    run_sync,
    start,
    tool,
)
from fnagents.testing import from_function, scripted


@frozen
class Town:
    """A context."""

    name: str


@frozen
class Report:
    """A structured output."""

    degrees: int


@tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@tool(timeout=3)
async def here(context: ToolContext[Town], unit: str) -> str:
    """Weather here."""
    return context.context.name + unit


def gate(context: ToolContext[Town], arguments: Mapping[str, Any]) -> bool:
    """Ask for everything outside Oslo."""
    return context.context.name != "Oslo"


def instructions(context: AgentContext[Town]) -> str:
    """Who I am."""
    return f"You live in {context.context.name}."


# A tool is still the function that it was made of.
assert_type(add(1), int)
assert_type(add(1, b=2), int)
add("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def calls(context: ToolContext[Town]) -> None:
    assert_type(await here(context, "C"), str)
    assert_type(await invoke(add, {"a": 1}), Outcome[Output, ToolError])


plain = Agent("plain")
assert_type(plain, Agent[Any, str])
typed = Agent("typed", output_type=Report)
assert_type(output(typed, start(typed, "hi")), Outcome[Report, RunError])
local = Agent("local", instructions, tools=[here])
assert_type(local, Agent[Town, str])
by_annotation: Agent[Town, str] = Agent("by_annotation", tools=[here, add])


client: ModelClient = scripted("hi")
assert_type(from_function(lambda request: request.items[-1]), ModelClient)


async def contexts() -> None:
    assert_type(await run(plain, "hi", client=client), Run)
    assert_type(await run(local, "hi", client=client, context=Town("Oslo")), Run)
    await run(local, "hi", client=client)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    await resume(local, start("local", "hi"), client=client, context=Town("Oslo"))
    run_sync(local, "hi", client=client)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    run_sync(plain, "hi", client=client, max_turns=3, id="r1", nonsense=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


report = as_function(typed, client=client)


async def composed() -> None:
    match await report("hi"):
        case Success(value):
            assert_type(value, Report)
        case Failure(error):
            assert_type(error, RunError)
            assert_type(explain(error), str)


def values(one: Run) -> None:
    assert_type(one.outcome, Success[str] | Failure[RunError] | None)
    assert_type(events(one), tuple[Event, ...])
    assert_type(fold(one, events(one)), Outcome[Run, UnexpectedEvent])
    assert_type(load_run(""), Outcome[Run, LoadError])
    assert_type(interruptions(one), tuple[Ask, ...])
    for ask in interruptions(one):
        assert_type(approve(one, ask), Run)
    for effect in plan(agents(plain), one):
        assert_type(effect.path, tuple[str, ...])


composable: Callable[[str], Awaitable[Outcome[Report, RunError]]] = report

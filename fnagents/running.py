"""The everyday functions: `run`, `run_sync`, `resume`, `as_function`, `output`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, TypeAlias, TypeVar, overload

from fnagents.agent import Agent, Agents
from fnagents.agent import agents as all_agents
from fnagents.drive import drive, interrupt
from fnagents.errors import AwaitingApproval, RunError
from fnagents.items import Item
from fnagents.models import ModelClient
from fnagents.outcome import Failure, Outcome, Success
from fnagents.perform import performer
from fnagents.pipeline import OnRaised
from fnagents.runs import Run, start

__all__ = ["as_function", "output", "resume", "run", "run_sync"]

Ctx = TypeVar("Ctx")
Out = TypeVar("Out")
Given: TypeAlias = str | Item | Iterable[Item]


def _rooted(given: Agent[Any, Any] | Agents) -> tuple[Agent[Any, Any], Agents]:
    everyone = all_agents(given)
    return next(iter(everyone.values())), everyone


@overload
async def run(
    agent: Agent[None, Any] | Agents,
    input: Given,
    *,
    client: ModelClient,
    max_turns: int | None = 10,
    id: str = "",
    on_raised: OnRaised | None = None,
) -> Run: ...
@overload
async def run(
    agent: Agent[Ctx, Any] | Agents,
    input: Given,
    *,
    client: ModelClient,
    context: Ctx,
    max_turns: int | None = 10,
    id: str = "",
    on_raised: OnRaised | None = None,
) -> Run: ...
async def run(
    agent: Agent[Any, Any] | Agents,
    input: Given,
    *,
    client: ModelClient,
    context: Any = None,
    max_turns: int | None = 10,
    id: str = "",
    on_raised: OnRaised | None = None,
) -> Run:
    """Run an agent on an input: `outcome` is `Success(text)`, `Failure(RunError)`, or None when it is paused.

    It never raises for what the world did.  `input` is text or items; `agent` may be several agents by name
    (see `agents`), the first of which begins.  `context` is handed to the agent's and the tools' functions.

    >>> from fnagents import Agent, run_sync
    >>> from fnagents.testing import scripted
    >>> run_sync(Agent("greeter", "Greet."), "hi", client=scripted("Hello!")).outcome
    <Success: Hello!>
    """
    root, everyone = _rooted(agent)
    begun = start(root, input, max_turns=max_turns, id=id)
    return await drive(everyone, begun, performer(everyone, client, context=context, on_raised=on_raised))


@overload
def run_sync(
    agent: Agent[None, Any] | Agents,
    input: Given,
    *,
    client: ModelClient,
    max_turns: int | None = 10,
    id: str = "",
    on_raised: OnRaised | None = None,
) -> Run: ...
@overload
def run_sync(
    agent: Agent[Ctx, Any] | Agents,
    input: Given,
    *,
    client: ModelClient,
    context: Ctx,
    max_turns: int | None = 10,
    id: str = "",
    on_raised: OnRaised | None = None,
) -> Run: ...
def run_sync(
    agent: Agent[Any, Any] | Agents,
    input: Given,
    *,
    client: ModelClient,
    context: Any = None,
    max_turns: int | None = 10,
    id: str = "",
    on_raised: OnRaised | None = None,
) -> Run:
    """As `run`, outside of an event loop."""
    coroutine = run(agent, input, client=client, context=context, max_turns=max_turns, id=id, on_raised=on_raised)
    return asyncio.run(coroutine)


async def resume(
    agent: Agent[Any, Any] | Agents,
    run: Run,
    *,
    client: ModelClient,
    context: Any = None,
    interrupted: Literal["rerun", "answer"] = "rerun",
    on_raised: OnRaised | None = None,
) -> Run:
    """Go on with a run that was paused, loaded, or cut off; one that has ended is given back as it is.

    Calls that were under way when the process ended are run again, or with `interrupted="answer"` answered as
    interrupted, so that nothing is done twice.
    """
    _, everyone = _rooted(agent)
    if interrupted == "answer":
        run = interrupt(everyone, run, "the process ended")
    return await drive(everyone, run, performer(everyone, client, context=context, on_raised=on_raised))


def output(agent: Agent[Any, Out], run: Run) -> Outcome[Out, RunError]:
    """The final output as the type that the agent declares; a pause is `Failure(AwaitingApproval(run))`."""
    match run.outcome:
        case None:
            return Failure(AwaitingApproval(run))
        case Failure() as failure:
            return failure
        case Success(text):
            schema = agent.output
            return Success(text if schema is None else schema.decode(text))  # type: ignore[arg-type]


def as_function(
    agent: Agent[Any, Out],
    *,
    client: ModelClient,
    context: Any = None,
    max_turns: int | None = 10,
) -> Callable[[Given], Awaitable[Outcome[Out, RunError]]]:
    """The agent as a plain async function from an input to its decoded output.

    >>> import asyncio
    >>> from fnagents import Agent, as_function
    >>> from fnagents.testing import scripted
    >>> greet = as_function(Agent("greeter", "Greet."), client=scripted("Hello!"))
    >>> asyncio.run(greet("hi"))
    <Success: Hello!>
    """

    async def function(input: Given) -> Outcome[Out, RunError]:
        ended = await run(agent, input, client=client, context=context, max_turns=max_turns)
        return output(agent, ended)

    function.__name__ = function.__qualname__ = agent.name
    return function

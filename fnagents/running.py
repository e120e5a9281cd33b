"""The everyday functions: `run`, `run_sync`, `resume`, `as_function`, `output`.

Each that takes a context has two overloads, so that a forgotten or wrong context is a type error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, cast, get_args, overload

from typing_extensions import Unpack

from fnagents.agent import Agent, Agents
from fnagents.agent import agents as all_agents
from fnagents.driving import drive, interrupt
from fnagents.errors import AwaitingApproval, DeclarationError, InvalidOutput, RunError
from fnagents.items import Item
from fnagents.models import ModelClient
from fnagents.outcome import Failure, Outcome, Success
from fnagents.perform import performer
from fnagents.pipeline import OnRaised
from fnagents.prose import unfit
from fnagents.runs import Run, start

__all__ = ["StartOptions", "as_function", "output", "resume", "run", "run_sync"]

Ctx = TypeVar("Ctx")
Out = TypeVar("Out")
Given: TypeAlias = str | Item | Iterable[Item]
#: What becomes of calls that were under way when a process ended.
Interrupted: TypeAlias = Literal["rerun", "answer"]


class StartOptions(TypedDict, total=False):
    """What `run`, `run_sync` and `as_function` take as `start` does, and how exceptions of tools are told."""

    #: the most model calls (None for no limit), 10 by default
    max_turns: int | None
    #: the run's id; none is invented
    id: str
    #: the server holds the conversation before the input: it goes on from this response
    previous_response_id: str | None
    #: the server holds the whole conversation under this id
    conversation_id: str | None
    #: told of each exception of a tool: the call and the exception
    on_raised: OnRaised | None


@overload
async def run(
    agent: Agent[None, Any] | Agents, input: Given, *, client: ModelClient, **options: Unpack[StartOptions]
) -> Run: ...
@overload
async def run(
    agent: Agent[Ctx, Any] | Agents, input: Given, *, client: ModelClient, context: Ctx, **options: Unpack[StartOptions]
) -> Run: ...
async def run(
    agent: Agent[Any, Any] | Agents,
    input: Given,
    *,
    client: ModelClient,
    context: Any = None,
    **options: Unpack[StartOptions],
) -> Run:
    """Run an agent on an input: `outcome` is `Success(text)`, `Failure(RunError)`, or None when it is paused.

    It never raises for what the world did.  `input` is text or items; `agent` may be several agents by name
    (see `agents`), the first of which begins.  `context` is handed to the agent's and the tools' functions.
    The options are those of `StartOptions`: `max_turns`, `id`, `previous_response_id`, `conversation_id`, `on_raised`.

    >>> from fnagents import Agent, run_sync
    >>> from fnagents.testing import scripted
    >>> run_sync(Agent("greeter", "Greet."), "hi", client=scripted("Hello!")).outcome
    <Success: Hello!>
    """
    if unknown := options.keys() - StartOptions.__annotations__.keys():
        raise TypeError(f"{min(unknown)!r} is no option of a run; there are {', '.join(StartOptions.__annotations__)}")
    everyone = all_agents(agent)
    if not everyone:
        raise DeclarationError("there is nobody to begin: give at least one agent")
    begun = start(
        next(iter(everyone.values())),
        input,
        max_turns=options.get("max_turns", 10),
        id=options.get("id", ""),
        previous_response_id=options.get("previous_response_id"),
        conversation_id=options.get("conversation_id"),
    )
    perform = performer(everyone, client, context=context, on_raised=options.get("on_raised"))
    return await drive(everyone, begun, perform)


@overload
def run_sync(
    agent: Agent[None, Any] | Agents, input: Given, *, client: ModelClient, **options: Unpack[StartOptions]
) -> Run: ...
@overload
def run_sync(
    agent: Agent[Ctx, Any] | Agents, input: Given, *, client: ModelClient, context: Ctx, **options: Unpack[StartOptions]
) -> Run: ...
def run_sync(
    agent: Agent[Any, Any] | Agents,
    input: Given,
    *,
    client: ModelClient,
    context: Any = None,
    **options: Unpack[StartOptions],
) -> Run:
    """As `run`, outside of an event loop; inside of one it is a RuntimeError."""
    _refuse_loop("run_sync(...)", "await run(...)")
    return asyncio.run(run(agent, input, client=client, context=context, **options))


def _refuse_loop(this: str, instead: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{this} starts an event loop, and one is running here already: use `{instead}`")


@overload
async def resume(
    agent: Agent[None, Any] | Agents,
    run: Run,
    *,
    client: ModelClient,
    interrupted: Interrupted = "rerun",
    on_raised: OnRaised | None = None,
) -> Run: ...
@overload
async def resume(
    agent: Agent[Ctx, Any] | Agents,
    run: Run,
    *,
    client: ModelClient,
    context: Ctx,
    interrupted: Interrupted = "rerun",
    on_raised: OnRaised | None = None,
) -> Run: ...
async def resume(
    agent: Agent[Any, Any] | Agents,
    run: Run,
    *,
    client: ModelClient,
    context: Any = None,
    interrupted: Interrupted = "rerun",
    on_raised: OnRaised | None = None,
) -> Run:
    """Go on with a run that was paused, loaded, or cut off; one that has ended is given back as it is.

    Calls that were under way when the process ended are run again, or with `interrupted="answer"` answered as
    interrupted, so that nothing is done twice.  (Those approved meanwhile count as under way, as nothing in a run
    says whether a call has begun: `interrupt` it first, then approve.)  A run that names an agent which is not given
    ends with `Failure(UnknownAgent)`, and can be reopened.
    """
    everyone = all_agents(agent)
    _check_run(run)
    if interrupted not in get_args(Interrupted):
        raise ValueError(f"interrupted={interrupted!r} is neither 'rerun' nor 'answer'")
    if interrupted == "answer":
        run = interrupt(everyone, run, "the process ended")
    return await drive(everyone, run, performer(everyone, client, context=context, on_raised=on_raised))


def _check_run(run: object) -> None:
    if not isinstance(run, Run):
        raise TypeError(f"a {type(run).__name__} cannot be resumed, only a Run; load_run gives Success(run): unwrap it")


def output(agent: Agent[Any, Out], run: Run) -> Outcome[Out, RunError]:
    """The final output as the type that the agent declares; a pause is `Failure(AwaitingApproval(run))`."""
    if run.outcome is None:
        return Failure(AwaitingApproval(run))
    return run.outcome if isinstance(run.outcome, Failure) else _decoded(agent, run.outcome.unwrap())


def _decoded(agent: Agent[Any, Out], text: str) -> Outcome[Out, RunError]:
    if agent.output is None:
        return Success(cast("Out", text))
    decoded = agent.output.decode(text)
    return Failure(InvalidOutput(unfit(decoded.failure()))) if isinstance(decoded, Failure) else decoded


@overload
def as_function(
    agent: Agent[None, Out], *, client: ModelClient, **options: Unpack[StartOptions]
) -> Callable[[Given], Coroutine[Any, Any, Outcome[Out, RunError]]]: ...
@overload
def as_function(
    agent: Agent[Ctx, Out], *, client: ModelClient, context: Ctx, **options: Unpack[StartOptions]
) -> Callable[[Given], Coroutine[Any, Any, Outcome[Out, RunError]]]: ...
def as_function(
    agent: Agent[Any, Out], *, client: ModelClient, context: Any = None, **options: Unpack[StartOptions]
) -> Callable[[Given], Coroutine[Any, Any, Outcome[Out, RunError]]]:
    """The agent as a plain async function from an input to its decoded output.

    >>> import asyncio
    >>> from fnagents import Agent, as_function
    >>> from fnagents.testing import scripted
    >>> greet = as_function(Agent("greeter", "Greet."), client=scripted("Hello!"))
    >>> asyncio.run(greet("hi"))
    <Success: Hello!>
    """

    async def function(input: Given) -> Outcome[Out, RunError]:
        return output(agent, await run(agent, input, client=client, context=context, **options))

    function.__name__ = function.__qualname__ = agent.name
    return function

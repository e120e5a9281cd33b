"""Effects of a turn: the agent's own functions, the model, and the end of the run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from functools import partial
from typing import cast

from fnagents.agent import InputGuardrail, ToolResult
from fnagents.errors import GuardrailTripped, MalformedResponse, ModelError
from fnagents.items import ToolCall
from fnagents.models import ModelResponse
from fnagents.outcome import Failure, Outcome, Success
from fnagents.pipeline import CAUGHT, drop, pass_cancellation, settled, verdict_of
from fnagents.prose import shortened, unfit
from fnagents.protocol import CallModel, Decide, Decided, Finish, Finished, Prepare, Prepared, Refused, Replied, Verdict
from fnagents.runs import MOST_CALLS
from fnagents.tools import Trip
from fnagents.transcript import listing
from fnagents.wellformed import complaint
from fnagents.world import World, enabled, function_raised, report

__all__ = ["CLIENT", "call_model", "decide", "finish", "prepare"]

#: What a model client is, for whoever gave something else.
CLIENT = (
    "a model client is an async function of (request, emit) that gives Success(ModelResponse(...)) or Failure(...) "
    "of a ModelError, such as responses_client() or scripted(...)"
)


async def prepare(world: World, effect: Prepare) -> Prepared:
    """Instructions and the tools that are there now; what an own function raises is the event's `failure`."""
    agent = world.agents[effect.agent]
    context = world.context_of(effect.agent, effect.turn, effect.path, effect.seen)
    doing = "instructions"
    try:
        given = agent.instructions
        instructions = given if given is None or isinstance(given, str) else await settled(given(context))
        _check_text(instructions)
        doing = "tool source"
        found = await world.tools_of(agent, context)
        doing = "is_enabled"
        tools = [listing(tool) for tool in found if await enabled(tool, context)]
        handoffs = [listing(tool) for tool in agent.handoffs if await enabled(tool, context)]
    except CAUGHT as error:
        pass_cancellation(error)
        return Prepared(effect.turn, failure=function_raised(doing, error), path=effect.path)
    return Prepared(effect.turn, instructions, tuple(tools), tuple(handoffs), path=effect.path)


async def decide(world: World, effect: Decide) -> Decided:
    """What `tool_use_behavior` says of the turn's results."""
    behavior = world.agents[effect.agent].tool_use_behavior
    assert callable(behavior)  # `plan` asks only then
    context = world.context_of(effect.agent, effect.turn, effect.path, effect.seen)
    results = tuple(
        ToolResult(state.call, state.answer) for state in effect.seen.turns[-1].calls if state.answer is not None
    )
    try:
        output = await settled(behavior(context, results))
        _check_text(output)
    except CAUGHT as error:
        pass_cancellation(error)
        return Decided(effect.turn, failure=function_raised("tool_use_behavior", error), path=effect.path)
    return Decided(effect.turn, output, path=effect.path)


def _check_text(given: object) -> None:
    if given is not None and not isinstance(given, str):
        raise TypeError(f"it gave a {type(given).__name__}, not text")


# --- the model -----------------------------------------------------------------------------------------


async def call_model(world: World, effect: CallModel) -> Replied:
    """The model's answer, and at the run's first model call the verdicts of the input guardrails."""
    # Not turn 0: a turn may have failed while it was prepared, and the run was reopened.
    first_call = all(turn.replied is None for turn in effect.seen.turns)
    guardrails = world.agents[effect.agent].input_guardrails if first_call else ()
    said = [verdict async for verdict in _judged(world, effect, [one for one in guardrails if one.blocking])]
    beside = [one for one in guardrails if not one.blocking]
    outcome: Outcome[ModelResponse, ModelError] | None = None
    if not any(verdict.tripped for verdict in said):
        outcome = await (_beside(world, effect, beside, said) if beside else _ask(world, effect))
    return Replied(effect.turn, outcome, effect.request.sent, tuple(said), effect.path)


async def _beside(
    world: World, effect: CallModel, guardrails: list[InputGuardrail], said: list[Verdict]
) -> Outcome[ModelResponse, ModelError] | None:
    """The model's answer, while the guardrails judge; a trip cancels a model call that is still under way."""
    asking = asyncio.ensure_future(_ask(world, effect))
    asking.add_done_callback(drop)
    try:
        said.extend([verdict async for verdict in _judged(world, effect, guardrails)])
        tripped = any(verdict.tripped for verdict in said)
        return None if tripped and not asking.done() else await asking
    finally:
        asking.cancel()


async def _judged(world: World, effect: CallModel, guardrails: list[InputGuardrail]) -> AsyncIterator[Verdict]:
    """The verdicts of input guardrails in order, up to the first that trips."""
    context = world.context_of(effect.agent, effect.turn, effect.path, effect.seen)
    for one in guardrails:
        name = getattr(one.function, "__name__", type(one.function).__name__)
        verdict = await verdict_of(partial(one.function, context, effect.seen.input.items), report)
        tripped = isinstance(verdict, Trip)
        yield Verdict(name, verdict.info, tripped)
        if tripped:
            return


async def _ask(world: World, effect: CallModel) -> Outcome[ModelResponse, ModelError]:
    # Without a timer here: `settings.timeout` limits one try, and how often to try is the client's affair.
    answer: object = world.client(effect.request, partial(world.tell, effect.path, effect.turn))
    if not inspect.isawaitable(answer):
        raise TypeError(f"{CLIENT}; calling this one gave a {type(answer).__name__}")
    return _bounded(_checked(await answer))


def _checked(given: object) -> Outcome[ModelResponse, ModelError]:
    outcome = cast("Outcome[object, object]", given)
    good = (isinstance(given, Success) and isinstance(outcome.unwrap(), ModelResponse)) or (
        isinstance(given, Failure) and isinstance(outcome.failure(), ModelError)
    )
    if not good:
        raise TypeError(f"{CLIENT}; this one gave {shortened(repr(outcome), 100)}")
    answer = cast("Outcome[ModelResponse, ModelError]", outcome)
    values = (answer.failure(),) if isinstance(answer, Failure) else (answer.unwrap(), *answer.unwrap().items)
    for value in values:
        if (problem := complaint(value)) is not None:
            raise TypeError(f"{CLIENT}; in what this one gave, {problem}")
    return answer


def _bounded(answer: Outcome[ModelResponse, ModelError]) -> Outcome[ModelResponse, ModelError]:
    """A turn has no room for more calls, and nobody is served by some of them."""
    response = answer.value_or(None)
    calls = sum(isinstance(item, ToolCall) for item in response.items) if response is not None else 0
    if calls <= MOST_CALLS:
        return answer
    return Failure(MalformedResponse(f"it has {calls} calls, more than {MOST_CALLS}", response))


# --- the end -------------------------------------------------------------------------------------------


async def finish(world: World, effect: Finish) -> Finished | Refused:
    """Decode the final output and let the output guardrails judge it; a failure passes through."""
    agent = world.agents.get(effect.agent)
    if agent is None or isinstance(effect.outcome, Failure):
        return Finished(effect.turn, effect.outcome, path=effect.path)
    text = effect.outcome.unwrap()
    if agent.output is not None:
        reading = agent.output.read(text)
        if isinstance(reading, Failure):
            return Refused(effect.turn, unfit(reading.failure()), effect.path)
        text = agent.output.write(reading.unwrap())
    said: list[Verdict] = []
    context = world.context_of(effect.agent, effect.turn, effect.path, effect.seen)
    for guardrail in agent.output_guardrails:
        name = getattr(guardrail, "__name__", type(guardrail).__name__)
        verdict = await verdict_of(partial(guardrail, context, text), report)
        said.append(Verdict(name, verdict.info, isinstance(verdict, Trip)))
        if isinstance(verdict, Trip):
            tripped = Failure(GuardrailTripped(name, verdict.info, "output"))
            return Finished(effect.turn, tripped, tuple(said), effect.path)
    return Finished(effect.turn, Success(text), tuple(said), effect.path)

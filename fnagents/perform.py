"""The standard world: `performer(agents, client)` answers every effect but `Ask`.

The agents' own functions, the model client and the tools are called here and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias, assert_never

from attrs import define, field

from fnagents.agent import Agent, Agents, InputGuardrail, ToolResult
from fnagents.errors import (
    FunctionRaised,
    GuardrailTripped,
    ModelError,
    ModelTimedOut,
    NestedFailed,
    RunError,
    ToolError,
    UnknownTool,
    UnrenderableOutput,
)
from fnagents.items import ToolCall
from fnagents.models import Delta, ModelClient, ModelResponse
from fnagents.outcome import Failure, Outcome, Success
from fnagents.pipeline import Calling, Flag, OnRaised, check_call, failed, run_call, settled, verdict_of
from fnagents.protocol import (
    Ask,
    CallModel,
    CallTool,
    Check,
    Checked,
    Decide,
    Decided,
    Effect,
    Event,
    Extract,
    Finish,
    Finished,
    Listing,
    Prepare,
    Prepared,
    Refused,
    Replied,
    Returned,
    Verdict,
)
from fnagents.prose import explain
from fnagents.rendering import raised, render
from fnagents.tools import AgentContext, Tool, ToolContext, Trip
from fnagents.transcript import listing
from fnagents.workers import InThread, in_thread

__all__ = ["Perform", "Watch", "performer"]

#: The whole outside world: from an effect to the event that answers it; None if nobody can answer it yet (`Ask`).
Perform: TypeAlias = Callable[[Effect], Awaitable[Event | None]]

#: Told of each delta of a streaming client: path, turn, delta.
Watch: TypeAlias = Callable[[tuple[str, ...], int, Delta], None]

_log = logging.getLogger("fnagents.agents")
_Tools: TypeAlias = tuple[Tool[..., Any, Any], ...]


def performer(
    agents: Agents,
    client: ModelClient,
    *,
    context: Any = None,
    on_raised: OnRaised | None = None,
    watch: Watch | None = None,
    in_thread: InThread = in_thread,
) -> Perform:
    """A `Perform` over these agents and this model.

    `context` is handed to every function of theirs; `on_raised` is told of each exception of a tool; `watch` of
    the client's deltas; `in_thread` runs sync tools (tests with virtual time give their own).
    """
    return _Performer(agents, client, context, on_raised, watch, in_thread)


@define(eq=False)
class _Performer:
    agents: Agents
    client: ModelClient
    context: Any
    on_raised: OnRaised | None
    watch: Watch | None
    in_thread: InThread
    #: what the tool sources listed, by path and turn; the last turn of a path alone is kept
    listed: dict[tuple[str, ...], tuple[int, _Tools]] = field(factory=dict)

    async def __call__(self, effect: Effect) -> Event | None:
        match effect:
            case Prepare():
                return await self._prepare(effect)
            case CallModel():
                return await self._call_model(effect)
            case Check() | CallTool():
                return await self._call(effect)
            case Ask():
                return None
            case Extract():
                return await self._extract(effect)
            case Decide():
                return await self._decide(effect)
            case Finish():
                return await self._finish(effect)
            case _:
                assert_never(effect)

    def _agent_context(self, effect: Prepare | CallModel | Decide | Finish) -> AgentContext[Any]:
        return AgentContext(self.context, effect.agent, effect.turn, effect.path, effect.seen, effect.seen.tool_input)

    # --- an agent's own functions ----------------------------------------------------------------------

    async def _prepare(self, effect: Prepare) -> Prepared:
        agent, context = self.agents[effect.agent], self._agent_context(effect)
        doing = "instructions"
        try:
            given = agent.instructions
            instructions = given if given is None or isinstance(given, str) else await settled(given(context))
            doing = "tool source"
            sourced = await self._sourced(agent, context)
            doing = "is_enabled"
            tools = [tool for tool in sourced if await _enabled(tool, context)]
            handoffs = [tool for tool in agent.handoffs if await _enabled(tool, context)]
        except Exception as error:  # noqa: BLE001  # the agent's functions may raise anything
            return Prepared(effect.turn, failure=_function_raised(doing, error), path=effect.path)
        return Prepared(effect.turn, instructions, _listings(tools), _listings(handoffs), path=effect.path)

    async def _sourced(self, agent: Agent[Any, Any], context: AgentContext[Any]) -> _Tools:
        """The agent's own tools, then those of its sources that do not take a name again."""
        turn, tools = self.listed.get(context.path, (-1, ()))
        if turn == context.turn:
            return tools
        own = [tool for tool in agent.tools if isinstance(tool, Tool)]
        for source in agent.tools:
            if not isinstance(source, Tool):
                own.extend(await source(context))
        distinct = {(tool.kind, tool.namespace, tool.name): tool for tool in reversed(own)}
        tools = tuple(reversed(distinct.values()))
        self.listed[context.path] = (context.turn, tools)
        return tools

    async def _decide(self, effect: Decide) -> Decided:
        behavior = self.agents[effect.agent].tool_use_behavior
        assert callable(behavior)  # `plan` asks only then
        results = tuple(
            ToolResult(state.call, state.answer) for state in effect.seen.turns[-1].calls if state.answer is not None
        )
        try:
            output = await settled(behavior(self._agent_context(effect), results))
        except Exception as error:  # noqa: BLE001  # a user's function may raise anything
            return Decided(effect.turn, failure=_function_raised("tool_use_behavior", error), path=effect.path)
        return Decided(effect.turn, output, path=effect.path)

    # --- the model -------------------------------------------------------------------------------------

    async def _call_model(self, effect: CallModel) -> Replied:
        guardrails = self.agents[effect.agent].input_guardrails if effect.turn == 0 else ()
        first = [one for one in guardrails if one.blocking]
        beside = [one for one in guardrails if not one.blocking]
        verdicts = [verdict async for verdict in self._judged(effect, first)]
        if any(verdict.tripped for verdict in verdicts):
            return Replied(effect.turn, None, effect.request.sent, tuple(verdicts), effect.path)
        if not beside:
            outcome = await self._ask_model(effect)
            return Replied(effect.turn, outcome, effect.request.sent, tuple(verdicts), effect.path)
        return await self._beside(effect, beside, verdicts)

    async def _beside(self, effect: CallModel, guardrails: list[InputGuardrail], said: list[Verdict]) -> Replied:
        """The model's answer and the guardrails' verdicts; a trip cancels a model call still under way."""
        asking = asyncio.ensure_future(self._ask_model(effect))
        try:
            async for verdict in self._judged(effect, guardrails):
                said.append(verdict)
            tripped = any(verdict.tripped for verdict in said)
            outcome = None if tripped and not asking.done() else await asking
        finally:
            asking.cancel()
        return Replied(effect.turn, outcome, effect.request.sent, tuple(said), effect.path)

    async def _judged(self, effect: CallModel, guardrails: list[InputGuardrail]) -> Any:
        """The verdicts of input guardrails in order, up to the first that trips."""
        context = self._agent_context(effect)
        for one in guardrails:
            name = getattr(one.function, "__name__", type(one.function).__name__)
            verdict = await verdict_of(partial(one.function, context, effect.seen.input.items), _report)
            tripped = isinstance(verdict, Trip)
            yield Verdict(name, verdict.info, tripped)
            if tripped:
                return

    async def _ask_model(self, effect: CallModel) -> Outcome[ModelResponse, ModelError]:
        def emit(delta: Delta) -> None:
            if self.watch is not None:
                self.watch(effect.path, effect.turn, delta)

        limit = effect.request.settings.timeout
        if limit is None:
            return await self.client(effect.request, emit)
        timer = asyncio.timeout(limit)
        try:
            async with timer:
                return await self.client(effect.request, emit)
        except TimeoutError:
            if not timer.expired():
                raise
            return Failure(ModelTimedOut(limit))

    # --- tools -----------------------------------------------------------------------------------------

    async def _call(self, effect: Check | CallTool) -> Checked | Returned:
        found = await self._find(self.agents[effect.agent], effect)
        if isinstance(effect, Check):
            if isinstance(found, Failure):
                return Checked(effect.place, found, path=effect.path)
            return await check_call(found.unwrap())
        if isinstance(found, Failure):
            return Returned(effect.place, found, path=effect.path)
        return await run_call(found.unwrap(), effect.digest)

    async def _find(self, agent: Agent[Any, Any], effect: Check | CallTool | Extract) -> Outcome[Calling, ToolError]:
        """The tool of a call, anew: the agent's own first, then its sources, if it is enabled now."""
        seen = effect.seen
        call = seen.turns[-1].calls[int(effect.place.partition(".")[2])].call
        turn = len(seen.turns) - 1
        context = AgentContext(self.context, agent.name, turn, effect.path, seen, seen.tool_input)
        try:
            tools = await self._sourced(agent, context)
            enabled = [tool for tool in (*tools, *agent.handoffs) if await _enabled(tool, context)]
        except Exception as error:  # noqa: BLE001  # a source or predicate may raise anything
            return Failure(raised(error))
        for tool in enabled:
            if (tool.kind, tool.namespace, tool.name) == (call.kind, call.namespace, call.name):
                return Success(self._calling(tool, call, context, effect.place, tool in agent.handoffs))
        return Failure(UnknownTool(call.name, tuple(tool.name for tool in enabled)))

    def _calling(
        self, tool: Tool[..., Any, Any], call: ToolCall, context: AgentContext[Any], place: str, handoff: bool
    ) -> Calling:
        flag = Flag()

        def emit(delta: Delta) -> None:
            if self.watch is not None:
                self.watch(context.path, context.turn, delta)

        inside = ToolContext(
            context.context,
            context.agent,
            context.turn,
            context.path,
            context.seen,
            context.tool_input,
            tool=tool,
            place=place,
            call_id=call.id,
            arguments=call.arguments,
            cancelled=flag.read,
            emit=emit,
        )
        return Calling(tool, call, inside, flag, self.in_thread, self.on_raised, handoff)

    async def _extract(self, effect: Extract) -> Returned:
        state = effect.seen.turns[-1].calls[int(effect.place.partition(".")[2])]
        found = await self._find(self.agents[effect.agent], effect)
        if isinstance(found, Failure):
            return Returned(effect.place, found, path=effect.path)
        calling = found.unwrap()
        child, extract = state.child, calling.tool.extract
        if child is None or extract is None:
            return await failed(calling, UnrenderableOutput(f"the tool {calling.tool.name} has no extractor"))
        if isinstance(child.outcome, Failure):
            return await failed(calling, NestedFailed(explain(child.outcome.failure())))
        try:
            outcome = render(await settled(extract(calling.context, child)))
        except Exception as error:  # noqa: BLE001  # an extractor may raise anything
            return await failed(calling, calling.report(error))
        if isinstance(outcome, Failure):
            return await failed(calling, outcome.failure())
        return Returned(effect.place, outcome, path=effect.path)

    # --- the end ---------------------------------------------------------------------------------------

    async def _finish(self, effect: Finish) -> Finished | Refused:
        agent = self.agents.get(effect.agent)
        if agent is None or isinstance(effect.outcome, Failure):
            return Finished(effect.turn, effect.outcome, path=effect.path)
        text = effect.outcome.unwrap()
        if agent.output is not None:
            reading = agent.output.read(text)
            if isinstance(reading, Failure):
                return Refused(effect.turn, explain(reading.failure()), effect.path)
            text = agent.output.write(reading.unwrap())
        verdicts: list[Verdict] = []
        context = self._agent_context(effect)
        for guardrail in agent.output_guardrails:
            name = getattr(guardrail, "__name__", type(guardrail).__name__)
            verdict = await verdict_of(partial(guardrail, context, text), _report)
            verdicts.append(Verdict(name, verdict.info, isinstance(verdict, Trip)))
            if isinstance(verdict, Trip):
                tripped: Outcome[str, RunError] = Failure(GuardrailTripped(name, verdict.info, "output"))
                return Finished(effect.turn, tripped, tuple(verdicts), effect.path)
        return Finished(effect.turn, Success(text), tuple(verdicts), effect.path)


async def _enabled(tool: Tool[..., Any, Any], context: AgentContext[Any]) -> bool:
    rule = tool.is_enabled
    return rule if isinstance(rule, bool) else bool(await settled(rule(context)))


def _listings(tools: list[Tool[..., Any, Any]]) -> tuple[Listing, ...]:
    return tuple(listing(tool) for tool in tools)


def _function_raised(what: str, error: Exception) -> FunctionRaised:
    _report(error)
    value = raised(error)
    return FunctionRaised(what, value.kind, value.message)


def _report(error: BaseException) -> None:
    _log.warning("a function of an agent raised", exc_info=error)

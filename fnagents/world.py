"""What performers share: the agents, the model, the caller's context, and what tool sources have listed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import Factory, frozen

from fnagents.agent import Agent, Agents
from fnagents.errors import FunctionRaised
from fnagents.models import Delta, ModelClient
from fnagents.pipeline import OnRaised, settled
from fnagents.rendering import raised
from fnagents.runs import Run
from fnagents.tools import AgentContext, Tool, is_tool
from fnagents.workers import InThread, in_thread

__all__ = ["Tools", "Watch", "World", "enabled", "function_raised", "report"]

#: Told of each delta of a streaming client: path, turn, delta.
Watch: TypeAlias = Callable[[tuple[str, ...], int, Delta], None]

Tools: TypeAlias = tuple[Tool[..., Any, Any], ...]
_Listed: TypeAlias = dict[tuple[str, ...], tuple[int, Tools]]

_log = logging.getLogger("fnagents.agents")


@frozen(eq=False)
class World:
    """One run's surroundings; `listed` is what tool sources gave, by path, for the last turn of that path."""

    agents: Agents
    client: ModelClient
    context: Any = None
    on_raised: OnRaised | None = None
    watch: Watch | None = None
    in_thread: InThread = in_thread
    listed: _Listed = Factory(_Listed)

    def context_of(self, agent: str, turn: int, path: tuple[str, ...], seen: Run) -> AgentContext[Any]:
        """What an agent's own function is given."""
        return AgentContext(self.context, agent, turn, path, seen, seen.tool_input)

    def tell(self, path: tuple[str, ...], turn: int, delta: Delta) -> None:
        """Pass a delta on to whoever watches."""
        if self.watch is not None:
            self.watch(path, turn, delta)

    async def tools_of(self, agent: Agent[Any, Any], context: AgentContext[Any]) -> Tools:
        """The agent's own tools, then those of its sources, asked at most once a turn; the first of a name counts."""
        turn, tools = self.listed.get(context.path, (-1, ()))
        if turn == context.turn:
            return tools
        found = [tool for tool in agent.tools if is_tool(tool)]
        for source in agent.tools:
            if not is_tool(source):
                found.extend(await source(context))
        taken = {_identity(handoff) for handoff in agent.handoffs}
        distinct = {name: tool for tool in reversed(found) if (name := _identity(tool)) not in taken}
        tools = tuple(reversed(distinct.values()))
        self.listed[context.path] = (context.turn, tools)
        return tools


def _identity(tool: Tool[..., Any, Any]) -> tuple[str, str, str]:
    return (tool.kind, tool.namespace, tool.name)


async def enabled(tool: Tool[..., Any, Any], context: AgentContext[Any]) -> bool:
    """Whether the tool is there now."""
    rule = tool.is_enabled
    return rule if isinstance(rule, bool) else bool(await settled(rule(context)))


def report(error: BaseException) -> None:
    """The traceback of an agent's own function goes to the log."""
    _log.warning("a function of an agent raised", exc_info=error)


def function_raised(what: str, error: BaseException) -> FunctionRaised:
    """The exception of an agent's own function, as a value."""
    report(error)
    value = raised(error)
    return FunctionRaised(what, value.kind, value.message)

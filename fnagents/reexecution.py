"""`reexecute`: the real tools run again on recorded calls, and what they say compared with what they said.

A regression test made of real traffic.  No model is asked: the recorded answers stand, so a tool is called with
what the model wrote then.  The tools' effects are real ones; `only` names those that may run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen

from fnagents.agent import Agent, Agents
from fnagents.agent import agents as all_agents
from fnagents.beginnings import beginning
from fnagents.core import events, plan, step
from fnagents.errors import ToolError
from fnagents.items import ToolCall
from fnagents.models import Emit, ModelRequest, ModelResponse
from fnagents.outcome import Outcome
from fnagents.perform import performer
from fnagents.protocol import CallTool, Returned
from fnagents.runs import Run
from fnagents.tools import Answer

__all__ = ["Comparison", "reexecute"]


@frozen
class Comparison:
    """One recorded call, and what its tool says today.

    `today` is None where the tool was not run: an approval holds for certain arguments, and they are read
    differently now.
    """

    path: tuple[str, ...]
    place: str
    call: ToolCall
    recorded: Outcome[Answer, ToolError]
    today: Outcome[Answer, ToolError] | None

    @property
    def same(self) -> bool:
        """Whether the tool says what it said."""
        return self.today == self.recorded


async def reexecute(
    agents: Agent[Any, Any] | Agents, run: Run, *, context: Any = None, only: Iterable[str] | None = None
) -> tuple[Comparison, ...]:
    """Run the tools on the calls of a run, in order, nested ones too, and compare their outcomes.

    `context` is handed to the tools; `only` are the names of those to run (all by default).  Declined calls were
    never run and are not run now; interrupted ones are.

    >>> import asyncio
    >>> from fnagents import Agent, ToolCall, run_sync, tool
    >>> from fnagents.testing import scripted
    >>> agent = Agent("a", tools=[tool(lambda: 42, name="answer")])
    >>> run = run_sync(agent, "?", client=scripted(ToolCall("c", "answer"), "42"))
    >>> [comparison.same for comparison in asyncio.run(reexecute(agent, run))]
    [True]
    """
    everyone = all_agents(agents)
    perform = performer(everyone, _no_model, context=context)
    names = None if only is None else frozenset(only)
    so_far, found = beginning(run).run, list[Comparison]()
    for event in events(run):
        effect = _asked(everyone, so_far, event) if isinstance(event, Returned) else None
        if isinstance(event, Returned) and effect is not None and (names is None or effect.call.name in names):
            answer = await perform(effect)
            today = answer.outcome if isinstance(answer, Returned) else None
            found.append(Comparison(event.path, event.place, effect.call, event.outcome, today))
        so_far = step(so_far, event)
    return tuple(found)


def _asked(agents: Agents, run: Run, event: Returned) -> CallTool | None:
    """The effect that this event answered, as it is planned today."""
    for effect in plan(agents, run):
        if isinstance(effect, CallTool) and (effect.path, effect.place) == (event.path, event.place):
            return effect
    return None


async def _no_model(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, Any]:  # noqa: ARG001
    raise AssertionError("no model is asked: only calls of tools are performed")

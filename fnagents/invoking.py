"""`invoke`: the whole pipeline of one call, without an agent or a run; for tests of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnagents.agent import agents
from fnagents.driving import drive
from fnagents.errors import NestedFailed, ToolError, ToolRejected, UnknownTool
from fnagents.items import ToolCall
from fnagents.jsontext import compact
from fnagents.models import ModelClient
from fnagents.outcome import Failure, Outcome, Success
from fnagents.perform import performer
from fnagents.pipeline import CAUGHT, Calling, Flag, check_call, pass_cancellation, run_call, run_extract
from fnagents.prose import explain
from fnagents.protocol import Checked
from fnagents.runs import Run, start
from fnagents.tools import Delegate, Handoff, Output, Tool, ToolContext
from fnagents.world import enabled

__all__ = ["invoke"]

_NO_RUN = start("", ())


async def invoke(
    tool: Tool[..., Any, Any],
    arguments: str | Mapping[str, Any] = "{}",
    *,
    context: Any = None,
    approved: bool = False,
    client: ModelClient | None = None,
) -> Outcome[Output, ToolError]:
    """Run one call of a tool as a run would: parse, validate, approval, guardrails, timeout, rendering.

    `arguments` is JSON text as a model writes it, or plain data.  A gated call that is not `approved` is
    `Failure(ToolRejected)`.  A tool that delegates runs its agent with `client`; without one it is
    `Failure(NestedFailed)`.  A handoff gives its output text.

    >>> import asyncio
    >>> from fnagents import invoke, tool
    >>> @tool
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> asyncio.run(invoke(double, '{"number": 21}')).unwrap().text
    '42'
    >>> asyncio.run(invoke(double, '{"number": "x"}'))
    <Failure: InvalidArguments(problems=("$.number: 'x' is not of type 'integer'",))>
    """
    if type(approved) is not bool:
        raise TypeError(f"approved={approved!r} is neither True nor False")
    text = arguments if isinstance(arguments, str) else compact(dict(arguments))
    calling = _calling(tool, text, context)
    if tool.is_enabled is not True:
        try:
            if not await enabled(tool, calling.context):
                return Failure(UnknownTool(tool.name))
        except CAUGHT as error:
            pass_cancellation(error)
            return Failure(calling.report(error))
    digest = ""
    if tool.needs_approval is not False:
        checked = (await check_call(calling)).outcome
        if isinstance(checked, Failure):
            return checked
        checkup = checked.unwrap()
        if checkup.needed and not approved:
            return Failure(ToolRejected("The call needs approval: invoke(..., approved=True)."))
        digest = checkup.digest
    event = await run_call(calling, digest, approved=approved)
    if isinstance(event, Checked):
        return Failure(ToolRejected("The tool reads its arguments differently each time."))
    if isinstance(event.outcome, Failure):
        return event.outcome
    answer = event.outcome.unwrap()
    if isinstance(answer, Handoff):
        return Success(Output(answer.output))
    return await _delegated(calling, answer, client) if isinstance(answer, Delegate) else Success(answer)


def _calling(tool: Tool[..., Any, Any], text: str, context: Any) -> Calling:
    flag = Flag()
    inside = ToolContext(context, "", 0, (), _NO_RUN, tool=tool, place="0.0", arguments=text, cancelled=flag.read)
    return Calling(tool, ToolCall("", tool.name, text, tool.kind, tool.namespace), inside, flag, handoff=True)


async def _delegated(calling: Calling, delegate: Delegate, client: ModelClient | None) -> Outcome[Output, ToolError]:
    if client is None:
        return Failure(NestedFailed("there is no model to run it: invoke(..., client=...)"))
    everyone = agents(*calling.tool.agents)
    child = Run(delegate.agent, delegate.input, delegate.max_turns, tool_input=delegate.tool_input)
    child = await drive(everyone, child, performer(everyone, client, context=calling.context.context))
    if child.outcome is None:
        return Failure(NestedFailed("it is paused: a call in it waits for approval"))
    if isinstance(child.outcome, Failure):
        return Failure(NestedFailed(explain(child.outcome.failure())))
    if not delegate.extract:
        return Success(Output(child.outcome.unwrap()))
    extracted = (await run_extract(calling, child)).outcome
    if isinstance(extracted, Failure):
        return extracted
    answer = extracted.unwrap()
    assert isinstance(answer, Output)  # an extractor gives nothing else
    return Success(answer)

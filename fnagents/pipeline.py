"""One tool call, from the model's text to the event that answers it.

    find -> parse, validate, decode (`Tool.read`) -> [approved digest holds?] -> input guardrails
         -> call (timeout) -> render -> output guardrails

Every stage gives an `Outcome`; the first `Failure` answers the call.  Nothing that a tool does may end the run or
hang it: exceptions (StopIteration, a CancelledError of its own, one whose `__str__` raises) are values here, a
call that outlasts its limit is left behind.  KeyboardInterrupt, SystemExit and the caller's own cancellation
pass through.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias, assert_never

from attrs import define, field, frozen

from fnagents.errors import NestedFailed, ToolError, ToolRaised, ToolRejected, ToolTimedOut, UnrenderableOutput
from fnagents.items import ToolCall
from fnagents.jsontext import canonical, digest
from fnagents.outcome import Failure, Outcome, Success
from fnagents.prose import explain
from fnagents.protocol import Checked, Checkup, Returned, Verdict
from fnagents.rendering import raised, render
from fnagents.runs import Run
from fnagents.schemas.arguments import Arguments
from fnagents.tools import Allow, Answer, Fatal, Handoff, Output, Reject, Tool, ToolContext, Trip
from fnagents.wellformed import complaint
from fnagents.workers import InThread, in_thread

__all__ = [
    "CAUGHT",
    "Calling",
    "Flag",
    "OnRaised",
    "arguments_digest",
    "check_call",
    "drop",
    "failed",
    "pass_cancellation",
    "run_call",
    "run_extract",
    "settled",
    "verdict_of",
]

#: Told of every exception of a tool: the call and the exception.
OnRaised: TypeAlias = Callable[[ToolCall, BaseException], None]

#: Steps of the event loop that a cancelled function has for cleaning up before it counts as still running.
_STEPS_TO_STOP = 16

#: What is caught of foreign code, which may raise anything; `pass_cancellation` raises again what must pass through.
CAUGHT = (BaseException,)

_log = logging.getLogger("fnagents.tools")
# A library is silent unless its user configures logging: what failed is in the run.
logging.getLogger("fnagents").addHandler(logging.NullHandler())


@define(eq=False)
class Flag:
    """Set once nobody waits for a call any more; `ToolContext.cancelled` reads it."""

    is_set: bool = False

    def read(self) -> bool:
        """Whether it is set."""
        return self.is_set


@frozen(eq=False)
class Calling:
    """One call and what its stages need; `flag` is the one that its context reads."""

    tool: Tool[..., Any, Any]
    call: ToolCall
    context: ToolContext[Any]
    flag: Flag = field(factory=Flag)
    in_thread: InThread = in_thread
    on_raised: OnRaised | None = None
    #: whether the tool stands among the agent's handoffs
    handoff: bool = False

    def report(self, error: BaseException) -> ToolError:
        """The exception as a value; its traceback goes to the log, never to the model."""
        _log.warning("tool %s raised at call %s", self.tool.name, self.context.place, exc_info=error)
        if self.on_raised is not None:
            try:
                self.on_raised(self.call, error)
            except Exception as problem:  # noqa: BLE001  # whoever is told of a failure must not be another
                _log.warning("on_raised raised", exc_info=problem)
        return raised(error)


async def settled(value: Any) -> Any:
    """The value, awaited if it is awaitable."""
    return await value if inspect.isawaitable(value) else value


def arguments_digest(agent: str, tool: Tool[..., Any, Any], arguments: Arguments) -> str:
    """What an approval is bound to: SHA-256 over agent, tool and canonical validated arguments."""
    return digest(canonical([agent, tool.kind, tool.namespace, tool.name, arguments.text]))


def pass_cancellation(error: BaseException | None = None) -> None:
    """Raise what foreign code must not keep to itself, after it raised `error` or returned.

    A cancellation that the caller asked for, whatever the foreign code made of it; KeyboardInterrupt, SystemExit,
    GeneratorExit.  A CancelledError of its own is an error like any other.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


# --- reading and checking ------------------------------------------------------------------------------


def _read(calling: Calling) -> Outcome[Arguments, ToolError]:
    try:
        return calling.tool.read(calling.call.arguments)
    except CAUGHT as error:  # a reader given by hand, or a default factory of the user's
        pass_cancellation(error)
        return Failure(calling.report(error))


async def check_call(calling: Calling) -> Checked:
    """Whether the call can run and whether a person must agree, without running it.

    Only a predicate that says False (or `needs_approval=False`) lets the call pass unasked.
    """
    reading = _read(calling)
    if isinstance(reading, Failure):
        return await _checked_failure(calling, reading.failure())
    arguments = reading.unwrap()
    rule = calling.tool.needs_approval
    try:
        needed = rule if isinstance(rule, bool) else await settled(rule(calling.context, arguments.values)) is not False
    except CAUGHT as error:
        pass_cancellation(error)
        calling.report(error)
        reason = raised(error)
        rule_raised = ToolRaised(reason.kind, f"in its approval rule{': ' + reason.message if reason.message else ''}")
        return await _checked_failure(calling, rule_raised)
    name = arguments_digest(calling.context.agent, calling.tool, arguments)
    checkup = Checkup(arguments.text, name, needed, digest(calling.tool.definition_text))
    return Checked(calling.context.place, Success(checkup), path=calling.context.path)


async def _checked_failure(calling: Calling, error: ToolError) -> Checked:
    feedback, fatal = await _on_error(calling, error)
    return Checked(calling.context.place, Failure(error), feedback, fatal, calling.context.path)


# --- failures ------------------------------------------------------------------------------------------


async def _on_error(calling: Calling, error: ToolError) -> tuple[str, bool]:
    """What the tool's `on_error` makes of a failure: (feedback, fatal)."""
    rule = calling.tool.on_error
    if rule is None:
        return "", False
    try:
        said = await settled(rule(calling.context, error))
    except CAUGHT as problem:  # the explanation of the first error stands
        pass_cancellation(problem)
        calling.report(problem)
        return "", False
    return ("", True) if isinstance(said, Fatal) else (said if isinstance(said, str) else "", False)


async def failed(calling: Calling, error: ToolError, verdicts: tuple[Verdict, ...] = ()) -> Returned:
    """The event of a failed call."""
    feedback, fatal = await _on_error(calling, error)
    return Returned(calling.context.place, Failure(error), feedback, fatal, verdicts, calling.context.path)


# --- running -------------------------------------------------------------------------------------------


async def run_call(calling: Calling, checked: str, *, approved: bool = False) -> Returned | Checked:
    """Run the call; `checked` is the digest that was checked ("" for an ungated call), `approved` if by a person.

    If the arguments now have another digest, or the tool has come to need everybody's approval, the call is
    checked again instead.
    """
    tool = calling.tool
    reading = _read(calling)
    if isinstance(reading, Failure):
        return await failed(calling, reading.failure())
    arguments = reading.unwrap()
    tightened = tool.needs_approval is True and not approved
    if checked and (tightened or arguments_digest(calling.context.agent, tool, arguments) != checked):
        return await check_call(calling)
    if not checked and tool.needs_approval is not False:
        return await failed(calling, ToolRejected("The tool needs approval now. Call it again to ask for it."))
    verdicts: list[Verdict] = []
    if tool.input_guardrails:
        # They judge arguments of their own: what they do to them must not reach the function.
        judged = _read(calling).value_or(arguments)
        rejected = await _guarded(calling, tool.input_guardrails, judged.values, verdicts)
        if rejected is not None:
            return await failed(calling, rejected, tuple(verdicts))
    called = await _called(calling, arguments)
    if isinstance(called, Failure):
        return await failed(calling, called.failure(), tuple(verdicts))
    answer = called.unwrap()
    if tool.output_guardrails and isinstance(answer, Output):
        rejected = await _guarded(calling, tool.output_guardrails, answer, verdicts)
        if rejected is not None:
            return await failed(calling, rejected, tuple(verdicts))
    return Returned(calling.context.place, Success(answer), verdicts=tuple(verdicts), path=calling.context.path)


async def _guarded(
    calling: Calling,
    guardrails: tuple[Callable[[ToolContext[Any], Any], Any], ...],
    judged: object,
    said: list[Verdict],
) -> ToolRejected | None:
    """Ask the guardrails one after the other; the first that does not allow the call answers it."""
    for guardrail in guardrails:
        name = getattr(guardrail, "__name__", type(guardrail).__name__)
        verdict = await verdict_of(partial(guardrail, calling.context, judged), calling.report)
        match verdict:
            case Allow(info):
                said.append(Verdict(name, info))
            case Reject(message, info):
                said.append(Verdict(name, info))
                return ToolRejected(message, by="guardrail")
            case Trip(info):
                said.append(Verdict(name, info, tripped=True))
                return ToolRejected(f"The guardrail {name!r} ended the run.", by="guardrail")
            case _:
                assert_never(verdict)
    return None


async def verdict_of(ask: Callable[[], Any], report: Callable[[BaseException], object]) -> Allow | Reject | Trip:
    """What a guardrail says; one that raises, or says anything else, trips: a guard that fails lets nothing through."""
    try:
        verdict = await settled(ask())
    except CAUGHT as error:
        pass_cancellation(error)
        report(error)
        return Trip(f"the guardrail raised {type(error).__name__}")
    if isinstance(verdict, Allow | Reject | Trip):
        problem = complaint(verdict)
        return verdict if problem is None else Trip(f"the guardrail's verdict is unreadable: {problem}")
    return Trip(f"the guardrail said {type(verdict).__name__}, which is none of Allow, Reject and Trip")


async def _called(calling: Calling, arguments: Arguments) -> Outcome[Answer, ToolError]:
    limit = calling.tool.timeout
    try:
        attempt = _attempted(calling, arguments)
        outcome = await (attempt if limit is None else _limited(calling, attempt, limit))
    except asyncio.CancelledError:
        calling.flag.is_set = True
        raise
    match outcome:
        case Success(answer) if isinstance(answer, Handoff) and not calling.handoff:
            return Failure(UnrenderableOutput("only a tool among the agent's handoffs can hand the conversation over"))
        case _:
            return outcome


async def _attempted(calling: Calling, arguments: Arguments) -> Outcome[Answer, ToolError]:
    tool, function = calling.tool, calling.tool.function
    if function is None:
        return Failure(UnrenderableOutput(f"the tool {tool.name} is run by the provider, not here"))
    try:
        if tool.asynchronous or tool.inline:
            value = function(calling.context, arguments.given)
        else:
            done = await calling.in_thread(partial(function, calling.context, arguments.given))
            if isinstance(done, Failure):
                raise done.failure()  # as if the function had been called here
            value = done.unwrap()
        if inspect.isawaitable(value):
            value = await value
    except CAUGHT as error:
        pass_cancellation(error)
        return Failure(calling.report(error))
    pass_cancellation()
    return render(value)


async def _limited(
    calling: Calling, attempt: Coroutine[Any, Any, Outcome[Answer, ToolError]], limit: float
) -> Outcome[Answer, ToolError]:
    """The attempt's outcome, or `ToolTimedOut`; one that will not be cancelled is left behind."""
    task = asyncio.ensure_future(attempt)
    task.add_done_callback(drop)
    try:
        await asyncio.wait((task,), timeout=limit)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task.cancelled():  # by the function itself: the task is this call's own
        return Failure(calling.report(asyncio.CancelledError()))
    if task.done():
        return task.result()
    calling.flag.is_set = True
    task.cancel()
    # Time for the function to take its cancellation; a sync one never does, its thread cannot be stopped.
    for _ in range(_STEPS_TO_STOP):
        if task.done():
            break
        await asyncio.sleep(0)
    leave_behind(task)
    on_loop = calling.tool.asynchronous or calling.tool.inline
    return Failure(ToolTimedOut(limit, running=not (on_loop and task.done())))


async def run_extract(calling: Calling, child: Run) -> Returned:
    """The nested run has ended: the tool's extractor makes the call's output of it, once, and only of a success."""
    extract = calling.tool.extract
    if extract is None:
        return await failed(calling, UnrenderableOutput(f"the tool {calling.tool.name} has no extractor"))
    if isinstance(child.outcome, Failure):
        return await failed(calling, NestedFailed(explain(child.outcome.failure())))
    try:
        outcome = render(await settled(extract(calling.context, child)))
    except CAUGHT as error:
        pass_cancellation(error)
        return await failed(calling, calling.report(error))
    match outcome:
        case Failure(problem):
            return await failed(calling, problem)
        case Success(answer) if isinstance(answer, Output):
            return Returned(calling.context.place, outcome, path=calling.context.path)
        case _:
            return await failed(calling, UnrenderableOutput("an extractor can neither hand over nor delegate"))


def leave_behind(task: asyncio.Task[Any]) -> None:
    """Forget a task that will not be cancelled, so that `asyncio.run` does not wait for it at the end for ever."""
    if not task.done():
        asyncio._unregister_task(task)  # noqa: SLF001  # what the interpreter's own task list is kept with
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  # it will be destroyed pending, and we know


def drop(task: asyncio.Future[Any]) -> None:
    """Take the late result, so that nobody complains that it was never looked at."""
    if not task.cancelled():
        task.exception()

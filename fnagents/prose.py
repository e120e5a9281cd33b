"""The one place where errors become sentences: `explain`.

A model reads these sentences and mends its next call, so they say what went wrong, where, and the way out.
Never empty, never a traceback, never a memory address, at most 4,000 characters.  Replays compare them:
changing one changes what a recorded run would send, so they change only with the library's version.
"""

from __future__ import annotations

import re
from typing import Protocol, assert_never

from fnagents.errors import (
    AwaitingApproval,
    BadRequest,
    BudgetExhausted,
    BudgetSpent,
    ConnectionFailed,
    ContextTooLong,
    FunctionRaised,
    GuardrailTripped,
    Incomplete,
    InvalidArguments,
    InvalidJson,
    InvalidOutput,
    MalformedResponse,
    ModelError,
    ModelFailed,
    ModelRefused,
    ModelTimedOut,
    NestedFailed,
    NestedTooDeep,
    NotFound,
    RateLimited,
    RunError,
    ServerFailed,
    ToolCancelled,
    ToolError,
    ToolFailed,
    ToolRaised,
    ToolRejected,
    ToolTimedOut,
    TurnsExhausted,
    Unauthorized,
    UnknownAgent,
    UnknownTool,
    UnrenderableOutput,
)

__all__ = ["HasProblem", "LONGEST", "explain", "shortened", "unfit"]

#: The most characters of any explanation.
LONGEST = 4_000
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shortened(text: str, limit: int = LONGEST) -> str:
    """At most `limit` characters of `text`; what was left out is counted at the end.

    >>> shortened("abcdefghij" * 10, 40)
    'abcdefghijabcd ... (86 characters more)'
    """
    if len(text) <= limit:
        return text
    kept = limit - len(" ... ( characters more)") - len(str(len(text)))
    return f"{text[:kept]} ... ({len(text) - kept} characters more)"


class HasProblem(Protocol):
    """An error of a file or a replay, which words itself: those of codec.py, journals.py, replays.py and sealing.py."""

    @property
    def problem(self) -> str:
        """What is wrong, in one line."""
        ...


def explain(error: ToolError | RunError | ModelError | HasProblem) -> str:
    """The error in prose, for a model or a person: what went wrong, where, and the way out.

    >>> explain(InvalidArguments(("$.city: 3 is not of type 'string'",)))
    "Invalid arguments: $.city: 3 is not of type 'string'. Correct them and call the tool again."
    """
    return shortened(_ADDRESS.sub("", _sentence(error)))


def unfit(problem: InvalidJson | InvalidArguments) -> str:
    """What is wrong with a final output, for `InvalidOutput`: the same problems, without talk of tools.

    >>> unfit(InvalidArguments(("$.city: 3 is not of type 'string'",)))
    "$.city: 3 is not of type 'string'"
    """
    return problem.reason if isinstance(problem, InvalidJson) else "; ".join(problem.problems)


def _sentence(error: ToolError | RunError | ModelError | HasProblem) -> str:
    if isinstance(error, ToolError):
        return _of_tool(error)
    if isinstance(error, RunError):
        return _of_run(error)
    return _of_model(error) if isinstance(error, ModelError) else error.problem


def _of_tool(error: ToolError) -> str:
    match error:
        case UnknownTool(name, known):
            there = f"The tools are: {', '.join(known)}." if known else "There are no tools."
            return f"There is no tool named {shortened(name, 200)!r}. {there}"
        case InvalidJson(reason):
            return f"The arguments are not a valid JSON object: {reason}. Send one JSON object."
        case InvalidArguments(problems):
            return f"Invalid arguments: {'; '.join(problems)}. Correct them and call the tool again."
        case ToolRaised(kind, message):
            return f"The tool failed: {kind}: {message}" if message else f"The tool failed: {kind}"
        case ToolTimedOut(seconds, running):
            rest = " It could not be stopped and may still be running." if running else ""
            return f"The tool timed out after {seconds:g} seconds.{rest}"
        case ToolRejected(reason, _):
            return reason or "The tool call was not approved."
        case ToolCancelled(reason):
            return f"The tool call was interrupted{': ' + reason if reason else ''}. It may have had effects already."
        case NestedFailed(reason):
            return f"The agent that was to answer failed: {reason}"
        case BudgetSpent(what):
            return f"The call was not run: the budget of {what} is used up."
        case UnrenderableOutput(reason):
            return f"The tool ran, but its output cannot be shown: {reason}"
        case _:
            assert_never(error)


def _of_model(error: ModelError) -> str:
    match error:
        case RateLimited(message, after):
            return f"The model's server is busy: {message}" + (f" (retry after {after:g} s)" if after else "")
        case BadRequest(message, status):
            return f"The model's server refused the request ({status}): {message}"
        case Unauthorized(message, status):
            return f"The model's server refused the key ({status}): {message}"
        case NotFound(message):
            return f"The model's server knows no such model or address: {message}"
        case ServerFailed(message, status, _):
            return f"The model's server failed ({status}): {message}"
        case ConnectionFailed(message):
            return f"The connection to the model's server failed: {message}"
        case ModelTimedOut(seconds):
            return f"The model did not answer within {seconds:g} seconds."
        case MalformedResponse(message, _):
            return f"The model's answer could not be read: {message}"
        case ContextTooLong(message):
            return f"The conversation is too long for the model: {message}"
        case Incomplete(reason, _):
            return f"The model's answer was cut short ({reason}); none of its tool calls was run."
        case _:
            assert_never(error)


def _of_run(error: RunError) -> str:
    match error:
        case ModelFailed(cause):
            return explain(cause)
        case TurnsExhausted(limit):
            return f"No final output after {limit} turns, the limit of this run."
        case BudgetExhausted(what):
            return f"The budget of {what} is used up."
        case GuardrailTripped(guardrail, info, place):
            at = f" at call {place}" if place else ""
            return f"The guardrail {guardrail!r} ended the run{at}{': ' + info if info else '.'}"
        case ToolFailed(place, cause, _):
            return f"The tool call {place} failed, which ends the run: {explain(cause)}"
        case InvalidOutput(problem):
            return f"The final output is not of the expected type: {problem}. Answer again in that type."
        case ModelRefused(text):
            return f"The model declined: {text}"
        case UnknownAgent(name, known):
            return f"There is no agent named {name!r}. The agents are: {', '.join(known) or 'none'}."
        case NestedTooDeep(limit):
            return f"Agents called each other more than {limit} deep."
        case FunctionRaised(function, kind, message):
            return f"The agent's {function} raised {kind}{': ' + message if message else ''}"
        case AwaitingApproval():
            return "The run is paused: a tool call waits for approval."
        case _:
            assert_never(error)

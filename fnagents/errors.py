"""What can go wrong, as values; no prose and no behaviour.

    ToolError   one call failed: feedback that the model reads
    ├── UnknownTool        no tool of that name (now)
    ├── InvalidJson        the arguments are not a JSON object
    ├── InvalidArguments   they are, and do not fit the tool
    ├── ToolRaised         the function raised
    ├── ToolTimedOut       the function outlasted its limit
    ├── ToolRejected       a person or a guardrail said no
    ├── ToolCancelled      the call was interrupted
    ├── NestedFailed       the nested run failed (as text: a run never holds another run's error)
    ├── BudgetSpent        the run's budget allows no more calls
    └── UnrenderableOutput the function returned what has no form for a model
    ModelError  one model call failed: a `Failure` from the client
    ├── RateLimited, ServerFailed, ConnectionFailed, ModelTimedOut     worth another try
    ├── BadRequest, Unauthorized, NotFound, ContextTooLong             not without a change
    └── MalformedResponse, Incomplete                                  they carry what arrived
    RunError    the run failed: a `Failure` in `run.outcome`

All three unions live here, one floor below the values that some of them carry, so that `explain` (prose.py)
can word each of them and `Run.items` can call it: with `ModelError` in models.py and `RunError` in runs.py
the two would import each other.  The annotations that point upwards are for readers and type checkers.

`FnagentsError` and its children are exceptions: only for a programmer's mistake, never for what the world did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

from attrs import field, frozen

if TYPE_CHECKING:
    from fnagents.models import ModelResponse, Usage
    from fnagents.runs import Run

__all__ = [
    "AwaitingApproval",
    "BadRequest",
    "BudgetExhausted",
    "BudgetSpent",
    "ConnectionFailed",
    "ContextTooLong",
    "DeclarationError",
    "FnagentsError",
    "FunctionRaised",
    "GuardrailTripped",
    "Incomplete",
    "InvalidArguments",
    "InvalidJson",
    "InvalidOutput",
    "MalformedResponse",
    "ModelError",
    "ModelFailed",
    "ModelRefused",
    "ModelTimedOut",
    "NestedFailed",
    "NestedTooDeep",
    "NotFound",
    "RateLimited",
    "RunError",
    "ServerFailed",
    "ToolCancelled",
    "ToolError",
    "ToolFailed",
    "ToolRaised",
    "ToolRejected",
    "ToolTimedOut",
    "TurnsExhausted",
    "Unauthorized",
    "UnexpectedEvent",
    "UnexpectedEventError",
    "UnknownAgent",
    "UnknownTool",
    "UnrenderableOutput",
]


class FnagentsError(Exception):
    """The base of every exception of this library: a programmer's mistake."""


class DeclarationError(FnagentsError, ValueError):
    """A tool, an agent or a schema was declared in a way that cannot work; the message names it and the way out."""


class UnexpectedEventError(FnagentsError):
    """An event was folded into a run that does not wait for it; the run is unchanged."""


@frozen
class UnexpectedEvent:
    """An event that does not fit its run; the failure of `fold`.

    `index` counts the events given to `fold`, from 0; `reason` says what was wrong.
    """

    reason: str
    index: int = 0


# --- one tool call -----------------------------------------------------------------------------------


@frozen
class UnknownTool:
    """The agent has no such tool now; `known` are the names it has."""

    name: str
    known: tuple[str, ...] = ()


@frozen
class InvalidJson:
    """The arguments are not a JSON object that can be read exactly."""

    reason: str


@frozen
class InvalidArguments:
    """The arguments do not fit the tool; each problem is `path: what is wrong`."""

    problems: tuple[str, ...]


@frozen
class ToolRaised:
    """The tool's function raised; `kind` is the exception's class name."""

    kind: str
    message: str = ""


@frozen
class ToolTimedOut:
    """The tool outlasted `seconds`; `running` if its thread could not be stopped and may go on."""

    seconds: float
    running: bool = False


@frozen
class ToolRejected:
    """A person (`by="approval"`) or a guardrail declined the call; `reason` may be empty."""

    reason: str = ""
    by: str = "approval"


@frozen
class ToolCancelled:
    """The call was interrupted before it answered."""

    reason: str = ""


@frozen
class NestedFailed:
    """The nested run that was to answer the call failed; `reason` is its error in prose."""

    reason: str


@frozen
class BudgetSpent:
    """The run's budget allows no more of `what` (for example "tool calls")."""

    what: str


@frozen
class UnrenderableOutput:
    """The function returned a value that has no form for a model."""

    reason: str


ToolError: TypeAlias = (
    UnknownTool
    | InvalidJson
    | InvalidArguments
    | ToolRaised
    | ToolTimedOut
    | ToolRejected
    | ToolCancelled
    | NestedFailed
    | BudgetSpent
    | UnrenderableOutput
)

# --- one model call ----------------------------------------------------------------------------------


@frozen
class RateLimited:
    """Too many requests (HTTP 429)."""

    retryable: ClassVar[bool] = True
    message: str
    #: seconds that the server asks to wait
    retry_after: float | None = None


@frozen
class BadRequest:
    """The server refused the request as it is (HTTP 400, 413, 422 and other 4xx)."""

    retryable: ClassVar[bool] = False
    message: str
    status: int = 400


@frozen
class Unauthorized:
    """No key, a wrong key, or a key that may not do this (HTTP 401, 403)."""

    retryable: ClassVar[bool] = False
    message: str
    status: int = 401


@frozen
class NotFound:
    """No such model or address (HTTP 404)."""

    retryable: ClassVar[bool] = False
    message: str


@frozen
class ServerFailed:
    """The server failed (HTTP 5xx, or an error event in a stream)."""

    retryable: ClassVar[bool] = True
    message: str
    status: int = 500
    #: seconds that the server asks to wait
    retry_after: float | None = None


@frozen
class ConnectionFailed:
    """The server could not be reached, or the connection broke before the answer was whole."""

    retryable: ClassVar[bool] = True
    message: str


@frozen
class ModelTimedOut:
    """The model did not answer within `seconds`."""

    retryable: ClassVar[bool] = True
    seconds: float


@frozen
class MalformedResponse:
    """The answer could not be understood; `arrived` is what could be read of it."""

    retryable: ClassVar[bool] = True
    message: str
    arrived: ModelResponse | None = None

    @property
    def usage(self) -> Usage | None:
        """What the answer cost, as far as it said so."""
        return self.arrived.usage if self.arrived is not None else None


@frozen
class ContextTooLong:
    """The conversation does not fit the model's context window."""

    retryable: ClassVar[bool] = False
    message: str


@frozen
class Incomplete:
    """The answer was cut short (token limit, content filter); none of its tool calls is run."""

    retryable: ClassVar[bool] = False
    reason: str
    arrived: ModelResponse | None = None

    @property
    def usage(self) -> Usage | None:
        """What the answer cost, as far as it said so."""
        return self.arrived.usage if self.arrived is not None else None


ModelError: TypeAlias = (
    RateLimited
    | BadRequest
    | Unauthorized
    | NotFound
    | ServerFailed
    | ConnectionFailed
    | ModelTimedOut
    | MalformedResponse
    | ContextTooLong
    | Incomplete
)

# --- a run -------------------------------------------------------------------------------------------


@frozen
class ModelFailed:
    """A model call failed, and nothing above it would try again."""

    error: ModelError


@frozen
class TurnsExhausted:
    """The run used up its turns without a final output."""

    limit: int


@frozen
class BudgetExhausted:
    """The run used up its budget of `what`."""

    what: str


@frozen
class GuardrailTripped:
    """A guardrail ended the run; `place` names the call for a tool's guardrail."""

    guardrail: str
    info: str = ""
    place: str = ""


@frozen
class ToolFailed:
    """A tool failed whose errors are fatal (`on_error=fatal`)."""

    place: str
    error: ToolError
    path: tuple[str, ...] = ()


@frozen
class InvalidOutput:
    """The final output does not fit `output_type`, and the model used up its tries to mend it."""

    problem: str


@frozen
class ModelRefused:
    """The model declined to answer."""

    text: str


@frozen
class UnknownAgent:
    """The run names an agent that was not given; `known` are those that were."""

    name: str
    known: tuple[str, ...] = ()


@frozen
class NestedTooDeep:
    """Nested runs were planted more than `limit` deep."""

    limit: int


@frozen
class FunctionRaised:
    """One of the agent's own functions raised: instructions, `is_enabled`, a tool source, a decision."""

    function: str
    kind: str
    message: str = ""


@frozen
class AwaitingApproval:
    """The run is paused (only from `as_function` and `output`, never in `run.outcome`)."""

    run: Run = field(repr=False)


RunError: TypeAlias = (
    ModelFailed
    | TurnsExhausted
    | BudgetExhausted
    | GuardrailTripped
    | ToolFailed
    | InvalidOutput
    | ModelRefused
    | UnknownAgent
    | NestedTooDeep
    | FunctionRaised
    | AwaitingApproval
)

"""Effects and events: what a run asks of the world, and what the world answers.

`plan` derives effects from a run; `step` folds events into it.  An effect says *do this*, an event *this
happened*.  Both are data: an event holds everything that the core needs of what foreign code said.

    Prepare    -> Prepared               instructions, predicates and tool sources, once a turn
    CallModel  -> Replied
    Check      -> Checked                may this call run, and must a person say so?
    Ask        -> Approved | Declined    (or nothing: nobody can answer yet, and the run is paused)
    CallTool   -> Returned | Checked     (Checked again where an approved digest no longer holds)
    Extract    -> Returned
    Decide     -> Decided
    Finish     -> Finished | Refused

A call is known by its place (turn and position: "2.0"), never by the provider's id.  `path` are the places that
lead from the root run to the nested run that an effect or event belongs to.  Events stand below runs because a run
is made of the events folded into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from attrs import field, frozen

from fnagents.errors import FunctionRaised, ModelError, RunError, ToolError
from fnagents.items import ToolCall
from fnagents.models import ModelRequest, ModelResponse, Sent, ToolDefinition
from fnagents.outcome import Outcome
from fnagents.tools import Answer

if TYPE_CHECKING:
    from fnagents.runs import Run

__all__ = [
    "Approved",
    "Ask",
    "CallModel",
    "CallTool",
    "Check",
    "Checked",
    "Checkup",
    "Decide",
    "Decided",
    "Declined",
    "Effect",
    "Event",
    "Extract",
    "Finish",
    "Finished",
    "Listing",
    "Prepare",
    "Prepared",
    "Refused",
    "Reopened",
    "Replied",
    "Returned",
    "Verdict",
    "key",
]

Path: TypeAlias = tuple[str, ...]


def _seen() -> Any:
    return field(default=None, eq=False, repr=False, kw_only=True)


# --- data inside events --------------------------------------------------------------------------------


@frozen
class Listing:
    """What the core needs of one tool: its definition, and how its calls are planned."""

    definition: ToolDefinition
    #: run one at a time, in the model's order
    serial: bool = False
    #: calls are checked before they run (`needs_approval` is not False)
    gate: bool = False


@frozen
class Verdict:
    """What a guardrail said; `tripped` ends the run."""

    guardrail: str
    info: str = ""
    tripped: bool = False


@frozen
class Checkup:
    """A call that can run: canonical validated arguments, their digest, and whether a person must agree.

    `digest` covers agent, namespace, tool and arguments; `definition` is the digest of what the model was told
    of the tool, and part of the key of a sticky decision.
    """

    arguments: str
    digest: str
    needed: bool
    definition: str = ""


# --- effects -------------------------------------------------------------------------------------------


@frozen
class Prepare:
    """Call the agent's own functions for this turn: instructions, predicates, tool sources."""

    agent: str
    turn: int
    path: Path = ()
    seen: Run = _seen()


@frozen
class CallModel:
    """Ask the model."""

    agent: str
    turn: int
    request: ModelRequest = field(repr=False)
    path: Path = ()
    seen: Run = _seen()


@frozen
class Check:
    """Read and judge a gated call, and ask its predicate; no side effect.  `attempt` counts from 0."""

    agent: str
    place: str
    call: ToolCall
    path: Path = ()
    attempt: int = 0
    seen: Run = _seen()


@frozen
class Ask:
    """A question to a person: may this call run with exactly these arguments?"""

    agent: str
    place: str
    call: ToolCall
    checkup: Checkup
    path: Path = ()
    attempt: int = 0
    seen: Run = _seen()

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.call.name

    @property
    def call_id(self) -> str:
        """The provider's id of the call."""
        return self.call.id

    @property
    def arguments(self) -> str:
        """The validated arguments, as canonical JSON text."""
        return self.checkup.arguments


@frozen
class CallTool:
    """Run the call; `digest` is the one that was approved or checked ("" for an ungated call).

    `approved` if a person agreed to it, and not merely a predicate.
    """

    agent: str
    place: str
    call: ToolCall
    digest: str = ""
    approved: bool = field(default=False, kw_only=True)
    path: Path = ()
    attempt: int = 0
    seen: Run = _seen()


@frozen
class Extract:
    """The nested run has ended: let the tool say what the call's output is."""

    agent: str
    place: str
    path: Path = ()
    seen: Run = _seen()


@frozen
class Decide:
    """All calls of the turn are answered: may their outputs end the run?"""

    agent: str
    turn: int
    path: Path = ()
    seen: Run = _seen()


@frozen
class Finish:
    """End the run: decode the final output and let the output guardrails judge it; a failure passes through."""

    agent: str
    turn: int
    outcome: Outcome[str, RunError]
    path: Path = ()
    attempt: int = 0
    seen: Run = _seen()


Effect: TypeAlias = Prepare | CallModel | Check | Ask | CallTool | Extract | Decide | Finish


# --- events --------------------------------------------------------------------------------------------


@frozen
class Prepared:
    """The turn is open: instructions and the tools that are there now, or why they could not be had."""

    turn: int
    instructions: str | None = None
    tools: tuple[Listing, ...] = ()
    handoffs: tuple[Listing, ...] = ()
    failure: FunctionRaised | None = None
    path: Path = ()


@frozen
class Replied:
    """The model answered, or failed to; `outcome` is None when a guardrail tripped before it did.

    `sent` is what it was told beside the conversation; `verdicts` are those of the input guardrails.
    """

    turn: int
    outcome: Outcome[ModelResponse, ModelError] | None
    sent: Sent = field(default=Sent(), repr=False)
    verdicts: tuple[Verdict, ...] = ()
    path: Path = ()


@frozen
class Checked:
    """The call can run (`Success`) or cannot (`Failure`: the call is answered, nobody is asked).

    `feedback` is what the model reads of a failure, "" for `explain` of it; `fatal` ends the run.
    """

    place: str
    outcome: Outcome[Checkup, ToolError]
    feedback: str = ""
    fatal: bool = False
    path: Path = ()


@frozen
class Approved:
    """A person agreed to the call with the arguments of this digest; `always` answers later turns too."""

    place: str
    digest: str
    always: bool = False
    path: Path = ()


@frozen
class Declined:
    """A person declined the call; the model reads `reason`."""

    place: str
    digest: str
    reason: str = ""
    always: bool = False
    path: Path = ()


@frozen
class Returned:
    """The call was run, or could not be; `feedback` and `fatal` as in `Checked`."""

    place: str
    outcome: Outcome[Answer, ToolError]
    feedback: str = ""
    fatal: bool = False
    verdicts: tuple[Verdict, ...] = ()
    path: Path = ()


@frozen
class Decided:
    """`tool_use_behavior` gave a final output, or None: the model is asked again."""

    turn: int
    output: str | None = None
    failure: FunctionRaised | None = None
    path: Path = ()


@frozen
class Finished:
    """The run has ended."""

    turn: int
    outcome: Outcome[str, RunError]
    verdicts: tuple[Verdict, ...] = ()
    path: Path = ()


@frozen
class Refused:
    """The final output does not fit its type: the model is told `problem` and goes on."""

    turn: int
    problem: str
    path: Path = ()


@frozen
class Reopened:
    """A failed run goes on, with `max_turns` as its limit."""

    turn: int
    max_turns: int | None
    path: Path = ()


Event: TypeAlias = (
    Prepared | Replied | Checked | Approved | Declined | Returned | Decided | Finished | Refused | Reopened
)


def key(effect: Effect) -> str:
    """The name of an effect, unique in its run and the same in every replay: path, kind and place.

    >>> key(CallTool("a", "2.0", ToolCall("c", "add"), path=("0.1",)))
    '0.1/call-2.0'
    """
    match effect:
        case Prepare():
            name = f"prepare-{effect.turn}"
        case CallModel():
            name = f"model-{effect.turn}"
        case Check():
            name = _again(f"check-{effect.place}", effect.attempt)
        case Ask():
            name = _again(f"ask-{effect.place}", effect.attempt)
        case CallTool():
            name = _again(f"call-{effect.place}", effect.attempt)
        case Extract():
            name = f"extract-{effect.place}"
        case Decide():
            name = f"decide-{effect.turn}"
        case Finish():
            name = _again(f"finish-{effect.turn}", effect.attempt)
        case _:
            assert_never(effect)
    return "/".join((*effect.path, name)) if effect.path else name


def _again(name: str, attempt: int) -> str:
    return f"{name}~{attempt}" if attempt else name

"""What goes to a model and what comes back: requests, responses, settings, usage, and the client's type.

A client is a plain function `(ModelRequest, Emit) -> Awaitable[Outcome[ModelResponse, ModelError]]`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from attrs import field, frozen

from fnagents.errors import DeclarationError, ModelError
from fnagents.items import Item, Message, ToolCall, as_items
from fnagents.jsontext import canonical
from fnagents.outcome import Outcome

if TYPE_CHECKING:
    from fnagents.runs import Input, Turn

__all__ = [
    "ArgumentsDelta",
    "Delta",
    "Emit",
    "ItemDone",
    "ModelClient",
    "ModelRequest",
    "ModelResponse",
    "ModelSettings",
    "Once",
    "ReasoningDelta",
    "Restarted",
    "Sent",
    "TextDelta",
    "ToolDefinition",
    "Usage",
]

T = TypeVar("T")


@frozen(eq=False, slots=True)
class Once:
    """A value that remembers what was made of it: `value.once(make)` calls `make(value)` the first time only.

    A private memo, keyed by the function: not compared, not printed, not saved, not copied by `evolve`.
    It is what keeps the cost of a turn from growing with the run: each turn is encoded once.
    """

    _memo: dict[Any, Any] | None = field(default=None, init=False, eq=False, repr=False)

    def once(self, make: Callable[[Any], T]) -> T:
        """`make(self)`, remembered; `make` must be pure."""
        memo = self._memo
        if memo is None:
            memo = {}
            object.__setattr__(self, "_memo", memo)
        if make not in memo:
            memo[make] = make(self)
        made: T = memo[make]
        return made


@frozen
class Usage:
    """What model calls cost, in tokens; `requests` counts the calls."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    #: part of `input_tokens` that was read from a cache
    cached_tokens: int = 0
    #: part of `output_tokens` that was spent on reasoning
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


def _as_text(value: str | Mapping[str, Any] | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return canonical(dict(value))
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"settings must be plain JSON data: {error}") from None


def _as_texts(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(given)


@frozen(kw_only=True)
class ModelSettings:
    """How to ask the model; None means the provider's default.

    The names are the Responses API's.  `tool_choice` is "auto", "none", "required" or a tool's name.
    `extra` are further top-level fields of the request, as a mapping or JSON text; so are `reasoning`
    and `prompt`; `metadata` maps text to text.  Headers and keys belong to the client, never to a run.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    truncation: str | None = None
    store: bool | None = None
    #: for example {"effort": "low", "summary": "auto"}
    reasoning: str = field(default="", converter=_as_text)
    #: "low", "medium" or "high"
    verbosity: str | None = None
    metadata: str = field(default="", converter=_as_text)
    include: tuple[str, ...] = field(default=(), converter=_as_texts)
    top_logprobs: int | None = None
    max_tool_calls: int | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    background: bool | None = None
    #: a stored prompt: {"id": ..., "version": ..., "variables": {...}}
    prompt: str = field(default="", converter=_as_text)
    extra: str = field(default="", converter=_as_text)
    #: seconds that one try of a model call may take; the HTTP clients keep it, `timed` makes any client keep it
    timeout: float | None = None


@frozen
class ToolDefinition:
    """What the model is told of one tool: `text` is the JSON that is sent."""

    name: str
    text: str
    namespace: str = ""
    kind: str = "function_call"


@frozen(slots=True)
class Sent(Once):
    """What a model call was told beside the conversation: immutable texts, shared by reference between turns."""

    instructions: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    settings: ModelSettings = ModelSettings()
    #: the model's name ("" for the client's default)
    model: str = ""
    #: JSON text of the schema of the final output ("" for plain text)
    output_schema: str = ""


@frozen
class ModelRequest:
    """One call of a model, as a value: input and turns by reference, nothing copied or encoded.

    `previous_response_id` or `conversation_id` mean that the server holds what came before.
    """

    agent: str
    #: counts the run's turns from 0
    turn: int
    sent: Sent
    input: Input
    turns: tuple[Turn, ...] = field(default=(), repr=False)
    previous_response_id: str | None = None
    conversation_id: str | None = None

    @property
    def items(self) -> tuple[Item, ...]:
        """The conversation that the model reads, made when asked."""
        return (*self.input.items, *(item for turn in self.turns for item in turn.items))

    @property
    def instructions(self) -> str | None:
        """The system's instructions."""
        return self.sent.instructions

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model may call, handoffs included."""
        return self.sent.tools

    @property
    def settings(self) -> ModelSettings:
        """How the model is asked."""
        return self.sent.settings

    @property
    def model(self) -> str:
        """The model's name ("" for the client's default)."""
        return self.sent.model


@frozen
class ModelResponse:
    """One answer of a model: its items in order, what it cost, and the response's id."""

    items: tuple[Item, ...] = field(default=(), converter=as_items)
    usage: Usage = Usage(requests=1)
    id: str = ""
    model: str = ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls among the items, in order."""
        return tuple(item for item in self.items if isinstance(item, ToolCall))

    @property
    def text(self) -> str:
        """The text of the last message ("" without one)."""
        return next((item.text for item in reversed(self.items) if isinstance(item, Message)), "")


# --- the side channel of a streaming client ------------------------------------------------------------


@frozen
class TextDelta:
    """A piece of the answer's text; `index` is the position of its item in the response."""

    text: str
    index: int = 0


@frozen
class ReasoningDelta:
    """A piece of the reasoning's summary."""

    text: str
    index: int = 0


@frozen
class ArgumentsDelta:
    """A piece of a tool call's arguments; never run a call before its `ItemDone`."""

    text: str
    index: int = 0


@frozen
class ItemDone:
    """An item of the response is whole."""

    item: Item
    index: int = 0


@frozen
class Restarted:
    """The call is tried again: what was emitted for this turn no longer counts."""

    reason: str = ""


Delta: TypeAlias = TextDelta | ReasoningDelta | ArgumentsDelta | ItemDone | Restarted

#: Where a streaming client puts its deltas; they are for watching, no event depends on them.
Emit: TypeAlias = Callable[[Delta], None]

#: A model, as a function.  It never raises for what the world did.
ModelClient: TypeAlias = Callable[[ModelRequest, Emit], Awaitable[Outcome[ModelResponse, ModelError]]]

"""What is said in a conversation: messages, calls, outputs, reasoning, and whatever else a provider sends.

Every item is data.  JSON that this library does not interpret is kept as text: `Opaque.data` is a whole item,
`extra` the fields of a known item that have no attribute here (ids, status, annotations, ...).  So an item that
was read is written back as it was, and values stay hashable and comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from attrs import field, frozen

from fnagents.jsontext import compact

__all__ = [
    "File",
    "Image",
    "Item",
    "Message",
    "Opaque",
    "Part",
    "Reasoning",
    "Refusal",
    "Role",
    "Text",
    "ToolCall",
    "ToolOutput",
    "as_content",
    "as_items",
    "text_of",
]

Role: TypeAlias = Literal["user", "assistant", "system", "developer"]


@frozen
class Text:
    """A piece of text."""

    text: str
    #: JSON text of the fields that have no attribute here ("" for none)
    extra: str = ""


@frozen
class Image:
    """A picture: an address (`https:` or `data:`) or a file id of the provider."""

    url: str = ""
    file_id: str = ""
    #: "low", "high", "auto", or "" for the provider's default
    detail: str = ""
    extra: str = ""


@frozen
class File:
    """A file: inline data (a `data:` address), an address, or a file id of the provider."""

    data: str = ""
    url: str = ""
    file_id: str = ""
    filename: str = ""
    extra: str = ""


@frozen
class Refusal:
    """What a model says when it declines to answer."""

    text: str
    extra: str = ""


@frozen
class Opaque:
    """An item or a part of a type that this library does not interpret: carried, and sent back unchanged.

    `type` is its "type" ("" if it has none), `data` the JSON text of all of it.
    """

    type: str
    data: str


#: A part of a message or of a tool's output.
Part: TypeAlias = Text | Image | File | Refusal | Opaque


def text_of(content: str | tuple[Part, ...]) -> str:
    """The text in the content, parts put together without a gap; other parts have none."""
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content if isinstance(part, Text))


def as_content(content: str | Iterable[Part]) -> str | tuple[Part, ...]:
    """Content as values keep it: text, or a tuple of parts.  Raises TypeError for anything else."""
    if isinstance(content, str):
        return content
    parts = tuple(content)
    for index, part in enumerate(parts):
        _check(part, Part, f"part {index} of a content", "a part such as Text('...')")
    return parts


def _as_arguments(arguments: str | Mapping[str, Any]) -> str:
    if isinstance(arguments, str):
        return arguments
    return compact(dict(arguments))


def _check_role(_message: object, _attribute: object, role: object) -> None:
    if role not in get_args(Role):
        raise ValueError(f"role {role!r} is none of {', '.join(get_args(Role))}")


def _check(value: object, kind: Any, what: str, example: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{what} is a {type(value).__name__}, not {example}")


@frozen
class Message:
    """Something said by a role; `content` is text or a tuple of parts.

    >>> Message("user", "What is the weather in Oslo?").text
    'What is the weather in Oslo?'
    """

    role: Role = field(validator=_check_role)
    content: str | tuple[Part, ...] = field(converter=as_content)
    extra: str = ""

    @property
    def text(self) -> str:
        """All text in the content."""
        return text_of(self.content)

    @property
    def refusal(self) -> str | None:
        """What the model said when it declined, or None."""
        if isinstance(self.content, str):
            return None
        return next((part.text for part in self.content if isinstance(part, Refusal)), None)


@frozen
class Reasoning:
    """A model's reasoning, as far as the provider shows it: the texts of its summary."""

    summary: tuple[str, ...] = ()
    extra: str = ""

    @property
    def text(self) -> str:
        """The summary, a paragraph each."""
        return "\n\n".join(self.summary)


@frozen
class ToolCall:
    """A call that a model asks for.

    `id` is the provider's call id, for the wire alone: providers repeat ids and leave them out, so a run knows
    a call by its place.  `arguments` is the text as the model wrote it (a mapping is written as JSON).  `kind` is the
    item type of the provider that it came as; `namespace` groups tools ("" for none).
    """

    id: str
    name: str
    arguments: str = field(default="{}", converter=_as_arguments)
    kind: str = "function_call"
    namespace: str = ""
    extra: str = ""


@frozen
class ToolOutput:
    """What the model reads as the answer to the call with this id; `kind` is the call's."""

    call_id: str
    output: str | tuple[Part, ...] = field(converter=as_content)
    kind: str = "function_call"
    extra: str = ""

    @property
    def text(self) -> str:
        """All text in the output."""
        return text_of(self.output)


#: Anything that stands in a conversation.
Item: TypeAlias = Message | ToolCall | ToolOutput | Reasoning | Opaque


def as_items(input: str | Item | Iterable[Item]) -> tuple[Item, ...]:
    """What a person gives as input: text is a user message, one item stands for itself.

    >>> as_items("hi")
    (Message(role='user', content='hi', extra=''),)
    """
    if isinstance(input, str):
        return (Message("user", input),)
    if isinstance(input, Item):
        return (input,)
    items = tuple(input)
    for index, item in enumerate(items):
        _check(item, Item, f"input[{index}]", "an item such as Message('user', ...)")
    return items

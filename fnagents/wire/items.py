"""Items of a conversation to and from the Responses API's JSON: one row per kind of call.

A row says how a call of its kind is read and written, and its output.  To add a kind is to add a row.
What no row and no reader here understands is an `Opaque` and goes back unchanged; only a call that could not
be answered (without a name, without arguments) is an error, because to carry it along unseen would leave the
provider waiting for its output.

Reading and then writing gives the item back exactly, as JSON data: nulls, absent keys, text or list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never, cast

from attrs import frozen

from fnagents.errors import DeclarationError
from fnagents.items import Item, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolOutput, text_of
from fnagents.jsontext import Json, compact
from fnagents.wire.parts import (
    Data,
    bounded_arguments,
    bounded_output,
    joined,
    opaque_data,
    read_part,
    rest,
    write_part,
)

__all__ = ["ROWS", "Row", "UnreadableItemError", "read_item", "write_item"]

_ROLES = frozenset({"user", "assistant", "system", "developer"})


class UnreadableItemError(ValueError):
    """A call that cannot be answered: it has no name or no arguments.  Never leaves the wire."""


@frozen
class Row:
    """One kind of call on the wire.

    `read` takes the item, `write` gives it back; `output_type` is the type of the item that answers it,
    `read_output` gives None for an output of a shape that is not understood.
    """

    read: Callable[[Data], ToolCall]
    write: Callable[[ToolCall], Data]
    output_type: str
    read_output: Callable[[Data], ToolOutput | None]
    write_output: Callable[[ToolOutput], Data]


def _string(data: Data, name: str) -> str:
    found = data.get(name)
    return found if isinstance(found, str) else ""


@frozen
class _TextKind:
    """A kind whose call is a name and a text (in the field `argument`), and whose output is text or parts."""

    kind: str
    argument: str

    def call(self, id: str, name: str, text: str, namespace: str) -> Data:
        known: Data = {"type": self.kind, "call_id": id, "name": name, self.argument: text, "namespace": namespace}
        return {key: value for key, value in known.items() if value or key == self.argument}

    def read(self, data: Data) -> ToolCall:
        name, text = data.get("name"), data.get(self.argument)
        if not isinstance(name, str) or not name:
            raise UnreadableItemError(f"a {self.kind} has no name")
        if not isinstance(text, str):
            raise UnreadableItemError(f"the {self.kind} of {name!r} has no {self.argument} as text")
        call_id, namespace = _string(data, "call_id"), _string(data, "namespace")
        known = self.call(call_id, name, text, namespace)
        return ToolCall(call_id, name, text, self.kind, namespace, rest(data, known))

    def write(self, call: ToolCall) -> Data:
        known = self.call(call.id, call.name, bounded_arguments(call.arguments), call.namespace)
        return joined(known, call.extra)

    def read_output(self, data: Data) -> ToolOutput | None:
        output, call_id = _read_content(data.get("output"), "tool"), _string(data, "call_id")
        if output is None:
            return None
        known = {"type": "", "output": "", **({"call_id": call_id} if call_id else {})}
        return ToolOutput(call_id, output, self.kind, rest(data, known))

    def write_output(self, output: ToolOutput) -> Data:
        call_id: Data = {"call_id": output.call_id} if output.call_id else {}
        known: Data = {"type": f"{self.kind}_output", **call_id, "output": _write_output(output.output)}
        return joined(known, output.extra)

    @property
    def row(self) -> Row:
        return Row(self.read, self.write, f"{self.kind}_output", self.read_output, self.write_output)


def _read_content(content: Json, role: str) -> str | tuple[Part, ...] | None:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [part for part in content if isinstance(part, dict)]
    return tuple(read_part(part, role) for part in parts) if len(parts) == len(content) else None


def _write_output(output: str | tuple[Part, ...]) -> Json:
    if isinstance(output, str):
        return bounded_output(output)
    return [
        write_part(Text(bounded_output(part.text), part.extra) if isinstance(part, Text) else part, "tool")
        for part in output
    ]


#: The kinds of calls that are answered here, by the type of their item.
ROWS: Mapping[str, Row] = {
    "function_call": _TextKind("function_call", "arguments").row,
    "custom_tool_call": _TextKind("custom_tool_call", "input").row,
}


def _read_message(data: Data) -> Message | None:
    role = data.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        return None
    content = _read_content(data.get("content"), role)
    if content is None:
        return None
    # The type stays in `extra`: in requests it may be left out, and is, for messages made in Python.
    return Message(cast(Role, role), content, rest(data, {"role": "", "content": ""}))


def _write_message(message: Message) -> Data:
    content = message.content
    if isinstance(content, str):
        written: Json = content
    elif message.role == "assistant" and _plain(message, content):
        written = text_of(content)
    else:
        written = [write_part(part, message.role) for part in content]
    return joined({"role": message.role, "content": written}, message.extra)


def _plain(message: Message, content: tuple[Part, ...]) -> bool:
    # An assistant's message with parts needs an id from the provider; one made in Python has none.
    return not message.extra and bool(content) and all(isinstance(part, Text) and not part.extra for part in content)


def _read_reasoning(data: Data) -> Reasoning | None:
    summary: Json = data.get("summary")
    if not isinstance(summary, list):
        return None
    texts: list[str] = []
    for part in summary:
        match part:
            case {"type": "summary_text", "text": str(text), **more} if not more:
                texts.append(text)
            case _:
                return None
    return Reasoning(tuple(texts), rest(data, {"type": "", "summary": ""}))


def _write_reasoning(item: Reasoning) -> Data:
    summary: list[Json] = [{"type": "summary_text", "text": text} for text in item.summary]
    return joined({"type": "reasoning", "summary": summary}, item.extra)


_READERS: Mapping[str, Callable[[Data], Item | None]] = {
    "message": _read_message,
    "reasoning": _read_reasoning,
    **{kind: row.read for kind, row in ROWS.items()},
    **{row.output_type: row.read_output for row in ROWS.values()},
}


def read_item(data: Data) -> Item:
    """The item.  Raises `UnreadableItemError` for a call without name or arguments, `ValueError` for NaN.

    >>> read_item({"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}).name
    'add'
    """
    kind = data.get("type", "message" if "role" in data else "")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    item = read(data) if read is not None else None
    if item is None:
        return Opaque(kind if isinstance(kind, str) and "type" in data else "", compact(data))
    return item


def write_item(item: Item) -> Data:
    """The item as the API takes it, under the ids that it has.

    Raises `DeclarationError` for JSON text in a value that is none, and for a kind of call without a row.
    """
    match item:
        case Message():
            return _write_message(item)
        case ToolCall():
            return _row(item.kind).write(item)
        case ToolOutput():
            return _row(item.kind).write_output(item)
        case Reasoning():
            return _write_reasoning(item)
        case Opaque():
            return opaque_data(item)
        case _:
            assert_never(item)


def _row(kind: str) -> Row:
    row = ROWS.get(kind)
    if row is None:
        raise DeclarationError(f"a call of kind {kind!r} has no form here; the kinds are {', '.join(ROWS)}")
    return row

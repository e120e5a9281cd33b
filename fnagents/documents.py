"""Runs and events as plain data, with what they were made of written once: a document's two directions.

Instructions, tool definitions, settings and schemas are the same in most turns.  Values hold them by reference;
data holds them under their digest: the SHA-256 of their canonical JSON.  So a file grows with what happened, and
loading gives equal texts back as one object.  `Writer` collects definitions, `Reader` resolves them; a journal
uses both an event at a time.

    definition             is                                     referred to by
    text                   a string                               instructions, output_schema
    a tool's definition    an object (ToolDefinition)             the arrays below
    tools of a request     an array of references                 Sent
    tools of a turn        an array of objects (`definition`, ..) Prepared
    what a model was told  an object (Sent)                       Replied
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import define, field, frozen

from fnagents.beginnings import Start
from fnagents.converting import converter
from fnagents.jsontext import canonical, digest
from fnagents.models import ModelSettings, Sent, ToolDefinition
from fnagents.prose import shortened
from fnagents.protocol import Event, Listing, Prepared, Replied
from fnagents.shapes import TAG, WrongError, fields, located

__all__ = ["Reader", "Writer"]

T = TypeVar("T")


# --- values to data ------------------------------------------------------------------------------------


@frozen
class _Told:
    """`Sent` in a document."""

    instructions: str | None = None
    tools: str = ""
    settings: ModelSettings = ModelSettings()
    model: str = ""
    output_schema: str = ""


@frozen
class _Listed:
    """`Listing` in a document."""

    definition: str
    serial: bool = False
    gate: bool = False


_NOTHING = Sent()


@define
class Writer:
    """Turns events into data; `definitions` grows by what they are made of, in the order of its first use.

    >>> writer = Writer()
    >>> len(writer.event(Prepared(0, "Be brief."))["instructions"]), list(writer.definitions.values())
    (64, ['Be brief.'])
    """

    definitions: dict[str, Any] = field(factory=dict[str, Any])
    _known: dict[Any, str] = field(factory=dict[Any, str])
    #: by identity: turns share what they were told, and hashing all of it each time would cost the most
    _sent: dict[int, tuple[Sent, str]] = field(factory=dict[int, tuple[Sent, str]])

    def event(self, event: Event) -> dict[str, Any]:
        """The event as data that is the caller's own."""
        data: dict[str, Any] = converter().unstructure(event)
        if isinstance(event, Replied):
            if event.sent is not _NOTHING and event.sent != _NOTHING:
                data["sent"] = self._of_sent(event.sent)
        elif isinstance(event, Prepared):
            if event.instructions is not None:
                data["instructions"] = self._once(event.instructions, str)
            for name in ("tools", "handoffs"):
                if listings := getattr(event, name):
                    data[name] = self._once(listings, self._listings)
        return data

    def _once(self, value: T, as_data: Callable[[T], Any]) -> str:
        """The digest under which the value stands in the definitions."""
        name = self._known.get(value)
        if name is None:
            data = as_data(value)
            name = self._known[value] = digest(canonical(data))
            self.definitions.setdefault(name, data)
        return name

    def _of_sent(self, sent: Sent) -> str:
        known = self._sent.get(id(sent))
        if known is None:
            # Kept beside the name, so that its identity is not given to another.
            known = self._sent[id(sent)] = (sent, self._once(sent, self._told))
        return known[1]

    def _told(self, sent: Sent) -> Any:
        told = _Told(
            None if sent.instructions is None else self._once(sent.instructions, str),
            self._once(sent.tools, lambda tools: [self._tool(tool) for tool in tools]) if sent.tools else "",
            sent.settings,
            sent.model,
            self._once(sent.output_schema, str) if sent.output_schema else "",
        )
        return converter().unstructure(told)

    def _listings(self, listings: tuple[Listing, ...]) -> Any:
        listed = [_Listed(self._tool(one.definition), one.serial, one.gate) for one in listings]
        return [converter().unstructure(one) for one in listed]

    def _tool(self, tool: ToolDefinition) -> str:
        return self._once(tool, converter().unstructure)


# --- data to values ------------------------------------------------------------------------------------


class Reader:
    """Turns data into events, with the definitions that it is given; equal digests give one object.

    It takes the data apart.  What it raises is for `located`; only a `detailed` one knows where it was.
    """

    def __init__(self, definitions: Mapping[str, Any] | None = None, *, detailed: bool = False) -> None:
        self._data: dict[str, Any] = {}
        self._values: dict[tuple[str, str], Any] = {}
        self._converter = converter(detailed)
        self._structure = self._converter.get_structure_hook(Event)
        for name, data in (definitions or {}).items():
            self.define(name, data)

    def define(self, name: str, data: Any) -> None:
        """Take in a definition; raises `WrongError` if its digest is another."""
        try:
            holds = digest(canonical(data)) == name
        except (TypeError, RecursionError):
            holds = False
        if not holds:
            raise WrongError("the digest of its content is another", f".{shortened(name, 80)}")
        self._data[name] = data

    def start(self, data: Any) -> Start:
        """What a run begins with."""
        return self._read(data, Start)

    def event(self, data: Any) -> Event:
        """The event."""
        kind = data.get(TAG) if data.__class__ is dict else None
        if kind == "Replied" and "sent" in data:
            self._resolve(data, "sent", self._sent)
        elif kind == "Prepared":
            for name, make in (("instructions", self._text), ("tools", self._listings), ("handoffs", self._listings)):
                if name in data:
                    self._resolve(data, name, make)
        event: Event = self._structure(data, Event)
        return event

    def _resolve(self, data: dict[str, Any], name: str, make: Callable[[Any], Any]) -> None:
        try:
            data[name] = self._defined(data[name], make)
        except Exception as error:  # noqa: BLE001  # whatever it was, it was in the definition
            place, reason = located(error)
            raise WrongError(f"in its definition{' at $' + place if place else ''}: {reason}", f".{name}") from None

    def _defined(self, name: Any, make: Callable[[Any], T]) -> T:
        """The value of a definition, made once for each kind of use."""
        if name.__class__ is not str or name not in self._data:
            raise WrongError("there is no such definition in the file")
        known = (make.__name__, name)
        if known not in self._values:
            self._values[known] = make(self._data[name])
        value: T = self._values[known]
        return value

    def _read(self, data: Any, kind: type[T]) -> T:
        value: T = fields(self._converter.structure)(data, kind)
        return value

    def _text(self, data: Any) -> str:
        return self._converter.structure(data, str)

    def _tool(self, data: Any) -> ToolDefinition:
        return self._read(data, ToolDefinition)

    def _tools(self, data: Any) -> tuple[ToolDefinition, ...]:
        return tuple(self._defined(name, self._tool) for name in self._converter.structure(data, tuple[str, ...]))

    def _listings(self, data: Any) -> tuple[Listing, ...]:
        listed = self._converter.structure(data, tuple[_Listed, ...])
        return tuple(Listing(self._defined(one.definition, self._tool), one.serial, one.gate) for one in listed)

    def _sent(self, data: Any) -> Sent:
        told = self._read(data, _Told)
        return Sent(
            None if told.instructions is None else self._defined(told.instructions, self._text),
            self._defined(told.tools, self._tools) if told.tools else (),
            told.settings,
            told.model,
            self._defined(told.output_schema, self._text) if told.output_schema else "",
        )

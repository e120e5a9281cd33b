"""The Responses API as a stream: bytes to deltas on the way, and to one response in the end.  Pure.

    begin -> arrive(state, chunk) -> (state, deltas) -> ... -> arrived(state) -> Outcome[ModelResponse, ModelError]

What is kept is the output of the terminal event (`response.completed` and its kin), or, where a server leaves
that empty, the items that were reported done, by their position.  Deltas are for watching: no item is ever put
together from them, so there is never half a call, and any split of the bytes gives the same response.
The first terminal event, error or unreadable event ends the stream; whatever follows is not looked at.
Sequence numbers are not relied on: servers leave them out, skip some and start again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import Factory, evolve, frozen

from fnagents.errors import ConnectionFailed, MalformedResponse, ModelError
from fnagents.items import Item
from fnagents.jsontext import Json, visible
from fnagents.models import ArgumentsDelta, Delta, ItemDone, ModelResponse, ReasoningDelta, TextDelta
from fnagents.outcome import Failure, Outcome, Success
from fnagents.wire.frames import LONGEST_FRAME, Frame, Frames, feed, flush, read_event
from fnagents.wire.hiding import NOTHING, Hidden
from fnagents.wire.items import read_item
from fnagents.wire.parts import Data
from fnagents.wire.places import Told
from fnagents.wire.problems import error_in, model_error
from fnagents.wire.responses import MOST_ITEMS, read_arrived, read_response

__all__ = [
    "Arriving",
    "Finished",
    "MOST_ITEMS",
    "accumulate",
    "arrive",
    "arrived",
    "finished",
    "read_stream",
]

#: Terminal events, and the status of the response that they carry.
_TERMINAL = {f"response.{status}": status for status in ("completed", "incomplete", "failed", "cancelled")}
_PIECES: Mapping[str, type[TextDelta | ReasoningDelta | ArgumentsDelta]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
    "response.function_call_arguments.delta": ArgumentsDelta,
    "response.custom_tool_call_input.delta": ArgumentsDelta,
}


@frozen
class Finished:
    """An item that was reported done: its position, its id ("" for none), and its JSON data."""

    index: int
    id: str
    data: Data


@frozen
class Arriving:
    """What has arrived of a response: a pure accumulator.

    `begun` are the positions and ids of items that were announced, `done` the whole ones in order of arrival.
    `terminal` is the response that the terminal event carried; `problem` is what broke the stream.
    """

    frames: Frames = Frames()
    #: the response as it was announced
    head: Data | None = None
    begun: Told[tuple[int, str]] = Factory(Told[tuple[int, str]])
    done: Told[Finished] = Factory(Told[Finished])
    terminal: Data | None = None
    problem: ModelError | None = None
    #: what no failure repeats
    hidden: Hidden = NOTHING

    @property
    def over(self) -> bool:
        """Whether nothing that follows matters."""
        return self.terminal is not None or self.problem is not None


def _place(state: Arriving, event: Data, id: object) -> tuple[int, str]:
    # Where the event's item stands, by its position or, without one, by its id.
    name = id if isinstance(id, str) else ""
    index = event.get("output_index")
    if isinstance(index, int) and not isinstance(index, bool):
        return index, name
    known = state.begun.first(f"id {name}") if name else None
    return known if known is not None else (len(state.begun), name)


def _key(place: tuple[int, str]) -> str:
    # Text, because a server cannot choose it so that all of them collide, as it can with numbers.
    return f"at {place[0]:x} {place[1]}"


def _begin(state: Arriving, place: tuple[int, str]) -> Arriving:
    key = _key(place)
    if state.begun.first(key) is not None:
        return state
    if len(state.begun) >= MOST_ITEMS:
        return _crowded(state)
    return evolve(state, begun=state.begun.having(place, key, f"id {place[1]}"))


def _crowded(state: Arriving) -> Arriving:
    return evolve(state, problem=_malformed(state, f"it has more than {MOST_ITEMS} items"))


def _piece(state: Arriving, event: Data, kind: str) -> list[Delta]:
    text = event.get("delta")
    if not isinstance(text, str) or not text:
        return []
    return [_PIECES[kind](visible(text), _place(state, event, event.get("item_id"))[0])]


def _item_of(data: Data) -> Item | None:
    try:
        return read_item(data)
    except ValueError:
        return None


def _done(state: Arriving, event: Data, data: Data) -> tuple[Arriving, list[Delta]]:
    place = _place(state, event, data.get("id"))
    key = _key(place)
    if (earlier := state.done.first(key)) is not None and earlier.data == data:
        return state, []
    state = _crowded(state) if len(state.done) >= MOST_ITEMS else _begin(state, place)
    if state.over:
        return state, []
    item = _item_of(data)
    deltas: list[Delta] = [ItemDone(item, place[0])] if item is not None else []
    return evolve(state, done=state.done.having(Finished(*place, data), key)), deltas


def accumulate(state: Arriving, event: Data) -> tuple[Arriving, list[Delta]]:
    """The state after one more event, and what it shows to those who watch.  Unknown events change nothing."""
    kind = event.get("type")
    item: Json = event.get("item")
    response: Json = event.get("response")
    if state.over or not isinstance(kind, str):
        return state, []
    if kind in _PIECES:
        return state, _piece(state, event, kind)
    if kind == "response.output_item.done" and isinstance(item, dict):
        return _done(state, event, item)
    if kind == "response.output_item.added" and isinstance(item, dict):
        return _begin(state, _place(state, event, item.get("id"))), []
    if kind in _TERMINAL:
        if not isinstance(response, dict):
            return evolve(state, problem=_malformed(state, f"{kind} carries no response")), []
        return evolve(state, terminal={**response, "status": _TERMINAL[kind]}), []
    if kind == "error" or (not kind and "error" in event):
        error = error_in(event)
        return evolve(state, problem=model_error(error if error is not None else event, hidden=state.hidden)), []
    return (evolve(state, head=response) if isinstance(response, dict) else state), []


def _items(state: Arriving) -> list[Json]:
    # `sorted` is stable: servers that give every item the same position are read in order of arrival.
    return [one.data for one in sorted(state.done, key=lambda one: one.index)]


def _malformed(state: Arriving, message: str) -> MalformedResponse:
    data: Data = {**(state.head or {}), "output": _items(state)}
    return MalformedResponse(message, read_arrived(state.hidden.data(data))[0])


def _conflict(state: Arriving) -> str:
    places = [(one.index, one.id) for one in state.done]
    if len({_key(place) for place in places}) != len(places):
        return "an item was reported done twice, differently"
    missing = (place[0] for place in state.begun if state.done.first(_key(place)) is None)
    if (index := next(missing, None)) is not None:
        return f"the item at position {index} was begun and never finished"
    return ""


def finished(state: Arriving) -> Outcome[ModelResponse, ModelError]:
    """The response, when no more events come."""
    if state.problem is not None:
        return Failure(state.problem)
    if state.terminal is None:
        return Failure(ConnectionFailed("the stream ended before the response was complete"))
    if state.terminal.get("output"):
        return read_response(state.terminal, state.hidden)
    if state.terminal["status"] == "completed" and (conflict := _conflict(state)):
        return Failure(_malformed(state, conflict))
    return read_response({**state.terminal, "output": _items(state)}, state.hidden)


def arrive(state: Arriving, chunk: bytes) -> tuple[Arriving, list[Delta]]:
    r"""The state after one more chunk of bytes, and the deltas in it.

    >>> arrive(Arriving(), b'data: {"type": "response.output_text.delta", "delta": "Hi"}\n\n')[1]
    [TextDelta(text='Hi', index=0)]
    """
    if state.over:
        return state, []
    frames, ended = feed(state.frames, chunk)
    state = evolve(state, frames=frames)
    deltas: list[Delta] = []
    for frame in ended:
        if frame.data.strip() != b"[DONE]":
            state, more = _arrive_frame(state, frame)
            deltas += more
    if frames.too_long and not state.over:
        state = evolve(state, problem=_malformed(state, f"an event has more than {LONGEST_FRAME} bytes"))
    return state, deltas


def _arrive_frame(state: Arriving, frame: Frame) -> tuple[Arriving, list[Delta]]:
    if state.over:
        return state, []
    outcome = read_event(frame, state.hidden)
    if isinstance(outcome, Failure):
        return evolve(state, problem=_malformed(state, outcome.failure())), []
    return accumulate(state, outcome.unwrap())


def arrived(state: Arriving) -> Outcome[ModelResponse, ModelError]:
    """The response, when no more bytes come.

    A last event without the empty line after it counts if it is whole; if it is not, the connection broke.
    """
    for frame in () if state.over else flush(state.frames):
        outcome = read_event(frame)
        if isinstance(outcome, Success):
            state, _ = accumulate(state, outcome.unwrap())
    return finished(state)


def read_stream(chunks: Iterable[bytes]) -> Outcome[ModelResponse, ModelError]:
    """The response in a whole stream, however it is split."""
    state = Arriving()
    for chunk in chunks:
        state, _ = arrive(state, chunk)
    return arrived(state)

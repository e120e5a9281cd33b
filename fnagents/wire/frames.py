"""Server-sent events: bytes in chunks of any size to the frames in them, and a frame to its JSON.  Pure, and bounded.

A line ends in CRLF, LF or CR, a frame in an empty line; a chunk may end anywhere, inside a character too.
What has not ended yet is kept as a chain of pieces, so that a long line in many small chunks costs no copying.
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import evolve, frozen

from fnagents.jsontext import read_json, visible
from fnagents.outcome import Failure, Outcome, Success
from fnagents.wire.hiding import NOTHING, Hidden
from fnagents.wire.parts import Data

__all__ = ["Frame", "Frames", "LONGEST_FRAME", "feed", "flush", "read_event"]

#: The most bytes of one frame that are kept.
LONGEST_FRAME = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"

_Chain: TypeAlias = "tuple[bytes, _Chain] | None"


@frozen
class Frame:
    """One event as it came: the name on its `event:` line, its `data:` lines joined, in bytes."""

    event: bytes
    data: bytes


@frozen
class Frames:
    """What has arrived of the frame that is not whole yet.  `too_long` once it has passed `LONGEST_FRAME`."""

    too_long: bool = False
    #: pieces of the line that has not ended, last one first
    line: _Chain = None
    #: `data:` lines of the frame that has not ended, last one first
    data: _Chain = None
    event: bytes = b""
    #: bytes in `line` and `data`
    size: int = 0
    #: the last chunk ended in CR: an LF that follows belongs to it
    after_cr: bool = False
    first: bool = True


def _unchained(chain: _Chain) -> list[bytes]:
    pieces: list[bytes] = []
    while chain is not None:
        piece, chain = chain
        pieces.append(piece)
    return pieces[::-1]


def _ended(state: Frames, line: bytes) -> tuple[Frames, Frame | None]:
    # A whole line, without its end.
    if state.first:
        line, state = line.removeprefix(_BOM), evolve(state, first=False)
    if not line:
        frame = Frame(state.event, b"\n".join(_unchained(state.data))) if state.data is not None else None
        return Frames(first=False, after_cr=state.after_cr), frame
    name, _, value = line.partition(b":")
    value = value.removeprefix(b" ")
    if name == b"data":
        return evolve(state, data=(value, state.data), size=state.size + len(value) + 1), None
    return (evolve(state, event=value) if name == b"event" else state), None


def feed(state: Frames, chunk: bytes) -> tuple[Frames, list[Frame]]:
    r"""The state after one more chunk, and the frames that ended in it.

    >>> state, frames = feed(Frames(), b'data: {"a"')
    >>> feed(state, b': 1}\n\n')[1]
    [Frame(event=b'', data=b'{"a": 1}')]
    """
    frames: list[Frame] = []
    if not chunk or state.too_long:
        return state, frames
    if state.after_cr:
        chunk = chunk.removeprefix(b"\n")
        state = evolve(state, after_cr=False)
    for piece in chunk.splitlines(keepends=True):
        text = piece.rstrip(b"\r\n")
        if state.size + len(text) > LONGEST_FRAME:
            return Frames(too_long=True), frames
        if len(text) == len(piece):
            state = evolve(state, line=(piece, state.line), size=state.size + len(piece))
            continue
        if state.line is not None:
            kept = _unchained(state.line)
            state = evolve(state, line=None, size=state.size - sum(map(len, kept)))
            text = b"".join((*kept, text))
        state, frame = _ended(state, text)
        if frame is not None:
            frames.append(frame)
    return evolve(state, after_cr=chunk.endswith(b"\r")), frames


def flush(state: Frames) -> list[Frame]:
    """The frame that a stream ended in without an empty line, if there is one."""
    return feed(state, b"\n\n")[1]


def read_event(frame: Frame, hidden: Hidden = NOTHING) -> Outcome[Data, str]:
    """The event in a frame, its type filled in from the `event:` line where it has none; or what is wrong."""
    try:
        text = frame.data.decode()
        name = frame.event.decode()
    except UnicodeDecodeError as error:
        return Failure(f"an event is not UTF-8: {error.reason}")
    outcome = read_json(text, surrogates=True)
    if isinstance(outcome, Failure):
        reason, begins = hidden.short(outcome.failure().reason, 200), visible(hidden.text(text)[:100])
        return Failure(f"an event is not JSON: {reason}; it begins with {begins!r}")
    event = outcome.unwrap()
    if not isinstance(event, dict):
        return Failure("an event is not a JSON object")
    return Success(event if isinstance(event.get("type"), str) else {**event, "type": name})

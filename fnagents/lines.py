"""A journal's text: a run as lines, of which the last may be torn.

    {"format": "fnagents.journal", "version": 1, "at": ..., "definitions": {...}, "start": {...}, "events": [...]}
    {"digest": "...", "definition": ...}
    {"at": 1767225600.0, "event": {...}}

The first line is the run as it was when the file began, in the keys of a run's document.  An event is a line, and
each definition that no earlier line has is a line before the first event that needs it.  `at` is in seconds since
1970-01-01 UTC; times stand here only, never in an event.  A line ends with a newline and is whole or, at the end of
the file, torn: a piece of a JSON object is never one itself.  A line of a seal (sealing.py) is ignored here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnagents.jsontext import read_json
from fnagents.outcome import Failure, Success
from fnagents.pieces import encoded
from fnagents.shapes import WrongError

__all__ = ["JOURNAL", "assembled", "definition_line", "event_line", "first_line", "is_journal", "is_unbegun", "whole"]

#: The format's name in the first line.
JOURNAL = "fnagents.journal"
_HEAD = f'{{"format":"{JOURNAL}"'


# --- to text -------------------------------------------------------------------------------------------


def first_line(version: int, at: float, definitions: Mapping[str, Any], start: Any, events: list[Any]) -> str:
    """The line that begins a file, of plain data as in a run's document of this version."""
    head = {"format": JOURNAL, "version": version, "at": at}
    return encoded({**head, "definitions": dict(definitions), "start": start, "events": events}) + "\n"


def definition_line(digest: str, data: Any) -> str:
    r"""The line of a definition.

    >>> definition_line("ab12", "Be brief.")
    '{"digest":"ab12","definition":"Be brief."}\n'
    """
    return encoded({"digest": digest, "definition": data}) + "\n"


def event_line(at: float, data: Any) -> str:
    """The line of an event that came at this time."""
    return encoded({"at": at, "event": data}) + "\n"


# --- from text -----------------------------------------------------------------------------------------


def is_journal(text: str | bytes) -> bool:
    """Whether the text is a journal's, as far as its beginning says."""
    return text.startswith(_HEAD) if isinstance(text, str) else text.startswith(_HEAD.encode())


def is_unbegun(text: bytes) -> bool:
    """Whether the file holds no more than a torn first line, so that nothing is recorded yet.

    >>> is_unbegun(b""), is_unbegun(b'{"format":"fnagents.jou'), is_unbegun(b"notes")
    (True, True, False)
    """
    return b"\n" not in text and (_HEAD.encode().startswith(text) or (is_journal(text) and _is_torn(text)))


def whole(text: str | bytes) -> int:
    r"""How much of the journal's text is left without a torn last line, in characters or bytes of it.

    The first line counts, torn or not.

    >>> text = '{"format": 1}\n{"at": 1, "ev'
    >>> text[:whole(text)]
    '{"format": 1}\n'
    """
    kept = (text.rfind("\n") if isinstance(text, str) else text.rfind(b"\n")) + 1
    return kept if kept and _is_torn(text[kept:]) else len(text)


def _is_torn(tail: str | bytes) -> bool:
    try:
        text = tail if isinstance(tail, str) else tail.decode()
    except UnicodeDecodeError:
        return True
    return not isinstance(read_json(text, depth=len(text), surrogates=True), Success)


def assembled(text: str, kind: str, newest: int) -> dict[str, Any]:
    """The run's document (of this format) that a journal without a torn line amounts to.

    Raises `WrongError` with the line as its place.  A journal of a version above `newest` is given as its first line
    alone: only who knows the version can read the others.

    >>> first = first_line(1, 0.5, {}, {"agent": "a"}, [])
    >>> assembled(first + event_line(1.5, {"$type": "Decided"}), "fnagents.run", 1)["events"]
    [{'$type': 'Decided'}]
    """
    lines = text.removesuffix("\n").split("\n")
    first = _object(lines[0], 1)
    version: Any = first.get("version")
    if version.__class__ is int and version > newest:
        return {**first, "format": kind}
    _take_time(first, 1)
    definitions: Any = first.get("definitions")
    events: Any = first.get("events")
    if definitions.__class__ is not dict or events.__class__ is not list:
        raise WrongError("expected an object of definitions and an array of events", "line 1")
    for number, line in enumerate(lines[1:], 2):
        data = _object(line, number)
        if data.keys() == {"at", "event"}:
            _take_time(data, number)
            events.append(data["event"])
        elif data.keys() == {"digest", "definition"} and data["digest"].__class__ is str:
            definitions[data["digest"]] = data["definition"]
        elif data.keys() != {"seal"}:
            raise WrongError("expected an event or a definition", f"line {number}")
    return {**first, "format": kind}


def _object(line: str, number: int) -> dict[str, Any]:
    read = read_json(line, depth=len(line), surrogates=True)
    if isinstance(read, Failure):
        raise WrongError(read.failure().reason, f"line {number}")
    data: Any = read.unwrap()
    if data.__class__ is not dict:
        raise WrongError("expected an object", f"line {number}")
    found: dict[str, Any] = data
    return found


def _take_time(data: dict[str, Any], number: int) -> None:
    if data.pop("at", None).__class__ not in (int, float):
        raise WrongError('expected a number at "at"', f"line {number}")

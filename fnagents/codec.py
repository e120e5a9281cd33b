"""Runs and events as text: one JSON document each, versioned, read with suspicion.

A run's document is what it began with and its events in canonical order, so loading is folding: an impossible
state cannot be loaded, and a forged approval fits only the arguments that were checked.

    {"format": "fnagents.run", "version": 1, "definitions": {digest: ...}, "start": {...}, "events": [...]}
    {"format": "fnagents.event", "version": 1, "definitions": {digest: ...}, "event": {...}}

A journal (lines.py) is read as the run's document that it amounts to.  A run's "seal" (sealing.py) is ignored here.
run.schema.json beside this module describes the first.  The text always has a UTF-8 form (see pieces.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from attrs import frozen

from fnagents.beginnings import beginning
from fnagents.converting import converter
from fnagents.documents import Reader, Writer
from fnagents.folding import fold
from fnagents.jsontext import read_json, visible
from fnagents.lines import assembled, is_journal, whole
from fnagents.outcome import Failure, Outcome, Success
from fnagents.pieces import encoded, restored
from fnagents.prose import shortened
from fnagents.protocol import Event
from fnagents.runs import Run
from fnagents.shapes import WrongError, located
from fnagents.unfolding import events

__all__ = [
    "CorruptFile",
    "LARGEST",
    "LoadError",
    "NewerVersion",
    "NotAFnagentsFile",
    "VERSIONS",
    "dump_event",
    "dump_run",
    "load_event",
    "load_run",
    "migrated",
]

T = TypeVar("T")

#: What each version of the format is, in a line; the last one is written, all are read.
VERSIONS: Mapping[int, str] = {1: "a run is its start and its events; definitions stand under their digest"}
NEWEST = max(VERSIONS)
#: From the data of a version to that of the next.
MIGRATIONS: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
#: Longer texts are refused, in characters (or bytes), unless the reader is told another limit.
LARGEST = 256 * 2**20

_RUN, _EVENT = "fnagents.run", "fnagents.event"
_KEYS = {_RUN: ("definitions", "start", "events"), _EVENT: ("definitions", "event")}


# --- why a text could not be read ----------------------------------------------------------------------


@frozen
class NotAFnagentsFile:
    """It is something else: no JSON, or JSON of another kind."""

    reason: str

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"not a file of fnagents: {self.reason}"


@frozen
class NewerVersion:
    """A newer fnagents wrote it."""

    version: int
    newest: int

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"written by a newer fnagents: version {self.version}, this one reads up to {self.newest}"


@frozen
class CorruptFile:
    """It is a file of fnagents, but not a sound one; `where` is the place in the document (`$.events[3].place`)."""

    where: str
    reason: str

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"the file is corrupt at {self.where}: {self.reason}"


#: Why a text is no run, or no event.
LoadError: TypeAlias = NotAFnagentsFile | NewerVersion | CorruptFile


class _UnreadableError(Exception):
    """Carries the reason out of the reading functions."""

    def __init__(self, error: LoadError) -> None:
        super().__init__(error)
        self.error = error


def _corrupt(where: str, reason: str) -> _UnreadableError:
    def line(text: str) -> str:
        return visible(shortened(" ".join(text.split()), 500))

    return _UnreadableError(CorruptFile(line(where), line(reason)))


# --- to text -------------------------------------------------------------------------------------------


def dump_run(run: Run) -> str:
    """The run as one JSON document, which always has a UTF-8 form.

    It is as large as the run: one that is longer than `LARGEST` is read by `load_run(text, largest=...)` only.

    >>> from fnagents.runs import start
    >>> dump_run(start("greeter", "hi")) == (
    ...     '{"format":"fnagents.run","version":1,"definitions":{},"start":{"agent":"greeter","input":'
    ...     '[{"$type":"Message","role":"user","content":"hi"}]},"events":[]}')
    True
    """
    writer = Writer()
    recorded = [writer.event(event) for event in events(run)]
    start = converter().unstructure(beginning(run))
    return _text(_RUN, {"definitions": writer.definitions, "start": start, "events": recorded})


def dump_event(event: Event) -> str:
    """The event as one JSON document, with all that it refers to.

    >>> from fnagents.protocol import Decided
    >>> load_event(dump_event(Decided(3, "done")))
    <Success: Decided(turn=3, output='done', failure=None, path=())>
    """
    writer = Writer()
    recorded = writer.event(event)
    return _text(_EVENT, {"definitions": writer.definitions, "event": recorded})


def _text(kind: str, rest: dict[str, Any]) -> str:
    return encoded({"format": kind, "version": NEWEST, **rest})


# --- from text -----------------------------------------------------------------------------------------


def load_run(text: str | bytes, *, largest: int | None = None) -> Outcome[Run, LoadError]:
    """The run in a document or a journal, or why there is none.  Total: any text, any bytes.

    `largest` is how many characters (or bytes) a text may have, `LARGEST` unless given.

    >>> load_run("hello").failure().problem
    'not a file of fnagents: Expecting value at line 1 column 1 (of 5 characters)'
    """
    return _loaded(text, _RUN, _run, largest)


def load_event(text: str | bytes, *, largest: int | None = None) -> Outcome[Event, LoadError]:
    """The event in a document, or why there is none.  Total: any text, any bytes; `largest` as in `load_run`."""
    return _loaded(text, _EVENT, _event, largest)


def _loaded(
    text: str | bytes, kind: str, read: Callable[[dict[str, Any], bool], T], largest: int | None
) -> Outcome[T, LoadError]:
    try:
        known = _decoded(text, LARGEST if largest is None else largest)
        try:
            return Success(read(_data(known, kind), False))
        except _UnreadableError:
            raise
        except Exception:  # noqa: BLE001  # total: hostile data fails in many ways, and the second reading says which
            # The fast reader only knows that something is wrong: what it took apart is parsed anew.
            return Success(read(_data(known, kind), True))
    except _UnreadableError as unreadable:
        return Failure(unreadable.error)


def _decoded(text: str | bytes, largest: int) -> str:
    if len(text) > largest:
        raise _UnreadableError(NotAFnagentsFile(f"it is larger than {largest / 2**20:g} MiB"))
    if is_journal(text):
        text = text[: whole(text)]
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise _UnreadableError(NotAFnagentsFile(f"byte {error.start} is not UTF-8")) from None
    return text.removeprefix("\ufeff")


def _data(text: str, kind: str) -> dict[str, Any]:
    """The keys of the document beside its header, of the newest version."""
    data = _parsed(text, kind)
    if data.__class__ is not dict or data.get("format") != kind:
        raise _UnreadableError(NotAFnagentsFile(f'its "format" is not "{kind}"'))
    version = data.get("version")
    if version.__class__ is not int or version < 1:
        raise _corrupt("$.version", "expected a whole number from 1")
    if version > NEWEST:
        raise _UnreadableError(NewerVersion(version, NEWEST))
    data = migrated(data, version)
    if kind == _RUN:
        data.pop("seal", None)
    keys = _KEYS[kind]
    if odd := set(data).symmetric_difference(("format", "version", *keys)):
        one = min(odd)
        raise _corrupt("$", f"unknown key {one!r}" if one in data else f"the key {one!r} is missing")
    try:
        rest: dict[str, Any] = restored({key: data[key] for key in keys}, text)
    except RecursionError:
        raise _corrupt("$", "it is nested too deep") from None
    return rest


def _parsed(text: str, kind: str) -> Any:
    if kind == _RUN and is_journal(text):
        try:
            return assembled(text, kind, NEWEST)
        except WrongError as error:
            raise _corrupt(error.place, str(error)) from None
    # The parser's own limit bounds the depth; counting brackets first costs more than all the rest.
    parsed = read_json(text, depth=len(text), surrogates=True)
    if isinstance(parsed, Failure):
        raise _UnreadableError(NotAFnagentsFile(visible(parsed.failure().reason)))
    return parsed.unwrap()


def migrated(
    data: dict[str, Any],
    version: int,
    newest: int = NEWEST,
    migrations: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = MIGRATIONS,
) -> dict[str, Any]:
    """The data of a document of this version as the newest version has it.

    >>> migrated({"a": 1}, 1, 3, {1: lambda data: data | {"b": 2}, 2: lambda data: data | {"c": 3}})
    {'a': 1, 'b': 2, 'c': 3}
    """
    for old in range(version, newest):
        data = migrations[old](data)
    return data


# --- from data -----------------------------------------------------------------------------------------


def _reader(data: dict[str, Any], detailed: bool) -> Reader:
    definitions = data["definitions"]
    if definitions.__class__ is not dict:
        raise _corrupt("$.definitions", "expected an object")
    try:
        return Reader(definitions, detailed=detailed)
    except WrongError as error:
        raise _corrupt(f"$.definitions{error.place}", str(error)) from None


def _at(where: str, read: Callable[[Any], T], data: Any) -> T:
    try:
        return read(data)
    except Exception as error:  # noqa: BLE001  # total, as above
        place, reason = located(error)
        raise _corrupt(where + place, reason) from None


def _run(data: dict[str, Any], detailed: bool) -> Run:
    reader = _reader(data, detailed)
    recorded = data["events"]
    if recorded.__class__ is not list:
        raise _corrupt("$.events", "expected an array")
    if detailed:
        start = _at("$.start", reader.start, data["start"])
        found = [_at(f"$.events[{index}]", reader.event, one) for index, one in enumerate(recorded)]
    else:
        start = reader.start(data["start"])
        found = [reader.event(one) for one in recorded]
    folded = fold(start.run, found)
    if isinstance(folded, Failure):
        misfit = folded.failure()
        raise _corrupt(f"$.events[{misfit.index}]", misfit.reason)
    return folded.unwrap()


def _event(data: dict[str, Any], detailed: bool) -> Event:
    reader = _reader(data, detailed)
    return _at("$.event", reader.event, data["event"]) if detailed else reader.event(data["event"])

"""Seals: whether a saved run is still what it was.  Pure, on text: a document's or a journal's.

A seal holds a digest for each part of the text in order, and the end of the chain that these digests make; so a part
that was changed, lost, added or moved is found, and named.  With a key there is an HMAC of the chain beside it.
Without one a seal finds accidents, not attackers: who can write the file can seal it anew.

    a document   {"format": "fnagents.run", ..., "seal": {"version": 1, "digests": [...], "chain": "..."}}
    a journal    {"seal": {"version": 1, "digests": [...], "chain": "...", "hmac": "..."}}     its last line

The parts of a journal are its lines; of a document, all that is not an event, and each event.  `load_run` ignores
seals.  A journal that grows after it was sealed is not as it was sealed: seal it again.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Any, TypeAlias

from attrs import frozen

from fnagents.codec import CorruptFile, LoadError, NewerVersion, load_run
from fnagents.jsontext import digest, read_json
from fnagents.lines import is_journal, whole
from fnagents.outcome import Failure, Outcome, Success
from fnagents.pieces import encoded
from fnagents.unfolding import events

__all__ = ["Changed", "NotSealed", "NotSigned", "Verified", "VerifyError", "WrongKey", "seal", "verify"]

#: The version of seals that is written, and the last that is read.
NEWEST = 1
_LINE = '{"seal":'


# --- how a seal turns out ------------------------------------------------------------------------------


@frozen
class Verified:
    """The run, of this many events, is as it was sealed; `signed` if that was judged by a key."""

    events: int
    signed: bool = False


@frozen
class NotSealed:
    """There is no seal in it."""

    @property
    def problem(self) -> str:
        """One line for a person."""
        return "it has no seal"


@frozen
class Changed:
    """It is not as it was sealed; `where` is the first place that differs (`$.events[3]`, `line 5`)."""

    where: str
    reason: str

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"it is not as it was sealed, at {self.where}: {self.reason}"


@frozen
class NotSigned:
    """A key was given, and the seal was made without one: it proves nothing about who made it."""

    @property
    def problem(self) -> str:
        """One line for a person."""
        return "its seal was made without a key"


@frozen
class WrongKey:
    """The seal was made with another key, or forged."""

    @property
    def problem(self) -> str:
        """One line for a person."""
        return "its seal was made with another key"


#: Why a text is not vouched for: it is no run, or its seal does not hold.
VerifyError: TypeAlias = LoadError | NotSealed | Changed | NotSigned | WrongKey


# --- sealing and verifying -----------------------------------------------------------------------------


def seal(text: str | bytes, key: str | bytes | None = None) -> Outcome[str, LoadError]:
    """The text of a run with a seal, in place of any that it had; a document comes in its compact spelling.

    Raises ValueError for an empty key.

    >>> from fnagents import dump_run, start
    >>> sealed = seal(dump_run(start("greeter", "hi"))).unwrap()
    >>> verify(sealed), verify(sealed.replace("hi", "ho"))
    (<Success: Verified(events=0, signed=False)>, <Failure: Changed(where='$', reason='its digest is another')>)
    """
    secret = _secret(key)
    read = _read(text)
    if isinstance(read, Failure):
        return read
    found = read.unwrap()
    made = encoded(_made([part for _, part in found.parts], secret))
    if found.is_journal:
        return Success("".join(f"{part}\n" for _, part in found.parts) + f"{_LINE}{made}}}\n")
    return Success(f'{found.body[:-1]},"seal":{made}}}')


def verify(text: str | bytes, key: str | bytes | None = None) -> Outcome[Verified, VerifyError]:
    """Whether the run in the text is as it was sealed, and by the holder of the key if one is given.

    Total: any text, any bytes.  A seal that was made with a key is judged without it as one that was not.
    Raises ValueError for an empty key.
    """
    secret = _secret(key)
    read = _read(text)
    if isinstance(read, Failure):
        return read
    found = read.unwrap()
    if not found.seal:
        return Failure(NotSealed())
    problem = _problem(found, secret)
    return Success(Verified(found.events, secret is not None)) if problem is None else Failure(problem)


def _secret(key: str | bytes | None) -> bytes | None:
    if key is None:
        return None
    if not key:
        raise ValueError("an empty key keeps nothing")
    return key.encode() if isinstance(key, str) else key


def _problem(found: _Text, secret: bytes | None) -> VerifyError | None:
    claimed = _claimed(found.seal)
    if not isinstance(claimed, dict):
        return claimed
    mine = _made([part for _, part in found.parts], secret)
    for (place, _), is_now, was in zip(found.parts, mine["digests"], claimed["digests"], strict=False):
        if is_now != was:
            return Changed(place, "its digest is another")
    there, sealed = len(found.parts), len(claimed["digests"])
    if there != sealed:
        return Changed("the end", f"{sealed} parts were sealed, {there} are there")
    if claimed["chain"] != mine["chain"]:
        return Changed("the seal", "its chain is another")
    if found.oddity is not None:
        return found.oddity
    if secret is None:
        return None
    if "hmac" not in claimed:
        return NotSigned()
    return None if hmac.compare_digest(claimed["hmac"].encode(), mine["hmac"].encode()) else WrongKey()


# --- the seal itself -----------------------------------------------------------------------------------


def _made(parts: Iterable[str], secret: bytes | None) -> dict[str, Any]:
    digests = [digest(part) for part in parts]
    link = digest(f"fnagents.seal {NEWEST}")
    for one in digests:
        link = digest(link + one)
    plain: dict[str, Any] = {"version": NEWEST, "digests": digests, "chain": link}
    return plain if secret is None else {**plain, "hmac": hmac.digest(secret, link.encode(), "sha256").hex()}


def _claimed(text: str) -> dict[str, Any] | NewerVersion | Changed:
    """The seal that stands in a text, if it is spelled as `seal` spells it."""
    read = read_json(text)
    data: Any = read.unwrap() if isinstance(read, Success) else None
    if data.__class__ is dict:
        version = data.get("version")
        if version.__class__ is int and version > NEWEST:
            return NewerVersion(version, NEWEST)
        names = ["version", "digests", "chain", "hmac"]
        if list(data) in (names[:3], names) and _is_sound(data) and encoded(data) == text:
            claimed: dict[str, Any] = data
            return claimed
    return Changed("the seal", "it cannot be read")


def _is_sound(data: dict[str, Any]) -> bool:
    digests = data["digests"]
    texts = digests if digests.__class__ is list else [None]
    all_texts = all(one.__class__ is str for one in (*texts, data["chain"], data.get("hmac", "")))
    return all_texts and data["version"].__class__ is int and data["version"] == NEWEST


# --- a text, taken apart -------------------------------------------------------------------------------


@frozen
class _Text:
    """A run's text: its parts with their places, the seal's text ("" for none), the count of its events.

    `body` is a document without its seal, `oddity` what no digest of a part would find.
    """

    parts: list[tuple[str, str]]
    seal: str
    events: int
    is_journal: bool
    body: str = ""
    oddity: Changed | None = None


def _read(text: str | bytes) -> Outcome[_Text, LoadError]:
    loaded = load_run(text)
    if isinstance(loaded, Failure):
        return loaded
    count = len(events(loaded.unwrap()))
    try:
        return Success(_of_journal(text, count) if is_journal(text) else _of_document(text, count))
    except RecursionError:
        return Failure(CorruptFile("$", "it is nested too deep"))


def _of_journal(text: str | bytes, count: int) -> _Text:
    kept = text[: whole(text)]
    torn = len(kept) != len(text)
    lines = (kept if isinstance(kept, str) else kept.decode()).removesuffix("\n").split("\n")
    parts = [(f"line {number}", line) for number, line in enumerate(lines, 1) if not line.startswith(_LINE)]
    seals = [number for number, line in enumerate(lines, 1) if line.startswith(_LINE)]
    last = lines[seals[-1] - 1][len(_LINE) : -1] if seals else ""
    oddity = None
    if torn:
        oddity = Changed("the end", "the last line is torn")
    elif len(seals) > 1:
        oddity = Changed(f"line {seals[0]}", "it has more than one seal")
    elif seals and seals[0] != len(lines):
        oddity = Changed(f"line {seals[0] + 1}", "it comes after the seal")
    return _Text(parts, last, count, True, oddity=oddity)


def _of_document(text: str | bytes, count: int) -> _Text:
    given = (text if isinstance(text, str) else text.decode()).removeprefix("\ufeff").strip(" \t\r\n")
    data: Any = read_json(given, depth=len(given), surrogates=True).unwrap()
    oddity = None if encoded(data) == given else Changed("$", "it was spelled anew")
    claimed = encoded(data.pop("seal")) if "seal" in data else ""
    head = encoded({name: value for name, value in data.items() if name != "events"})
    parts = [("$", head), *((f"$.events[{index}]", encoded(event)) for index, event in enumerate(data["events"]))]
    return _Text(parts, claimed, count, False, encoded(data), oddity)

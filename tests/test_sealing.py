"""Seals: what they find, where they say it is, and that runs are read as if they were not there."""

import json
from pathlib import Path

import pytest
from helpers import call, given

from fnagents import Agent, Failure, Prepared, Run, Success, agents, drive, dump_run, events, load_run, performer, start
from fnagents.codec import CorruptFile, NewerVersion, NotAFnagentsFile
from fnagents.journals import drive_recorded, journal
from fnagents.jsontext import canonical, digest
from fnagents.sealing import Changed, NotSealed, NotSigned, Verified, WrongKey, seal, verify
from fnagents.testing import run_virtual, scripted

AGENTS = agents(Agent("a", "Be brief.", tools=[given("t", "x")]))
ANOTHER = "its digest is another"


def ended() -> Run:
    return run_virtual(drive(AGENTS, start("a", "hi"), performer(AGENTS, scripted(call("t"), "done"))))


DOCUMENT = dump_run(ended())
COUNT = len(events(ended()))


@pytest.fixture(name="recorded")
def recorded_fixture(tmp_path: Path) -> str:
    """A journal's text."""
    world = performer(AGENTS, scripted(call("t"), "done"))
    assert run_virtual(drive_recorded(AGENTS, start("a", "hi"), world, tmp_path / "run.jsonl")) == Success(ended())
    return (tmp_path / "run.jsonl").read_text()


def test_a_sealed_document_is_the_same_run() -> None:
    """The seal is one more key, which is ignored; to seal again changes nothing."""
    sealed = seal(DOCUMENT).unwrap()
    assert load_run(sealed) == load_run(DOCUMENT)
    assert {**json.loads(sealed), "seal": None} == {**json.loads(DOCUMENT), "seal": None}
    assert seal(sealed) == Success(sealed)
    assert verify(sealed) == verify(sealed.encode()) == Success(Verified(COUNT))
    assert verify(f"\ufeff{sealed}\n") == Success(Verified(COUNT))


def test_a_sealed_journal_is_the_same_run(recorded: str) -> None:
    """The seal is its last line; to seal again changes nothing, and bytes are as good as text."""
    sealed = seal(recorded).unwrap()
    assert sealed.startswith(recorded)
    assert sealed.count("\n") == recorded.count("\n") + 1
    assert load_run(sealed) == load_run(recorded) == Success(ended())
    assert seal(sealed) == seal(recorded.encode()) == Success(sealed)
    assert verify(sealed) == verify(sealed.encode()) == verify(sealed.removesuffix("\n")) == Success(Verified(COUNT))


def test_a_text_without_a_seal_is_not_vouched_for(recorded: str) -> None:
    """It loads, and nobody has sealed it."""
    assert verify(DOCUMENT) == verify(recorded) == Failure(NotSealed())
    assert NotSealed().problem == "it has no seal"


def test_a_text_that_is_no_run_can_be_neither_sealed_nor_verified() -> None:
    """It is the error of loading."""
    assert isinstance(seal("hello").failure(), NotAFnagentsFile)
    assert isinstance(verify("hello").failure(), NotAFnagentsFile)
    assert isinstance(verify(b"\xff").failure(), NotAFnagentsFile)


@pytest.mark.parametrize(("was", "now", "where"), [("hi", "ho", "$"), ("done", "gone", "$.events[2]")])
def test_a_change_in_a_document_is_named(was: str, now: str, where: str) -> None:
    """By the first part that differs."""
    sealed = seal(DOCUMENT).unwrap()
    assert verify(sealed.replace(f'"{was}"', f'"{now}"')) == Failure(Changed(where, ANOTHER))
    assert Changed("$", "x").problem == "it is not as it was sealed, at $: x"


def test_a_change_in_a_journal_is_named(recorded: str) -> None:
    """By its line, the times included."""
    lines = seal(recorded).unwrap().splitlines(keepends=True)
    at = lines[-2].replace('{"at":', '{"at":1')
    assert verify("".join([*lines[:-2], at, lines[-1]])) == Failure(Changed(f"line {len(lines) - 1}", ANOTHER))


def test_what_is_lost_or_added_is_found(recorded: str) -> None:
    """Parts are counted, so that a run that was cut short is not as it was sealed."""
    lines = seal(recorded).unwrap().splitlines(keepends=True)
    count = len(lines) - 1
    shorter = "".join([*lines[:-2], lines[-1]])
    assert verify(shorter) == Failure(Changed("the end", f"{count} parts were sealed, {count - 1} are there"))
    data = json.loads(seal(dump_run(start("a", "hi"))).unwrap())
    data["events"] = json.loads(DOCUMENT)["events"][:1]
    data["definitions"] = json.loads(DOCUMENT)["definitions"]
    assert verify(json.dumps(data, separators=(",", ":"))) == Failure(Changed("$", ANOTHER))


def test_a_journal_that_grew_is_not_as_it_was_sealed(tmp_path: Path) -> None:
    """It goes on as any other; sealed again, it has one seal."""
    path = tmp_path / "run.jsonl"
    journal(path, start("a", "hi")).unwrap().close()
    path.write_text(seal(path.read_text()).unwrap())
    with journal(path).unwrap() as record:
        record.append(Prepared(0, "Be brief."))
    assert verify(path.read_bytes()) == Failure(Changed("the end", "1 parts were sealed, 3 are there"))
    again = seal(path.read_bytes()).unwrap()
    assert again.count('{"seal":') == 1
    assert (verify(again), load_run(again)) == (Success(Verified(1)), Success(record.run))


def test_a_seal_stands_last_once_and_whole(recorded: str) -> None:
    """What no digest of a line finds: a seal elsewhere, a second one, something torn after it."""
    lines = seal(recorded).unwrap().splitlines(keepends=True)
    end = len(lines)
    moved = [*lines[:-2], lines[-1], lines[-2]]
    assert verify("".join(moved)) == Failure(Changed(f"line {end}", "it comes after the seal"))
    assert verify("".join([*lines, lines[-1]])) == Failure(Changed(f"line {end}", "it has more than one seal"))
    assert verify("".join([*lines, '{"at": 1'])) == Failure(Changed("the end", "the last line is torn"))
    assert verify("".join([*lines[:-1], lines[-1][:-9]])) == Failure(NotSealed())


def test_a_document_is_sealed_as_it_is_spelled() -> None:
    """Another spelling of the same data is not what was sealed; sealing gives the compact one."""
    pretty = json.dumps(json.loads(DOCUMENT), indent=1)
    assert seal(pretty) == seal(DOCUMENT)
    spelled = json.dumps(json.loads(seal(DOCUMENT).unwrap()), indent=1)
    assert verify(spelled) == Failure(Changed("$", "it was spelled anew"))


@pytest.mark.parametrize(
    "claimed",
    [
        None,
        [],
        {},
        {"version": 1, "digests": "x", "chain": ""},
        {"version": 1, "digests": [1], "chain": ""},
        {"version": 1, "digests": [], "chain": 2},
        {"version": 1, "digests": [], "chain": "", "hmac": 3},
        {"version": 0, "digests": [], "chain": ""},
        {"version": True, "digests": [], "chain": ""},
        {"version": 1, "digests": [], "chain": "", "more": 1},
        {"digests": [], "chain": "", "version": 1},
    ],
)
def test_a_seal_that_cannot_be_read_holds_nothing(claimed: object) -> None:
    """Whatever stands in its place."""
    document = f'{DOCUMENT[:-1]},"seal":{json.dumps(claimed, separators=(",", ":"))}}}'
    assert verify(document) == Failure(Changed("the seal", "it cannot be read"))


def test_a_seal_of_a_newer_version_is_refused_by_name() -> None:
    """As files are."""
    assert verify(f'{DOCUMENT[:-1]},"seal":{{"version":2}}}}') == Failure(NewerVersion(2, 1))


def test_a_chain_that_does_not_fit_its_digests_is_found() -> None:
    """Whoever changes digests has to change the chain, and then the HMAC."""
    data = json.loads(seal(DOCUMENT).unwrap())
    data["seal"]["chain"] = "0" * 64
    changed = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    assert verify(changed) == Failure(Changed("the seal", "its chain is another"))


def test_a_key_tells_who_sealed() -> None:
    """Its seal also holds without the key, as any; one without it, or of another, does not hold with it."""
    sealed = seal(DOCUMENT, "secret").unwrap()
    assert "secret" not in sealed
    assert verify(sealed, b"secret") == Success(Verified(COUNT, signed=True))
    assert verify(sealed) == Success(Verified(COUNT))
    assert verify(sealed, "guess") == Failure(WrongKey())
    assert verify(seal(DOCUMENT).unwrap(), "secret") == Failure(NotSigned())
    assert WrongKey().problem == "its seal was made with another key"
    assert NotSigned().problem == "its seal was made without a key"


def test_an_empty_key_is_a_mistake() -> None:
    """It would keep nothing."""
    for function in (seal, verify):
        with pytest.raises(ValueError, match="empty key"):
            function(DOCUMENT, "")


def test_data_that_is_too_deep_to_spell_is_a_failure() -> None:
    """Python's own limit may be met in spelling what it could read: halves of characters take more of it."""
    found = [
        (seal(text), verify(text)) for text in map(deep, range(100, 3000, 100)) if isinstance(load_run(text), Success)
    ]
    failure = Failure(CorruptFile("$", "it is nested too deep"))
    assert (failure, failure) in found
    assert all(pair == (failure, failure) or pair[1] == Failure(NotSealed()) for pair in found)


def deep(levels: int) -> str:
    """A run with a deep definition: nothing refers to it, so it is only held against its digest."""
    data: object = "\ud800"
    for _ in range(levels):
        data = [data]
    try:
        name = digest(canonical(data))
        return json.dumps({**json.loads(dump_run(start("a", "hi"))), "definitions": {name: data}})
    except RecursionError:
        return ""

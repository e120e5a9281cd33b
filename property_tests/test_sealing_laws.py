"""Seals: any changed byte of a sealed run is found, and any text is a value or a failure."""

from typing import Any

from hypothesis import event, example, given
from hypothesis import strategies as st
from strategies import runs

from fnagents import Failure, Run, Success, dump_run, events, load_run
from fnagents.beginnings import beginning
from fnagents.codec import LoadError
from fnagents.converting import converter
from fnagents.documents import Writer
from fnagents.lines import definition_line, event_line, first_line
from fnagents.sealing import Changed, NotSealed, NotSigned, Verified, VerifyError, WrongKey, seal, verify

KEYS = st.none() | st.binary(min_size=1, max_size=8)


def journal_text(run: Run) -> str:
    """The text of a journal that began with this run's start and has all of its events."""
    writer = Writer()
    lines = [first_line(1, 0.5, {}, converter().unstructure(beginning(run)), [])]
    for number, one in enumerate(events(run)):
        before = len(writer.definitions)
        data = writer.event(one)
        new = list(writer.definitions.items())[before:]
        lines += [*(definition_line(*definition) for definition in new), event_line(number + 0.25, data)]
    return "".join(lines)


def texts(run: Run) -> tuple[str, str]:
    """Both forms of a saved run."""
    return dump_run(run), journal_text(run)


@given(runs(), KEYS)
def test_what_was_sealed_is_verified(run: Run, key: bytes | None):
    """Either form, with a key or without; the run in it is the run, and to seal again changes nothing."""
    for text in texts(run):
        sealed = seal(text, key).unwrap()
        sealed.encode()

        assert Success(Verified(len(events(run)), key is not None)) == verify(sealed.encode(), key)
        assert Success(run) == load_run(sealed)
        assert Success(sealed) == seal(sealed, key)


@given(runs(), KEYS, st.data())
def test_any_changed_byte_is_found(run: Run, key: bytes | None, data: st.DataObject):
    """One byte replaced, lost or put in, anywhere in the file but in the white space around it."""
    text = data.draw(st.sampled_from(texts(run)))
    sealed = seal(text, key).unwrap().encode().strip()
    place = data.draw(st.integers(0, len(sealed) - 1))
    how = data.draw(st.sampled_from(["replace", "delete", "insert"]))
    byte = bytes([data.draw(st.integers(0, 255))])
    changed = sealed[:place] + (b"" if how == "delete" else byte) + sealed[place + (how != "insert") :]
    outcome = verify(changed, key)
    event(f"{how}: {type(outcome).__name__}")

    if changed == sealed:
        assert Success(Verified(len(events(run)), key is not None)) == outcome
    elif changed.strip(b" \t\r\n") != sealed:
        assert isinstance(outcome, Failure)


@given(runs(), st.data())
def test_any_changed_bit_of_an_event_is_found(run: Run, data: st.DataObject):
    """In the events themselves, where it matters most; whoever has no key cannot hide it from one who has."""
    sealed = seal(journal_text(run), b"k").unwrap().encode()
    lines = sealed.splitlines(keepends=True)
    number = data.draw(st.integers(0, len(lines) - 2))
    place = data.draw(st.integers(0, len(lines[number]) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    line = bytearray(lines[number])
    line[place] ^= bit
    changed = b"".join([*lines[:number], bytes(line), *lines[number + 1 :]])

    assert isinstance(verify(changed), Failure)
    forged = seal(changed)
    if isinstance(forged, Success):
        event("forged")
        assert Failure(NotSigned()) == verify(forged.unwrap(), b"k")


@given(runs(), st.data())
def test_events_that_were_lost_or_moved_are_found(run: Run, data: st.DataObject):
    """The chain holds their order and their number."""
    lines = seal(journal_text(run)).unwrap().splitlines(keepends=True)
    order = data.draw(st.permutations(range(len(lines))) | st.sets(st.integers(0, len(lines) - 1)).map(sorted))
    changed = "".join(lines[index] for index in order)

    assert isinstance(verify(changed), Success) == (changed == "".join(lines))


@given(runs(), KEYS, KEYS)
def test_keys_tell_who_sealed(run: Run, mine: bytes | None, other: bytes | None):
    """A seal holds for its key, and for nobody's; for another key it does not."""
    outcome = verify(seal(dump_run(run), mine).unwrap(), other)

    if other is None or mine == other:
        assert isinstance(outcome, Success)
    else:
        assert Failure(NotSigned() if mine is None else WrongKey()) == outcome


@given(st.text(st.characters(exclude_categories=())) | st.binary(), KEYS)
@example("[" * 100_000, None)
@example(b'{"format":"fnagents.journal"\n{"seal":}', b"k")
@example(
    '{"format":"fnagents.journal","version":1,"at":1,"definitions":{},"start":{"agent":"a","input":[]},"events":[]}',
    None,
)
def test_any_text_is_a_value_or_a_failure(text: Any, key: bytes | None):
    """Sealing and verifying are total."""
    judged(verify(text, key))
    assert isinstance(seal(text, key), Success) == isinstance(load_run(text), Success)


@given(runs(), st.text(st.characters(exclude_categories=("Cs",))) | st.sampled_from(["{}", "[]", '{"version":1}']))
def test_any_seal_is_a_value_or_a_failure(run: Run, claimed: str):
    """Whatever stands where the seal should be."""
    judged(verify(f'{dump_run(run)[:-1]},"seal":{claimed}}}'))
    judged(verify(f'{journal_text(run)}{{"seal":{claimed}}}\n'))


def judged(outcome: Any) -> None:
    """A failure, with one line that says why: none of these was sealed."""
    error = outcome.failure()
    assert isinstance(error, VerifyError)
    assert isinstance(error, LoadError | NotSealed | Changed)
    assert len(error.problem.splitlines()) == 1
    error.problem.encode()

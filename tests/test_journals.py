"""Journals: what stands in the file, what is refused, and what survives tearing, locking and a full disk."""

import asyncio
import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import call, folded, given, made, replied

from fnagents import (
    Agent,
    Decided,
    Delegate,
    Event,
    Failure,
    Finished,
    Handoff,
    InputGuardrail,
    Output,
    Perform,
    Prepared,
    Refused,
    Reopened,
    Returned,
    Run,
    Sent,
    Success,
    ToolCall,
    ToolFailed,
    ToolRaised,
    Trip,
    UnexpectedEventError,
    agents,
    approve,
    drive,
    dump_run,
    events,
    interruptions,
    load_event,
    load_run,
    performer,
    plan,
    reject,
    reopen,
    start,
)
from fnagents.codec import CorruptFile, NewerVersion, NotAFnagentsFile
from fnagents.journals import Journal, RunBehind, RunDiffers, drive_recorded, journal
from fnagents.linefiles import CannotOpen, FileLocked
from fnagents.lines import first_line
from fnagents.testing import scripted
from fnagents.wrap import recorded

CLERK = Agent(
    "clerk",
    "Help.",
    tools=[given("add", "3"), given("pay", "paid", needs_approval=True), given("ask", Delegate("expert", "why?"))],
)
EXPERT = Agent("expert", "Know.", tools=[given("dig", "a bone", needs_approval=True)])
EVERYONE = agents(CLERK, EXPERT)
BEGUN = start(CLERK, "hi")


def world(*replies: Any) -> Perform:
    return performer(EVERYONE, scripted(*replies))


def played(path: Path, *replies: Any, run: Run = BEGUN) -> Run:
    """The run after this much of it was driven with a journal."""
    return asyncio.run(drive_recorded(EVERYONE, run, world(*replies), path)).unwrap()


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def opened(path: Path, run: Run | None = None, **options: Any) -> Journal:
    return journal(path, run, **options).unwrap()


def refused(path: Path, run: Run | None = None) -> Any:
    """Why the journal does not open; the file is as it was."""
    before = path.read_bytes() if path.is_file() else None
    error = journal(path, run).failure()
    assert before == (path.read_bytes() if path.is_file() else None)
    assert len(error.problem.splitlines()) == 1
    return error


def test_a_journal_may_be_larger_than_what_strangers_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process goes on with its own file."""
    path = tmp_path / "run.jsonl"
    run = played(path, "x" * 1_000)
    monkeypatch.setattr("fnagents.codec.LARGEST", 1_000)
    assert isinstance(load_run(path.read_bytes()).failure(), NotAFnagentsFile)
    with opened(path) as record:
        assert record.run == run


# --- what stands in the file ---------------------------------------------------------------------------


def test_the_first_line_is_the_run_as_it_was(tmp_path: Path) -> None:
    """Whatever had happened before is in the first line, in the keys of a run's document, with the time beside."""
    run = folded(BEGUN, replied(0, call("add")))
    with opened(tmp_path / "run.jsonl", run, clock=lambda: 7.5) as record:
        assert record.path == tmp_path / "run.jsonl"

    (first,) = lines(tmp_path / "run.jsonl")
    document = json.loads(dump_run(run))

    assert first.pop("at") == 7.5
    assert first.pop("format") == "fnagents.journal"
    assert document.pop("format") == "fnagents.run"
    assert first == document


def test_each_event_is_a_line_and_each_definition_one_before_it_is_needed(tmp_path: Path) -> None:
    """Instructions and tools stand once, however many turns were told of them; times stand beside events only."""
    path, ticks = tmp_path / "run.jsonl", iter(range(100))
    told = Sent("Help.")
    with opened(path, BEGUN, clock=lambda: next(ticks)) as record:
        record.append(replied(0, call("add"), sent=told))
        run = asyncio.run(drive(EVERYONE, record.run, recorded(world("done"), record)))
    first, *rest = lines(path)

    assert first["definitions"] == {}
    assert [sorted(line) for line in rest[:3]] == [["definition", "digest"], ["definition", "digest"], ["at", "event"]]
    assert [line["at"] for line in [first, *rest] if "at" in line] == list(range(5))
    digests = [line["digest"] for line in rest if "digest" in line]
    assert len(digests) == len(set(digests))
    assert load_run(path.read_text()) == Success(run) == load_run(path.read_bytes())


def test_going_on_writes_no_definition_again(tmp_path: Path) -> None:
    """Definitions of the first line and of later lines are known to who opens the file."""
    path = tmp_path / "run.jsonl"
    with opened(path, folded(BEGUN, Prepared(0, "one"))) as record:
        record.append(replied(0, call("add"), sent=Sent("two")))
    with opened(path) as record:
        record.catch_up(folded(record.run, *events(played(tmp_path / "other", call("add"), "done"))[1:2]))
        record.append(Prepared(1, "one"))
        record.append(replied(1, call("add"), sent=Sent("two")))
    first, *rest = lines(path)

    assert list(first["definitions"].values()) == ["one"]
    digest, told = [(line["digest"], line["definition"]) for line in rest if "definition" in line]
    assert digest[1] == "two"
    assert told[1] == {"instructions": digest[0]}


def opened_run(path: Path) -> Run:
    with opened(path) as record:
        return record.run


def test_hostile_text_comes_back(tmp_path: Path) -> None:
    """Unpaired surrogates, line separators and two halves that are no pair are in the file, which is UTF-8."""
    for number, text in enumerate(("\ud800", "a\u2028b\n", "\ud83d" + "\ude00", "\x00")):
        path = tmp_path / f"{number}.jsonl"
        with opened(path, start("clerk", text)) as record:
            record.append(replied(0, text, sent=Sent(text)))
            run = record.run
        path.read_bytes().decode()

        assert load_run(path.read_bytes()) == Success(run)
        assert opened_run(path) == run


# --- torn lines ----------------------------------------------------------------------------------------


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    """Also one that ends within a character; the file goes on after its last whole line."""
    path = tmp_path / "run.jsonl"
    with opened(path, BEGUN) as record:
        record.append(replied(0, call("add")))
        run = record.run
    sound = path.read_bytes()
    for torn in (b"{", b'{"at": 1, "event": {"$type": "Ret', '{"at": 1, "event": "ö'.encode()[:-1], b"\x00\x00"):
        path.write_bytes(sound + torn)

        assert load_run(path.read_bytes()) == Success(run)
        assert opened_run(path) == run
        assert path.read_bytes() == sound


def test_a_last_line_that_lacks_only_its_newline_is_kept(tmp_path: Path) -> None:
    """It is whole: what it says has happened."""
    path = tmp_path / "run.jsonl"
    run = played(path, call("add"), "done")
    sound = path.read_bytes()
    path.write_bytes(sound[:-1])

    assert load_run(path.read_bytes()) == load_run(path.read_bytes().decode()) == Success(run)
    assert opened_run(path) == run
    assert path.read_bytes() == sound


def test_a_torn_first_line_is_begun_anew(tmp_path: Path) -> None:
    """Nothing is recorded in it.  Without a run there is nothing to begin with, and it is refused."""
    path = tmp_path / "run.jsonl"
    opened(path, BEGUN).close()
    sound = path.read_bytes()
    for size in range(len(sound) - 1):
        path.write_bytes(sound[:size])
        if size % 10 == 0:
            assert isinstance(refused(path), NotAFnagentsFile | CorruptFile)
        with opened(path, BEGUN) as record:
            assert record.run == BEGUN
        assert load_run(path.read_bytes()) == Success(BEGUN)


# --- refused -------------------------------------------------------------------------------------------


def test_other_files_are_refused_as_they_are(tmp_path: Path) -> None:
    """No file that is not a journal is ever written to, with a run or without."""
    path = tmp_path / "notes"
    for text in ("notes", "[1]\n", '{"format":"fnagents.jotter"}', dump_run(BEGUN), dump_run(BEGUN) + "\n", "\n"):
        path.write_text(text)

        assert isinstance(refused(path, BEGUN), NotAFnagentsFile)
        assert isinstance(refused(path), NotAFnagentsFile)


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("nonsense\n", "line 2"),
        ("[1]\n", "line 2"),
        ('{"at": 1}\n', "line 2"),
        ('{"at": "now", "event": {}}\n', "line 2"),
        ('{"at": true, "event": {}}\n', "line 2"),
        ('{"digest": 1, "definition": 2}\n', "line 2"),
        ('{"at": 1, "event": {"$type": "Decided", "turn": 0}}\n', "$.events[0]"),
        ('{"digest": "ab", "definition": 2}\n', "$.definitions.ab"),
    ],
)
def test_a_line_that_is_whole_and_wrong_is_named(tmp_path: Path, line: str, where: str) -> None:
    """Only the last line can be torn; anything else is a corrupt file, and who reads it is told where."""
    path = tmp_path / "run.jsonl"
    opened(path, BEGUN).close()
    path.write_text(path.read_text() + line + '{"at": 1, "event": {"$type": "Prepared", "turn": 0}}\n')

    error = refused(path, BEGUN)
    assert isinstance(error, CorruptFile)
    assert error.where.startswith(where)


@pytest.mark.parametrize("change", [{"definitions": []}, {"events": {}}, {"at": None}, {"version": 0}, {"start": 1}])
def test_a_wrong_first_line_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    """The first line is judged as a run's document is."""
    path = tmp_path / "run.jsonl"
    first = {**json.loads(first_line(1, 0, {}, {"agent": "a", "input": []}, [])), **change}
    path.write_text(json.dumps(first, separators=(",", ":")) + "\n")

    assert isinstance(refused(path), CorruptFile)


def test_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    """Whatever its lines are: only its own version knows."""
    path = tmp_path / "run.jsonl"
    path.write_text(first_line(99, 0, {}, {}, []) + "whatever\n{}\n")

    assert refused(path) == NewerVersion(99, 1)


def test_a_journal_is_no_event() -> None:
    """Where one event is asked for, a journal is something else."""
    assert isinstance(load_event(first_line(1, 0, {}, {}, [])).failure(), NotAFnagentsFile)


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    """A missing file without a run, a missing folder, a folder, and what is not a file on a disk."""
    os.mkfifo(tmp_path / "fifo")

    assert refused(tmp_path / "no.jsonl") == CannotOpen(str(tmp_path / "no.jsonl"), "No such file or directory")
    assert isinstance(refused(tmp_path / "no" / "run.jsonl", BEGUN), CannotOpen)
    assert isinstance(refused(tmp_path, BEGUN), CannotOpen)
    assert refused(tmp_path / "fifo", BEGUN).reason == "it is not a regular file"


def test_one_has_it_open_at_a_time(tmp_path: Path) -> None:
    """A second opening is refused until the first is closed; closing twice is fine."""
    path = tmp_path / "run.jsonl"
    first = opened(path, BEGUN)
    assert refused(path, BEGUN) == refused(path) == FileLocked(str(path))
    first.close()
    first.close()
    opened(path).close()


def test_a_refused_journal_is_not_left_locked(tmp_path: Path) -> None:
    """Whatever was wrong, the file is closed again."""
    path = tmp_path / "run.jsonl"
    played(path, "done")

    assert isinstance(refused(path, BEGUN), RunBehind)
    opened(path).close()


# --- runs beside files ---------------------------------------------------------------------------------


def test_decisions_made_elsewhere_are_caught_up(tmp_path: Path) -> None:
    """A run that was approved without the journal is written down when it is opened, then goes on."""
    path = tmp_path / "run.jsonl"
    paused = played(path, ToolCall("c", "pay"))
    decided = approve(paused, interruptions(paused)[0])

    ended = played(path, "done", run=decided)

    assert [line["event"]["$type"] for line in lines(path) if "event" in line] == [
        "Replied",
        "Checked",
        "Approved",
        "Returned",
        "Replied",
        "Finished",
    ]
    assert load_run(path.read_bytes()) == Success(ended)


@pytest.mark.parametrize("nested", [False, True])
def test_decisions_made_beside_an_open_journal_are_caught_up(tmp_path: Path, nested: bool) -> None:
    """The effects that follow from them were planned from a run that has them, nested or not."""
    path = tmp_path / "run.jsonl"
    asked = [ToolCall("c", "ask"), ToolCall("d", "dig"), "a bone", "done"]
    replies = asked if nested else [ToolCall("c", "pay"), "done"]
    with opened(path, BEGUN) as record:
        perform = recorded(world(*replies), record)
        paused = asyncio.run(drive(EVERYONE, record.run, perform))
        decided = approve(paused, interruptions(paused)[0])
        ended = asyncio.run(drive(EVERYONE, decided, perform))

        assert ended.outcome == Success("done")
        assert record.run == ended
    assert load_run(path.read_bytes()) == Success(ended)


def test_a_rejection_and_a_reopening_beside_an_open_journal_are_caught_up(tmp_path: Path) -> None:
    """They are seen by the next model call."""
    run = start(CLERK, "hi", max_turns=1)
    with opened(tmp_path / "run.jsonl", run) as record:
        perform = recorded(world(ToolCall("c", "pay"), "done"), record)
        paused = asyncio.run(drive(EVERYONE, run, perform))
        failed = asyncio.run(drive(EVERYONE, reject(paused, interruptions(paused)[0], "no"), perform))
        ended = asyncio.run(drive(EVERYONE, reopen(failed, max_turns=5), perform))

        assert ended.outcome == Success("done")
        assert record.run == ended
        assert record.run.max_turns == 5


def test_a_rejection_is_caught_up_before_a_handoff_that_waited_for_it(tmp_path: Path) -> None:
    """Nothing fits into a turn that was handed over, so what its other calls were told has to be there first."""
    there = given("transfer", Handoff("expert", ""))
    both = agents(Agent("clerk", "Help.", tools=[given("pay", "paid", needs_approval=True)], handoffs=[there]), EXPERT)
    with opened(tmp_path / "run.jsonl", BEGUN) as record:
        perform = recorded(performer(both, scripted([call("pay"), call("transfer")], "done")), record)
        paused = asyncio.run(drive(both, BEGUN, perform))
        ended = asyncio.run(drive(both, reject(paused, interruptions(paused)[0]), perform))

        assert [turn.agent for turn in ended.turns] == ["clerk", "expert"]
        assert record.run == ended


def test_a_reopening_is_caught_up_before_the_calls_that_it_sets_free(tmp_path: Path) -> None:
    """A tripped guardrail keeps the reply and runs none of its calls; the reopened run does."""

    async def late(context: Any, items: Any) -> Trip:
        await asyncio.sleep(0.01)
        return Trip("no")

    guarded = agents(Agent("clerk", "Help.", tools=[given("add", "3")], input_guardrails=[InputGuardrail(late)]))
    with opened(tmp_path / "run.jsonl", BEGUN) as record:
        perform = recorded(performer(guarded, scripted(call("add"), "done")), record)
        failed = asyncio.run(drive(guarded, BEGUN, perform))
        ended = asyncio.run(drive(guarded, reopen(failed), perform))

        assert ended.turns[0].calls[0].answer == Success(Output("3"))
        assert record.run == ended
    beside = tmp_path / "beside.jsonl"
    opened(beside, failed).close()
    with opened(beside, ended) as record:
        assert record.run == ended
    assert load_run(beside.read_bytes()) == Success(ended)


@pytest.mark.parametrize("later", [Decided(0), Refused(1, "not a number")])
def test_what_is_said_of_a_turn_after_a_reopening_is_no_other_run(tmp_path: Path, later: Event) -> None:
    """In canonical order it stands before the end that came before it."""
    path, over = tmp_path / "run.jsonl", Finished(1, Failure(ToolFailed("0.0", ToolRaised("KeyError"))))
    answered = Returned("0.0", Failure(ToolRaised("KeyError")), fatal=True)
    run = folded(BEGUN, replied(0, call("add")), answered, over, Reopened(1, 10))
    opened(path, run).close()
    with opened(path, folded(run, later)) as record:
        assert record.run == folded(run, later)
        with pytest.raises(UnexpectedEventError):
            record.append(later)
    assert journal(path, run) == Failure(RunBehind(str(path), 1))


def test_catching_up_may_be_asked_for(tmp_path: Path) -> None:
    """`catch_up` writes decisions down at once."""
    path = tmp_path / "run.jsonl"
    paused = played(path, ToolCall("c", "pay"))
    with opened(path) as record:
        decided = approve(paused, interruptions(paused)[0])
        record.catch_up(decided)
        record.catch_up(decided)
        assert record.run == decided
    assert load_run(path.read_bytes()) == Success(decided)


def test_a_run_behind_its_file_is_refused(tmp_path: Path) -> None:
    """Going on with it would do again what is recorded."""
    path = tmp_path / "run.jsonl"
    played(path, call("add"), "done")

    assert refused(path, BEGUN) == RunBehind(str(path), 4)
    assert refused(path, folded(BEGUN, replied(0, call("add"), sent=Sent("x")))).reason == "it has another model-0"


def test_a_run_behind_that_also_has_more_is_refused(tmp_path: Path) -> None:
    """`lacking` says that going on from the file alone would lose something."""
    path = tmp_path / "run.jsonl"
    paused = played(path, [call("pay", "a"), call("add", "b")])
    gone_on = [event for event in events(paused) if getattr(event, "place", "") != "0.1"]
    behind = folded(BEGUN, *gone_on)
    decided = approve(behind, interruptions(behind)[0])

    assert refused(path, decided) == RunBehind(str(path), 1, 1)
    assert asyncio.run(drive_recorded(EVERYONE, decided, world(), path)) == Failure(RunBehind(str(path), 1, 1))


@pytest.mark.parametrize(
    "other",
    [start("clerk", "ho"), start("expert", "hi"), start("clerk", "hi", max_turns=3), start(CLERK, "hi", id="x")],
)
def test_another_run_is_refused(tmp_path: Path, other: Run) -> None:
    """Another input, agent, id or limit makes another run."""
    path = tmp_path / "run.jsonl"
    opened(path, BEGUN).close()

    assert isinstance(refused(path, other), RunDiffers)


# --- writing -------------------------------------------------------------------------------------------


def test_an_event_that_does_not_fit_is_not_written(tmp_path: Path) -> None:
    """What is written folds; a misfit is the caller's mistake."""
    path = tmp_path / "run.jsonl"
    with opened(path, BEGUN) as record:
        before = path.read_bytes()
        with pytest.raises(UnexpectedEventError):
            record.append(replied(3, "done"))
        assert path.read_bytes() == before
        assert record.run == BEGUN


def test_effects_of_another_run_are_refused_before_they_are_performed(tmp_path: Path) -> None:
    """A journal of one run cannot record another, nor a nested run that it has never heard of."""
    performed: list[object] = []

    async def perform(effect: Any) -> None:
        performed.append(effect)

    later = folded(BEGUN, replied(0, call("ask")))
    nested = asyncio.run(drive(EVERYONE, later, world(ToolCall("d", "dig"))))
    with opened(tmp_path / "run.jsonl", BEGUN) as record:
        for run in (start(CLERK, "ho"), folded(start(CLERK, "ho"), replied(0, call("add"))), nested):
            effects = plan(EVERYONE, run)
            with pytest.raises(UnexpectedEventError, match="of another run"):
                asyncio.run(recorded(perform, record)(effects[0]))  # type: ignore[arg-type]
    assert performed == []


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """No file may grow beyond this many bytes: writing stops in the middle of a line, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, was)


def test_a_full_disk_ends_the_drive_and_leaves_the_file_whole(tmp_path: Path) -> None:
    """Neither run nor file has the event; once there is room, the same journal writes it with all it needs."""
    path = tmp_path / "run.jsonl"
    event = replied(0, "done", sent=Sent("Be brief. " * 20))
    with opened(path, BEGUN) as record:
        sound = path.read_bytes()
        for more in (10, 250):
            with at_most(len(sound) + more), pytest.raises(OSError, match="too large"):
                record.append(event)
            assert record.run == BEGUN
            assert load_run(path.read_bytes()) == Success(BEGUN)
        record.append(replied(0, "done"))
        assert load_run(path.read_bytes()) == Success(record.run)
    path.write_bytes(sound)
    with opened(path) as record:
        with at_most(len(sound) + 400), pytest.raises(OSError, match="too large"):
            record.append(event)
        record.append(event)
        assert load_run(path.read_bytes()) == Success(record.run)


def test_a_disk_without_room_for_the_first_line_cannot_be_opened(tmp_path: Path) -> None:
    """That is the world's failure, and a value."""
    path = tmp_path / "run.jsonl"
    with at_most(20):
        assert journal(path, BEGUN) == Failure(CannotOpen(str(path), "File too large"))
    with opened(path, BEGUN) as record:
        assert record.run == BEGUN


def test_with_fsync_the_same_is_written(tmp_path: Path) -> None:
    """The option changes what survives a power cut, not what is written."""
    run = asyncio.run(drive_recorded(EVERYONE, BEGUN, world(call("add"), "done"), tmp_path / "a", fsync=True)).unwrap()
    other = played(tmp_path / "b", call("add"), "done")

    assert run == other
    assert load_run((tmp_path / "a").read_bytes()) == Success(run)


# --- driving -------------------------------------------------------------------------------------------


def test_the_same_program_started_again_goes_on(tmp_path: Path) -> None:
    """What is recorded is not done again: the second process needs the last reply only."""
    path, ran = tmp_path / "run.jsonl", list[str]()

    def add(context: Any, text: str) -> str:
        ran.append("add")
        return "3"

    tools = [made("add", add), given("pay", "paid")]
    alone = agents(Agent("clerk", "Help.", tools=tools))

    async def broken(request: Any, emit: Any) -> Any:
        if request.turn == 0:
            return await scripted(call("add"))(request, emit)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(drive_recorded(alone, BEGUN, performer(alone, broken), path))
    ended = asyncio.run(drive_recorded(alone, BEGUN, performer(alone, scripted("done")), path)).unwrap()
    again = asyncio.run(drive_recorded(alone, BEGUN, performer(alone, scripted()), path)).unwrap()

    assert ended.outcome == Success("done")
    assert again == ended
    assert ran == ["add"]


def test_a_journal_that_does_not_open_is_a_failure(tmp_path: Path) -> None:
    """Nothing is driven then."""
    assert isinstance(asyncio.run(drive_recorded(EVERYONE, BEGUN, world(), tmp_path)).failure(), CannotOpen)

"""Laws 2 and 8 over journals: a run that was cut off anywhere goes on as if it had not been, and nothing recorded is
done again; and a recorded run, played again from its events alone, is the run that was live."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import journaled
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from strategies import runs
from worlds import Stage, World, hidden, worlds

from fnagents import (
    Effect,
    Event,
    Reopened,
    Run,
    Success,
    approve,
    drive,
    events,
    fold,
    interruptions,
    key,
    load_run,
    lockstep,
    reject,
)
from fnagents.beginnings import beginning
from fnagents.journals import Journal, RunBehind, journal
from fnagents.matching import compared, keyed
from fnagents.testing import run_virtual
from fnagents.wrap import recorded, replayed


def examples(of_ci: float) -> settings:
    """A share of the profile's examples: each plays a world many times."""
    profile = settings.default
    assert profile is not None
    return settings(max_examples=max(5, int(profile.max_examples * of_ci)))


class KilledError(Exception):
    """The process ends here."""


class Life:
    """One life of a process: it notes what it performs, and dies after `events` more events (-1: never)."""

    def __init__(self, record: Journal, events: int = -1) -> None:
        self.record = record
        self.left = events
        self.performed: list[str] = []

    def reach(self, effect: Effect) -> None:
        """As the journal."""
        self.record.reach(effect)
        self.performed.append(key(effect))

    def append(self, event: Event) -> None:
        """As the journal, and the end after the last of the events."""
        self.record.append(event)
        self.left -= 1
        if self.left == 0:
            raise KilledError

    async def lived(self, stage: Stage, run: Run) -> Run:
        """The run to its very end, decisions made outside of the drive included."""
        while True:
            run = await drive(stage.agents, run, recorded(stage.slowly, self))
            if run.outcome is None:
                run = decided(run)
            elif (again := stage.reopened(run)) is not None:
                run = again
            else:
                return run


def decided(run: Run) -> Run:
    """The run with each question answered by its own key, so that it matters not which are answered together."""
    for ask in interruptions(run):
        run = approve(run, ask) if crc32(key(ask).encode()) % 3 else reject(run, ask, "no")
    return run


@contextmanager
def new_file() -> Iterator[Path]:
    """Where a journal may begin."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "run.jsonl"


def opened(path: Path, run: Run) -> Journal:
    """The journal of the run, begun or gone on with."""
    made = journal(path, run, clock=_clock)
    if not isinstance(made, Success):
        assert isinstance(made.failure(), RunBehind)
        made = journal(path, clock=_clock)
    return made.unwrap()


def _clock() -> float:
    """The same bytes each time."""
    return 1767225600.0


def live(world: World, path: Path) -> Run:
    """The world played once, with a journal."""
    with opened(path, world.start) as record:
        return run_virtual(Life(record).lived(world.stage(), record.run))


def gone_on(world: World, path: Path, events_more: int = -1) -> Run | None:
    """The world played on from its journal, to its end or for so many events; nothing that is in there is done again."""
    with opened(path, world.start) as record:
        there = keyed(events(record.run)).keys()
        life = Life(record, events_more)
        try:
            run = run_virtual(life.lived(world.stage(), record.run))
        except KilledError:
            run = None
        assert not there & set(life.performed), "what was recorded was done again"
        assert len(life.performed) == len(set(life.performed)), "an effect was performed twice"
    return run


def assert_recorded(path: Path, run: Run) -> None:
    """The file has this run, each event of it in one line."""
    text = path.read_bytes()
    loaded = load_run(text).unwrap()
    assert loaded == run
    assert list(hidden(loaded)) == list(hidden(run))
    assert text.count(b'\n{"at":') == len(events(run))


# --- law 2 -----------------------------------------------------------------------------------------------


@examples(0.3)
@given(worlds(), st.lists(st.integers(0, 2**16), min_size=2, max_size=4))
def test_cut_anywhere(world: World, cuts: list[int]) -> None:
    """Law 2: cut after each event, and at any byte, the file is opened, and the run goes on to the same end."""
    with new_file() as path:
        run = live(world, path)
        assert_recorded(path, run)
        text = path.read_bytes()
        ends = [index + 1 for index, byte in enumerate(text) if byte == ord("\n")]
        chosen = [cut % (len(text) + 1) for cut in cuts]
        # All ends in short files, some in long ones.
        for cut in (*ends[:: len(ends) // 12 + 1], *chosen):
            path.write_bytes(text[:cut])
            if cut >= ends[0]:
                there = compared(load_run(text[:cut]).unwrap(), run)
                assert (there.ahead, there.conflict) == (0, "")
                # Whoever went on without the journal may come back to it.
                with journal(path, run).unwrap() as record:
                    assert record.run == run
                assert_recorded(path, run)
                path.write_bytes(text[:cut])
            assert gone_on(world, path) == run
            assert_recorded(path, run)


@examples(0.3)
@given(
    worlds(),
    st.lists(st.integers(1, 4), min_size=1, max_size=8),
    st.binary(max_size=9).filter(lambda t: b"\n" not in t),
)
def test_many_lives(world: World, lives: list[int], torn: bytes) -> None:
    """Law 2 again and again: each life records some events and dies in the middle of a line."""
    with new_file() as one, new_file() as other:
        run = live(world, one)
        for count in lives:
            gone_on(world, other, count)
            with other.open("ab") as file:
                file.write(b'{"at":' + torn)
        assert gone_on(world, other) == run
        assert_recorded(other, run)


@given(runs(), st.data())
def test_any_run_stands_in_a_journal(run: Run, data: st.DataObject) -> None:
    """Law 9 for journals: begun anywhere, each later event a line, hostile text or not: it is loaded as it was."""
    whole = events(run)
    split = data.draw(st.integers(0, len(whole)))
    begun = fold(beginning(run).run, whole[:split]).unwrap()
    with new_file() as path:
        with opened(path, begun) as record:
            for event in whole[split:]:
                record.append(event)
            assert record.run == run
        assert load_run(path.read_bytes()) == load_run(path.read_bytes().decode()) == Success(run)
        with opened(path, run) as record:
            assert record.run == run


@given(runs(), st.data())
def test_a_run_is_caught_up_with(run: Run, data: st.DataObject) -> None:
    """Opening a journal with a run that is further writes what is missing, and nothing when it is not."""
    whole = events(run)
    split = data.draw(st.integers(0, len(whole)))
    begun = fold(beginning(run).run, whole[:split]).unwrap()
    with new_file() as path:
        opened(path, begun).close()
        with journal(path, run).unwrap() as record:
            assert record.run == run
        text = path.read_bytes()
        assert load_run(text) == Success(run)
        journal(path, run).unwrap().close()
        assert path.read_bytes() == text
        if split < len(whole):
            assert journal(path, begun).failure() == RunBehind(str(path), len(whole) - split)


# --- law 2, with real processes ---------------------------------------------------------------------------


def killed(path: Path, ledger: Path, moment: str) -> bool:
    """Start the program and kill it at that moment; False if it came to its end before."""
    command = [sys.executable, journaled.__file__, str(path), str(ledger), moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        waits = process.stdout.readline() == "waiting\n"
        if waits:
            process.kill()
        assert process.wait(timeout=60) == (-signal.SIGKILL if waits else 0)
    return waits


@pytest.mark.parametrize("moment", ["recorded", "working"])
def test_killed_at_every_event(tmp_path: Path, moment: str) -> None:
    """A process that is killed with SIGKILL and started again comes to the same run.

    Killed after each event in turn, a process each: every side effect happens once.  Killed after each side effect,
    before that is recorded: it happens once more, and no other does.
    """
    whole = journaled.program(tmp_path / "whole.jsonl", tmp_path / "whole.txt")
    path, ledger = tmp_path / "run.jsonl", tmp_path / "ledger.txt"
    kills = 0
    while killed(path, ledger, moment):
        kills += 1
    effects = Counter(ledger.read_text().split())

    assert whole.outcome == Success("done")
    assert_recorded(path, whole)
    assert effects.keys() == set((tmp_path / "whole.txt").read_text().split())
    if moment == "recorded":
        assert kills == len(events(whole))
        assert set(effects.values()) == {1}
    else:
        assert kills == len(effects)
        assert set(effects.values()) == {2}


# --- law 8 -----------------------------------------------------------------------------------------------


async def _again(world: World, perform: Any, driver: Any) -> Run:
    stage, run = world.stage(), world.start
    while True:
        run = cast("Run", await driver(stage.agents, run, perform))
        again = stage.reopened(run)
        if again is None:
            return run
        run = again


@examples(0.5)
@given(worlds())
def test_replay_is_live(world: World) -> None:
    """Law 8: the recorded events, given to today's agents, make the live run again, whoever drives."""
    with new_file() as path:
        run = live(world, path)
        loaded = load_run(path.read_bytes()).unwrap()
    for driver in (drive, lockstep):
        again = run_virtual(_again(world, replayed(loaded), driver))
        assert again == run
        assert list(hidden(again)) == list(hidden(run))


# --- the worlds reach what these laws are for --------------------------------------------------------------


def _reached(run: Run, name: str) -> bool:
    whole = events(run)
    return {
        "nested": any(len(event.path) > 1 for event in whole),
        "reopened": any(isinstance(event, Reopened) for event in whole),
        "long": len(whole) > 40,
    }[name]


@pytest.mark.parametrize("name", ["nested", "reopened", "long"])
def test_worlds_go_deep_enough(name: str) -> None:
    """Nested twice, reopened, dozens of events."""

    def reached(world: World) -> bool:
        with new_file() as path:
            return _reached(live(world, path), name)

    find(worlds(), reached, settings=settings(max_examples=300, phases=(Phase.generate,)))


def test_decisions_are_made_beside_journals() -> None:
    """Some worlds pause, and what is decided then is caught up with by the next effect."""

    def reached(world: World) -> bool:
        with new_file() as path, opened(path, world.start) as record:
            paused = run_virtual(drive(world.stage().agents, record.run, recorded(world.stage().slowly, record)))
            return len(interruptions(paused)) > 1

    find(worlds(), reached, settings=settings(max_examples=300, phases=(Phase.generate,)))

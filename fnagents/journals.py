"""Journals: a run in a file that grows by a line an event, and that a killed process leaves whole.

An event is in the file before the run goes on, so that whatever is in it is not done again:

    match journal("run.jsonl", start(agent, "hi")):
        case Success(record):
            with record:
                run = await drive(agents, record.run, recorded(performer(agents, client), record))

`drive_recorded` is that, with going on where the file ends.  lines.py has the format; `load_run` reads it.

Written lines are handed to the operating system at once: they outlive the process, and with `fsync` a power cut.
One process at a time has a journal open (linefiles.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from attrs import define, evolve, frozen

from fnagents.agent import Agents
from fnagents.beginnings import beginning
from fnagents.codec import VERSIONS, LoadError, NotAFnagentsFile, load_run
from fnagents.converting import converter
from fnagents.documents import Writer
from fnagents.driving import drive
from fnagents.errors import UnexpectedEventError
from fnagents.folding import fold, step
from fnagents.linefiles import CannotOpen, FileLocked, LineFile, open_lines
from fnagents.lines import assembled, definition_line, event_line, first_line, is_journal, is_unbegun, whole
from fnagents.matching import compared, leads_to, nested
from fnagents.outcome import Failure, Outcome, Success
from fnagents.perform import Perform
from fnagents.protocol import Effect, Event
from fnagents.runs import Run
from fnagents.unfolding import events
from fnagents.wrap import recorded

__all__ = ["Journal", "JournalError", "RunBehind", "RunDiffers", "drive_recorded", "journal"]

# --- why a journal could not be opened -----------------------------------------------------------------


@frozen
class RunBehind:
    """The file has `ahead` events that the run lacks; the run has `lacking` that the file lacks."""

    path: str
    ahead: int
    lacking: int = 0

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"{self.path}: the journal has {self.ahead} events that the run lacks; open it without a run to go on"


@frozen
class RunDiffers:
    """The file is of another run."""

    path: str
    reason: str

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"{self.path}: the journal is of another run: {self.reason}"


#: Why there is no journal: of what stands in the file, or of the file itself.
JournalError: TypeAlias = LoadError | CannotOpen | FileLocked | RunBehind | RunDiffers


# --- an open journal -----------------------------------------------------------------------------------


@define(eq=False)
class Journal:
    """A run and the open file that has all of its events; `journal` makes one.

    `run` is the run as it is recorded.  A context manager; closing it twice is fine.
    """

    run: Run
    _file: LineFile
    _clock: Callable[[], float]
    _writer: Writer
    #: how many of the writer's definitions are in the file
    _defined: int

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    def append(self, event: Event) -> None:
        """Fold the event into `run` and write it; when this returns, it is in the file.

        Raises `UnexpectedEventError` if the run does not wait for it, OSError if it cannot be written; either way
        neither the run nor the file has it.
        """
        after = step(self.run, event)
        data = self._writer.event(event)
        definitions = self._writer.definitions
        new = islice(definitions.items(), self._defined, None) if len(definitions) > self._defined else ()
        self._file.write("".join((*(definition_line(*one) for one in new), event_line(self._clock(), data))))
        self._defined = len(definitions)
        self.run = after

    def catch_up(self, run: Run, path: tuple[str, ...] = ()) -> None:
        """Append what this run (or, with a path, this nested run) has and the file lacks.

        Raises `UnexpectedEventError` if the file is of another run.
        """
        mine = nested(self.run, path)
        found = None if mine is None else compared(mine, run)
        if found is None or found.conflict:
            why = found.conflict if found is not None else "it has no nested run there"
            raise UnexpectedEventError(f"the journal {self.path} is of another run: {why}")
        for event in found.lacking:
            self.append(evolve(event, path=(*path, *event.path)) if path else event)

    def reach(self, effect: Effect) -> None:
        """Append what the run that this effect was planned from has and the file lacks: decisions made elsewhere."""
        if not leads_to(self.run, effect):
            self.catch_up(effect.seen, effect.path)

    def close(self) -> None:
        """Close the file; others may open it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


# --- opening one ---------------------------------------------------------------------------------------


def journal(
    path: str | os.PathLike[str],
    run: Run | None = None,
    *,
    fsync: bool = False,
    clock: Callable[[], float] = time.time,
) -> Outcome[Journal, JournalError]:
    """Open a journal, or begin one with `run`; a torn last line is cut off.

    Without a run the file must be there, and `Journal.run` is what it holds.  With one, a missing or empty file is
    begun, and in one that is there the events are appended that the run has and the file lacks: decisions made
    elsewhere.  A file with events that the run lacks is refused as it is (`RunBehind`), and so is one of another run.

    With `fsync` each line is on the disk when `append` returns, and not only with the operating system; that takes
    milliseconds, in which the event loop waits.  `clock` gives the seconds since 1970 that stand in the lines.

    >>> import tempfile
    >>> from fnagents import Prepared, load_run, start
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with journal(folder + "/run.jsonl", start("greeter", "hi")).unwrap() as record:
    ...         record.append(Prepared(0, "Greet."))
    ...     load_run(record.path.read_bytes()).unwrap() == record.run
    True
    """
    opened = open_lines(Path(path), new=run is not None, fsync=fsync)
    if isinstance(opened, Failure):
        return opened
    with ExitStack() as stack:
        file = stack.enter_context(opened.unwrap())
        try:
            made = _made(file, run, clock)
        except OSError as error:
            return Failure(CannotOpen(str(path), error.strerror or str(error)))
        if isinstance(made, Success):
            # From here on the journal closes it.
            stack.pop_all()
        return made


def _made(file: LineFile, run: Run | None, clock: Callable[[], float]) -> Outcome[Journal, JournalError]:
    text = file.read()
    if run is not None and is_unbegun(text):
        return Success(_begun(file, run, clock))
    # A process goes on with its own file, however large it has become.
    loaded = load_run(text, largest=len(text))
    if isinstance(loaded, Failure):
        return loaded
    if not is_journal(text):
        return Failure(NotAFnagentsFile("it is a saved run, not a journal"))
    found = _continued(file, text, loaded.unwrap(), clock)
    return Success(found) if run is None else _joined(found, run)


def _begun(file: LineFile, run: Run, clock: Callable[[], float]) -> Journal:
    writer = Writer()
    recorded = [writer.event(event) for event in events(run)]
    start = converter().unstructure(beginning(run))
    file.keep(0)
    file.write(first_line(max(VERSIONS), clock(), writer.definitions, start, recorded))
    file.sync_name()
    return Journal(run, file, clock, writer, len(writer.definitions))


def _continued(file: LineFile, text: bytes, held: Run, clock: Callable[[], float]) -> Journal:
    kept = text[: whole(text)]
    definitions = assembled(kept.decode(), "", max(VERSIONS))["definitions"]
    file.keep(len(kept))
    if not kept.endswith(b"\n"):
        file.write("\n")
    return Journal(held, file, clock, Writer(definitions), len(definitions))


def _joined(record: Journal, run: Run) -> Outcome[Journal, JournalError]:
    """The journal after the run's events, if it was of this run and not further."""
    path = str(record.path)
    found = compared(record.run, run)
    if found.conflict:
        return Failure(RunDiffers(path, found.conflict))
    if not found.ahead and fold(record.run, found.lacking) != Success(run):
        return Failure(RunDiffers(path, "it began with another limit of turns, or in another conversation"))
    if found.ahead:
        return Failure(RunBehind(path, found.ahead, len(found.lacking)))
    for event in found.lacking:
        record.append(event)
    # Equal, and one: comparing the two later takes no time.
    record.run = run
    return Success(record)


# --- driving with one ----------------------------------------------------------------------------------


async def drive_recorded(
    agents: Agents, run: Run, perform: Perform, path: str | os.PathLike[str], *, fsync: bool = False
) -> Outcome[Run, JournalError]:
    """`drive`, with a journal: it begins with `run`, or goes on from what the file has of it.

    So the same program, started again after it was killed, goes on where it was; nothing that is recorded is done
    again.  A call that was under way is: it left no event.  What the file says of the run's limit of turns holds.
    """
    opened = journal(path, run, fsync=fsync)
    if isinstance(opened, Failure) and isinstance(behind := opened.failure(), RunBehind) and not behind.lacking:
        opened = journal(path, fsync=fsync)
    if isinstance(opened, Failure):
        return opened
    with opened.unwrap() as record:
        return Success(await drive(agents, record.run, recorded(perform, record)))

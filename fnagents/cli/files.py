"""Files that commands are given."""

from __future__ import annotations

from pathlib import Path

from fnagents.cli.reports import Unusable
from fnagents.cli.texts import line
from fnagents.codec import LARGEST, load_run
from fnagents.outcome import Failure, Outcome, Success
from fnagents.runs import Run

__all__ = ["key_in", "loaded", "read", "written"]


def read(path: str) -> Outcome[bytes, Unusable]:
    """What is in the file, as far as anything that reads it would go."""
    try:
        with Path(path).open("rb") as file:
            return Success(file.read(LARGEST + 1))
    except OSError as error:
        return _refused(path, error)


def written(path: str, text: str) -> Outcome[None, Unusable]:
    """Write a new file; one that is there is left alone."""
    try:
        with Path(path).open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        return _refused(path, error)
    return Success(None)


def _refused(path: str, error: OSError) -> Failure[Unusable]:
    return Failure(Unusable(f"{line(path)}: {error.strerror}"))


def loaded(path: str) -> Outcome[Run, Unusable]:
    """The run in the file, a document or a journal."""
    given = read(path)
    if isinstance(given, Failure):
        return given
    run = load_run(given.unwrap())
    return Failure(Unusable(f"{line(path)}: {run.failure().problem}")) if isinstance(run, Failure) else run


def key_in(path: str | None) -> Outcome[bytes | None, Unusable]:
    """The key in the file, without the line's end that editors add; None without a file."""
    if path is None:
        return Success(None)
    given = read(path)
    if isinstance(given, Failure):
        return given
    key = given.unwrap().rstrip(b"\r\n")
    return Success(key) if key else Failure(Unusable(f"{line(path)}: there is no key in it"))

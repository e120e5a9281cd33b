"""A file of lines that one process at a time appends to, and that a killed process leaves with whole lines.

What is written is handed to the operating system at once, so it outlives the process; with `fsync` it is on the disk,
and outlives a power cut.  The lock is the kernel's (flock): it goes with the process that held it, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import stat
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import define, frozen

from fnagents.outcome import Failure, Outcome, Success

__all__ = ["CannotOpen", "FileLocked", "LineFile", "open_lines"]


@frozen
class CannotOpen:
    """The file cannot be opened, read or written."""

    path: str
    reason: str

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"{self.path}: {self.reason}"


@frozen
class FileLocked:
    """Somebody has it open."""

    path: str

    @property
    def problem(self) -> str:
        """One line for a person."""
        return f"{self.path}: another process (or this one) has it open"


@define(eq=False)
class LineFile:
    """An open file, locked; `end` is its length in bytes as far as it was written whole.  A context manager."""

    path: Path
    _file: FileIO
    _fsync: bool
    _end: int = 0

    def read(self) -> bytes:
        """All that is in the file."""
        self._file.seek(0)
        return self._file.readall()

    def keep(self, size: int) -> None:
        """Cut the file off after this many bytes, and write there."""
        self._file.truncate(size)
        self._file.seek(size)
        self._end = size

    def write(self, text: str) -> None:
        """Append the text.  Raises OSError if that fails, and then the next one is written in its place."""
        if self._file.tell() != self._end:
            self.keep(self._end)
        data = text.encode()
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        if self._fsync:
            os.fsync(self._file.fileno())
        self._end += len(data)

    def sync_name(self) -> None:
        """With `fsync`, put a new file's name on the disk, too: without it the file is not there."""
        if self._fsync:
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Close the file, which gives the lock up; twice is fine."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def open_lines(path: Path, *, new: bool, fsync: bool = False) -> Outcome[LineFile, CannotOpen | FileLocked]:
    """The file, opened and locked; with `new` it is made if it is not there."""
    flags = os.O_CREAT if new else 0
    try:
        file = FileIO(path, "r+", opener=lambda name, how: os.open(name, how | flags, 0o666))
    except OSError as error:
        return Failure(CannotOpen(str(path), error.strerror or str(error)))
    refused = _refused(path, file)
    if refused is not None:
        file.close()
        return Failure(refused)
    return Success(LineFile(path, file, fsync))


def _refused(path: Path, file: FileIO) -> CannotOpen | FileLocked | None:
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return CannotOpen(str(path), "it is not a regular file")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return FileLocked(str(path))
    return None

"""Streams that are written to until their reader goes away, and in whatever encoding they have."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import StringIO
from typing import Any, TextIO

from attrs import define, field

__all__ = ["Sink"]


def _stream(given: TextIO | None) -> TextIO:
    return StringIO() if given is None else given


@define(eq=False)
class Sink:
    """A text stream, and anything else that the stream is; None stands for one that the process does not have.

    What the encoding lacks is escaped.  When the reader has gone away nothing is written any more, which is no fault;
    any other failure is kept as `problem`.
    """

    stream: TextIO = field(converter=_stream)
    problem: OSError | None = None
    _muted: bool = False

    def write(self, text: str) -> int:
        """Write the text, or nothing."""
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        self._try(lambda: self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding)))
        return len(text)

    def flush(self) -> None:
        """Write what is in the buffer."""
        self._try(self.stream.flush)

    def _try(self, action: Callable[[], object]) -> None:
        if self._muted:
            return
        try:
            action()
        except OSError as error:
            self._muted = True
            self.problem = None if isinstance(error, BrokenPipeError) else error
            # What is left in the buffer would fail again when the interpreter ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

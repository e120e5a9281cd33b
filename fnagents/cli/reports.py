"""What a command came to, as a value; and why it could not be done."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

__all__ = ["FAILED", "INTERRUPTED", "OK", "PAUSED", "Report", "UNUSABLE", "Unusable", "unusable"]

OK, FAILED, UNUSABLE, PAUSED, INTERRUPTED = 0, 1, 2, 3, 130


@frozen
class Unusable:
    """Something that was given cannot be used, in one line."""

    problem: str


@frozen
class Report:
    """The exit code; `data` for machines, `text` for people, on stdout; `problem`, one line, on stderr."""

    code: int
    data: dict[str, Any] = field(factory=dict[str, Any])
    text: str = ""
    problem: str = ""


def unusable(why: Unusable | str) -> Report:
    """The report that there is nothing to report on."""
    problem = why if isinstance(why, str) else why.problem
    return Report(UNUSABLE, {"error": problem}, problem=problem)

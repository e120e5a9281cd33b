"""Text of models, tools and files for a terminal: what would steer it, or could not be seen, is escaped."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from traceback import extract_tb

from fnagents.prose import shortened

__all__ = ["exact", "fault", "line", "parted", "safe"]

#: Controls, invisible formatting (the direction of text, tags), halves of characters, separators of lines.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: What belongs to running text: line ends, tabs, and the joiners of some scripts and emoji.
_OF_TEXT = "\n\t\u200c\u200d"
#: How much of two texts that differ is shown before the difference.
_BEFORE = 40


def safe(text: str) -> str:
    r"""Running text that a terminal shows and does not obey.

    >>> print(safe("\x1b[31mred\nnext"))
    \x1b[31mred
    next
    """
    return _escaped(text, _OF_TEXT)


def exact(text: str) -> str:
    r"""Text of which nothing is hidden, in one line.

    >>> print(exact("rm\u200b -r\n"))
    rm\u200b -r\n
    """
    return _escaped(text, "")


def line(text: str, limit: int = 500) -> str:
    """As `exact`, and no longer than this."""
    return shortened(exact(shortened(text, 2 * limit)), limit)


def _escaped(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        one.encode("unicode_escape").decode() if unicodedata.category(one) in _HIDDEN and one not in kept else one
        for one in text
    )


def parted(one: str, other: str, limit: int = 500) -> tuple[str, str]:
    """Two texts that differ, each a line that begins near the difference.

    >>> parted("x" * 100 + "a", "x" * 100 + "b", 50)
    ('... xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxa', '... xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxb')
    """
    same = next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    begin = max(0, same - _BEFORE)
    lead = "... " if begin else ""
    return lead + line(one[begin:], limit), lead + line(other[begin:], limit)


def fault(error: BaseException) -> str:
    """An exception in one line, with the place where it was raised instead of a traceback."""
    frames = extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) + at

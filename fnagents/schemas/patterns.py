"""How long a text may be matched against a schema's pattern, found before it is.

Python's `re` backtracks and cannot be stopped, so a pattern is looked at first.  A loop that can read one text in
two ways (`^(a+)+$`) takes a time that doubles with every character: such a pattern is refused.  Loops that can
share a text out between them (`^.*,.*$`) take a power of its length: such a pattern is matched against texts that
keep this in bounds.  Any other takes a time that grows as the text does.

What this does not see: that a back reference or an assertion makes a pattern slower than its parts, and how often a
pattern can be read in several ways without any loop (`a?a?a?...`, `(?:(?:a|b|[ab]){1,3}){9}`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from fnagents.schemas.ambiguity import doubles, power
from fnagents.schemas.data import is_array, is_object
from fnagents.schemas.positions import TooLargeError, positions

__all__ = ["UNBOUNDED", "doubling", "longest", "matching", "patterns_in"]

#: The bound of a pattern that takes a time that grows as the text does.
UNBOUNDED = sys.maxsize
#: About as many steps as `re` does in a second.
_STEPS = 10**8
_DATA = ("const", "enum", "default", "examples")


@lru_cache(maxsize=1024)
def longest(pattern: str) -> int:
    """How many characters a text may have to be matched against it: 0 if no number of them is safe.

    >>> longest("^[a-z]+$") == UNBOUNDED, longest("^.*,.*$"), longest("^(a+)+$")
    (True, 10000, 0)
    """
    try:
        found = positions(pattern)
        if doubles(found):
            return 0
        degree = power(found)
    except TooLargeError:
        return 0
    return int(_STEPS ** (1 / degree) + 0.5) if degree > 1 else UNBOUNDED


def matching(pattern: str) -> Callable[[str], bool]:
    """Whether the pattern is found in a text: a function of the text, False for one that is too long for it.

    Raises `ValueError` for a pattern that is none, or that no text is short enough for.

    >>> matching("^a+$")("aaa")
    True
    """
    search, most = re.compile(pattern).search, longest(pattern)
    if most == 0:
        raise ValueError(doubling(pattern))
    return lambda text: len(text) <= most and search(text) is not None


def doubling(pattern: str) -> str:
    """What is wrong with a pattern that no text is short enough for."""
    return (
        f"the pattern {pattern!r:.200} may take a time that doubles with every character, as a loop in it can read one "
        "text in two ways (or it is too large to tell); write it without a loop in a loop"
    )


def patterns_in(schema: Any) -> Iterator[str]:
    """Every pattern that stands in a schema.

    >>> list(patterns_in({"properties": {"a": {"pattern": "^x"}}, "patternProperties": {"^y": {}}, "const": {}}))
    ['^y', '^x']
    """
    waiting: list[Any] = [schema]
    while waiting:
        one = waiting.pop()
        if is_array(one):
            waiting.extend(one)
        elif is_object(one):
            yield from _own(one)
            waiting.extend(value for keyword, value in one.items() if keyword not in _DATA)


def _own(schema: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(schema.get("pattern"), str):
        yield schema["pattern"]
    if is_object(schema.get("patternProperties")):
        yield from schema["patternProperties"]

"""A regular expression as the graph of its positions: which characters each reads, which may come next.

The graph (Glushkov's) has one position for each place in the pattern that reads a character; a way that can be gone
in two manners counts twice, since `re` tries both.  It is made of what Python's own parser gives.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from attrs import Factory, frozen

__all__ = ["Graph", "TooLargeError", "positions"]

#: Larger graphs are not looked at.
_MOST = 400
#: A body that is repeated up to so many times is written out; more often is a loop.
_COPIES = 5
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
#: One character for each kind of character that no pattern names.
_SAMPLE = {*map(chr, range(128)), "\xa0", "é", "Ω", "\u0663", "中", "\U0001f600"}
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdecimal,
    "SPACE": str.isspace,
    "WORD": lambda one: one.isalnum() or one == "_",
}

_Ways: TypeAlias = "dict[int, int]"


class TooLargeError(Exception):
    """The pattern is too large to be looked at."""


@frozen
class Graph:
    """Positions: what each reads, as bits, and in how many ways (1 or 2, which is "many") another comes next."""

    reads: list[int] = Factory(list[int])
    after: list[_Ways] = Factory(list[_Ways])
    #: the positions after which the whole may have matched, so that nothing can fail any more
    final: set[int] = Factory(set[int])


@frozen
class _Part:
    """A piece of a pattern: where it begins, where it ends, in how many ways it is empty."""

    first: _Ways
    last: _Ways
    empty: int


_NOTHING = _Part({}, {}, 1)


def positions(pattern: str) -> Graph:
    """The graph of a pattern as `search` matches it: before one that is not anchored, anything is read.

    Without any loop there is nothing to look at, and the graph is empty.

    >>> positions("^ab*").after
    [{1: 1}, {1: 1}]
    """
    parsed = _parsed(pattern)
    if not _looping(parsed):
        return Graph()
    maker = _Maker(pattern, parsed)
    anchored = bool(parsed) and _name(parsed[0]) == "AT" and "BEGINNING" in str(parsed[0][1]) and not maker.lines
    whole = maker.sequence(parsed)
    if not anchored:
        whole = maker.then(maker.loop(maker.reading(maker.all)), whole)
    if not any(_name(node).startswith(("AT", "ASSERT")) for node in parsed[1 if anchored else 0 :]):
        maker.graph.final.update(whole.last)
    return maker.graph


def _parsed(pattern: str) -> Any:
    # The parser has no public name; what it gives has been the same since `re` became a package (3.11).
    return import_module("re._parser").parse(pattern)


def _name(node: Any) -> str:
    return str(node[0])


def _looping(node: Any) -> bool:
    """Whether a body is repeated anywhere, beyond being optional."""
    if _is_node(node, *_REPEATS) and node[1][1] > 1:
        return True
    return any(_looping(each) for each in _nodes(node))


def _nodes(node: Any) -> Iterable[Any]:
    return [each for each in node if isinstance(each, tuple | list) or hasattr(each, "getwidth")]


def _ways(*maps: tuple[_Ways, int]) -> _Ways:
    sums: _Ways = {}
    for ways, times in maps:
        for position, count in ways.items():
            if times:
                sums[position] = min(2, sums.get(position, 0) + count * times)
    return sums


class _Maker:
    """Makes the graph of one pattern, node by node."""

    def __init__(self, pattern: str, parsed: Any) -> None:
        self.graph = Graph()
        self.lines = re.search(r"\(\?[a-z]*m", pattern) is not None
        self._folds = re.search(r"\(\?[a-z]*i", pattern) is not None
        codes = _codes(parsed)
        self._alphabet = sorted(_SAMPLE | {chr(code) for code in codes} | {chr(code).swapcase()[0] for code in codes})
        self.all = (1 << len(self._alphabet)) - 1

    def sequence(self, nodes: Sequence[Any]) -> _Part:
        part = _NOTHING
        for node in nodes:
            part = self.then(part, self._node(node))
        return part

    def then(self, one: _Part, other: _Part) -> _Part:
        self._link(one.last, other.first)
        first = _ways((one.first, 1), (other.first, one.empty))
        return _Part(first, _ways((other.last, 1), (one.last, other.empty)), min(2, one.empty * other.empty))

    def loop(self, part: _Part) -> _Part:
        """One time or more."""
        self._link(part.last, part.first)
        return part

    def reading(self, bits: int) -> _Part:
        if len(self.graph.reads) == _MOST:
            raise TooLargeError
        self.graph.reads.append(bits)
        self.graph.after.append({})
        at = len(self.graph.reads) - 1
        return _Part({at: 1}, {at: 1}, 0)

    def _link(self, last: _Ways, first: _Ways) -> None:
        for position, ways in last.items():
            self.graph.after[position] = _ways((self.graph.after[position], 1), (first, ways))

    def _node(self, node: Any) -> _Part:
        name, value = _name(node), node[1]
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            return self.reading(self._bits(node))
        if name in _REPEATS:
            # A possessive one never gives back: what is left of it is that it reads.
            return self._atom(value[2]) if name.startswith("POSS") else self._repeat(*value)
        if name in ("SUBPATTERN", "ATOMIC_GROUP"):
            return self.sequence(value[-1]) if name == "SUBPATTERN" else self._atom(value)
        if name in ("BRANCH", "GROUPREF_EXISTS"):
            return self._either([self.sequence(each or ()) for each in (value[1] if name == "BRANCH" else value[1:])])
        if name.startswith("ASSERT"):
            return self._either([self.sequence(value[1]), _NOTHING])
        # A back reference reads text of any kind; an anchor none.
        return self._either([self.reading(self.all), _NOTHING]) if name == "GROUPREF" else _NOTHING

    def _either(self, parts: Sequence[_Part]) -> _Part:
        first = _ways(*((part.first, 1) for part in parts))
        return _Part(first, _ways(*((part.last, 1) for part in parts)), min(2, sum(part.empty for part in parts)))

    def _atom(self, body: Any) -> _Part:
        before = len(self.graph.reads)
        self.sequence(body)
        bits = 0
        for one in self.graph.reads[before:]:
            bits |= one
        del self.graph.reads[before:], self.graph.after[before:]
        return self._either([self.reading(bits), _NOTHING])

    def _repeat(self, least: int, most: int, body: Any) -> _Part:
        narrow, wide = body.getwidth()
        looped = most > _COPIES and (least != most or narrow != wide)
        part = _NOTHING
        for _ in range(min(least, _COPIES) - (1 if looped and least else 0)):
            part = self.then(part, self.sequence(body))
        if looped:
            tail = self.loop(self.sequence(body))
            if narrow == 0 and least > 1:
                # Each of so many rounds may be the empty one.
                tail = self.loop(tail)
            return self.then(part, tail if least else self._either([tail, _NOTHING]))
        tail = _NOTHING
        for _ in range(min(most - least, _COPIES)):
            tail = self._either([self.then(self.sequence(body), tail), _NOTHING])
        return self.then(part, tail)

    def _bits(self, node: Any) -> int:
        bits = 0
        for index, one in enumerate(self._alphabet):
            if _reads(node, one) or (self._folds and _reads(node, one.swapcase()[0])):
                bits |= 1 << index
        return bits


def _codes(node: Any) -> set[int]:
    """The code points that a pattern names, and their neighbours: a range ends between two of them."""
    if _is_node(node, "LITERAL", "NOT_LITERAL", "RANGE"):
        ends = node[1] if isinstance(node[1], tuple) else (node[1],)
        return {code for end in ends for code in (end - 1, end, end + 1) if 0 <= code <= sys.maxunicode}
    return {code for each in _nodes(node) for code in _codes(each)}


def _is_node(node: Any, *names: str) -> bool:
    return isinstance(node, tuple) and str(node[0]) in names  # pyright: ignore[reportUnknownArgumentType]


def _reads(node: Any, one: str) -> bool:
    name, value = str(node[0]), node[1]
    if name in ("LITERAL", "NOT_LITERAL"):
        return bool(ord(one) == value) == (name == "LITERAL")
    if name == "RANGE":
        return bool(value[0] <= ord(one) <= value[1])
    if name == "CATEGORY":
        _, _, kind = str(value).partition("_")
        return _CATEGORIES[kind.removeprefix("NOT_")](one) != kind.startswith("NOT_")
    if name == "ANY":
        return True
    negated = _is_node(value[0], "NEGATE")
    return any(_reads(each, one) for each in value[negated:]) != negated

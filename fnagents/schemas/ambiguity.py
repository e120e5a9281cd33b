"""How much a backtracking matcher may have to try on a pattern: twice as much a character, or a power of all.

Over the graph of a pattern's positions (positions.py), the loops are its strongly connected parts.  One that can
be gone through in two ways on the same text doubles the work with every round.  Two of which the first can stop
anywhere in a text that both can read multiply it by the text's length.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TypeAlias

from fnagents.schemas.positions import Graph, TooLargeError

__all__ = ["doubles", "power"]

#: How many steps the search for two ways may take.
_MOST = 500_000

#: Several positions, one for each way in which the same text is read.
_State: TypeAlias = tuple[int, ...]


def doubles(graph: Graph) -> bool:
    """Whether a loop can read one text in two ways; raises `TooLargeError`."""
    walk = _Walk(graph)
    return any(walk.ambiguous(loop) for loop in walk.loops())


def power(graph: Graph) -> int:
    """The power of the text's length that the work grows with, at most: 0 without any loop that can fail."""
    walk = _Walk(graph)
    loops = [loop for loop in walk.loops() if not loop & graph.final]
    degrees: dict[frozenset[int], int] = {}
    # A loop from which fewer loops are reached comes later in the pattern.
    for loop in sorted(loops, key=lambda one: len(walk.reached[min(one)])):
        later = [degree for other, degree in degrees.items() if walk.shares(loop, other)]
        degrees[loop] = 1 + max(later, default=0)
    return max(degrees.values(), default=0)


class _Walk:
    """Walks on one graph, so many steps in all."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._left = _MOST
        self.reached = [frozenset(self._from(position)) for position in range(len(graph.reads))]

    def _from(self, position: int) -> set[int]:
        found: set[int] = set()
        waiting = list(self._graph.after[position])
        while waiting:
            one = waiting.pop()
            if one not in found:
                self._spend(1)
                found.add(one)
                waiting.extend(self._graph.after[one])
        return found

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooLargeError

    def loops(self) -> set[frozenset[int]]:
        """The sets of positions each of which is reached from each."""
        cyclic = (position for position, reached in enumerate(self.reached) if position in reached)
        return {frozenset(one for one in self.reached[at] if at in self.reached[one]) for at in cyclic}

    def ambiguous(self, loop: frozenset[int]) -> bool:
        """Whether one text leads through the loop in two ways."""
        after = self._graph.after
        if any(ways > 1 for at in loop for one, ways in after[at].items() if one in loop):
            return True
        start = tuple([min(loop)] * 2)
        into = self._explored(start, (loop, loop))
        back: set[_State] = {start}
        waiting = [start]
        while waiting:
            for before in into.get(waiting.pop(), ()):
                if before[0] != before[1]:
                    return True
                if before not in back:
                    back.add(before)
                    waiting.append(before)
        return False

    def shares(self, loop: frozenset[int], other: frozenset[int]) -> bool:
        """Whether both read some text again and again, and the same text leads from the one to the other."""
        if not self.reached[min(loop)] & other:
            return False
        between = frozenset(self.reached[min(loop)])
        return any(
            (one, two, two) in self._explored((one, one, two), (loop, between, other))
            for one, two in product(loop, other)
        )

    def _explored(self, start: _State, within: tuple[frozenset[int], ...]) -> dict[_State, list[_State]]:
        """Each state that is reached from the start, with those it is reached from."""
        into: dict[_State, list[_State]] = {}
        seen, waiting = {start}, [start]
        while waiting:
            state = waiting.pop()
            for one in self._steps(state, within):
                into.setdefault(one, []).append(state)
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)
        return into

    def _steps(self, state: _State, within: tuple[frozenset[int], ...]) -> Iterator[_State]:
        reads = self._graph.reads
        for following in product(*(self._graph.after[at] for at in state)):
            self._spend(1)
            bits = -1
            for at, allowed in zip(following, within, strict=True):
                bits &= reads[at] if at in allowed else 0
            if bits:
                yield following

"""A list that grows in constant time and stays a value, and finds its rows by key: what a stream has told so far."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from attrs import Factory, frozen

__all__ = ["Told"]

V = TypeVar("V")


@frozen(eq=False, repr=False)
class Told(Generic[V]):
    """Rows in order, and the first row of each key.

    All that grew from one another share a table, of which each sees its first `size` rows.  Only the longest one
    writes to it; a shorter one that grows copies what it sees, and so does the empty one, which threads may share.

    >>> one = Told().having("a", "x")
    >>> list(one.having("b", "y")), list(one), one.first("y")
    (['a', 'b'], ['a'], None)
    """

    size: int = 0
    _rows: list[V] = Factory(list[Any])
    #: the number of the first row of a key
    _numbers: dict[str, int] = Factory(dict[str, int])

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[V]:
        return islice(self._rows, self.size)

    def first(self, key: str) -> V | None:
        """The first row with this key."""
        number = self._numbers.get(key, self.size)
        return self._rows[number] if number < self.size else None

    def having(self, row: V, *keys: str) -> Told[V]:
        """The same with one more row."""
        rows, numbers = self._rows, self._numbers
        if not self.size or len(rows) > self.size:
            rows = rows[: self.size]
            numbers = {key: number for key, number in numbers.items() if number < self.size}
        for key in keys:
            numbers.setdefault(key, self.size)
        rows.append(row)
        return Told(self.size + 1, rows, numbers)

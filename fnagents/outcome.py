"""The two ways a thing can turn out, as a sealed union.

`Outcome[T, E]` is `Success[T] | Failure[E]`: the classes are those of `returns`, so that everything which
takes a `Result` takes an `Outcome` too.  It is a union rather than `returns.result.Result` because a
`match` on a union of two classes is exhaustive for mypy and pyright, and a `match` on `Result` is not
(dry-python/returns#1361).

    >>> def half(number: int) -> Outcome[int, str]:
    ...     return Success(number // 2) if number % 2 == 0 else Failure(f"{number} is odd")
    >>> match half(3):
    ...     case Success(value):
    ...         print(value)
    ...     case Failure(reason):
    ...         print(reason)
    3 is odd
"""

from typing import TypeAlias, TypeVar

from returns.result import Failure, Result, Success

__all__ = ["Failure", "Outcome", "Success", "sealed"]

T = TypeVar("T")
E = TypeVar("E")

#: How something turned out: `Success(value)` or `Failure(error)`, nothing else.
Outcome: TypeAlias = Success[T] | Failure[E]


def sealed(result: Result[T, E]) -> Outcome[T, E]:
    """The same result, typed as the closed union (what `bind` and `map` give back is typed as `Result`).

    >>> sealed(Success(2).map(lambda number: number + 1))
    <Success: 3>
    """
    assert isinstance(result, Success | Failure)  # `returns` has no third class
    return result

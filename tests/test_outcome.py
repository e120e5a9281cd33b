"""Outcomes: two classes and nothing else."""

from typing import get_args

from returns.result import Failure as ReturnsFailure
from returns.result import Success as ReturnsSuccess

from fnagents.outcome import Failure, Outcome, Success, sealed


def test_outcome_is_the_union_of_the_two_classes_of_returns() -> None:
    """An Outcome is what `returns` knows as a Result, closed to its two classes."""
    kinds = {getattr(part, "__origin__", part) for part in get_args(Outcome)}
    assert kinds == {ReturnsSuccess, ReturnsFailure}
    assert (Success, Failure) == (ReturnsSuccess, ReturnsFailure)


def test_sealed_gives_the_same_value_back() -> None:
    """`sealed` changes the type that is written down, never the value."""
    good, bad = Success(1), Failure("no")
    assert sealed(good) is good
    assert sealed(bad) is bad


def test_outcomes_compare_by_value() -> None:
    """Equal contents make equal outcomes, and a success never equals a failure."""
    assert Success((1,)) == Success((1,))
    assert Success(1) != Failure(1)

"""What a stream has told: a growing list that stays a value."""

from itertools import pairwise

from fnagents.wire.places import Told


def test_rows_are_found_by_the_first_of_their_keys() -> None:
    """A row may have several keys, or none; the first row of a key holds."""
    empty: Told[str] = Told()
    told = empty.having("a", "x", "one").having("b", "x", "two").having("c")
    assert (list(told), len(told)) == (["a", "b", "c"], 3)
    assert [told.first(key) for key in ("x", "one", "two", "three")] == ["a", "a", "b", None]


def test_what_was_made_of_a_value_does_not_change_it() -> None:
    """However it grows, and in however many ways, each value keeps its rows and its keys."""
    steps: list[Told[int]] = [Told()]
    for number in range(5):
        steps.append(steps[-1].having(number, str(number)))
    forks = [step.having(-1, "4", "fork") for step in steps]
    assert [list(step) for step in steps] == [list(range(size)) for size in range(6)]
    assert [list(fork) for fork in forks] == [[*range(size), -1] for size in range(6)]
    assert [step.first("4") for step in steps] == [None] * 5 + [4]
    assert [fork.first("4") for fork in forks] == [-1] * 5 + [4]
    assert [fork.first("fork") for fork in forks] == [-1] * 6
    assert all(step.first("fork") is None for step in steps)


def test_growing_copies_nothing() -> None:
    """All steps of one growth share their table; the empty value shares none."""
    steps: list[Told[int]] = [Told()]
    for number in range(3):
        steps.append(steps[-1].having(number))
    tables = [step._rows for step in steps]
    assert [one is other for one, other in pairwise(tables)] == [False, True, True]

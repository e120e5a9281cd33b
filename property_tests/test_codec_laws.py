"""Law 9, *codec*: `load(dump(x)) == x`, and any text loads to a value or a `Failure`."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import Phase, event, example, find, given, settings
from hypothesis import strategies as st
from strategies import WORLD, runs, values
from strategies import events as any_events

from fnagents import (
    Event,
    Failure,
    ModelError,
    Replied,
    Run,
    RunError,
    Success,
    ToolError,
    UnexpectedEvent,
    UnexpectedEventError,
    dump_event,
    dump_run,
    events,
    fold,
    load_event,
    load_run,
    step,
)
from fnagents.beginnings import beginning
from fnagents.codec import LoadError
from fnagents.converting import members
from fnagents.replays import replay


@given(any_events())
def test_an_event_is_loaded_as_it_was(recorded: Event) -> None:
    """Whatever the event holds, its document gives it back, and the document is UTF-8."""
    text = dump_event(recorded)
    text.encode()

    assert Success(recorded) == load_event(text)
    assert text == dump_event(load_event(text.encode()).unwrap())


@given(runs())
def test_a_run_is_loaded_as_it_was(run: Run) -> None:
    """Finished, paused, failed, reopened or unfinished: the document gives the run back, at a fixed point."""
    event(f"{len(run.turns)} turns, {type(run.outcome).__name__}")
    text = dump_run(run)
    loaded = load_run(text.encode()).unwrap()

    assert run == loaded
    assert (run.ids, run.sticky) == (loaded.ids, loaded.sticky)
    assert text == dump_run(loaded)


def stepped(run: Run, recorded: Iterable[Event]) -> Any:
    """`fold`, a step at a time."""
    for index, one in enumerate(recorded):
        try:
            run = step(run, one)
        except UnexpectedEventError as error:
            return Failure(UnexpectedEvent(str(error), index))
    return Success(run)


def assert_folded_as_stepped(first: Run, recorded: list[Event]) -> None:
    """Equal in what is compared and in what is kept beside it, or refused at the same index with the same words."""
    folded, wanted = fold(first, recorded), stepped(first, recorded)

    assert folded == wanted
    if isinstance(wanted, Success):
        assert list(kept(folded.unwrap())) == list(kept(wanted.unwrap()))


def kept(run: Run) -> Iterator[object]:
    """What is not compared of a run, nested ones included."""
    yield from (run.ids, run.sticky, [turn.handoff for turn in run.turns])
    for state in states(run):
        if state.child is not None:
            yield from kept(state.child)


@given(runs())
def test_folding_many_is_stepping_through_each(run: Run) -> None:
    """In canonical order, whole and from any event on."""
    first, recorded = beginning(run).run, list(events(run))

    assert_folded_as_stepped(first, recorded)
    for index in range(0, len(recorded), 5):
        assert fold(first, recorded[:index]).bind(
            lambda so_far, index=index: fold(so_far, recorded[index:])
        ) == Success(run)


@given(
    runs(40), st.lists(st.tuples(st.sampled_from(["swap", "drop", "repeat", "move"]), st.integers(0), st.integers(0)))
)
def test_folding_refuses_what_stepping_refuses(run: Run, changes: list[tuple[str, int, int]]) -> None:
    """Events that came in another order, never or twice: neighbours change places often without harm."""
    first, recorded = beginning(run).run, list(events(run))
    for how, here, there in changes if recorded else ():
        one, other = here % len(recorded), there % len(recorded)
        if how == "swap":
            recorded[one - 1], recorded[one] = recorded[one], recorded[one - 1]
        elif how == "repeat":
            recorded.insert(other, recorded[one])
        elif how == "move":
            recorded.insert(other, recorded.pop(one))
        elif len(recorded) > 1:
            del recorded[one]
    event(f"{len(changes)} changes, {type(fold(first, recorded)).__name__}")

    assert_folded_as_stepped(first, recorded)


@given(runs(), st.randoms(use_true_random=False))
def test_folding_what_was_shuffled_is_stepping_through_it(run: Run, chance: Any) -> None:
    """However wild the order."""
    recorded = list(events(run))
    chance.shuffle(recorded)

    assert_folded_as_stepped(beginning(run).run, recorded)


@given(runs())
def test_an_unchanged_world_replays_every_run(run: Run) -> None:
    """Law 8 in part: today's plan, driven with the recorded answers, makes the recorded run."""
    assert Success(run) == replay(WORLD, run)


# --- hostile documents ---------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def judged(outcome: Any, kind: Any) -> None:
    """A value, or a failure that says why in one line."""
    match outcome:
        case Success(value):
            assert isinstance(value, kind)
        case Failure(error):
            assert isinstance(error, LoadError)
            assert error.problem
            assert len(error.problem.splitlines()) == 1
            error.problem.encode()


@given(st.text(st.characters(exclude_categories=())) | st.binary())
@example("[" * 100_000)
@example('{"format":"fnagents.run","version":1,"start":' + "[" * 400 + "]" * 400 + ',"events":[],"definitions":{}}')
@example(b"\xef\xbb\xbf{}")
def test_any_text_is_a_value_or_a_failure(text: Any) -> None:
    """Loading is total."""
    judged(load_run(text), Run)
    judged(load_event(text), Event)


@given(JSON)
def test_any_json_is_a_value_or_a_failure(data: Any) -> None:
    """So it is for the parts of a document."""
    empty = {"format": "fnagents.run", "version": 1, "definitions": {}, "start": {"agent": "a", "input": []}}

    judged(load_run(json.dumps(data)), Run)
    for name in ("definitions", "start", "version"):
        judged(load_run(json.dumps({**empty, "events": [], name: data})), Run)
    judged(load_run(json.dumps({**empty, "events": [data]})), Run)


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every place in the data: its container, and its key or index."""
    keys = list(data) if isinstance(data, dict) else list(range(len(data))) if isinstance(data, list) else []
    return [place for key in keys for place in ((data, key), *places(data[key]))]


@given(runs(12), st.data())
@settings(max_examples=300)
def test_a_document_with_a_fault_is_a_value_or_a_failure(run: Run, data: st.DataObject) -> None:
    """A place deleted, replaced, or moved elsewhere: never an exception."""
    document = json.loads(dump_run(run))
    container, key = data.draw(st.sampled_from(places(document)))
    how = data.draw(st.sampled_from(["delete", "replace", "move"]))
    if how == "delete":
        del container[key]
    elif how == "replace":
        container[key] = data.draw(JSON)
    else:
        other, place = data.draw(st.sampled_from(places(document)))
        container[key] = json.loads(json.dumps(other[place]))
    loaded = load_run(json.dumps(document))
    event(f"{how}: {type(loaded).__name__}")

    judged(loaded, Run)
    if isinstance(loaded, Success):
        assert loaded == load_run(dump_run(loaded.unwrap()))


# --- the strategies reach what they are for --------------------------------------------------------------


#: One that is found is enough: it need not be the smallest.
QUICK = settings(max_examples=20_000, database=None, phases=[Phase.generate], deadline=None)


@pytest.mark.parametrize("union", [Event, ToolError, ModelError, RunError], ids=["events", "tools", "models", "runs"])
def test_every_member_of_a_union_is_drawn(union: Any) -> None:
    """No class is missing in the laws above."""
    for kind in members(union):
        assert isinstance(find(values(union), lambda one, kind=kind: isinstance(one, kind), settings=QUICK), kind)


REACHED = {
    "nested": lambda run: any(state.child is not None and state.child.turns for state in states(run)),
    "a nested question": lambda run: any(one.path and type(one).__name__ == "Approved" for one in events(run)),
    "handoff": lambda run: any(turn.agent == "other" for turn in run.turns),
    "sticky": lambda run: bool(run.sticky),
    "fatal": lambda run: type(failure(run)).__name__ == "ToolFailed",
    "reopened": lambda run: any(type(end).__name__ == "Reopened" for end in run.ends),
    "extracted": lambda run: any(state.extracted is not None for state in states(run)),
    "tripped": lambda run: any(isinstance(one, Replied) and one.outcome is None for one in events(run)),
    "finished": lambda run: isinstance(run.outcome, Success),
}


def states(run: Run) -> list[Any]:
    return [state for turn in run.turns for state in turn.calls]


def failure(run: Run) -> Any:
    return run.outcome.failure() if isinstance(run.outcome, Failure) else None


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("what", REACHED)
def test_runs_reach(what: str) -> None:
    """The deep cases are drawn: a strategy that never gets there proves nothing."""
    reached = find(runs(), REACHED[what], settings=QUICK)

    assert REACHED[what](reached)

"""Runs that were saved by released versions: they load, they are saved as they were, and their agents replay them.

A file here is never changed.  A new version of the format adds files; it reads these for ever.
"""

from pathlib import Path
from typing import Any

import pytest

from fnagents import (
    Agent,
    Approved,
    Delegate,
    Failure,
    Handoff,
    Image,
    Opaque,
    Output,
    Reopened,
    Success,
    Text,
    Tool,
    dump_run,
    events,
    interruptions,
    load_run,
    replay,
)

GOLDEN = Path(__file__).parent / "golden"


def made(name: str, function: Any, **options: Any) -> Tool[..., Any, Any]:
    """A tool of one text, whose definition depends on nothing but this line."""
    properties = {"text": {"type": "string"}}
    return Tool(
        name, f"Do {name}.", {"properties": properties, "required": ["text"]}, function, strict=False, **options
    )


SURGEON = Agent(
    "surgeon",
    "You cut.",
    tools=(made("cut", lambda context, text: f"cut: {text}", needs_approval=True),),
)
CLERK = Agent("clerk", "You file things.", tools=(made("file", lambda context, text: "filed"),))
DOCTOR = Agent(
    "doctor",
    "You heal.",
    tools=(
        made("look", lambda context, text: text.upper()),
        made("show", lambda context, text: Output((Text("a\udcff"), Image("data:image/png;base64,iVBORw0K")))),
        made("operate", lambda context, text: Delegate("surgeon", text), agents=(SURGEON,)),
        made("fail", lambda context, text: 1 / 0),
    ),
    handoffs=(made("to_clerk", lambda context, text: Handoff("clerk"), agents=(CLERK,)),),
)
FILES = sorted(GOLDEN.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_golden_run_is_read_and_written_as_it_was(path: Path) -> None:
    """Loading and saving gives the same bytes."""
    text = path.read_bytes()

    assert text.decode() == dump_run(load_run(text).unwrap())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_golden_run_is_replayed_by_its_agents(path: Path) -> None:
    """Today's plan asks for what was asked then, and tells the model the same."""
    run = load_run(path.read_bytes()).unwrap()

    assert Success(run) == replay(DOCTOR, run)


def test_the_golden_runs_are_what_their_names_say() -> None:
    """A finished run with a handoff, a paused nested one, a reopened one, odd texts, ids that come twice."""
    runs = {path.stem: load_run(path.read_bytes()).unwrap() for path in FILES}
    (question,) = interruptions(runs["paused"])
    odd = runs["odd"].turns[0].said

    assert list(runs) == ["finished", "odd", "paused", "reopened", "repeated"]
    assert isinstance(runs["finished"].outcome, Success)
    assert runs["finished"].turns[-1].agent == "clerk"
    assert (question.path, question.tool) == (("0.0",), "cut")
    assert any(isinstance(item, Opaque) for item in odd)
    assert any(isinstance(event, Reopened) for event in events(runs["reopened"]))
    assert [state.id for turn in runs["repeated"].turns for state in turn.calls] == ["c", "call_0_1", "call_1_0"]
    assert any(isinstance(event, Approved) for event in events(runs["finished"]))
    assert any(isinstance(state.answer, Failure) for turn in runs["finished"].turns for state in turn.calls)

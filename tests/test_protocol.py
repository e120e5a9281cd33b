"""Effects and their names."""

import pytest

from fnagents.items import Message, ToolCall
from fnagents.models import ModelRequest, Sent
from fnagents.outcome import Success
from fnagents.protocol import Ask, CallModel, CallTool, Check, Checkup, Decide, Extract, Finish, Prepare, key
from fnagents.runs import Input, start

CALL = ToolCall("c9", "pay", '{"eur": 5}')
CHECKUP = Checkup('{"eur":5}', "d1", needed=True)
REQUEST = ModelRequest("a", 3, Sent(), Input(()))


@pytest.mark.parametrize(
    ("effect", "name"),
    [
        (Prepare("a", 3), "prepare-3"),
        (CallModel("a", 3, REQUEST), "model-3"),
        (Check("a", "2.0", CALL), "check-2.0"),
        (Check("a", "2.0", CALL, attempt=2), "check-2.0~2"),
        (Ask("a", "2.0", CALL, CHECKUP), "ask-2.0"),
        (Ask("a", "2.0", CALL, CHECKUP, attempt=3), "ask-2.0~3"),
        (CallTool("a", "2.0", CALL), "call-2.0"),
        (CallTool("a", "2.0", CALL, attempt=2), "call-2.0~2"),
        (Extract("a", "2.0"), "extract-2.0"),
        (Decide("a", 2), "decide-2"),
        (Finish("a", 4, Success("")), "finish-4"),
        (Finish("a", 4, Success(""), attempt=1), "finish-4~1"),
        (CallTool("a", "2.0", CALL, path=("0.1", "3.2")), "0.1/3.2/call-2.0"),
    ],
)
def test_the_name_of_an_effect(effect, name) -> None:
    """Path, kind and place; what is asked again gets a count."""
    assert key(effect) == name


def test_a_question_shows_what_will_run() -> None:
    """Tool, call id, and the validated arguments rather than the text that the model wrote."""
    ask = Ask("a", "2.0", CALL, CHECKUP)
    assert (ask.tool, ask.call_id, ask.arguments) == ("pay", "c9", '{"eur":5}')


def test_the_run_that_an_effect_was_planned_from_is_no_part_of_it() -> None:
    """It is neither compared nor printed."""
    seen = start("a", (Message("user", "secret"),))
    assert Prepare("a", 0, seen=seen) == Prepare("a", 0)
    assert repr(Prepare("a", 0, seen=seen)) == "Prepare(agent='a', turn=0, path=())"

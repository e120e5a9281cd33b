"""Values made by foreign code are what they claim to be."""

import pytest

from fnagents.items import Image, Message, Text, ToolCall
from fnagents.models import ModelResponse, Usage
from fnagents.runs import start
from fnagents.tools import Output
from fnagents.wellformed import complaint


@pytest.mark.parametrize(
    "value",
    [
        Message("user", "hi"),
        Message("assistant", (Text("a"), Image("https://a.example/b.png"))),
        ToolCall("c", "add"),
        Output("x", usage=Usage(1, 2, 3)),
        ModelResponse((), Usage(), "id"),
    ],
)
def test_good_values_give_no_reason_to_complain(value) -> None:
    """Nothing is said of what can be saved and loaded again."""
    assert complaint(value) is None


class Loud(str):
    """A text that is more than text."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("text", "a str is no value of this library"),
        (ToolCall(None, "add"), "ToolCall.id is a NoneType, not str"),
        (ToolCall("c", Loud("add")), "ToolCall.name is a Loud, not str"),
        (Message("user", (Text(5),)), "Message.content is a tuple, not str | tuple[Part, ...]"),
        (Usage(True), "Usage.requests is a bool, not int"),
        (Output("x", usage=Usage(1.5)), "Output.usage is a Usage, not Usage | None"),
        (ModelResponse((), None), "ModelResponse.usage is a NoneType, not Usage"),
    ],
)
def test_what_is_wrong_is_said_by_field(value, said) -> None:
    """Class, field, and what was expected."""
    assert complaint(value) == said


def test_a_run_does_not_begin_with_what_could_not_be_saved() -> None:
    """The item is named."""
    with pytest.raises(TypeError, match=r"input\[1\]: ToolCall.id is a NoneType, not str"):
        start("a", [Message("user", "hi"), ToolCall(None, "add")])
    with pytest.raises(TypeError, match="id=5 is a int, not text"):
        start("a", "hi", id=5)
    with pytest.raises(ValueError, match="max_turns=True"):
        start("a", "hi", max_turns=True)

"""Requests, responses, settings and usage."""

import pytest
from attrs import evolve
from helpers import replied

from fnagents.errors import DeclarationError
from fnagents.items import Message, Reasoning, ToolCall
from fnagents.models import ModelRequest, ModelResponse, ModelSettings, Once, Sent, ToolDefinition, Usage
from fnagents.runs import Input, Turn


def test_once_makes_a_thing_the_first_time_only() -> None:
    """The memo is keyed by the function."""
    made = []

    def count(value):
        made.append(value)
        return len(made)

    one = Once()
    assert [one.once(count), one.once(count)] == [1, 1]
    assert one.once(id) == id(one)
    assert len(made) == 1


def test_a_memo_is_no_part_of_the_value() -> None:
    """It is not compared, not printed, and not copied into a changed value."""
    sent = Sent("a")
    sent.once(id)
    assert sent == Sent("a")
    assert repr(sent) == repr(Sent("a"))
    changed = evolve(sent, model="m")
    assert changed.once(id) == id(changed)


def test_usage_adds_up() -> None:
    """Field by field, and the total is input and output."""
    total = Usage(1, 10, 5, 4, 3) + Usage(2, 1, 1, 1, 1)
    assert total == Usage(3, 11, 6, 5, 4)
    assert total.total_tokens == 17


@pytest.mark.parametrize("name", ["reasoning", "metadata", "prompt", "extra"])
@pytest.mark.parametrize(
    ("given", "kept"),
    [(None, ""), ("", ""), ('{"a": 1}', '{"a": 1}'), ({"b": 1, "a": [2]}, '{"a":[2],"b":1}')],
)
def test_settings_that_are_mappings_are_kept_as_text(name, given, kept) -> None:
    """So that settings are values; text stays as it was written."""
    assert getattr(ModelSettings(**{name: given}), name) == kept


@pytest.mark.parametrize("odd", [{"a": {1, 2}}, {"a": float("nan")}])
def test_settings_must_be_plain_data(odd) -> None:
    """What has no JSON form is refused where it is declared."""
    with pytest.raises(DeclarationError, match=r"^settings must be plain JSON data: "):
        ModelSettings(extra=odd)


def test_include_is_taken_from_any_iterable() -> None:
    """It is kept as a tuple."""
    assert ModelSettings(include=["a", "b"]).include == ("a", "b")


def test_a_request_shows_the_conversation_and_what_was_sent() -> None:
    """Its views read the input, the turns and `sent`; they are made when asked."""
    tools = (ToolDefinition("add", "{}"),)
    sent = Sent("Be brief.", tools, ModelSettings(temperature=0.5), "m")
    turn = Turn("a", replied=replied(0, "hello"))
    request = ModelRequest("a", 1, sent, Input((Message("user", "hi"),)), (turn,))
    assert request.items == (Message("user", "hi"), Message("assistant", "hello"))
    views = (request.instructions, request.tools, request.settings, request.model)
    assert views == ("Be brief.", tools, ModelSettings(temperature=0.5), "m")


def test_a_response_has_calls_and_text() -> None:
    """The calls in order, and the text of the last message."""
    one, two = ToolCall("1", "a"), ToolCall("2", "b")
    response = ModelResponse((one, Message("assistant", "x"), two, Message("assistant", "y"), Reasoning(("z",))))
    assert response.calls == (one, two)
    assert response.text == "y"
    assert ModelResponse().text == ""
    assert ModelResponse().usage == Usage(requests=1)

"""Items: what a conversation is made of."""

import pytest

from fnagents.items import (
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolOutput,
    as_items,
    text_of,
)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ((), ""),
        ((Text("a"), Image(url="https://x"), Text("b")), "ab"),
        ((File(file_id="f"), Refusal("no"), Opaque("audio", "{}")), ""),
    ],
)
def test_the_text_of_content_is_its_text_parts_joined(content, text) -> None:
    """Pictures, files, refusals and unknown parts have no text."""
    assert text_of(content) == text
    assert Message("user", content).text == text
    assert ToolOutput("c", content).text == text


@pytest.mark.parametrize(
    ("content", "refusal"),
    [("no", None), ((Text("no"),), None), ((Text("hm"), Refusal("I cannot."), Refusal("x")), "I cannot.")],
)
def test_a_refusal_is_told_from_text(content, refusal) -> None:
    """Only a refusal part is a refusal, and the first one counts."""
    assert Message("assistant", content).refusal == refusal


def test_reasoning_reads_a_paragraph_each() -> None:
    """The summary's texts stand apart."""
    assert Reasoning(("First.", "Then.")).text == "First.\n\nThen."


@pytest.mark.parametrize(
    ("given", "items"),
    [
        ("hi", (Message("user", "hi"),)),
        ("", (Message("user", ""),)),
        (ToolCall("c", "add"), (ToolCall("c", "add"),)),
        ([Message("user", "a"), Opaque("x", "{}")], (Message("user", "a"), Opaque("x", "{}"))),
        (iter(()), ()),
    ],
)
def test_input_is_text_or_items(given, items) -> None:
    """Text is a user's message, one item stands for itself, and any iterable is taken."""
    assert as_items(given) == items


def test_what_is_no_item_is_a_mistake() -> None:
    """The message says where it stands and what it should have been."""
    with pytest.raises(TypeError) as caught:
        as_items([Message("user", "a"), {"role": "user"}])  # type: ignore[list-item]
    assert str(caught.value) == "input[1] is a dict, not an item such as Message('user', ...)"


def test_items_are_values() -> None:
    """They compare by content and can be keys."""
    assert Message("user", (Text("a"),)) == Message("user", (Text("a"),))
    assert len({ToolCall("c", "add"), ToolCall("c", "add")}) == 1


def test_values_are_checked_where_they_are_made() -> None:
    """What could not be saved or sent is refused at once."""
    with pytest.raises(ValueError, match="role 'bot' is none of user, assistant, system, developer"):
        Message("bot", "hi")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="part 0 of a content is a str, not a part such as Text"):
        Message("user", ["hi"])  # type: ignore[list-item]


def test_arguments_may_be_given_as_a_mapping() -> None:
    """They are written as JSON text, as a model would."""
    assert ToolCall("c", "add", {"a": 1}).arguments == '{"a":1}'  # type: ignore[arg-type]
    assert Message("user", [Text("a")]).content == (Text("a"),)

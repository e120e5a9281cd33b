"""What no error may repeat, and where it is taken out."""

import json
from typing import Any

import pytest

from fnagents.wire.hiding import NOTHING, Hidden
from fnagents.wire.options import hidden_in

SECRET = 'a"secret\\word'


@pytest.mark.parametrize(
    "write", [str, repr, json.dumps, lambda text: repr([text]), lambda text: json.dumps({text: 1})]
)
def test_a_word_is_hidden_in_every_form(write: Any) -> None:
    """As it is, and as `repr` and JSON write it."""
    hidden = Hidden([f" {SECRET} "]).text(f"before {write(SECRET)} after")
    assert "secret" not in hidden
    assert "[key]" in hidden


def test_the_longer_word_is_hidden_first() -> None:
    """A word that is part of another leaves nothing of it."""
    assert Hidden(["secret-1", "my secret-1 whole", "short", ""]).text("my secret-1 whole, secret-1, short") == (
        "[key], [key], short"
    )


def test_a_text_is_cut_after_it_was_hidden() -> None:
    """No half of a word stays at the end, and half a pair of surrogates is visible."""
    hidden = Hidden(["abcdefghij"])
    for before in range(100):
        assert "ab" not in hidden.short("x" * before + "abcdefghij" + "y" * 100, 60)
    assert hidden.short("\ud83d", 10) == "<U+D83D>"


def test_data_is_hidden_in_keys_and_values() -> None:
    """The rest of it stays as it is; with nothing to hide it is the same value."""
    data = {"a": ["0123456789", 1, None, True, 1.5], "x0123456789": {"b": "c"}}
    assert Hidden(["0123456789"]).data(data) == {"a": ["[key]", 1, None, True, 1.5], "x[key]": {"b": "c"}}
    assert NOTHING.data(data) is data


def test_words_are_not_printed() -> None:
    """Neither by `repr` nor in a traceback that shows it."""
    assert repr(Hidden(["0123456789"])) == "Hidden()"


def test_the_values_of_headers_are_hidden() -> None:
    """With and without their first word, but for the ones that say nothing secret."""
    hidden = hidden_in("", {"authorization": "Bearer abcdefgh", "accept": "text/event-stream", "x-short": "abc"})
    assert set(hidden.words) == {"Bearer abcdefgh", "abcdefgh"}

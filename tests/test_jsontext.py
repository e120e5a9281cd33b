"""JSON as text: what is read, what is refused and why, and the one form that is written."""

import json

import pytest

from fnagents.errors import InvalidJson
from fnagents.jsontext import DEEPEST, canonical, compact, digest, encodable, read_json, read_object, visible
from fnagents.outcome import Failure, Success


@pytest.mark.parametrize("blank", ["", " ", "   ", "\n\t\r "])
def test_blank_arguments_mean_no_arguments(blank) -> None:
    """Models leave the arguments out for tools without parameters."""
    assert read_object(blank) == Success({})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("null", "it is null, not an object"),
        ("true", "it is a boolean, not an object"),
        ("1", "it is a number, not an object"),
        ("1.5", "it is a number, not an object"),
        ('"text"', "it is a string, not an object"),
        ("[1]", "it is an array, not an object"),
        ('"{\\"x\\":1}"', "it is a string, not an object"),
        ('{"x":', "Expecting value at line 1 column 6 (of 5 characters)"),
        ("'{\"x\":1}'", "Expecting value at line 1 column 1 (of 9 characters)"),
        ('{"x": 1} {"x": 2}', "Extra data at line 1 column 10 (of 17 characters)"),
        ('{"x": 1, "x": 1}', "the key 'x' is there twice"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "the key 'b' is there twice"),
        ('{"x": NaN}', "NaN is not a JSON number"),
        ('{"x": Infinity}', "Infinity is not a JSON number"),
        ('{"x": -Infinity}', "-Infinity is not a JSON number"),
        ('{"x": 1e999}', "the number 1e999 is too large"),
        ('{"x": -1e999}', "the number -1e999 is too large"),
        ('{"x": "\\ud800"}', "it has an unpaired surrogate, which is no character"),
        ('{"\\udfff": 1}', "it has an unpaired surrogate, which is no character"),
        ('{"x": "\ud800"}', "it has an unpaired surrogate, which is no character"),
        ('{"x": "a\nb"}', "Invalid control character at at line 1 column 9 (of 12 characters)"),
    ],
)
def test_what_is_no_exact_json_object_is_refused_with_the_reason(text, reason) -> None:
    """Two readers could disagree on each of these, so none of them is guessed at."""
    assert read_object(text) == Failure(InvalidJson(reason))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"x": 1}', {"x": 1}),
        (' {"x": [1, 2.5, true, null, "é"]} ', {"x": [1, 2.5, True, None, "é"]}),
        ('{"x": "\\ud83d\\ude00"}', {"x": "😀"}),
        ('{"x": "😀"}', {"x": "😀"}),
        ('{"": {}}', {"": {}}),
        ('{"x": 1e308}', {"x": 1e308}),
        ('{"x": 1234567890123456789}', {"x": 1234567890123456789}),
        ('{"x": "1234567890123456789"}', {"x": "1234567890123456789"}),
        ('{"x": -9007199254740993}', {"x": -9007199254740993}),
    ],
)
def test_json_objects_are_read_exactly(text, value) -> None:
    """Integers past 2**53 and pairs of surrogates come through as they are."""
    assert read_object(text) == Success(value)


def test_integers_are_exact_up_to_4300_digits() -> None:
    """The longest integers that the interpreter converts are exact; longer ones are refused, with the reason."""
    longest = int("9" * 4_300)
    assert read_json("9" * 4_300) == Success(longest)
    assert read_json("9" * 4_301) == Failure(
        InvalidJson("Exceeds the limit (4300 digits) for integer string conversion: value has 4301 digits")
    )


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_is_read_200_deep_and_no_deeper(opening, closing) -> None:
    """The limit is exact, for arrays and for objects."""
    middle = "1"
    assert isinstance(read_json(opening * DEEPEST + middle + closing * DEEPEST), Success)
    assert read_json(opening * (DEEPEST + 1) + middle + closing * (DEEPEST + 1)) == Failure(
        InvalidJson("it is nested more than 200 deep")
    )


def test_many_brackets_side_by_side_or_in_strings_are_not_deep() -> None:
    """Only brackets that are open at once count, and those in strings never do."""
    wide = "[" + ",".join(["[]"] * 500) + "]"
    quoted = json.dumps("[{" * 500 + '\\"')
    assert read_json(wide) == Success([[]] * 500)
    assert read_json(quoted) == Success("[{" * 500 + '\\"')


def test_brackets_without_end_are_refused_at_once() -> None:
    """A megabyte of opening brackets neither hangs the reader nor ends it."""
    assert read_json("[" * 1_000_000) == Failure(InvalidJson("it is nested more than 200 deep"))


def test_the_depth_can_be_chosen() -> None:
    """A caller may read less deep than the limit."""
    assert read_json("[[1]]", depth=1) == Failure(InvalidJson("it is nested more than 1 deep"))


def test_unpaired_surrogates_are_kept_where_asked_for() -> None:
    """Run files keep what a model or a tool wrote."""
    assert read_json('"\\udcff"', surrogates=True) == Success("\udcff")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"b": 1, "a": {"d": [], "c": None}}, '{"a":{"c":null,"d":[]},"b":1}'),
        ("é\u2028", '"é\u2028"'),
        ([1.0, 1, True], "[1.0,1,true]"),
    ],
)
def test_canonical_text_has_sorted_keys_and_no_spaces(data, text) -> None:
    """Equal data, equal text."""
    assert canonical(data) == text


def test_compact_text_keeps_the_order_of_keys() -> None:
    """What is only passed on is not sorted."""
    assert compact({"b": 1, "a": [2]}) == '{"b":1,"a":[2]}'


@pytest.mark.parametrize("write", [compact, canonical])
def test_nan_is_never_written(write) -> None:
    """It is no JSON, so writing it is a programmer's mistake."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(float("nan"))


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("plain", "plain"),
        ("é😀", "é😀"),
        ("a\udcffb", "a<U+DCFF>b"),
        ("\ud83d\ude00", "<U+D83D><U+DE00>"),
    ],
)
def test_an_unpaired_surrogate_is_shown_as_a_marker(text, marked) -> None:
    """What goes over the wire can always be encoded."""
    assert visible(text) == marked
    assert encodable(marked)
    assert encodable(text) is (text == marked)


def test_a_digest_is_sha256_of_the_text() -> None:
    """It is that of UTF-8, and unpaired surrogates have one too."""
    assert digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest("\ud800") != digest("\ud801")


@pytest.mark.parametrize("where", [0, 1, 49_999, 99_999])
def test_the_duplicate_among_very_many_keys_is_found(where) -> None:
    """Keys are looked at once each: looking for each among all would take minutes here."""
    keys = [*(f'"k{index}":1' for index in range(100_000)), f'"k{where}":2']

    assert read_json(f"{{{','.join(keys)}}}") == Failure(InvalidJson(f"the key 'k{where}' is there twice"))


def test_the_first_of_several_keys_that_come_again_is_named() -> None:
    """One is enough to refuse the text."""
    assert read_json('{"a":1,"b":1,"b":1,"a":1}') == Failure(InvalidJson("the key 'a' is there twice"))

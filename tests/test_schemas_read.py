"""Arguments judged by hand-written schemas, the judge itself, formats, and values as JSON."""

import dataclasses
import json
from collections import deque
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import pydantic
import pytest

from fnagents.errors import DeclarationError, InvalidArguments, InvalidJson
from fnagents.outcome import Failure, Success
from fnagents.schemas.arguments import Arguments
from fnagents.schemas.formats import FORMATS, read_duration, write_duration
from fnagents.schemas.judging import judge
from fnagents.schemas.plain import NoJsonError, plain
from fnagents.schemas.read import json_reader

CITY = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})


def test_arguments_that_fit() -> None:
    """They are read as data, and given on as canonical text; numbers stay exact."""
    assert json_reader(CITY)('{"n": 12345678901234567890123, "city": "Oslo"}') == Success(
        Arguments(
            {"n": 12345678901234567890123, "city": "Oslo"},
            {"n": 12345678901234567890123, "city": "Oslo"},
            '{"city":"Oslo","n":12345678901234567890123}',
        )
    )


@pytest.mark.parametrize("text", ["[1]", "{", "null", '"{}"', "{'city': 1}", '{"city": NaN}'])
def test_texts_that_are_no_object(text: str) -> None:
    """They are invalid JSON, as a value."""
    assert isinstance(json_reader(CITY)(text).failure(), InvalidJson)


def test_blank_text_means_no_arguments() -> None:
    """Blank is `{}`, and then judged."""
    assert json_reader('{"type": "object"}')(" \n").unwrap().data == {}
    assert json_reader(CITY)("") == Failure(InvalidArguments(("$: 'city' is a required property",)))


JUDGED: dict[str, tuple[dict[str, Any], Any, tuple[str, ...]]] = {
    "integers": ({"type": "integer"}, True, ("$: True is not of type 'integer'",)),
    "whole floats are integers": ({"type": "integer"}, 5.0, ()),
    "a place deep down": (
        {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}},
        {"a": [{}, {"b": 1}]},
        ("$.a[1].b: 1 is not of type 'string'",),
    ),
    "every problem": (
        {"items": {"type": "integer"}},
        ["a", "b"],
        ("$[0]: 'a' is not of type 'integer'", "$[1]: 'b' is not of type 'integer'"),
    ),
    "one problem once": ({"allOf": [{"type": "null"}, {"type": "null"}]}, 1, ("$: 1 is not of type 'null'",)),
    "a union that nothing fits": (
        {"anyOf": [{"type": "integer"}, {"type": ["null", "integer"]}]},
        "x",
        ("$: 'x' is not of type 'integer', 'null'",),
    ),
    "a union that one branch nearly fits": (
        {"oneOf": [{"type": "null"}, {"type": "object", "required": ["b"]}]},
        {},
        ("$: 'b' is a required property",),
    ),
    "a union that two branches nearly fit": (
        {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "number", "maximum": 1}]},
        2,
        ("$: 2 is not valid under any of the given schemas",),
    ),
    "a union that two branches fit": (
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        2,
        ("$: 2 is valid under each of {'type': 'number'}, {'type': 'integer'}",),
    ),
    "a format": ({"format": "date"}, "2024-02-30", ("$: '2024-02-30' is not a 'date'",)),
    "a format of what is no text": ({"format": "date"}, 3, ()),
    "an unknown format": ({"format": "colour"}, "x", ()),
}


@pytest.mark.parametrize(("schema", "data", "problems"), JUDGED.values(), ids=JUDGED)
def test_the_judge(schema: dict[str, Any], data: Any, problems: tuple[str, ...]) -> None:
    """Each problem is said with its place, in the words that help most."""
    assert judge(schema)(data) == problems


def test_the_judge_says_a_bounded_amount() -> None:
    """A thousand problems are twenty and a word; a long one is cut in the middle."""
    problems = judge({"items": {"type": "integer"}})(["x" * 9] * 1000)
    assert len(problems) == 21
    assert problems[-1] == "$: and more"
    (problem,) = judge({"type": "integer"})("x" * 10_000)
    assert len(problem) < 500
    assert problem.endswith("is not of type 'integer'")


def test_the_judge_is_total() -> None:
    """A schema without end, and a number that cannot be divided, are problems and no exceptions."""
    assert "RecursionError" in judge({"$ref": "#"})(1)[0]
    assert "OverflowError" in judge({"multipleOf": 0.5})(10**400)[0]


DECLARED: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "no JSON Schema: JSONDecodeError"),
    "no object": ("[]", "not an object"),
    "unknown type": ('{"type": "objekt"}', r"\$\.type: 'objekt'"),
    "a pattern that is none": (
        '{"properties": {"a": {"pattern": "("}}}',
        r"\$\.properties\.a\.pattern: '\(' is not a 'regex'",
    ),
    "an odd $schema": ('{"$schema": 3}', "no JSON Schema"),
    "a remote reference": ('{"$ref": "http://localhost:1/s"}', "nothing is fetched"),
    "a dangling reference": ('{"properties": {"a": {"$ref": "#/$defs/N"}}}', "leads to no schema"),
    "a dangling dynamic reference": ('{"$dynamicRef": "#n"}', "leads to no schema"),
}


@pytest.mark.parametrize(("schema", "why"), DECLARED.values(), ids=DECLARED)
def test_schemas_that_are_none(schema: str, why: str) -> None:
    """A tool made by hand is checked when it is made, and the error names it."""
    with pytest.raises(DeclarationError, match=f"tool 'x': .*{why}"):
        json_reader(schema, "tool 'x'")


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"A": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/A"}}},
        {"$id": "urn:x", "$defs": {"A": {"$id": "urn:y", "type": "integer"}}, "properties": {"a": {"$ref": "urn:y"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"A": {"type": "integer"}},
         "properties": {"a": {"$ref": "#/definitions/A"}, "b": {"items": [{"type": "integer"}, True]}}},
        {"properties": {"a": {"type": "integer"}, "$ref": {"const": 1}}, "enum": [{"$ref": "x"}, {"a": 1}]},
    ],
)  # fmt: skip
def test_references_and_drafts(schema: dict[str, Any]) -> None:
    """References are followed within the document, by its draft; a property may be named like a keyword."""
    read = json_reader(json.dumps(schema))
    assert isinstance(read('{"a": 1}'), Success)
    assert isinstance(read('{"a": "x"}'), Failure)


FITS = {
    "date": (["2024-02-29"], ["2024-2-29", "x"]),
    "date-time": (["2024-02-29T00:00:00Z"], ["2024-02-29"]),
    "duration": (["P1D"], ["P1M"]),
    "email": (["a@b.c"], ["a", "a @b"]),
    "ipv4": (["127.0.0.1"], ["127.0.0", "1.2.3.256"]),
    "ipv6": (["::1"], ["127.0.0.1"]),
    "regex": (["^a+$"], ["(", "*"]),
    "time": (["10:00:00+01:00"], ["10"]),
    "uri": (["https://a.b/c?d#e"], ["a b", "/a"]),
    "uuid": (["12345678-1234-5678-1234-567812345678"], ["1"]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str) -> None:
    """Each format accepts its texts and raises `ValueError` for others."""
    good, bad = FITS[name]
    for text in good:
        assert FORMATS[name](text) is not None
    for text in bad:
        with pytest.raises(ValueError):  # noqa: PT011  # whatever it says
            FORMATS[name](text)


@pytest.mark.parametrize(
    "span", [timedelta(0), timedelta(1), timedelta(-1, 5), timedelta(2, 3, 4), timedelta.max, timedelta(microseconds=1)]
)
def test_durations_come_back(span: timedelta) -> None:
    """A duration that is written is read as itself."""
    assert read_duration(write_duration(span)) == span


class Shade(Enum):
    DARK = "dark"


class Odd(Enum):
    PAIR = (1, 2)


class Pair(NamedTuple):
    a: int
    b: date


@dataclasses.dataclass
class Data:
    a: int
    b: int = dataclasses.field(default=1, init=False)


@attrs.frozen
class Value:
    _a: int
    b: int = attrs.field(default=1, init=False)


class Model(pydantic.BaseModel):
    a: date


class Grade(str):
    __slots__ = ()


PLAIN: list[tuple[Any, Any]] = [
    (None, None), (True, True), (3, 3), (1.5, 1.5), ("a", "a"), (Grade("a"), "a"), (Shade.DARK, "dark"), (Odd.PAIR, "PAIR"),
    (datetime(2024, 1, 2, 3), "2024-01-02T03:00:00"), (date(2024, 1, 2), "2024-01-02"), (time(3), "03:00:00"),  # noqa: DTZ001
    (timedelta(hours=1), "PT3600S"), (UUID(int=0), "00000000-0000-0000-0000-000000000000"), (Decimal("1.10"), "1.10"),
    (Path("a/b"), "a/b"), (b"hi", "aGk="), ([1, (2,)], [1, [2]]), (deque([1]), [1]), ({3, 1}, [1, 3]),
    ({"a": {1: date(2024, 1, 2)}}, {"a": {"1": "2024-01-02"}}), (Pair(1, date(2024, 1, 2)), {"a": 1, "b": "2024-01-02"}),
    (Data(1), {"a": 1}), (Value(1), {"a": 1}), (Model(a=date(2024, 1, 2)), {"a": "2024-01-02"}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "said"), PLAIN, ids=[repr(row[0]) for row in PLAIN])
def test_values_as_json(value: Any, said: Any) -> None:
    """Each value has the JSON that its type decodes."""
    assert plain(value) == said
    assert type(plain(value)) is type(said)


@pytest.mark.parametrize("value", [object(), float("nan"), int, {1.5: 1}, {True: 1}, lambda: 1])
def test_values_without_json(value: Any) -> None:
    """What has no JSON form says so."""
    with pytest.raises(NoJsonError):
        plain(value)

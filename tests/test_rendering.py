"""What a tool's function returned, and what the model reads of it."""

import dataclasses
import enum
import json
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

import pytest
from attrs import define, frozen

from fnagents.errors import InvalidArguments, ToolRaised, UnrenderableOutput
from fnagents.items import File, Image, Text
from fnagents.models import Usage
from fnagents.outcome import Failure, Success
from fnagents.rendering import plain, raised, render
from fnagents.tools import Delegate, Handoff, Output


class Colour(enum.Enum):
    RED = "red"


class Shade(str, enum.Enum):  # noqa: UP042  # as many write it
    DARK = "dark"


class Size(enum.IntEnum):
    BIG = 3


class Loud(str):
    """Text that shows itself differently."""

    __slots__ = ()

    def __str__(self):
        return self.upper()


@frozen
class Point:
    x: int
    _y: float = 0.5


@dataclasses.dataclass
class Line:
    ends: list[object]


class Pair(NamedTuple):
    left: int
    right: object


Loose = namedtuple("Loose", "a b")  # noqa: PYI024


class Model:
    """Looks like a pydantic model."""

    def model_dump(self, mode):
        return {"mode": mode}


@define
class Node:
    next: object = None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain text", "plain text"),
        ("", '""'),
        (None, "null"),
        ([], "[]"),
        ((), "[]"),
        ({}, "{}"),
        (set(), "[]"),
        (0, "0"),
        (True, "true"),
        (1.5, "1.5"),
        (-0.0, "-0.0"),
        (1234567890123456789, "1234567890123456789"),
        (float("nan"), '"NaN"'),
        ({"a": float("nan"), "b": [float("inf"), float("-inf")]}, '{"a":"NaN","b":["Infinity","-Infinity"]}'),
        ({"b": 1, "a": "é"}, '{"a":"é","b":1}'),
        ({1: "a", None: "b", 2.5: "c", False: "d"}, '{"1":"a","2.5":"c","false":"d","null":"b"}'),
        ({date(2024, 2, 29): 1}, '{"2024-02-29":1}'),
        (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        ([1, (2, "x"), None], '[1,[2,"x"],null]'),
        ({3, 1, 2}, "[1,2,3]"),
        (frozenset({"b", "a"}), '["a","b"]'),
        ({(1, 2), (1, 1)}, "[[1,1],[1,2]]"),
        (Colour.RED, '"red"'),
        (Shade.DARK, "dark"),
        ([Shade.DARK, Size.BIG], '["dark",3]'),
        (Loud("quiet"), "quiet"),
        ([Loud("quiet")], '["quiet"]'),
        (Point(1), '{"_y":0.5,"x":1}'),
        (Line([Point(1, 2.0)]), '{"ends":[{"_y":2.0,"x":1}]}'),
        (Pair(1, Pair(2, None)), '{"left":1,"right":{"left":2,"right":null}}'),
        (Loose(1, 2), '{"a":1,"b":2}'),
        (Model(), '{"mode":"json"}'),
        (date(2024, 2, 29), '"2024-02-29"'),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), '"2024-02-29T12:00:00+00:00"'),
        (time(12, 30), '"12:30:00"'),
        (timedelta(minutes=90), '"PT5400S"'),
        (timedelta(days=12, seconds=1, microseconds=5), '"P12DT1.000005S"'),
        (timedelta(seconds=-1), '"-PT1S"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.10"), '"1.10"'),
        (PurePosixPath("/a/b"), '"/a/b"'),
        ([Text("a"), "b"], '[{"extra":"","text":"a"},"b"]'),
    ],
)
def test_the_text_of_a_value(value, text) -> None:
    """The table is the specification; no text is ever empty."""
    assert render(value) == Success(Output(text))
    rendered = render(value).unwrap()
    assert isinstance(rendered, Output)
    assert type(rendered.parts) is str


@pytest.mark.parametrize("value", ["", None, [], (), {}, set()])
def test_nothing_has_a_text_too(value) -> None:
    """An empty output would be dropped, and the call would stay unanswered."""
    rendered = render(value).unwrap()
    assert isinstance(rendered, Output)
    assert json.loads(rendered.text) in ("", None, [], {})


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (Text("a"), (Text("a"),)),
        (Image(url="data:image/png;base64,AA=="), (Image(url="data:image/png;base64,AA=="),)),
        ([Text("a"), File(file_id="f")], (Text("a"), File(file_id="f"))),
        ((Image(file_id="i"),), (Image(file_id="i"),)),
    ],
)
def test_pictures_and_files_are_parts_and_not_text(value, parts) -> None:
    """One alone, or a list of nothing else."""
    assert render(value) == Success(Output(parts))


@pytest.mark.parametrize("value", [Output("a", Usage(1), "m"), Output((Text("a"),)), Handoff("b"), Delegate("b", "go")])
def test_an_answer_is_itself(value) -> None:
    """What a function says in the library's own words is not rendered again."""
    assert render(value) == Success(value)


@pytest.mark.parametrize("parts", ["", ()])
def test_an_empty_output_gets_a_text(parts) -> None:
    """Usage and memory are kept."""
    assert render(Output(parts, Usage(1), "m")) == Success(Output('""', Usage(1), "m"))


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (Success({"a": 1}), Success(Output('{"a":1}'))),
        (Success(Success(None)), Success(Output("null"))),
        (Failure(InvalidArguments(("$.x: odd",))), Failure(InvalidArguments(("$.x: odd",)))),
        (Failure(ValueError("no")), Failure(ToolRaised("ValueError", "no"))),
        (Failure("no such city"), Failure(ToolRaised("str", "no such city"))),
        (Failure(404), Failure(ToolRaised("int", "404"))),
    ],
)
def test_an_outcome_stands_for_what_is_in_it(value, outcome) -> None:
    """A tool may say that it failed without raising."""
    assert render(value) == outcome


class Hostile:
    """Raises when it is read."""

    def model_dump(self, mode):
        raise ZeroDivisionError


class Endless:
    """Gives itself for ever."""

    def model_dump(self, mode):
        return self


def ring():
    node = Node()
    node.next = node
    return node


def deep(levels):
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x89PNG\xff", "a value of type bytes has no form for a model; return text or plain data"),
        ({"a": [bytearray()]}, "a value of type bytearray has no form for a model; return text or plain data"),
        ((n for n in "ab"), "a value of type generator has no form for a model; return text or plain data"),
        (object(), "a value of type object has no form for a model; return text or plain data"),
        (Line, "a value of type type has no form for a model; return text or plain data"),
        (Model, "a value of type type has no form for a model; return text or plain data"),
        (1j, "a value of type complex has no form for a model; return text or plain data"),
        ({(1, 2): "a"}, "a tuple cannot be a key of a JSON object"),
        ({b"k": "a"}, "a value of type bytes has no form for a model; return text or plain data"),
        ({1: "a", "1": "b"}, "two keys of a mapping read as '1'"),
        (ring(), "it is nested too deep, or contains itself"),
        (Endless(), "it is nested too deep, or contains itself"),
        (deep(300), "it is nested too deep, or contains itself"),
        (Hostile(), "reading it raised ZeroDivisionError"),
        pytest.param(10**5000, "reading it raised ValueError", id="huge"),
    ],
)
def test_what_has_no_form_is_feedback(value, reason) -> None:
    """Nothing is guessed at or changed in silence, and nothing hangs."""
    assert render(value) == Failure(UnrenderableOutput(reason))


def test_depth_is_counted_as_the_reader_of_json_counts_it() -> None:
    """What was rendered can be read again."""
    rendered = render(deep(199)).unwrap()
    assert isinstance(rendered, Output)
    assert json.loads(rendered.text) == deep(199)


def test_plain_data_shares_nothing_with_the_value() -> None:
    """It is new data, all the way down."""
    value = {"a": [1]}
    copy = plain(value)
    assert copy == value
    assert copy["a"] is not value["a"]


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "value"),
    [
        (ValueError("no"), ToolRaised("ValueError", "no")),
        (ValueError(), ToolRaised("ValueError")),
        (KeyError("k"), ToolRaised("KeyError", "'k'")),
        (UnspeakableError(), ToolRaised("UnspeakableError")),
    ],
)
def test_an_exception_as_a_value(error, value) -> None:
    """Its class and its message, even if its message raises."""
    assert raised(error) == value


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_message_that_asks_for_the_end_gets_it(error) -> None:
    """What must pass through passes through `__str__` too."""

    class Ending(Exception):
        def __str__(self):
            raise error

    with pytest.raises(error):
        raised(Ending())

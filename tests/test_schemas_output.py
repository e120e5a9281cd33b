"""Types of final outputs: what is sent, what is read, what a run keeps."""

import dataclasses
import json
from datetime import date
from typing import Any

import pytest

from fnagents.errors import DeclarationError, InvalidArguments, InvalidJson
from fnagents.outcome import Failure, Success
from fnagents.schemas.output import schema


@dataclasses.dataclass
class Report:
    """A report."""

    title: str
    day: date | None = None


@dataclasses.dataclass
class Even:
    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("it is odd")


def test_an_object_stands_as_it_is() -> None:
    """A class with fields is sent as an object, in strict form, and read into itself."""
    report = schema(Report)
    assert json.loads(report.text)["required"] == ["title", "day"]
    value = report.read('{"title": "A", "day": "2024-01-02"}').unwrap()
    assert value == Report("A", date(2024, 1, 2))
    assert report.write(value) == '{"day":"2024-01-02","title":"A"}'
    assert report.decode(report.write(value)) == Success(value)


@pytest.mark.parametrize(
    ("kind", "text", "value", "kept"),
    [
        (int, '{"response": 3.0}', 3, "3"),
        (list[date], '{"response": ["2024-01-02"]}', [date(2024, 1, 2)], '["2024-01-02"]'),
        (Report | None, '{"response": null}', None, "null"),
        (tuple[int, str], '{"response": [1, "a"]}', (1, "a"), '[1,"a"]'),
    ],
)
def test_any_other_type_is_wrapped(kind: Any, text: str, value: Any, kept: str) -> None:
    """It stands under `response` on the wire, and alone in the run."""
    one = schema(kind)
    assert json.loads(one.text)["required"] == ["response"]
    assert one.read(text) == Success(value)
    assert one.write(value) == kept
    assert one.decode(kept) == Success(value)


def test_what_does_not_fit_is_told() -> None:
    """Text that is no JSON, JSON that does not fit, and a class that refuses are three values."""
    assert isinstance(schema(int).read("three").failure(), InvalidJson)
    assert isinstance(schema(int).decode("three").failure(), InvalidJson)
    assert schema(int).read('{"response": "x"}') == Failure(
        InvalidArguments(("$.response: 'x' is not of type 'integer'",))
    )
    assert schema(int).read('{"response": 1, "more": 2}') == Failure(
        InvalidArguments(("$: Additional properties are not allowed ('more' was unexpected)",))
    )
    assert schema(Even).read('{"n": 3}') == Failure(InvalidArguments(("$: ValueError: it is odd",)))


def test_a_schema_by_hand() -> None:
    """A JSON Schema is judged by itself and gives plain data."""
    one = schema({"type": "object", "properties": {"n": {"type": "integer"}}}, name="count")
    assert one.name == "count"
    assert one.read('{"n": 1}') == Success({"n": 1})
    assert one.decode('{"n": 1}') == Success({"n": 1})
    assert one.read('{"n": "1"}') == Failure(InvalidArguments(("$.n: '1' is not of type 'integer'",)))


def test_not_strict() -> None:
    """Without `strict` the schema itself is sent, and a map may be an output."""
    one = schema(dict[str, int], strict=False)
    assert json.loads(one.text) == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert one.read('{"a": 1}') == Success({"a": 1})


@pytest.mark.parametrize(
    "output", [dict[str, int], {"type": "string"}, {"type": "objekt"}, {"enum": [{1}]}, object.__init__]
)
def test_outputs_that_cannot_be(output: Any) -> None:
    """An open object in strict form, a root that is none, a schema that is none, a type without JSON."""
    with pytest.raises(DeclarationError, match="final_output"):
        schema(output)

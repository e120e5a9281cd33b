"""Python types in JSON: for each the schema, what is decoded to what, and what is refused.

Every row is judged by jsonschema too: its verdict and the decoder's are one.
"""

import dataclasses
import typing
from collections import OrderedDict, abc, deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, auto
from functools import partial
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID

import annotated_types as at
import attrs
import msgspec
import pydantic
import pytest
from typing_extensions import Doc, TypeAliasType

from fnagents.errors import DeclarationError
from fnagents.schemas.forms import Form
from fnagents.schemas.judging import judge
from fnagents.schemas.scope import Scope
from fnagents.schemas.types import Builder

T = TypeVar("T")
Number = TypeVar("Number", int, float)
Text = TypeVar("Text", bytes, str)
Bound = TypeVar("Bound", bound=str)
UserId = NewType("UserId", int)
Json = Union[dict[str, "Json"], list["Json"], str, int, None]  # noqa: UP007
Tree = TypeAliasType("Tree", "int | list[Tree]")
Pair = TypeAliasType("Pair", tuple[T, T], type_params=(T,))


class Color(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = auto()
    HIGH = auto()


class Corner(Enum):
    """A corner."""

    TOP = (0, 1)
    BOTTOM = (0, 0)


class Nothing(Enum):
    """No members."""


class Mixed(Enum):
    ONE = 1
    TRUE = "true"


class Name(str):
    """A name."""

    __slots__ = ()


class Positive(int):
    """A number above zero."""

    def __new__(cls, value: int) -> "Positive":  # noqa: PYI034
        if value <= 0:
            raise ValueError("not positive")
        return super().__new__(cls, value)


@dataclasses.dataclass(frozen=True)
class Point:
    """A point.

    Args:
        x: Across.
    """

    x: int
    y: int = dataclasses.field(default=0, metadata={"description": "Up."})
    norm: float = dataclasses.field(default=0.0, init=False)


@dataclasses.dataclass
class Node:
    value: int
    children: list["Node"] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Box(Generic[T]):
    content: T
    more: list[T] | None = None


@dataclasses.dataclass
class Crate(Generic[T]):
    box: Box[T]


@dataclasses.dataclass
class Typo:
    field: "Missing"  # type: ignore[name-defined]  # noqa: F821


@dataclasses.dataclass
class Broken:
    field: "1 / 0"  # type: ignore[valid-type]


@dataclasses.dataclass
class Handle:
    given: dataclasses.InitVar[int]


@dataclasses.dataclass
class Badly:
    name: Annotated[str, at.Ge(3)]


@attrs.frozen
class Line:
    _sku: str = attrs.field(validator=attrs.validators.matches_re("[a-z]+"))
    qty: int = attrs.field(default=1, validator=[attrs.validators.ge(1), attrs.validators.lt(100)])
    unit: Any = attrs.field(default="kg", validator=attrs.validators.in_(["kg", "l"]))
    tags: list[str] = attrs.field(factory=list, validator=attrs.validators.max_len(2))
    note: str | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.min_len(2)))
    ratio: Any = attrs.field(default=1, validator=attrs.validators.instance_of(int), metadata={"description": "How."})
    total: int = attrs.field(init=False, default=0)


def _cents(value: str) -> int:
    return int(Decimal(value) * 100)


@attrs.define
class Priced:
    cents: int = attrs.field(converter=_cents)
    count: int = attrs.field(converter=int, default=0)


@attrs.define
class Found:
    prefix: str = attrs.field(validator=attrs.validators.matches_re("a", func=__import__("re").match))
    inside: str = attrs.field(validator=attrs.validators.matches_re("b", func=__import__("re").search))
    odd: Any = attrs.field(default=object, validator=attrs.validators.in_([object]))
    hooked: int = attrs.field(default=0, validator=lambda instance, attribute, value: None)


@attrs.define
class Misplaced:
    name: str = attrs.field(validator=attrs.validators.ge(1))  # type: ignore[assignment]


@dataclasses.dataclass
class Lazy:
    n: int = None  # type: ignore[assignment]  # as it was written before PEP 484 was amended


class Place(TypedDict, total=False):
    """A place."""

    city: Required[str]
    zip: str


class Loose(TypedDict):
    a: int
    b: NotRequired[bool]


class Range(NamedTuple):
    low: int
    high: int = 9


class Model(pydantic.BaseModel):
    """A model."""

    n: int = pydantic.Field(ge=0, alias="N")
    inner: Optional["Model"] = None
    kind: Literal["a"] = "a"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


class Pet(pydantic.BaseModel):
    one: Cat | Dog = pydantic.Field(discriminator="kind")


class OpenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int


class Opaque(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    a: Scope


class Parcel(pydantic.BaseModel, Generic[T]):
    content: T


@pydantic.dataclasses.dataclass
class Checked:
    a: int


class Struct(msgspec.Struct):
    a: Annotated[int, msgspec.Meta(ge=0)]
    b: str = "x"


class Raw(msgspec.Struct):
    a: Scope


class Plain:
    """No fields at all."""


def built(hint: Any) -> tuple[Form, dict[str, Any]]:
    """The form of a type, and its whole schema."""
    builder = Builder("tool 't'", Scope(built))
    builder.parameter = "p"
    form = builder.form(hint)
    return form, {**form.schema, "$defs": builder.definitions} if builder.definitions else form.schema


BAD: Any = object()

#: type -> (schema or None for "not looked at", {JSON: value, or BAD for refused})
Row = tuple[Any, dict[str, Any] | None, list[tuple[Any, Any]]]
INT = {"type": "integer"}
STR = {"type": "string"}

ROWS: list[Row] = [
    (int, INT, [(1, 1), (5.0, 5), (10**400, 10**400), (True, BAD), ("1", BAD), (1.5, BAD), (None, BAD)]),
    (float, {"type": "number"}, [(1, 1.0), (1.5, 1.5), (10**400, 10**400), (True, BAD), ("1", BAD)]),
    (bool, {"type": "boolean"}, [(True, True), (1, BAD), (0.0, BAD), ("true", BAD)]),
    (str, STR, [("", ""), (1, BAD), (None, BAD)]),
    (None, {"type": "null"}, [(None, None), (0, BAD), (False, BAD)]),
    (Any, {}, [(None, None), ([{}], [{}])]),
    (object, {}, [(3, 3)]),
    (abc.Hashable, None, [(3, 3), ([], BAD)]),
    (Name, STR, [("a", Name("a")), (1, BAD)]),
    (UserId, INT, [(1, 1), ("1", BAD)]),
    (datetime, {"type": "string", "format": "date-time"}, [
        ("2024-02-29T12:30:00Z", datetime(2024, 2, 29, 12, 30, tzinfo=UTC)),
        ("2024-02-29t12:30:00.5+00:00", datetime(2024, 2, 29, 12, 30, 0, 500000, tzinfo=UTC)),
        ("2024-02-29 12:30", datetime(2024, 2, 29, 12, 30)),  # noqa: DTZ001
        ("2023-02-29T12:30:00Z", BAD), ("2024-02-29", BAD), ("20240229T123000Z", BAD), (0, BAD),
    ]),
    (date, {"type": "string", "format": "date"}, [("2024-02-29", date(2024, 2, 29)), ("2024-02-30", BAD), ("20240229", BAD)]),
    (time, {"type": "string", "format": "time"}, [("12:30", time(12, 30)), ("12:30:00z", time(12, 30, tzinfo=UTC)), ("25:00", BAD)]),
    (timedelta, {"type": "string", "format": "duration"}, [
        ("PT90M", timedelta(minutes=90)), ("P1W2DT3.5S", timedelta(9, 3, 500000)), ("-P1D", timedelta(-1)),
        ("P", BAD), ("PT", BAD), ("P1Y", BAD), ("P99999999999D", BAD), (90, BAD),
    ]),
    (UUID, {"type": "string", "format": "uuid"}, [
        ("12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
        ("12345678123456781234567812345678", BAD), ("x", BAD),
    ]),
    (Decimal, None, [(1, Decimal(1)), (0.1, Decimal("0.1")), ("1.10", Decimal("1.10")), ("1e5", Decimal("1e5")),
                     ("NaN", BAD), (" 1", BAD), (True, BAD)]),
    (bytes, None, [("aGk=", b"hi"), ("", b""), ("aGk", BAD), ("!!!!", BAD), (1, BAD)]),
    (Path, STR, [("a/b", Path("a/b")), (1, BAD)]),
    (PurePosixPath, STR, [("a/b", PurePosixPath("a/b"))]),
    (__import__("os").PathLike, STR, [("a", Path("a"))]),
    (list[int], {"type": "array", "items": INT}, [([1, 2.0], [1, 2]), (["1"], BAD), ({}, BAD), ("ab", BAD)]),
    (list, {"type": "array", "items": {}}, [([1, None], [1, None])]),
    (abc.Sequence[str], {"type": "array", "items": STR}, [(["a"], ["a"]), ("ab", BAD)]),
    (abc.Iterable[str], {"type": "array", "items": STR}, [(["a"], ["a"])]),
    (deque[int], {"type": "array", "items": INT}, [([1], deque([1])), (1, BAD)]),
    (set[int], {"type": "array", "items": INT}, [([1, 1], {1}), (1, BAD), (["a"], BAD)]),
    (set, None, [([1, "a", None], {1, "a", None}), ([[]], BAD)]),
    (frozenset[tuple[int, ...]], None, [([[1], []], frozenset({(1,), ()}))]),
    (abc.Set[str], None, [(["a"], frozenset({"a"}))]),
    (set[Point], None, [([{"x": 1}], {Point(1)})]),
    (tuple[int, str], {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [INT, STR]},
     [([1, "a"], (1, "a")), ([1], BAD), ([1, 2], BAD), ([1, "a", 2], BAD), ({}, BAD)]),
    (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}, [([], ()), ([1], BAD)]),
    (tuple[int, ...], {"type": "array", "items": INT}, [([1, 2], (1, 2)), (["a"], BAD)]),
    (tuple, {"type": "array", "items": {}}, [([1, "a"], (1, "a"))]),
    (typing.Tuple, {"type": "array", "items": {}}, [([1, "a"], (1, "a"))]),  # noqa: UP006
    (typing.List[int], {"type": "array", "items": INT}, [([1], [1])]),  # noqa: UP006
    (dict, {"type": "object", "additionalProperties": True}, [({"a": []}, {"a": []}), ([], BAD)]),
    (dict[str, int], {"type": "object", "additionalProperties": INT}, [({"a": 1}, {"a": 1}), ({"a": "1"}, BAD)]),
    (abc.Mapping[Any, int], {"type": "object", "additionalProperties": INT}, [({"a": 1}, {"a": 1})]),
    (dict[int, str], None, [({"1": "a", "-2": "b"}, {1: "a", -2: "b"}), ({"01": "a"}, BAD), ({"x": "a"}, BAD)]),
    (dict[Color, int], None, [({"red": 1}, {Color.RED: 1}), ({"green": 1}, BAD)]),
    (dict[date, int], None, [({"2024-01-02": 1}, {date(2024, 1, 2): 1}), ({"x": 1}, BAD)]),
    (OrderedDict[str, int], None, [({"a": 1}, OrderedDict(a=1))]),
    (Literal["a", 1, True, None], {"enum": ["a", 1, True, None]},  # noqa: PYI061
     [("a", "a"), (1, 1), (1.0, 1), (True, True), (None, None), (False, BAD), (0, BAD), ([], BAD), ("b", BAD)]),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, [("a", "a"), ("c", BAD), ([], BAD), (1, BAD)]),
    (Literal[1, 2], {"type": "integer", "enum": [1, 2]}, [(1, 1), (True, BAD), (3, BAD)]),
    (Literal[Color.RED], None, [("red", Color.RED), ("blue", BAD)]),
    (Color, {"$ref": "#/$defs/Color", "$defs": {"Color": {"type": "string", "enum": ["red", "blue"], "description": "A colour."}}},
     [("red", Color.RED), ("RED", BAD), (1, BAD)]),
    (Level, {"$ref": "#/$defs/Level", "$defs": {"Level": {"type": "integer", "enum": [1, 2], "description": "1 = LOW, 2 = HIGH"}}},
     [(1, Level.LOW), (2.0, Level.HIGH), (True, BAD), (3, BAD)]),
    (Corner, None, [("TOP", Corner.TOP), ("LEFT", BAD)]),
    (Mixed, None, [(1, Mixed.ONE), ("true", Mixed.TRUE), (True, BAD)]),
    (Optional[int], {"anyOf": [INT, {"type": "null"}]}, [(None, None), (1, 1), ("1", BAD)]),  # noqa: UP045
    (int | str | None, None, [(None, None), (1, 1), ("1", "1"), (1.5, BAD), ([], BAD)]),
    (float | int, None, [(5, 5), (5.0, 5.0), ("5", BAD)]),
    (Union[datetime, str], None, [("x", "x"), ("2024-01-02T00:00:00Z", datetime(2024, 1, 2, tzinfo=UTC))]),  # noqa: UP007
    (list[int] | list[str], None, [([1], [1]), (["a"], ["a"]), ([1, "a"], BAD)]),
    (int | Annotated[int, at.Ge(3)] | UserId, None, [(1, 1)]),
    (Union[int, UserId], INT, [(1, 1)]),  # noqa: UP007
    (T, {}, [(1, 1)]),
    (Number, None, [(1, 1), (1.5, 1.5), ("a", BAD)]),
    (Text, None, [("aGk=", "aGk=")]),
    (Bound, STR, [("a", "a"), (1, BAD)]),
    (Json, None, [({"a": [1, None, {"b": "c"}]}, {"a": [1, None, {"b": "c"}]}), ({"a": True}, BAD)]),
    (Tree, None, [(1, 1), ([1, [2]], [1, [2]]), ("a", BAD)]),
    (Pair[int], None, [([1, 2], (1, 2)), ([1, "a"], BAD)]),
    (ForwardRef("int"), INT, [(1, 1)]),
    (list["Point"], None, [([{"x": 1}], [Point(1)])]),
    (Point, {
        "$ref": "#/$defs/Point",
        "$defs": {"Point": {
            "description": "A point.", "type": "object",
            "properties": {"x": {**INT, "description": "Across."}, "y": {**INT, "description": "Up.", "default": 0}},
            "required": ["x"], "additionalProperties": False,
        }},
    }, [({"x": 1}, Point(1)), ({"x": 1, "y": 2}, Point(1, 2)), ({}, BAD), ({"x": 1, "z": 1}, BAD), ({"x": 1, "norm": 1.0}, BAD),
        ({"x": "1"}, BAD), ([1], BAD), (None, BAD)]),
    (Node, None, [({"value": 1, "children": [{"value": 2}]}, Node(1, [Node(2)])), ({"value": 1, "children": [{}]}, BAD)]),
    (Box[int], None, [({"content": 1, "more": [2]}, Box(1, [2])), ({"content": "a"}, BAD)]),
    (Crate[str], None, [({"box": {"content": "a"}}, Crate(Box("a"))), ({"box": {"content": 1}}, BAD)]),
    (tuple[Box[int], Box[str]], None, [([{"content": 1}, {"content": "a"}], (Box(1), Box("a")))]),
    (Line, None, [
        ({"sku": "ab"}, Line("ab")), ({"sku": "ab", "qty": 2, "unit": "l", "tags": ["x"], "note": "no"}, Line("ab", 2, "l", ["x"], "no")),
        ({"sku": "AB"}, BAD), ({"sku": "a", "qty": 0}, BAD), ({"sku": "a", "qty": 100}, BAD), ({"sku": "a", "unit": "m"}, BAD),
        ({"sku": "a", "tags": ["a", "b", "c"]}, BAD), ({"sku": "a", "note": "n"}, BAD), ({"sku": "a", "ratio": "x"}, BAD), ({"_sku": "a"}, BAD),
    ]),
    (Priced, None, [({"cents": "1.5"}, Priced("1.5")), ({"cents": 1}, BAD)]),
    (Found, None, [({"prefix": "ab", "inside": "ab"}, Found("ab", "ab")), ({"prefix": "ba", "inside": "ab"}, BAD), ({"prefix": "a", "inside": "a"}, BAD)]),
    (Place, {
        "$ref": "#/$defs/Place",
        "$defs": {"Place": {
            "description": "A place.", "type": "object", "properties": {"city": STR, "zip": STR},
            "required": ["city"], "additionalProperties": False,
        }},
    }, [({"city": "Oslo"}, {"city": "Oslo"}), ({"zip": "1"}, BAD)]),
    (Loose, None, [({"a": 1}, {"a": 1}), ({"a": 1, "b": True}, {"a": 1, "b": True}), ({"a": 1, "b": 1}, BAD)]),
    (Lazy, None, [({}, Lazy()), ({"n": None}, Lazy()), ({"n": 1}, Lazy(1)), ({"n": "x"}, BAD)]),
    (Range, None, [({"low": 1}, Range(1)), ({"low": 1, "high": 2}, Range(1, 2)), ([1, 2], BAD)]),
    (Model, None, [({"N": 1}, Model(N=1)), ({"N": 1, "inner": {"N": 0}}, Model(N=1, inner=Model(N=0))),
                   ({"N": -1}, BAD), ({"N": "1"}, BAD), ({"N": 1, "p": {}}, BAD), ({"N": 1, "inner": {"n": 0}}, BAD)]),
    (OpenModel, None, [({"a": 1, "b": 2}, OpenModel(a=1, b=2)), ({"b": 2}, BAD)]),  # type: ignore[call-arg]
    (Pet, None, [({"one": {"kind": "dog"}}, Pet(one=Dog(kind="dog"))), ({"one": {"kind": "cow"}}, BAD)]),
    (Parcel[int], None, [({"content": 1}, Parcel[int](content=1)), ({"content": "a"}, BAD)]),
    (Checked, None, [({"a": 1}, Checked(1)), ({"a": "1"}, BAD)]),
    (Struct, None, [({"a": 1}, Struct(1)), ({"a": -1}, BAD), ({"a": 1, "c": 1}, BAD)]),
    (Annotated[int, at.Interval(ge=0, lt=10), at.MultipleOf(2)], {**INT, "minimum": 0, "exclusiveMaximum": 10, "multipleOf": 2},
     [(0, 0), (8, 8), (3, BAD), (-2, BAD), (10, BAD)]),
    (Annotated[float, at.Gt(0), at.Le(1)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1}, [(1, 1.0), (0, BAD), (1.5, BAD)]),
    (Annotated[float, at.MultipleOf(0.5)], None, [(1.5, 1.5), (1.3, BAD), (1e308, 1e308)]),
    (Annotated[float, at.MultipleOf(1e-9)], None, [(1e300, BAD), (0, 0.0)]),
    (Annotated[str, at.Len(1, 3), "a name"], {**STR, "minLength": 1, "maxLength": 3, "description": "a name"}, [("ab", "ab"), ("", BAD), ("abcd", BAD)]),
    (Annotated[list[int], at.MinLen(1)], {"type": "array", "items": INT, "minItems": 1}, [([1], [1]), ([], BAD)]),
    (Annotated[dict[str, int], at.MaxLen(1)], None, [({"a": 1}, {"a": 1}), ({"a": 1, "b": 2}, BAD)]),
    (Annotated[int | None, at.Ge(0)], {"anyOf": [{**INT, "minimum": 0}, {"type": "null"}]}, [(None, None), (0, 0), (-1, BAD)]),
    (Annotated[str | int, at.MinLen(2), at.MultipleOf(3), pydantic.Field(pattern="a")], None, [(3, 3), ("ab", "ab"), ("bb", BAD), (4, BAD)]),
    (Annotated[str, pydantic.Field(pattern="^a", max_length=2, description="d")], {**STR, "pattern": "^a", "maxLength": 2, "description": "d"},
     [("ab", "ab"), ("b", BAD)]),
    (Annotated[str, pydantic.StringConstraints(pattern=__import__("re").compile("^a"))], {**STR, "pattern": "^a"}, [("a", "a")]),
    (Annotated[int, msgspec.Meta(ge=1, description="d")], {**INT, "minimum": 1, "description": "d"}, [(1, 1), (0, BAD)]),
    (Annotated[int, Doc("d")], {**INT, "description": "d"}, [(1, 1)]),
    (Annotated[int, [], object()], INT, [(1, 1)]),
    (typing.Final[int], INT, [(1, 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "schema", "cases"), ROWS, ids=[repr(row[0])[:60] for row in ROWS])
def test_types(hint: Any, schema: dict[str, Any] | None, cases: list[tuple[Any, Any]]) -> None:
    """The type has this schema, decodes these values, refuses those, and jsonschema says the same of each."""
    form, whole = built(hint)
    assert schema is None or whole == schema
    problems = judge(whole)
    for said, meant in cases:
        try:
            value = form.decode(said)
        except Exception:  # any refusal will do  # noqa: BLE001
            value = BAD
        assert value == meant, said
        assert type(value) is type(meant), said
        assert (meant is BAD) == bool(problems(said)), (said, problems(said))


REFUSED: list[tuple[Any, str]] = [
    (Plain, "type Plain has no JSON form; give it a type"),
    (abc.Callable[[int], int], "has no JSON form"),
    (partial(int), "has no JSON form"),
    (abc.Generator[int, None, None], "has no JSON form"),
    (typing.Self, "has no JSON form"),
    (list["Missing"], "NameError"),  # type: ignore[name-defined]  # noqa: F821
    (Typo, "NameError"),
    (Broken, "ZeroDivisionError"),
    (Handle, "other things than its fields"),
    (Nothing, "no members"),
    (Literal[b"x"], "JSON scalars"),
    (set[list[int]], "cannot be hashed"),
    (set[Node], "cannot be hashed"),
    (dict[float, int], "keys are not text"),
    (dict[Point, int], "keys are not text"),
    (Annotated[str, at.Ge(3)], "minimum does not bear on it"),
    (Annotated[date, at.Ge(date(2024, 1, 1))], "does not bear on it"),
    (Annotated[int, at.Ge([])], "no bound"),
    (Annotated[str, pydantic.Field(pattern="(")], "a constraint"),
    (Badly, "minimum does not bear"),
    (Misplaced, "a constraint of Misplaced.name"),
    (Opaque, "Schema"),
    (Raw, "TypeError"),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "why"), REFUSED, ids=[repr(row[0])[:60] for row in REFUSED])
def test_types_without_a_json_form(hint: Any, why: str) -> None:
    """What has no JSON form is a declaration error naming tool, parameter and both ways out."""
    with pytest.raises(DeclarationError, match=why) as raised:
        built(hint)
    assert str(raised.value).startswith("tool 't': parameter 'p': ")
    assert "Tool(name, description, schema, function)" in str(raised.value)


def test_one_class_is_named_once() -> None:
    """Uses of one class share a definition; another class of the same name gets another."""
    other: Any = dataclasses.make_dataclass("Point", [("z", int)])
    _, whole = built(tuple[Point, Point, other])
    assert [item["$ref"] for item in whole["prefixItems"]] == ["#/$defs/Point", "#/$defs/Point", "#/$defs/Point_2"]
    _, whole = built(Box[int])
    assert list(whole["$defs"]) == ["Box_int"]


def test_constructors_have_the_last_word() -> None:
    """What a class's own code refuses is refused, though the schema accepts it."""
    form, _ = built(Positive)
    assert form.decode(3) == Positive(3)
    with pytest.raises(ValueError, match="not positive"):
        form.decode(-3)


def test_local_classes_are_found() -> None:
    """A class that stands in the function that declares the tool can be named in text."""

    @dataclasses.dataclass
    class Inner:
        again: "Inner | None" = None

    form, _ = built(list["Inner"])
    assert form.decode([{"again": {}}]) == [Inner(Inner())]

"""Schemas and arguments that would take long: unions in unions, references, patterns, large arrays."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Self

import annotated_types
import pydantic
import pytest

from fnagents.define import tool
from fnagents.errors import DeclarationError
from fnagents.outcome import Success
from fnagents.schemas.ambiguity import power
from fnagents.schemas.formats import BASE64
from fnagents.schemas.judging import UNJUDGED, judge
from fnagents.schemas.patterns import UNBOUNDED, doubling, longest, matching, patterns_in
from fnagents.schemas.positions import positions
from fnagents.schemas.read import json_reader
from fnagents.tools import Tool


class Word(str):
    """A text that counts how often one is made."""

    __slots__ = ()
    made = 0

    def __new__(cls, text: str) -> Self:
        Word.made += 1
        return super().__new__(cls, text)


@dataclass
class Add:
    word: Word
    args: "list[Add | Mul]"


@dataclass
class Mul:
    word: Word
    args: "list[Add | Mul]"
    z: int = 0


def calc(x: Add | Mul) -> None:
    """Calculate."""


READ = tool(calc, strict=False).read


def nested(innermost: Any, depth: int, **more: Any) -> str:
    """Arguments with so many levels."""
    for _ in range(depth):
        innermost = {"word": "w", "args": [innermost], **more}
    return json.dumps({"x": innermost})


def words(text: str) -> int:
    """How many words are made when this is read."""
    Word.made = 0
    READ(text)
    return Word.made


@pytest.mark.parametrize(
    ("innermost", "more"),
    [
        ({"bad": 1}, {}),
        ({"word": "w", "args": [], "z": 1}, {"z": 1}),
        ({"word": "w", "args": [3]}, {"z": 1}),
    ],
    ids=["invalid", "valid, by the second branch", "invalid inside"],
)
def test_decoding_a_recursive_union_does_not_double_with_every_level(innermost: Any, more: Any) -> None:
    """Twice as deep is at most four times the work, whether the arguments fit or not."""
    shallow, deep = (words(nested(innermost, depth, **more)) for depth in (20, 40))

    assert 20 <= shallow <= deep <= 4 * shallow


def test_a_value_of_a_recursive_union_is_decoded_by_the_branch_that_fits() -> None:
    """What is remembered of a value is which branch accepts it."""
    inner = {"word": "c", "args": [], "z": 2}
    text = json.dumps({"x": {"word": "a", "args": [{"word": "b", "args": [inner, {"word": "d", "args": []}]}, inner]}})

    two = Mul(Word("c"), [], 2)
    assert READ(text).unwrap().values == {"x": Add(Word("a"), [Add(Word("b"), [two, Add(Word("d"), [])]), two])}


@pytest.mark.parametrize("depth", [1, 17, 60])
def test_why_a_recursive_union_is_not_fitted_is_said_at_any_depth(depth: int) -> None:
    """jsonschema judges each branch anew on every way to it; here it has the steps for one way."""
    (problem,) = READ(nested({"bad": 1}, depth)).failure().problems

    assert problem.startswith("$.x: ")
    assert problem.endswith("is not valid under any of the given schemas")


def test_a_problem_below_the_branch_that_comes_nearest_keeps_its_place() -> None:
    """The same union is met on two ways to it, and says the same on both."""
    schema = {
        "$defs": {"U": {"anyOf": [{"type": "null"}, {"properties": {"b": {"type": "integer"}}}]}},
        "properties": {"a": {"oneOf": [{"$ref": "#/$defs/U"}]}},
        "additionalProperties": {"$ref": "#/$defs/U"},
        "allOf": [{"properties": {"a": {"$ref": "#/$defs/U"}}}],
    }

    assert judge(schema)({"a": {"b": "x"}, "c": {"b": "y"}}) == (
        "$.a.b: 'x' is not of type 'integer'",
        "$.c.b: 'y' is not of type 'integer'",
    )


def test_oneof_says_what_several_branches_accept() -> None:
    """There is no branch that comes nearest."""
    assert "is valid under each of" in judge({"oneOf": [{"type": "integer"}, {"minimum": 0}]})(3)[0]


@dataclass
class Link:
    next: "Link | Last | None" = None


@dataclass
class Last:
    end: int


def walk(x: Link, y: int = 0) -> None:
    """Walk."""


def test_the_parameter_is_named_where_the_explanation_would_take_too_long() -> None:
    """jsonschema needs more of the stack than there is; the decoder knows at least which parameter it was."""
    innermost: Any = {"end": "x"}
    for _ in range(190):
        innermost = {"next": innermost}

    problems = tool(walk, strict=False).read(json.dumps({"x": innermost, "y": 3})).failure().problems

    assert problems[0] == "$.x: it does not fit"
    assert problems[1].startswith(UNJUDGED)


def doubled(levels: int) -> dict[str, Any]:
    """A schema in which every level refers to the next one twice."""
    defs: dict[str, Any] = {f"a{at}": {"allOf": [{"$ref": f"#/$defs/a{at + 1}"}] * 2} for at in range(levels)}
    return {"$defs": {**defs, f"a{levels}": {"type": "object"}}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize("dialect", [{}, {"$schema": "http://json-schema.org/draft-07/schema#"}])
def test_a_schema_without_reasonable_end_is_given_up(dialect: dict[str, str]) -> None:
    """A judgement has so many steps, and says so; a smaller schema of the kind is judged."""
    (problem,) = json_reader(json.dumps({**doubled(40), **dialect}))("{}").failure().problems
    assert problem.startswith(UNJUDGED)
    assert "steps" in problem

    assert isinstance(json_reader(json.dumps({**doubled(5), **dialect}))("{}"), Success)


def test_a_reference_to_the_root_stays_in_bounds() -> None:
    """A schema that names its dialect is met again at every `#`."""
    either = [{"properties": {"a": {"$ref": "#"}}, "required": [name]} for name in "zy"]
    read = json_reader(json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "anyOf": either}))
    innermost: Any = {"z": 1}
    for _ in range(60):
        innermost = {"a": innermost, "y": 1}

    assert isinstance(read(json.dumps(innermost)), Success)
    assert not read(json.dumps({"a": innermost})).failure().problems[0].startswith(UNJUDGED)


def test_a_dynamic_reference_means_what_it_means_on_each_way() -> None:
    """One union, of text on one way and of numbers on the other: nothing is remembered of it."""
    schema = {
        "$id": "urn:root",
        "properties": {"a": {"$ref": "urn:text"}},
        "allOf": [{"properties": {"a": {"$ref": "urn:any"}}}],
        "$defs": {
            "any": {
                "$id": "urn:any",
                "anyOf": [{"$dynamicRef": "#item"}],
                "$defs": {"item": {"$dynamicAnchor": "item"}},
            },
            "text": {
                "$id": "urn:text",
                "$ref": "urn:any",
                "$defs": {"item": {"$dynamicAnchor": "item", "type": "string"}},
            },
        },
    }

    assert judge(schema)({"a": "x"}) == ()
    assert len(judge(schema)({"a": 1})) == 1


@pytest.mark.parametrize(
    ("array", "unique"),
    [
        ([1, True, "1", None, [1], {"a": 1}], True),
        ([1, 1.0], False),
        ([0, False, 0.5, "0"], True),
        ([[1], [1.0]], False),
        ([[1], [True]], True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], False),
        ([{"a": 1}, {"a": "1"}], True),
        ([10**22, 1e22], False),
        ([2**53 + 1, float(2**53)], True),
        ([{"n": index} for index in range(50_000)], True),
        ([{"n": index} for index in (*range(50_000), 0)], False),
        ([index * (2**61 - 1) for index in range(50_000)], True),
    ],
)
def test_unique_items(array: list[Any], unique: bool) -> None:
    """Each is looked at once; 1 is 1.0 and not true, and the order of keys says nothing."""
    assert (judge({"uniqueItems": True})(array) == ()) == unique


@pytest.mark.parametrize(("schema", "data"), [({"uniqueItems": False}, [1, 1]), ({"uniqueItems": True}, "aa")])
def test_what_need_not_be_unique(schema: dict[str, Any], data: Any) -> None:
    """The keyword bears on arrays, if it is true."""
    assert judge(schema)(data) == ()


#: So many pieces that they cannot be compared with each other.
CROWD = "^(?:" + "|".join(chr(0x4E00 + index) + chr(0x6000 + index) for index in range(180)) + ")*$"
DOUBLING = [
    "^(a+)+$", "(a*)*b", "(?:a|a)*$", "(?:a|ab|b)*$", r"^(\w+\s?)*$", "^(?:(?:a*)?b)*c", "^(a?){30}a{30}$", "^(a+){50}$",
    r"^(\d{1,3},?)*$", "(?=(a+)+$)x", r"^(https?://)?([\da-z.-]+)\.([a-z.]{2,6})([/\w .-]*)*/?$", "(?i)^(?:ab|AB|c)+$", CROWD,
    "(" + "|".join(f"R/C{index}" for index in range(600)) + ")*", "^(?:[^a]|[^b])*$", r"^(?:\W|[^a])*$", "(?i)^(?:a|xA?)*x*$",
]  # fmt: skip
FAST = [
    "", "^a$", BASE64, "^[a-z0-9]+(-[a-z0-9]+)*$", r"\S", "[A-Z]+", "^(?:[a-z]+[.])*[a-z]+$", "^(?:and|or|all|not)*$",
    r'^(?:"[^"]*"|\\.|[^"\\])*$', "^(?:[0-9a-f]{32})*$", r"^(\d{1,3}\.){3}\d{1,3}$", "^[a-zA-Z0-9_-]{1,64}$", r"^(?:\d{4}T)+x",
    "^(?:a++)+$", "(a)(?(1)b|c)*x", "^(" + "|".join(f"Region/City{index}" for index in range(600)) + ")$", "^a{2,4}b*?$",
    r"^(?:\s\S)*\d+[^\d]$", "^(?>a+)+$", "^(?:a*x|a*y)$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", DOUBLING)
def test_patterns_that_no_text_is_short_enough_for(pattern: str) -> None:
    """A loop in them reads one text in two ways, or nobody can tell."""
    assert longest(pattern) == 0


@pytest.mark.parametrize("pattern", FAST)
def test_patterns_without_a_bound(pattern: str) -> None:
    """Ordinary ones are matched against texts of any length."""
    assert longest(pattern) == UNBOUNDED


@pytest.mark.parametrize(
    ("pattern", "power_of", "most"),
    [
        ("^[^@]+@[^@]+[.][^@]+$", 2, 10_000),
        (r"\s+$", 2, 10_000),
        ("^.*foo.*$", 2, 10_000),
        ("(?m)^a+$", 2, 10_000),
        (r"^(a)\1*.*$", 2, 10_000),
        ("^.*,.*,.*$", 3, 464),
        ("^.*,.*,.*,.*$", 4, 100),
    ],
)
def test_patterns_that_are_matched_against_short_texts(pattern: str, power_of: int, most: int) -> None:
    """The work grows with a power of the length, so the length has a bound."""
    assert power(positions(pattern)) == power_of
    assert longest(pattern) == most


def test_a_text_that_is_too_long_for_a_pattern_is_a_problem() -> None:
    """The judge says so, and does not match it; so does the decoder."""
    problems_of = judge({"pattern": "^.*,.*$"})
    assert problems_of("," * 10_000) == ()
    (problem,) = problems_of("," * 10_001)
    assert problem == "$: a text of 10001 characters is too long for '^.*,.*$' (up to 10000)"

    assert matching("^.*,.*$")("," * 10_000)
    assert not matching("^.*,.*$")("," * 10_001)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        {"items": [{"patternProperties": {"^(a+)+$": {}}}]},
        {"$defs": {"x": {"anyOf": [{"pattern": "^(a+)+$"}]}}},
    ],
)
def test_a_schema_with_a_pattern_that_doubles_is_refused(schema: dict[str, Any]) -> None:
    """The author of a hand-written schema learns it when the tool is made."""
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    with pytest.raises(DeclarationError, match=r"tool 'x': the pattern .* doubles with every character"):
        json_reader(json.dumps(schema), "tool 'x'")


def test_a_pattern_that_stands_in_data_is_none() -> None:
    """A constant may look like a schema."""
    odd = {"pattern": "^(a+)+$"}
    assert list(patterns_in({"const": odd, "enum": [odd], "default": odd, "examples": [odd], "pattern": 3})) == []


def test_a_type_with_a_pattern_that_doubles_is_refused() -> None:
    """That of a parameter, and that of a model."""

    def lookup(code: Annotated[str, pydantic.Field(pattern="^(a+)+$")]) -> None: ...

    class Model(pydantic.BaseModel):
        code: Annotated[str, pydantic.Field(pattern="^(a+)+$")]

    def store(model: Model) -> None: ...

    for function in (lookup, store):
        with pytest.raises(DeclarationError, match="doubles with every character"):
            tool(function)


def test_a_pattern_that_is_met_undeclared_is_not_matched() -> None:
    """A judge that nobody checked says what is wrong with the pattern."""
    assert judge({"pattern": "^(a+)+$"})("a" * 60 + "b") == (f"$: {doubling('^(a+)+$')}",)


@pytest.mark.parametrize("keyword", ["patternProperties", "additionalProperties", "unevaluatedProperties"])
def test_keys_are_matched_within_the_same_bounds(keyword: str) -> None:
    """Whatever keyword it is that looks at the schema's patterns."""
    schema = {keyword: False, "patternProperties": {"^.*,.*$": {}}}
    problems_of = judge(schema)
    assert problems_of({"," * 10_000: 1}) == ()
    assert "too long" in problems_of({"," * 10_001: 1})[0]
    assert problems_of({}) == problems_of(3) == ()


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ({"unevaluatedProperties": False, "allOf": [{"additionalProperties": True}]}, dict.fromkeys(map(str, range(5001)))),
        ({"unevaluatedItems": False, "allOf": [{"items": {}}]}, [0] * 5001),
    ],
)  # fmt: skip
def test_so_many_elements_are_not_compared_with_each_other(schema: dict[str, Any], data: Any) -> None:
    """jsonschema's way takes a time that grows with their square."""
    assert judge(schema)(data) == ("$: 5001 elements are too many to tell which are unevaluated (up to 5000)",)
    smaller = data[:5000] if isinstance(data, list) else dict(list(data.items())[:5000])
    assert judge(schema)(smaller) == ()


def test_large_arguments_have_the_steps_they_need() -> None:
    """The bound grows with the data."""
    fields = {name: {"anyOf": [{"type": "null"}, {"type": "string"}]} for name in "abcdef"}
    read = json_reader(json.dumps({"properties": {"rows": {"items": {"properties": fields}}}}))

    assert isinstance(read(json.dumps({"rows": [dict.fromkeys("abcdef", "x")] * 5000})), Success)


def test_patterns_of_this_package_are_matched_against_any_text() -> None:
    """Bytes of any length are decoded, and judged alike."""

    def put(data: bytes, tag: Annotated[str, annotated_types.MaxLen(3)] = "") -> None: ...

    read = tool(put, strict=False).read
    assert read(json.dumps({"data": "aGk=" * 1})).unwrap().values["data"] == b"hi"
    long = "aGkh" * 10_000
    assert len(read(json.dumps({"data": long})).unwrap().values["data"]) == 30_000
    assert read(json.dumps({"data": long, "tag": "long"})).failure().problems == ("$.tag: 'long' is too long",)


@pytest.mark.parametrize("odd", [[1], [], 3, "[1]", {1}, object()])
@pytest.mark.parametrize("strict", [True, False])
def test_parameters_that_are_no_schema(odd: Any, strict: bool) -> None:
    """The error names the tool."""
    with pytest.raises(DeclarationError, match="tool 'x': it is no JSON Schema: it is not an object"):
        Tool("x", "", odd, print, strict=strict)


def test_a_timeout_beyond_all_floats() -> None:
    """It is refused as any other that no clock counts to."""
    with pytest.raises(DeclarationError, match="not a positive number of seconds"):
        Tool("x", "", {}, print, timeout=10**400)

"""Laws 10, 13 and 14: reading is total, the two schemas and the call agree, strict is idempotent, pure and ends."""

from __future__ import annotations

import copy
import json
import re
import warnings
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from schema_strategies import functions, instances, json_values, schemas, texts, types

from fnagents.define import tool
from fnagents.errors import DeclarationError
from fnagents.outcome import Failure, Success
from fnagents.schemas.docstrings import read_docstring
from fnagents.schemas.formats import FORMATS
from fnagents.schemas.judging import judge
from fnagents.schemas.output import schema
from fnagents.schemas.patterns import longest
from fnagents.schemas.read import json_reader
from fnagents.schemas.strict import strict

_SLOW = settings(suppress_health_check=list(HealthCheck), deadline=None)


_CHECKER = jsonschema.FormatChecker(())
for _name, _read in FORMATS.items():
    _CHECKER.checks(_name, raises=ValueError)(
        lambda value, read=_read: not isinstance(value, str) or read(value) is not None
    )


@st.composite
def calls(draw: st.DrawFn) -> tuple[Any, Any]:
    """A tool and arguments that nearly fit it."""
    made = tool(draw(functions()), name="made", strict=False)
    return made, draw(instances(made.parameters))


def _readable(data: Any) -> bool:
    return isinstance(data, dict)


@_SLOW
@given(calls())
def test_law_13_accepted_iff_callable(case: tuple[Any, Any]) -> None:
    """The judging schema, as jsonschema judges it, accepts an object iff it is read; what is read can be called."""
    made, data = case
    jsonschema.Draft202012Validator.check_schema(made.parameters)
    outcome = made.read(json.dumps(data))
    if not isinstance(data, dict):
        assert isinstance(outcome, Failure)
        return
    assert isinstance(outcome, Success) == (judge(made.parameters)(data) == ()), outcome
    if isinstance(outcome, Success):
        made.function(None, outcome.unwrap().given)


@_SLOW
@given(functions(), st.data())
def test_law_13_sent_implies_judging(function: Any, data: st.DataObject) -> None:
    """Whatever the strict form accepts, the judging schema accepts and the tool reads."""
    try:
        made = tool(function, name="made")
    except DeclarationError as error:
        assert "cannot be strict" in str(error)  # noqa: PT017
        return
    sent = made.definition["parameters"]
    value = data.draw(instances(sent))
    if isinstance(value, dict) and not judge(sent)(value):
        assert judge(made.parameters)(value) == ()
        assert isinstance(made.read(json.dumps(value)), Success)


@_SLOW
@given(schemas(), st.data())
def test_law_14_strict_is_idempotent_pure_and_narrower(given_schema: dict[str, Any], data: st.DataObject) -> None:
    """The form is its own form, the schema stays as it was, and what the form accepts the schema accepts."""
    before = copy.deepcopy(given_schema)
    outcome = strict(given_schema)
    assert given_schema == before
    if not isinstance(outcome, Success):
        assert outcome.failure().reason
        return
    form = outcome.unwrap()
    assert strict(form) == outcome
    value = data.draw(instances(form))
    if not judge(form)(value):
        assert judge(given_schema)(value) == ()


@_SLOW
@given(schemas(), st.data())
def test_law_14_bounds_do_not_change_a_verdict(given_schema: dict[str, Any], data: st.DataObject) -> None:
    """With bounds, the same data fits the same schemas as without."""
    value = data.draw(instances(given_schema))
    unbounded = jsonschema.Draft202012Validator(given_schema, format_checker=_CHECKER)
    try:
        fits = unbounded.is_valid(value)
    except Exception:  # noqa: BLE001  # a reference that leads nowhere, or never ends: a judge has a problem with that
        fits = False
    assert (judge(given_schema)(value) == ()) == fits


@_SLOW
@given(
    st.lists(json_values() | st.sampled_from([0, 0.0, False, 1, 1.0, True, [1], [1.0], [True], {"a": 1.0}, {"a": 1}]))
)
def test_law_14_unique_items(values: list[Any]) -> None:
    """What is found by the texts of the elements is what comparing each with each finds."""
    schema = {"uniqueItems": True}
    assert (judge(schema)(values) == ()) == jsonschema.Draft202012Validator(schema).is_valid(values)


@dataclass
class Add:
    """A sum."""

    args: list[Add | Mul | int]


@dataclass
class Mul:
    """A product."""

    args: list[Mul | Add | bool]
    z: int = 0


def _calc(x: Add | Mul) -> None:
    """Calculate."""


_TREES = st.recursive(
    st.integers(0, 2) | st.booleans(),
    lambda inner: st.builds(
        lambda args, z: {"args": args} if z is None else {"args": args, "z": z},
        st.lists(inner, max_size=3),
        st.none() | st.integers(0, 1) | st.just("z"),
    ),
    max_leaves=12,
)


@_SLOW
@given(_TREES)
def test_law_13_recursive_unions(tree: Any) -> None:
    """Values that fit both branches, or one for what is deep inside of them, are read iff the schema accepts them."""
    made = tool(_calc, strict=False)
    fits = jsonschema.Draft202012Validator(made.parameters).is_valid({"x": tree})
    assert isinstance(made.read(json.dumps({"x": tree})), Success) == fits
    assert (judge(made.parameters)({"x": tree}) == ()) == fits


@_SLOW
@given(st.text(alphabet="ab(|)*+?[^-]{2,}\\dws.$", max_size=12), st.text(alphabet="ab-1 ", max_size=20))
def test_law_10_any_pattern(pattern: str, text: str) -> None:
    """Of any pattern it is known how long a text may be, and up to there it is matched as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            search = re.compile(pattern).search
        except (re.error, OverflowError):
            return
        most = longest(pattern)
        if len(text) <= most:
            assert (judge({"pattern": pattern})(text) == ()) == (search(text) is not None)
    assert most == 0 or most >= 10


_ANY_SCHEMA = json_values() | st.dictionaries(
    st.sampled_from(
        ["type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs", "required", "enum", "pattern",
         "not", "additionalProperties", "$id", "$schema", "minimum", "multipleOf", "format", "default", "$dynamicRef"]
    ),
    json_values() | st.sampled_from(["object", "string", "#", "#/$defs/a", "(", "date"]),
)  # fmt: skip


@_SLOW
@given(_ANY_SCHEMA, st.text() | json_values().map(json.dumps))
def test_law_10_any_schema(odd: Any, text: str) -> None:
    """Any JSON as a schema: a declaration error or a reader; any text: a value; strict: a value."""
    if isinstance(odd, dict):
        assert isinstance(strict(odd), Success | Failure)
    try:
        read = json_reader(json.dumps(odd))
    except DeclarationError:
        return
    assert isinstance(read(text), Success | Failure)


@_SLOW
@given(
    functions(),
    st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")) | json_values().map(json.dumps),
)
def test_law_10_any_function_and_text(function: Any, text: str) -> None:
    """Any text, for a tool of any signature: a value."""
    assert isinstance(tool(function, name="made", strict=False).read(text), Success | Failure)


@_SLOW
@given(types(), st.data())
def test_law_10_outputs(hint: Any, data: st.DataObject) -> None:
    """An output that is read is written, and what was written is decoded to the same."""
    one = schema(hint, strict=False)
    sent = json.loads(one.text)
    outcome = one.read(json.dumps(data.draw(instances(sent))))
    if isinstance(outcome, Success):
        assert one.decode(one.write(outcome.unwrap())) == outcome


@_SLOW
@given(
    st.lists(
        st.sampled_from(
            ["Text.", "", "Args:", "Parameters", "----------", "    a: b", "a : int", ":param a: b", ":returns:", "  x",
             "Note:", "@param", ":param", "    * a", "\ta: b", "Returns:", 'a (int): "x:y"', "----", ":", "Raises"]
        )
        | st.text(max_size=5)
    ).map("\n".join),
    st.sampled_from([None, "google", "numpy", "sphinx"]),
)  # fmt: skip
def test_law_10_docstrings(text: str, style: Any) -> None:
    """Any docstring, in any style: never an exception, never an empty description of a parameter."""
    said = read_docstring(text, style)
    assert all(said.parameters.values())


_FIND = settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


@pytest.mark.parametrize(
    ("strategy", "reached"),
    [
        (calls(), lambda case: _accepts(case) and len(case[1]) > 1),
        (calls(), lambda case: isinstance(case[1], dict) and case[1] and not _accepts(case)),
        (calls(), lambda case: "$defs" in case[0].parameters and _accepts(case)),
        (calls(), lambda case: "anyOf" in case[0].schema_text and _accepts(case)),
        (schemas(), lambda one: isinstance(strict(one), Success) and "oneOf" in json.dumps(one)),
        (schemas(), lambda one: isinstance(strict(one), Success) and '"$ref": "#/$defs/A", "de' in json.dumps(one)),
        (schemas(), lambda one: isinstance(strict(one), Failure)),
        (texts(), lambda text: "T" in text),
    ],
)
def test_the_deep_cases_are_reached(strategy: st.SearchStrategy[Any], reached: Any) -> None:
    """Accepted and refused calls, nested types and unions, strict forms and refusals all come up."""
    assert find(strategy, reached, settings=_FIND) is not None


def _accepts(case: tuple[Any, Any]) -> bool:
    made, data = case
    return _readable(data) and isinstance(made.read(json.dumps(data)), Success)

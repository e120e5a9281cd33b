"""Constraints of whatever origin, as JSON Schema keywords and as checks that judge as jsonschema does.

`annotated_types`, pydantic's `Field` and `StringConstraints`, and `msgspec.Meta` name their bounds alike (`ge`,
`max_length`, ...), so that they are read by attribute, and none of them is imported.  Validators of attrs are
read by the class that attrs gives them; they run in the constructor, and here only tell the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from fractions import Fraction
from typing import Any

from typing_extensions import TypeIs

from fnagents.schemas.forms import Decode, Form, MismatchError
from fnagents.schemas.patterns import matching
from fnagents.schemas.plain import plain

__all__ = ["attrs_keywords", "constrained", "keywords_of", "text_of"]

_NAMES = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}
_KNOWN = frozenset({"annotated_types", "msgspec", "pydantic"})
_NUMERIC = {name: name for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")}
#: For each JSON type, the keywords that bear on it, and what they are called there.
_BY_TYPE: dict[str, dict[str, str]] = {
    "integer": _NUMERIC,
    "number": _NUMERIC,
    "string": {name: name for name in ("minLength", "maxLength", "pattern")},
    "array": {"minLength": "minItems", "maxLength": "maxItems"},
    "object": {"minLength": "minProperties", "maxLength": "maxProperties"},
}


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _is_sized(value: Any) -> TypeIs[Sized]:
    return isinstance(value, str | list | dict)


def keywords_of(metadata: Iterable[Any]) -> dict[str, Any]:
    """The keywords that the metadata of `Annotated`, or a `Field`, stands for, by their name for numbers and text.

    >>> class Ge:
    ...     ge = 0
    >>> Ge.__module__ = "annotated_types"
    >>> keywords_of([Ge(), "a description"])
    {'minimum': 0}
    """
    keywords: dict[str, Any] = {}
    for one in metadata:
        if type(one).__module__.split(".")[0] not in _KNOWN:
            continue
        for name, keyword in _NAMES.items():
            value = getattr(one, name, None)
            if value is not None and not callable(value):
                keywords[keyword] = getattr(value, "pattern", value)
        keywords.update(keywords_of(getattr(one, "metadata", None) or ()))
    return keywords


def text_of(metadata: Iterable[Any]) -> str:
    """The first description in the metadata: a plain text, `Doc`, or what a `Field` or `Meta` says; "" for none.

    >>> text_of([3, "how many"])
    'how many'
    """
    for one in metadata:
        if isinstance(one, str):
            return one
        for name in ("description", "documentation"):
            text = getattr(one, name, None)
            if isinstance(text, str):
                return text
    return ""


def attrs_keywords(validator: Any) -> dict[str, Any]:
    """The keywords of an attrs validator, as far as JSON Schema can say them.

    >>> from attrs import validators
    >>> attrs_keywords(validators.and_(validators.ge(0), validators.max_len(3)))
    {'minimum': 0, 'maxLength': 3}
    """
    kind = type(validator).__name__
    if kind == "_AndValidator":
        merged: dict[str, Any] = {}
        for one in validator._validators:  # noqa: SLF001  # attrs has no other way to ask
            merged.update(attrs_keywords(one))
        return merged
    if kind == "_OptionalValidator":
        return attrs_keywords(validator.validator)
    read = _ATTRS.get(kind)
    return read(validator) if read is not None else {}


_COMPARED = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}


def _in(validator: Any) -> dict[str, Any]:
    try:
        return {"enum": [plain(option) for option in validator.options]}
    except (TypeError, ValueError):
        return {}


def _matches(validator: Any) -> dict[str, Any]:
    # attrs matches in full by default; its match functions are bound methods of the compiled pattern.
    how = getattr(validator.match_func, "__name__", "fullmatch")
    source = validator.pattern.pattern
    return {"pattern": {"search": source, "match": f"^(?:{source})"}.get(how, f"^(?:{source})$")}


_ATTRS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "_NumberValidator": lambda one: {_COMPARED[one.compare_op]: one.bound},
    "_MinLengthValidator": lambda one: {"minLength": one.min_length},
    "_MaxLengthValidator": lambda one: {"maxLength": one.max_length},
    "_MatchesReValidator": _matches,
    "_InValidator": _in,
}


def constrained(form: Form, keywords: Mapping[str, Any]) -> Form:
    """The form with the keywords put where they bear, and judged before it decodes.

    Raises `ValueError`, naming it, for a keyword that bears on nothing there.

    >>> from fnagents.schemas.forms import scalar
    >>> constrained(scalar(int), {"minimum": 3}).schema
    {'type': 'integer', 'minimum': 3}
    """
    if not keywords:
        return form
    used: set[str] = set()
    schema = _placed(form.schema, keywords, used)
    if unused := sorted(keywords.keys() - used):
        raise ValueError(f"{', '.join(unused)} does not bear on it")
    check, decode = _check(keywords), form.decode

    def decode_checked(value: Any) -> Any:
        check(value)
        return decode(value)

    return Form(schema, decode_checked, form.hashable)


def _placed(schema: Mapping[str, Any], keywords: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [_placed(branch, keywords, used) for branch in schema["anyOf"]]}
    names = _BY_TYPE.get(schema.get("type", ""), {})
    fitting = {names[keyword]: _plain(value) for keyword, value in keywords.items() if keyword in names}
    used.update(keyword for keyword in keywords if keyword in names)
    if "enum" in keywords:
        used.add("enum")
        fitting["enum"] = keywords["enum"]
    return {**schema, **fitting}


def _plain(value: Any) -> Any:
    said = plain(value)
    if not isinstance(said, str | int | float):
        raise TypeError(f"{value!r} is no bound")
    return said


def _check(keywords: Mapping[str, Any]) -> Decode:
    checks = [_CHECKS[keyword](value) for keyword, value in keywords.items() if keyword in _CHECKS]

    def check(value: Any) -> None:
        for accepts in checks:
            if not accepts(value):
                raise MismatchError

    return check


def _multiple(bound: Any) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        if not _is_number(value):
            return True
        if not isinstance(bound, float):
            return bool(value % bound == 0)
        quotient = value / bound
        try:
            return bool(int(quotient) == quotient)
        except OverflowError:
            return (Fraction(value) / Fraction(bound)).denominator == 1

    return accepts


def _matching(pattern: str) -> Callable[[Any], bool]:
    found = matching(pattern)
    return lambda value: type(value) is not str or found(value)


_CHECKS: dict[str, Callable[[Any], Callable[[Any], bool]]] = {
    "minimum": lambda bound: lambda value: not _is_number(value) or value >= bound,
    "exclusiveMinimum": lambda bound: lambda value: not _is_number(value) or value > bound,
    "maximum": lambda bound: lambda value: not _is_number(value) or value <= bound,
    "exclusiveMaximum": lambda bound: lambda value: not _is_number(value) or value < bound,
    "minLength": lambda least: lambda value: not _is_sized(value) or len(value) >= least,
    "maxLength": lambda most: lambda value: not _is_sized(value) or len(value) <= most,
    "pattern": _matching,
    "multipleOf": _multiple,
}

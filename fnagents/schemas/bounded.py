"""jsonschema with bounds: no data and no schema makes it work for long.

    unions            each is judged once for each value; jsonschema judges what they hold anew on every way to them,
                      so that a recursive union takes a time that doubles with every level
    uniqueItems       takes a time that grows as the array does
    patterns          are matched against texts they are safe for (patterns.py)
    unevaluated...    jsonschema compares each with each, so they are judged up to a number of elements
    all else          at most so many steps, by the size of the data: `SpentError`

Nothing is imported from here before a judge is asked (judging.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

from jsonschema import FormatChecker, ValidationError
from referencing.jsonschema import EMPTY_REGISTRY

from fnagents.schemas.data import is_array, is_object
from fnagents.schemas.patterns import doubling, longest

__all__ = ["Judgement", "SpentError", "bounded", "shortened_middle"]

#: One keyword of a schema: from the validator, its value, the data and the schema to what is wrong.
_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], "Iterator[ValidationError] | None"]

# `extend` has no annotations.
_VALIDATORS: Any = import_module("jsonschema.validators")
_LEAST_STEPS = 10_000
_STEPS_A_VALUE = 100
_MOST_UNEVALUATED = 5_000
_LONGEST = 400


class SpentError(Exception):
    """The judgement took more steps than it may."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"it takes more than {steps} steps")


class Judgement(FormatChecker):
    """One judgement of one piece of data: the formats it checks, the steps it has left, the unions it has seen.

    jsonschema carries its format checker along, from each validator to the next; so it carries this.
    """

    def __init__(self, formats: FormatChecker, data: object, *, memory: bool) -> None:
        super().__init__(())
        # Nothing is registered here, and the formats are the same for all.
        self.checkers = formats.checkers
        self.steps = self._left = _LEAST_STEPS + _STEPS_A_VALUE * _size(data)
        #: whether a union says the same wherever it is met
        self.memory = memory
        self.seen: dict[tuple[int, int], tuple[Any, ...]] = {}

    def step(self) -> None:
        """Count one step."""
        self._left -= 1
        if self._left < 0:
            raise SpentError(self.steps)


def _size(data: object) -> int:
    count, waiting = 0, [data]
    while waiting:
        one = waiting.pop()
        count += 1
        if is_array(one):
            waiting.extend(one)
        elif is_object(one):
            waiting.extend(one.values())
    return count


@lru_cache(maxsize=32)
def bounded(kind: Any) -> Any:
    """The validator class of a dialect, with bounds; it judges all of a schema, whatever `$schema` says inside."""
    own: Mapping[str, _Keyword] = kind.VALIDATORS
    keywords: dict[str, _Keyword] = {name: _once(own[name]) for name in ("anyOf", "oneOf") if name in own}
    keywords |= {"uniqueItems": _unique, "pattern": _pattern}
    for name in ("patternProperties", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"):
        if name in own:
            keywords[name] = _matchable(own[name], countable=name.startswith("unevaluated"))
    made = _VALIDATORS.extend(kind, keywords)

    def evolve(self: Any, **changes: Any) -> Any:
        checker = changes.get("format_checker", self.format_checker)
        checker.step()
        return made(
            changes.get("schema", self.schema),
            registry=EMPTY_REGISTRY,
            format_checker=checker,
            _resolver=changes.get("_resolver", self._resolver),
        )

    # jsonschema's own goes over to the class that `$schema` names, which has no bounds.
    made.evolve = evolve
    return made


# --- keywords ------------------------------------------------------------------------------------------------


def _once(original: _Keyword) -> _Keyword:
    def judged(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        judgement: Judgement = validator.format_checker
        at = (id(value), id(instance))
        if not judgement.memory or at not in judgement.seen:
            told = [_telling(error, instance) for error in original(validator, value, instance, schema) or ()]
            # What is remembered by its id is kept, so that the id stays its own.
            judgement.seen[at] = (told, value, instance)
        else:
            told = judgement.seen[at][0]
        # An error is bent on its way up, so each way has its own.
        yield from (ValidationError(**one) for one in told)

    return judged


def _telling(error: ValidationError, instance: Any) -> dict[str, Any]:
    """Of a union that nothing fits, the branch that comes nearest: it says more than "none of the given schemas"."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    wrong_type = [each for each in branches.values() if _other_type(each)]
    near = [each for each in branches.values() if not _other_type(each)]
    said: dict[str, Any] = {"message": shortened_middle(error.message), "validator": "anyOf"}
    if len(near) == 1:
        one = near[0][0]
        said = {"message": shortened_middle(one.message), "path": tuple(one.relative_path), "validator": one.validator}
    elif wrong_type and not near:
        names = [name for each in wrong_type for name in _names(each[0].validator_value)]
        listed = ", ".join(repr(name) for name in dict.fromkeys(names))
        said["message"] = shortened_middle(f"{instance!r} is not of type {listed}")
    return said


def _other_type(branch: Sequence[ValidationError]) -> bool:
    return branch[0].validator == "type" and not branch[0].relative_path


def _names(value: Any) -> list[Any]:
    return value if is_array(value) else [value]


def shortened_middle(text: str) -> str:
    """The text, its middle left out if it is long.

    >>> len(shortened_middle("x" * 1000))
    405
    """
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def _unique(_: Any, value: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if value and is_array(instance) and len({_one_text(each) for each in instance}) != len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _one_text(value: Any) -> str:
    """The same text for what JSON Schema calls equal: 1 is 1.0, and not true; the order of keys says nothing."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    if is_array(value):
        return [_whole(each) for each in value]
    if is_object(value):
        return {key: _whole(each) for key, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _pattern(_: Any, value: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str):
        if wrong := _unsafe(value, instance):
            yield ValidationError(wrong)
        elif re.search(value, instance) is None:
            yield ValidationError(f"{instance!r} does not match {value!r}")


def _unsafe(pattern: str, text: str) -> str:
    most = longest(pattern)
    if most == 0:
        return doubling(pattern)
    return f"a text of {len(text)} characters is too long for {pattern!r} (up to {most})" if len(text) > most else ""


def _matchable(original: _Keyword, *, countable: bool) -> _Keyword:
    """The keyword, where the keys of the data are safe for the schema's patterns, and not too many to compare."""

    def judged(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        wrong = ""
        if countable and (is_array(instance) or is_object(instance)) and len(instance) > _MOST_UNEVALUATED:
            wrong = f"{len(instance)} elements are too many to tell which are unevaluated (up to {_MOST_UNEVALUATED})"
        elif is_object(instance):
            longest_key = max(instance, key=len, default="")
            found = (_unsafe(pattern, longest_key) for pattern in schema.get("patternProperties", ()))
            wrong = next(filter(None, found), "")
        if wrong:
            yield ValidationError(wrong)
        else:
            yield from original(validator, value, instance, schema) or ()

    return judged

"""JSON Schema as a judge: which problems does this data have?

`jsonschema` is imported here when a judge is first asked, and only then.  A judge is total (whatever jsonschema
raises on an odd schema is a problem, never an exception), reads no network, and says a bounded number of things.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from fnagents.errors import DeclarationError
from fnagents.schemas.data import is_object
from fnagents.schemas.formats import FORMATS
from fnagents.schemas.patterns import doubling, longest, patterns_in

if TYPE_CHECKING:
    from jsonschema import FormatChecker, ValidationError

__all__ = ["Judge", "UNJUDGED", "checked_judge", "judge", "place", "unmatchable"]

#: From data to its problems, each as `$.path: what is wrong`; none if the data fits.
Judge: TypeAlias = Callable[[Any], tuple[str, ...]]

#: How a problem begins that is none of the data's: why a judge cannot say what is wrong.
UNJUDGED = "$: it cannot be judged"
_MOST = 20


def judge(schema: Mapping[str, Any]) -> Judge:
    """The judge of a schema that is known to be sound.

    >>> judge({"properties": {"qty": {"type": "integer"}}})({"qty": "x"})
    ("$.qty: 'x' is not of type 'integer'",)
    """
    made: list[_Validator] = []

    def problems(data: Any) -> tuple[str, ...]:
        if not made:
            made.append(_Validator(schema))
        return _problems(made[0], data)

    return problems


@lru_cache(maxsize=512)
def checked_judge(schema_text: str) -> Judge:
    """The judge of a schema that somebody wrote; raises `DeclarationError` if it is none.

    A text is checked once: a server that lists the same tools every turn costs no more than its first listing.

    >>> checked_judge('{"properties": 3}')
    Traceback (most recent call last):
    ...
    fnagents.errors.DeclarationError: it is no JSON Schema: $.properties: 3 is not of type 'object'
    """
    from referencing.exceptions import Unresolvable

    try:
        schema = json.loads(schema_text)
        if not is_object(schema):
            raise DeclarationError("it is no JSON Schema: it is not an object")  # noqa: TRY301  # one way out
        validator = _Validator(schema)
        _check(schema, validator.kind.META_SCHEMA)
        _resolve_all(schema, validator.kind.META_SCHEMA["$schema"])
    except Unresolvable as error:
        raise DeclarationError(f"its reference {error.ref!r} leads to no schema in it; nothing is fetched") from None
    except DeclarationError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever else an odd schema brings out of the libraries is its author's mistake
        raise DeclarationError(f"it is no JSON Schema: {type(error).__name__}: {error!s:.200}") from None
    return lambda data: _problems(validator, data)


class _Validator:
    """jsonschema's validator of one schema, in its dialect, with bounds."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import validator_for
        from referencing.jsonschema import EMPTY_REGISTRY

        from fnagents.schemas.bounded import bounded

        self.kind: Any = bounded(validator_for(schema, default=Draft202012Validator))
        # A registry of its own: without one, jsonschema fetches what a reference names.
        self._made: Any = self.kind(schema, registry=EMPTY_REGISTRY)
        # What a dynamic reference means depends on the way to it.
        self._memory = not any(word in repr(schema) for word in ("'$dynamic", "'$recursive"))

    def errors(self, data: Any) -> Iterable[ValidationError]:
        from fnagents.schemas.bounded import Judgement

        judgement = Judgement(_formats(), data, memory=self._memory)
        found: Iterable[ValidationError] = self._made.evolve(format_checker=judgement).iter_errors(data)
        return found


def _check(schema: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Raises `DeclarationError` for a schema that is none, and for one with a pattern that is not matched."""
    for error in _Validator(meta).errors(schema):
        raise DeclarationError(f"it is no JSON Schema: {_said(error)}")
    if wrong := unmatchable(schema):
        raise DeclarationError(wrong)


def unmatchable(schema: Any) -> str:
    """What is wrong with the first pattern in the schema that no text is short enough for; "" if none is.

    >>> unmatchable({"pattern": "^(a+)+$"})[:24]
    "the pattern '^(a+)+$' ma"
    """
    return next((doubling(pattern) for pattern in patterns_in(schema) if longest(pattern) == 0), "")


@lru_cache(maxsize=1)
def _formats() -> FormatChecker:
    from jsonschema import FormatChecker

    checker = FormatChecker(())
    for name, read in FORMATS.items():
        checker.checks(name, raises=ValueError)(_fits(read))
    return checker


def _fits(read: Callable[[str], Any]) -> Callable[[object], bool]:
    # A value that is no text has no format, so it fits.
    return lambda value: not isinstance(value, str) or read(value) is not None


def _resolve_all(schema: Mapping[str, Any], dialect: str) -> None:
    from referencing.jsonschema import specification_with

    resource = specification_with(dialect).create_resource(schema)
    # The meta-schemas, which a schema may refer to, come with jsonschema.
    known: Any = import_module("jsonschema_specifications").REGISTRY
    registry = known.with_resource(resource.id() or "", resource).crawl()
    waiting = [(resource, registry.resolver(resource.id() or ""))]
    while waiting:
        one, resolver = waiting.pop()
        contents = one.contents
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if is_object(contents) and isinstance(contents.get(keyword), str):
                resolver.lookup(contents[keyword])
        waiting.extend((each, resolver.in_subresource(each)) for each in one.subresources())


def _problems(validator: _Validator, data: Any) -> tuple[str, ...]:
    found: dict[str, None] = {}
    try:
        for error in islice(validator.errors(data), _MOST + 1):
            found[_said(error)] = None
    except Exception as error:  # noqa: BLE001  # a schema that never ends, a number too large to divide: no reason to raise
        found[f"{UNJUDGED} ({type(error).__name__.removeprefix('_')}: {error!s:.200})"] = None
    problems = tuple(found)
    return (*problems[:_MOST], "$: and more") if len(problems) > _MOST else problems


def _said(error: ValidationError) -> str:
    from fnagents.schemas.bounded import shortened_middle

    return shortened_middle(f"{place(error.absolute_path)}: {error.message}")


def place(path: Iterable[str | int]) -> str:
    """Where in the data: `$.lines[0].qty`.

    >>> place(["lines", 0, "qty"])
    '$.lines[0].qty'
    """
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)

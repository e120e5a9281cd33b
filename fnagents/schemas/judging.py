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
from fnagents.schemas.data import is_array, is_object
from fnagents.schemas.formats import FORMATS

if TYPE_CHECKING:
    from jsonschema import FormatChecker, SchemaError, ValidationError
    from jsonschema.protocols import Validator

__all__ = ["Judge", "checked_judge", "judge", "place"]

#: From data to its problems, each as `$.path: what is wrong`; none if the data fits.
Judge: TypeAlias = Callable[[Any], tuple[str, ...]]

_MOST = 20
_LONGEST = 400


def judge(schema: Mapping[str, Any]) -> Judge:
    """The judge of a schema that is known to be sound.

    >>> judge({"properties": {"qty": {"type": "integer"}}})({"qty": "x"})
    ("$.qty: 'x' is not of type 'integer'",)
    """
    made: list[Validator] = []

    def problems(data: Any) -> tuple[str, ...]:
        if not made:
            made.append(_validator(schema))
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
    from jsonschema import exceptions
    from referencing.exceptions import Unresolvable

    try:
        schema = json.loads(schema_text)
        if not is_object(schema):
            raise DeclarationError("it is no JSON Schema: it is not an object")  # noqa: TRY301  # one way out
        validator = _validator(schema)
        type(validator).check_schema(schema)
        _resolve_all(schema, type(validator).META_SCHEMA["$schema"])
    except exceptions.SchemaError as error:
        raise DeclarationError(f"it is no JSON Schema: {_said(error)}") from None
    except Unresolvable as error:
        raise DeclarationError(f"its reference {error.ref!r} leads to no schema in it; nothing is fetched") from None
    except DeclarationError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever else an odd schema brings out of the libraries is its author's mistake
        raise DeclarationError(f"it is no JSON Schema: {type(error).__name__}: {error!s:.200}") from None
    return lambda data: _problems(validator, data)


def _validator(schema: Mapping[str, Any]) -> Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    kind = validator_for(schema, default=Draft202012Validator)
    # A registry of its own: without one, jsonschema fetches what a reference names.
    return kind(schema, registry=EMPTY_REGISTRY, format_checker=_formats())


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


def _problems(validator: Validator, data: Any) -> tuple[str, ...]:
    found: dict[str, None] = {}
    try:
        for error in islice(validator.iter_errors(data), _MOST + 1):
            found[_said(error)] = None
    except Exception as error:  # noqa: BLE001  # a schema that never ends, a number too large to divide: no reason to raise
        found[f"$: it cannot be judged ({type(error).__name__}: {error!s:.200})"] = None
    problems = tuple(found)
    return (*problems[:_MOST], "$: and more") if len(problems) > _MOST else problems


def _said(error: ValidationError | SchemaError) -> str:
    inner = _telling(error)
    said = f"{place(inner.absolute_path)}: {inner.message}"
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST // 2]} ... {said[-_LONGEST // 2 :]}"


def place(path: Iterable[str | int]) -> str:
    """Where in the data: `$.lines[0].qty`.

    >>> place(["lines", 0, "qty"])
    '$.lines[0].qty'
    """
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _telling(error: ValidationError | SchemaError) -> ValidationError | SchemaError:
    """Of a union that nothing fits, the branch that comes nearest: it says more than "none of the given schemas"."""
    while error.validator in ("anyOf", "oneOf") and error.context:
        branches: dict[Any, list[ValidationError]] = {}
        for inner in error.context:
            branches.setdefault(inner.relative_schema_path[0], []).append(inner)
        wrong_type = [each for each in branches.values() if _other_type(each)]
        near = [each for each in branches.values() if not _other_type(each)]
        if not near:
            names = [name for each in wrong_type for name in _names(each[0].validator_value)]
            listed = ", ".join(repr(name) for name in dict.fromkeys(names))
            error.message = f"{error.instance!r} is not of type {listed}"
            return error
        if len(near) > 1:
            return error
        error = near[0][0]
    return error


def _other_type(branch: list[ValidationError]) -> bool:
    return branch[0].validator == "type" and not branch[0].relative_path


def _names(value: Any) -> list[str]:
    return value if is_array(value) else [value]

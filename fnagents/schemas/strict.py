"""A schema's strict form: what is sent to a provider that holds the model to the schema.

In the strict dialect every object is closed and requires all of its keys.  `strict` makes the form that keeps
one promise: *whatever the strict form accepts, the schema itself accepts*.  So a parameter that may be left out
becomes required, but never nullable; what cannot be kept is a `NotStrict` and no guess.

    objects                closed, every key required; open ones (additionalProperties) cannot be strict
    default                stays, but for `null`, which says no more than that the key may be left out
    $ref                   stays, so recursion is no matter and work is bounded by the schema's size
    $ref and annotations   becomes {"anyOf": [{"$ref": ...}], annotations}: providers refuse siblings of $ref
    oneOf                  becomes anyOf, where no value fits two branches (apart.py)
    allOf of one           is merged into its parent; of several: cannot be strict
    not, if, contains ...  stay as they are, unless there is a $ref in them, whose target will have changed
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fnagents.errors import DeclarationError
from fnagents.jsontext import compact
from fnagents.outcome import Failure, Outcome, Success
from fnagents.schemas.closing import NotStrict, RefusedError
from fnagents.schemas.conversion import Conversion
from fnagents.schemas.data import is_object

__all__ = ["NotStrict", "strict", "strict_text"]


def strict(schema: Mapping[str, Any]) -> Outcome[dict[str, Any], NotStrict]:
    """The strict form of a schema for an object, or why there is none.

    Pure: the schema is left as it is, and the form shares nothing with it.  Idempotent.

    >>> strict({"properties": {"a": {"type": "integer", "default": 3}}}).unwrap()["required"]
    ['a']
    >>> strict({"properties": {"a": {"type": "object", "additionalProperties": True}}})
    <Failure: NotStrict(path='a', reason='it takes keys that are not declared (additionalProperties)')>
    """
    try:
        return Success(Conversion(dict(schema)).whole())
    except RefusedError as refused:
        return Failure(refused.problem)


def strict_text(schema_text: str, what: str) -> str:
    """The strict form as JSON text; raises `DeclarationError`, naming `what` and the property, if there is none.

    >>> strict_text('{"type":"object","properties":{}}', "tool 'ping'")
    '{"type":"object","properties":{},"additionalProperties":false,"required":[]}'
    """
    try:
        schema = json.loads(schema_text)
    except (ValueError, RecursionError) as error:
        raise DeclarationError(f"{what}: its schema is not JSON: {error}") from None
    if not is_object(schema):
        raise DeclarationError(f"{what}: its schema is not an object")
    outcome = strict(schema)
    if isinstance(outcome, Success):
        return compact(outcome.unwrap())
    problem = outcome.failure()
    where = repr(problem.path) if problem.path else "its schema"
    raise DeclarationError(
        f"{what}: {where} cannot be strict: {problem.reason}; say strict=False, or give it a closed type (a dataclass, "
        "an attrs class, a TypedDict, an object with properties)"
    )

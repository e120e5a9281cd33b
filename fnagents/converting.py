"""The one cattrs converter: from values to plain data and back.  Strict: data of the wrong type is never bent.

Members of a union carry their class's name under `$type`, first; a class that stands alone in its place does
not.  Fields equal to their default are left out; unknown keys, strings for numbers, booleans for numbers are
refused.  A float that has no JSON form is one of the texts "inf", "-inf", "nan".

There are two converters of the same hooks: the fast one stops at the first fault, the other knows where it was.
`located` reads the place off what the second one raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)
from cattrs.gen import AttributeOverride, make_dict_structure_fn, make_dict_unstructure_fn, override

from fnagents.errors import AwaitingApproval, ModelError, RunError, ToolError
from fnagents.items import Item, Part
from fnagents.models import ModelResponse, ModelSettings, Sent, ToolDefinition, Usage
from fnagents.outcome import Failure, Success
from fnagents.prose import shortened
from fnagents.protocol import Checkup, Event, Listing, Prepared, Replied, Verdict
from fnagents.tools import Answer

__all__ = ["ALONE", "TAG", "UNIONS", "WrongError", "converter", "located", "members"]

Hook: TypeAlias = Callable[[Any, Any], Any]

#: The key that holds the name of a union's member.
TAG = "$type"
#: The unions of a document.
UNIONS: tuple[Any, ...] = (Event, Item, Part, Answer, ToolError, ModelError, RunError)
#: Classes that stand in no union.
ALONE: tuple[type, ...] = (Checkup, Listing, ModelResponse, ModelSettings, ToolDefinition, Usage, Verdict)

_UPWARDS = {"ModelResponse": ModelResponse, "Usage": Usage}
#: What documents.py writes as references, outside the converter.
_REFERENCES = {"Replied": ("sent",), "Prepared": ("instructions", "tools", "handoffs")}


def members(union: Any) -> tuple[type, ...]:
    """The classes of a union that can stand in a document.

    >>> [one.__name__ for one in members(Answer)]
    ['Output', 'Handoff', 'Delegate']
    """
    return tuple(one for one in get_args(union) if one is not AwaitingApproval)


@cache
def converter(detailed: bool = False) -> Converter:
    """The converter, made at first use: making it takes some milliseconds, which an import should not cost.

    >>> converter().unstructure(Usage(requests=2))
    {'requests': 2}
    """
    made = Converter(detailed_validation=detailed, omit_if_default=True, forbid_extra_keys=True)
    for kind in (str, int, bool):
        made.register_structure_hook(kind, scalar(kind))
    made.register_structure_hook(float, _float)
    made.register_unstructure_hook(float, _float_as_data)
    made.register_structure_hook_factory(_is_tuple, lambda kind: elements(made, kind))
    made.register_structure_hook_factory(_is_literal, _literal)
    made.register_structure_hook_factory(_is_union, lambda kind: _union(made, kind))
    made.register_unstructure_hook(Success, lambda value: {TAG: "Success", "value": made.unstructure(value.unwrap())})
    made.register_unstructure_hook(Failure, lambda value: {TAG: "Failure", "error": made.unstructure(value.failure())})
    made.register_unstructure_hook(AwaitingApproval, _unsaveable)
    made.register_structure_hook(Sent, lambda value, _: value)
    for kind in ALONE:
        _register(made, kind, tagged=False)
    for kind in dict.fromkeys(member for union in UNIONS for member in members(union)):
        _register(made, kind, tagged=True)
    return made


def _unsaveable(error: AwaitingApproval) -> Any:
    raise TypeError("AwaitingApproval is no part of a document: save the run that it carries")


def _register(made: Converter, kind: type, *, tagged: bool) -> None:
    """Hooks for a class, made when they are first used (a field may be of a class that comes later)."""
    attrs.resolve_types(kind, localns=_UPWARDS)
    name = kind.__name__
    references = _REFERENCES.get(name, ())

    @cache
    def unstructure() -> Callable[[Any], dict[str, Any]]:
        omitted: dict[str, AttributeOverride] = dict.fromkeys(references, override(omit=True))
        return make_dict_unstructure_fn(kind, made, **omitted)  # type: ignore[arg-type]

    def as_data(value: Any) -> dict[str, Any]:
        return {TAG: name, **unstructure()(value)}

    made.register_unstructure_hook(kind, as_data if tagged else lambda value: unstructure()(value))
    made.register_structure_hook_factory(lambda asked: asked is kind, lambda _: _of_class(made, kind, references))


def _of_class(made: Converter, kind: type, references: tuple[str, ...]) -> Hook:
    resolved = {name: override(struct_hook=lambda value, _: value) for name in references}
    build = make_dict_structure_fn(kind, made, **resolved)  # type: ignore[arg-type]

    def structure(data: Any, asked: Any) -> Any:
        if data.__class__ is not dict:
            raise WrongError(f"expected an object, found {found(data)}")
        return build(data, asked)

    return structure


# --- tuples and unions ---------------------------------------------------------------------------------


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in {Union, UnionType}


def _union(made: Converter, kind: Any) -> Hook:
    given = get_args(kind)
    some = tuple(one for one in given if one is not type(None))
    if any(get_origin(one) is Success for one in some):
        build = outcome(made, some)
    elif str in some and len(some) > 1:
        build = text_or(made.get_structure_hook(some[1]), some[1])
    elif len(some) == 1 and some[0] not in _tagged_classes():
        build = made.get_structure_hook(some[0])
    else:
        build = by_tag({one.__name__: (made.get_structure_hook(one), one) for one in some if one is not AwaitingApproval})
    if len(some) == len(given):
        return build
    # A union with None of one other class hands that class on; hooks of this module do not look at it.
    return lambda data, _: None if data is None else build(data, some[0])


@cache
def _tagged_classes() -> frozenset[type]:
    return frozenset(member for union in UNIONS for member in members(union))



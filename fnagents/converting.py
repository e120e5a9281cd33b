"""The one cattrs converter: from values to plain data and back.

Members of a union carry their class's name under `$type`, first; a class that stands alone in its place does
not.  Fields equal to their default are left out, unknown keys refused.  A float that has no JSON form is one of
the texts "inf", "-inf", "nan".  Every other rule is in shapes.py.

There are two converters of the same hooks: the fast one stops at the first fault without a word of where it was,
the detailed one knows the place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from fnagents.errors import AwaitingApproval, ModelError, RunError, ToolError
from fnagents.items import Item, Part
from fnagents.models import ModelResponse, ModelSettings, Sent, ToolDefinition, Usage
from fnagents.outcome import Failure, Success
from fnagents.protocol import Checkup, Event, Listing, Verdict
from fnagents.runs import Run
from fnagents.shapes import (
    TAG,
    Hook,
    by_tag,
    elements,
    fields,
    literal,
    number,
    number_as_data,
    outcome,
    scalar,
    text_or,
)
from fnagents.tools import Answer

__all__ = ["ALONE", "REFERENCES", "UNIONS", "converter", "members"]

T = TypeVar("T")

#: The unions of a document.
UNIONS: tuple[Any, ...] = (Event, Item, Part, Answer, ToolError, ModelError, RunError)
#: Classes that stand in no union.
ALONE: tuple[type, ...] = (Checkup, Listing, ModelResponse, ModelSettings, ToolDefinition, Usage, Verdict)
#: Fields that are written as references to definitions, outside the converter (see documents.py).
REFERENCES = {"Replied": ("sent",), "Prepared": ("instructions", "tools", "handoffs")}

#: What the annotations of errors.py name without importing it.
_UPWARDS = {"ModelResponse": ModelResponse, "Run": Run, "Usage": Usage}


def members(union: Any) -> tuple[type, ...]:
    """The classes of a union that can stand in a document: a paused run is saved itself, not an error about it.

    >>> [one.__name__ for one in members(Answer)]
    ['Output', 'Handoff', 'Delegate']
    """
    return tuple(one for one in get_args(union) if one is not AwaitingApproval)


@cache
def _in_unions() -> frozenset[type]:
    return frozenset(member for union in UNIONS for member in members(union))


@cache
def converter(detailed: bool = False) -> Converter:
    """The converter, made at first use: making it takes some milliseconds, which an import should not cost.

    >>> converter().unstructure(Usage(requests=2))
    {'requests': 2}
    """
    made = Converter(detailed_validation=detailed, omit_if_default=True, forbid_extra_keys=True)
    for plain in (str, int, bool):
        made.register_structure_hook(plain, scalar(plain))
    made.register_structure_hook(float, number)
    made.register_unstructure_hook(float, number_as_data)
    made.register_structure_hook_factory(_made_of(tuple), _asked(lambda kind: elements(made, kind)))
    made.register_structure_hook_factory(_made_of(Literal), literal)
    made.register_structure_hook_factory(_made_of(Union, UnionType), _asked(lambda kind: _union(made, kind)))
    made.register_unstructure_hook(Success, lambda value: {TAG: "Success", "value": made.unstructure(value.unwrap())})
    made.register_unstructure_hook(Failure, lambda value: {TAG: "Failure", "error": made.unstructure(value.failure())})
    attrs.resolve_types(AwaitingApproval, localns=_UPWARDS)
    made.register_unstructure_hook(AwaitingApproval, _unsaveable)
    # Documents have a reference in its place; what it refers to is a value by then.
    made.register_structure_hook(Sent, lambda value, _: value)
    for kind in (*ALONE, *_in_unions()):
        _register(made, kind)
    return made


def _asked(factory: Callable[[Any], T]) -> Callable[[Any], T]:
    """The factory, for checkers that cannot tell which overload of a registration a lambda is for."""
    return factory


def _made_of(*origins: Any) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) in origins


def _unsaveable(error: AwaitingApproval) -> Any:
    raise TypeError(f"{type(error).__name__} is no part of a document: save the run that it carries")


def _register(made: Converter, kind: type) -> None:
    """Factories for the hooks of a class: a field may be of a class that is registered later."""
    attrs.resolve_types(kind, localns=_UPWARDS)
    made.register_unstructure_hook_factory(lambda asked: asked is kind, _asked(lambda _: _as_data(made, kind)))
    made.register_structure_hook_factory(lambda asked: asked is kind, _asked(lambda _: _as_value(made, kind)))


def _as_data(made: Converter, kind: type) -> Callable[[Any], dict[str, Any]]:
    omitted: dict[str, Any] = dict.fromkeys(REFERENCES.get(kind.__name__, ()), override(omit=True))
    unstructure: Callable[[Any], dict[str, Any]] = make_dict_unstructure_fn(
        kind, made, _cattrs_omit_if_default=True, **omitted
    )
    if kind not in _in_unions():
        return unstructure
    name = kind.__name__
    return lambda value: {TAG: name, **unstructure(value)}


def _as_value(made: Converter, kind: type) -> Hook:
    as_it_is = override(struct_hook=lambda value, _: value)
    resolved: dict[str, Any] = dict.fromkeys(REFERENCES.get(kind.__name__, ()), as_it_is)
    make: Any = make_dict_structure_fn
    build: Hook = make(kind, made, **resolved)
    # Who reads a tag has seen that it is an object.
    return build if kind in _in_unions() else fields(build)


def _union(made: Converter, kind: Any) -> Hook:
    """A union is one of: an outcome, text or parts, classes that carry a tag, one class or scalar; None beside it."""
    given: tuple[Any, ...] = get_args(kind)
    some = [one for one in given if one is not type(None)]
    if any(get_origin(one) is Success for one in some):
        build = outcome(made, some)
    elif str in some and len(some) > 1:
        build = text_or(made.get_structure_hook(some[1]), some[1])
    elif some[0] in _in_unions():
        build = by_tag({one.__name__: (made.get_structure_hook(one), one) for one in some if one in _in_unions()})
    else:
        build = made.get_structure_hook(some[0])
    if len(some) == len(given):
        return build
    return lambda data, _: None if data is None else build(data, some[0])

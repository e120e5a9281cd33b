"""From a function to the schema of its arguments, what reads them, and how to call it.

The judging schema accepts arguments if and only if the function can be called with them: a parameter with a
default may be left out, unknown keys are refused, `*args` is an array and `**kwargs` an object, each under the
parameter's own name.  A default of None makes its parameter nullable, as the function can be called with None.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import GenericAlias
from typing import Annotated, Any, TypeAlias, get_args, get_origin

import typing_extensions
from attrs import frozen

from fnagents.errors import DeclarationError, InvalidArguments, ToolError
from fnagents.jsontext import compact, read_object
from fnagents.outcome import Failure, Outcome, Success
from fnagents.schemas import containers
from fnagents.schemas.arguments import Arguments
from fnagents.schemas.classes import or_null, with_default
from fnagents.schemas.docstrings import Docstring, Style, read_docstring
from fnagents.schemas.forms import Form, MismatchError
from fnagents.schemas.judging import UNJUDGED, judge
from fnagents.schemas.plain import plain
from fnagents.schemas.scope import Scope
from fnagents.schemas.types import Builder, described

__all__ = ["Described", "IsContext", "read_signature"]

_EMPTY = inspect.Parameter.empty
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD

#: Whether an annotation (text, if it cannot be evaluated) asks for the context.
IsContext: TypeAlias = Callable[[Any], bool]


@frozen
class Described:
    """What a signature says: the description, the judging schema, what reads arguments, what calls the function."""

    description: str
    schema_text: str
    read: Callable[[str], Outcome[Arguments, ToolError]]
    call: Callable[[Any, Mapping[str, Any]], Any]


@frozen
class _Slot:
    """One parameter: its name, its key in the object, how it is passed, its form, what stands in for it."""

    name: str
    key: str
    kind: Any
    form: Form
    default: Any = _EMPTY
    factory: Callable[[], Any] | None = None

    @property
    def required(self) -> bool:
        return self.default is _EMPTY and self.factory is None


def read_signature(
    function: Callable[..., Any],
    *,
    what: str,
    is_context: IsContext,
    style: Style | None = None,
    use_docstring: bool = True,
) -> Described:
    """What the function's signature, annotations and docstring say; `what` names it in errors.

    Raises `DeclarationError` for a signature that cannot be read, a type without a JSON form, and a context
    that is asked for anywhere but first.

    >>> def greet(name: str, times: int = 1) -> str: ...
    >>> said = read_signature(greet, what="tool 'greet'", is_context=lambda hint: False)
    >>> said.read('{"name": "Ada"}').unwrap().values
    {'times': 1, 'name': 'Ada'}
    """
    parameters = _parameters(function, what)
    told = _told(function, style) if use_docstring else Docstring()
    builder = Builder(what, Scope(_plain_function(function)))
    hints = [_hint(builder, parameter, is_context) for parameter in parameters]
    contexts = [parameter.name for parameter, hint in zip(parameters, hints, strict=True) if is_context(hint)]
    if contexts and (contexts != [parameters[0].name] or parameters[0].kind in (_KEYWORD_ONLY, _VAR_KEYWORD)):
        raise DeclarationError(f"{what}: parameter {contexts[-1]!r}: the context goes first, and nowhere else")
    taken = [parameter.name for parameter in parameters if parameter.kind is not _POSITIONAL_ONLY]
    slots = [
        _slot(builder, parameter, hint, told, taken)
        for parameter, hint in list(zip(parameters, hints, strict=True))[len(contexts) :]
    ]
    if len({slot.key for slot in slots}) != len(slots):
        raise DeclarationError(f"{what}: two parameters have one alias; aliases must differ")
    form = containers.object_form([(slot.key, slot.name, slot.form, slot.required) for slot in slots], dict)
    schema = {**form.schema, "$defs": builder.definitions} if builder.definitions else form.schema
    return Described(
        told.description,
        compact(schema),
        _reader(schema, form, slots),
        _caller(function, slots, bool(contexts)),
    )


# --- what a function declares ---------------------------------------------------------------------------------


def _parameters(function: Callable[..., Any], what: str) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"{what}: its signature cannot be read ({error}); wrap it in a function") from None
    # What a partial binds by keyword is the programmer's, and no business of the model's.
    bound = function.keywords if isinstance(function, partial) else {}
    return [parameter for parameter in found if parameter.name not in bound]


def _plain_function(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    if not hasattr(function, "__code__") and not hasattr(function, "__func__"):
        function = getattr(function.__class__, "__call__", function)  # noqa: B004
    return getattr(function, "__func__", function)


def _told(function: Any, style: Style | None) -> Docstring:
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function):
        return read_docstring(function.__doc__, style)
    # A callable object: its class says what it is, `__call__` what it takes; either serves for both.
    kind = function.__class__
    whole = read_docstring(kind.__doc__, style)
    call = read_docstring(kind.__call__.__doc__, style)
    return Docstring(whole.description or call.description, {**whole.parameters, **call.parameters})


def _hint(builder: Builder, parameter: inspect.Parameter, is_context: IsContext) -> Any:
    hint = parameter.annotation
    builder.parameter = parameter.name
    if hint is _EMPTY:
        return Any
    if isinstance(hint, str) and not is_context(hint):
        return builder.evaluated(hint)
    return hint


def _slot(builder: Builder, parameter: inspect.Parameter, hint: Any, told: Docstring, taken: Sequence[str]) -> _Slot:
    builder.parameter = name = parameter.name
    text = told.parameters.get(name, "")
    if parameter.kind is _VAR_POSITIONAL:
        form = _unpacked(builder, hint) or containers.array_form(builder.form(hint), tuple, hashable=False)
        return _Slot(name, name, parameter.kind, described(form, text), ())
    if parameter.kind is _VAR_KEYWORD:
        form = _unpacked(builder, hint) or containers.map_form(None, builder.form(hint), dict, taken=taken)
        needed = form.schema.get("required") or "$ref" in form.schema
        return _Slot(name, name, parameter.kind, described(form, text), _EMPTY if needed else {})
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    default, factory, key = parameter.default, None, name
    form = builder.form(hint)
    for field in (*metadata, *([default] if _is_field(default) else [])):
        if _is_field(field):
            key = field.alias or key
            factory = field.default_factory or factory
    if _is_field(default):
        form = builder.annotated(form, (default,), hint)
        default = _EMPTY if default.is_required() or default.default_factory is not None else default.default
    form = described(or_null(form, default), text)
    return _Slot(
        name, key, parameter.kind, form if default is _EMPTY else with_default(form, default), default, factory
    )


def _is_field(value: object) -> bool:
    return type(value).__name__ == "FieldInfo" and type(value).__module__.startswith("pydantic")


def _unpacked(builder: Builder, hint: Any) -> Form | None:
    if get_origin(hint) in (typing.Unpack, typing_extensions.Unpack):
        return builder.form(get_args(hint)[0])
    return builder.form(GenericAlias(tuple, get_args(hint))) if getattr(hint, "__unpacked__", False) else None


# --- what reads and what calls --------------------------------------------------------------------------------


def _reader(
    schema: Mapping[str, Any], form: Form, slots: Sequence[_Slot]
) -> Callable[[str], Outcome[Arguments, ToolError]]:
    decode, count = form.decode, len(slots)
    defaults = {slot.name: slot.default for slot in slots if slot.default is not _EMPTY}
    factories = {slot.name: slot.factory for slot in slots if slot.factory is not None}
    said = _said_defaults(slots)
    problems_of = judge(schema)

    def read(text: str) -> Outcome[Arguments, ToolError]:
        outcome = read_object(text)
        if isinstance(outcome, Failure):
            return outcome
        data = outcome.unwrap()
        try:
            values = decode(data)
        except Exception:  # noqa: BLE001  # whatever a class's own code raised, the arguments do not fit
            return Failure(InvalidArguments(_explained(problems_of(data), data, slots)))
        if len(values) != count:
            made = {name: make() for name, make in factories.items() if name not in values}
            values = {**defaults, **made, **values}
            data = {**said, **data}
        return Success(Arguments(data, values, values))

    return read


def _said_defaults(slots: Sequence[_Slot]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for slot in slots:
        try:
            said[slot.key] = plain(slot.default)
        except Exception:  # noqa: BLE001, S112  # a default of any class: without JSON it is not said
            continue
    return said


def _explained(problems: tuple[str, ...], data: Mapping[str, Any], slots: Sequence[_Slot]) -> tuple[str, ...]:
    if problems and not problems[0].startswith(UNJUDGED):
        return problems
    return (*_refusals(data, slots), *problems)


def _refusals(data: Mapping[str, Any], slots: Sequence[_Slot]) -> tuple[str, ...]:
    # The schema accepts it all, so a class's own code refused, or cannot be asked: which parameter, and why?
    problems: list[str] = []
    for slot in slots:
        if slot.key in data:
            try:
                slot.form.decode(data[slot.key])
            except Exception as error:  # noqa: BLE001
                said = f"{type(error).__name__}: {error!s:.400}"
                problems.append(f"$.{slot.key}: {'it does not fit' if isinstance(error, MismatchError) else said}")
    return tuple(problems) or ("$: it does not fit the function's parameters",)


def _caller(function: Callable[..., Any], slots: Sequence[_Slot], context: bool) -> Callable[[Any, Any], Any]:
    kinds = {slot.kind for slot in slots}
    if not kinds & {_POSITIONAL_ONLY, _VAR_POSITIONAL, _VAR_KEYWORD}:
        if context:
            return lambda given, values: function(given, **values)
        return lambda _, values: function(**values)
    first = [slot.name for slot in slots if slot.kind in (_POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    starred = [slot.name for slot in slots if slot.kind is _VAR_POSITIONAL]
    named = [slot.name for slot in slots if slot.kind is _KEYWORD_ONLY]
    doubly = [slot.name for slot in slots if slot.kind is _VAR_KEYWORD]

    def call(given: Any, values: Mapping[str, Any]) -> Any:
        positional = [given] if context else []
        positional += [values[name] for name in first]
        for name in starred:
            positional += values[name]
        keywords = {name: values[name] for name in named}
        for name in doubly:
            keywords.update(values[name])
        return function(*positional, **keywords)

    return call

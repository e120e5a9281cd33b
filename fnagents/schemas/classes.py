"""The forms of classes: those with fields become closed objects, enumerations choices, subclasses of scalars scalars.

A field's key is what the constructor calls it.  Fields with a default may be left out.  The class's docstring
describes the object and its fields, as do `Annotated` texts and the metadata key `description`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import typing_extensions
from attrs import frozen

from fnagents.schemas import containers, forms
from fnagents.schemas.constraints import attrs_keywords, constrained, keywords_of, text_of
from fnagents.schemas.docstrings import read_docstring
from fnagents.schemas.foreign import foreign_form
from fnagents.schemas.forms import Form
from fnagents.schemas.plain import plain, said_of

if TYPE_CHECKING:
    from fnagents.schemas.types import Builder

__all__ = ["class_form", "or_null", "with_default"]


@frozen
class _Field:
    """A field of a class: its key, its type, whether it must be given, what else is known of it."""

    key: str
    hint: Any
    required: bool = True
    default: Any = inspect.Parameter.empty
    description: str = ""
    keywords: Mapping[str, Any] = {}


def class_form(builder: Builder, kind: Any, arguments: tuple[Any, ...]) -> Form:
    """The form of a class; refuses a class that has none."""
    foreign = foreign_form(builder, kind, arguments)
    if foreign is not None:
        return foreign
    if issubclass(kind, Enum):
        return builder.named(kind, kind.__name__, lambda: _enumeration(builder, kind))
    fields = _fields_of(kind)
    if fields is not None:
        name = "_".join([kind.__name__, *(getattr(one, "__name__", "") for one in arguments)])
        return builder.named((kind, arguments), name, lambda: _object(builder, kind, arguments, fields))
    for base in (str, int, float):
        if issubclass(kind, base):
            return _subclass(kind, base)
    return builder.refuse(kind)


def _subclass(kind: Any, base: type) -> Form:
    inner = forms.SCALARS[base]
    decode = inner.decode
    return Form(inner.schema, lambda value: kind(decode(value)))


def _enumeration(builder: Builder, kind: type[Enum]) -> Form:
    pairs = [(said_of(member), member) for member in kind]
    if not pairs:
        builder.refuse(kind, "it has no members")
    form = forms.choice_form(pairs)
    told = _doc(kind, ("An enumeration.",))
    if any(type(said) is not str for said, _ in pairs):
        names = ", ".join(f"{said} = {member.name}" for said, member in pairs)
        told = f"{told}\n{names}" if told else names
    return Form({**form.schema, "description": told}, form.decode) if told else form


def _doc(kind: type, generated: tuple[str, ...] = ()) -> str:
    # A docstring is not inherited, and those that dataclasses and named tuples make say nothing.
    text = kind.__dict__.get("__doc__") or ""
    return "" if text in generated or text.startswith(f"{kind.__name__}(") else inspect.cleandoc(text)


_Fields: TypeAlias = "Callable[[Any, Mapping[str, Any]], list[_Field]]"


def _fields_of(kind: Any) -> _Fields | None:
    if typing_extensions.is_typeddict(kind):
        return _typed_dict
    if hasattr(kind, "_fields") and tuple in kind.__mro__:
        return _named_tuple
    if attrs.has(kind):
        return _attrs
    return _dataclass if dataclasses.is_dataclass(kind) else None


def _object(builder: Builder, kind: type, arguments: tuple[Any, ...], read: _Fields) -> Form:
    fields = read(kind, _hints(builder, kind))
    if read in (_attrs, _dataclass) and {field.key for field in fields} != _taken(kind):
        builder.refuse(kind, "its constructor takes other things than its fields")
    bound = dict(zip(getattr(kind, "__parameters__", ()), arguments, strict=False))
    told = read_docstring(_doc(kind))
    members: list[containers.Member] = []
    hashable = kind.__hash__ is not None
    for field in fields:
        form = builder.within(bound, field.hint)
        try:
            form = constrained(form, field.keywords)
        except (TypeError, ValueError) as error:
            builder.refuse(field.hint, f"a constraint of {kind.__name__}.{field.key}: {error}")
        form = or_null(form, field.default)
        text = told.parameters.get(field.key) or field.description
        if text:
            form = Form({**form.schema, "description": text}, form.decode, form.hashable)
        form = with_default(form, field.default)
        hashable = hashable and form.hashable
        members.append((field.key, field.key, form, field.required))
    made = containers.object_form(members, kind, hashable=hashable)
    return Form({"description": told.description, **made.schema}, made.decode, hashable) if told.description else made


def _taken(kind: Any) -> set[str]:
    code = kind.__init__.__code__
    return set(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def or_null(form: Form, default: Any) -> Form:
    """The form, and null too if that is the default: what is left out as None may be said as null.

    >>> or_null(forms.SCALARS[int], None).schema
    {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}
    """
    if default is not None or form.nullable:
        return form
    return containers.union_form([form, forms.SCALARS[type(None)]])


def with_default(form: Form, default: Any) -> Form:
    """The form with its default in the schema, if the default has JSON that the form accepts."""
    try:
        said = plain(default)
        form.decode(said)
    except Exception:  # noqa: BLE001  # a default of any class: without JSON it is not shown
        return form
    return Form({**form.schema, "default": said}, form.decode, form.hashable)


def _hints(builder: Builder, kind: type) -> dict[str, Any]:
    try:
        return typing_extensions.get_type_hints(kind, include_extras=True)
    except NameError:
        pass  # a name that the class's module lacks; the class may be local to a function
    except Exception as error:  # noqa: BLE001  # an annotation may raise anything
        builder.refuse(kind, f"{type(error).__name__}: {error}")
    try:
        return typing_extensions.get_type_hints(kind, localns=dict(builder.scope.local()), include_extras=True)
    except Exception as error:  # noqa: BLE001
        builder.refuse(kind, f"{type(error).__name__}: {error}")


def _typed_dict(kind: Any, hints: Mapping[str, Any]) -> list[_Field]:
    return [_Field(key, hint, key in kind.__required_keys__) for key, hint in hints.items()]


def _named_tuple(kind: Any, hints: Mapping[str, Any]) -> list[_Field]:
    defaults = kind._field_defaults
    return [
        _Field(key, hints.get(key, Any), key not in defaults, defaults.get(key, inspect.Parameter.empty))
        for key in kind._fields
    ]


def _attrs(kind: Any, hints: Mapping[str, Any]) -> list[_Field]:
    taken = dict(getattr(kind.__init__, "__annotations__", {}))
    fields: list[_Field] = []
    for one in attrs.fields(kind):
        if not one.init:
            continue
        has_default = one.default is not attrs.NOTHING
        shown = has_default and not isinstance(one.default, attrs.Factory)  # type: ignore[arg-type]
        # A converter's own annotation says what the constructor takes.
        hint = hints.get(one.name, Any) if one.converter is None else taken.get(one.alias, hints.get(one.name, Any))
        hint = getattr(one.validator, "type", Any) if hint is Any else hint
        fields.append(
            _Field(
                one.alias,
                hint,
                not has_default,
                one.default if shown else inspect.Parameter.empty,
                str(one.metadata.get("description", "")),
                {**attrs_keywords(one.validator), **keywords_of(one.metadata.values())},
            )
        )
    return fields


def _dataclass(kind: Any, hints: Mapping[str, Any]) -> list[_Field]:
    fields: list[_Field] = []
    for one in dataclasses.fields(kind):
        if not one.init:
            continue
        has_default = one.default is not dataclasses.MISSING
        fields.append(
            _Field(
                one.name,
                hints.get(one.name, Any),
                not has_default and one.default_factory is dataclasses.MISSING,
                one.default if has_default else inspect.Parameter.empty,
                str(one.metadata.get("description", "")) or text_of(one.metadata.values()),
                keywords_of(one.metadata.values()),
            )
        )
    return fields

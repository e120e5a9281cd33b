"""From a Python type to its form: scalars, text types, collections, unions, choices, names for types.

Classes with fields are in classes.py, models of other libraries in foreign.py.  A class is named once in
`$defs` and referred to, so that recursive types end.  A type without a JSON form is a `DeclarationError` that
names the tool and the parameter.
"""

from __future__ import annotations

import datetime as dt
import re
import types
import typing
import uuid
from collections import OrderedDict, deque
from collections import abc as collections_abc
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

import typing_extensions

from fnagents.errors import DeclarationError
from fnagents.schemas import containers, forms
from fnagents.schemas.constraints import constrained, keywords_of, text_of
from fnagents.schemas.formats import BASE64, read_base64, read_date, read_datetime, read_duration, read_time, read_uuid
from fnagents.schemas.forms import ANYTHING, Form
from fnagents.schemas.plain import said_of
from fnagents.schemas.scope import Scope

__all__ = ["Builder", "described"]

_BUILDING_BLOCKS: dict[Any, Form] = {
    dt.datetime: forms.text_form(read_datetime, format="date-time"),
    dt.date: forms.text_form(read_date, format="date"),
    dt.time: forms.text_form(read_time, format="time"),
    dt.timedelta: forms.text_form(read_duration, format="duration"),
    uuid.UUID: forms.text_form(read_uuid, format="uuid"),
    bytes: forms.text_form(read_base64, contentEncoding="base64", pattern=BASE64),
    Decimal: containers.union_form([forms.DECIMAL_NUMBER, forms.DECIMAL_TEXT]),
    **{path: forms.text_form(path) for path in (Path, PurePath, PurePosixPath, PureWindowsPath)},
}
_LISTS = (list, Sequence, collections_abc.MutableSequence, collections_abc.Iterable, collections_abc.Collection)
_SETS = {
    set: set, frozenset: frozenset, collections_abc.Set: frozenset, collections_abc.MutableSet: set
}  # fmt: skip
_MAPS: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    **dict.fromkeys((dict, Mapping, collections_abc.MutableMapping), lambda found: found),
    OrderedDict: OrderedDict,
}
#: An integer as a key of an object, in the one way that it is written.
_INTEGER_KEY = r"^(?:0|-?[1-9][0-9]*)$"
#: What a set can hold of anything.
_ANY_SCALAR = containers.union_form([forms.SCALARS[kind] for kind in (str, bool, int, float, type(None))])
_BUILDING_BLOCKS[collections_abc.Hashable] = _ANY_SCALAR
_WRAPPERS: tuple[Any, ...] = (
    typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired,
    typing_extensions.ReadOnly, typing.Final, typing.ClassVar,
)  # fmt: skip


def described(form: Form, text: str) -> Form:
    """The form with a description, if there is a text."""
    return Form({**form.schema, "description": text}, form.decode, form.hashable) if text else form


class Builder:
    """Builds the forms of one tool's types, and collects the definitions that they refer to.

    `what` names the tool in errors; `scope` is where forward references are looked up.
    """

    def __init__(self, what: str, scope: Scope) -> None:
        self.what = what
        self.parameter = ""
        self.scope = scope
        self.definitions: dict[str, dict[str, Any]] = {}
        self._known: dict[Any, Form] = {}
        self._bound: dict[Any, Any] = {}

    def refuse(self, hint: object, why: str = "") -> NoReturn:
        """No form: name the parameter and the ways out."""
        shown = getattr(hint, "__name__", "") if isinstance(hint, type) else ""
        parameter = f"parameter {self.parameter!r}: " if self.parameter else ""
        raise DeclarationError(
            f"{self.what}: {parameter}the type {shown or repr(hint):.200} has no JSON form{why and f' ({why})'}; "
            "give it a type that has one (a scalar, a collection, a dataclass, an attrs class, a TypedDict, ...), "
            "or write the JSON Schema by hand: Tool(name, description, schema, function)"
        )

    def form(self, hint: Any) -> Form:
        """The form of a type."""
        if hint is None:
            hint = type(None)
        found = forms.scalar(hint)
        if found is not None:
            return found
        try:
            found = _BUILDING_BLOCKS.get(hint)
        except TypeError:  # an annotation that cannot be hashed, such as Annotated[..., []]
            found = None
        if found is not None:
            return found
        if hint is Any or hint is object:
            return ANYTHING
        origin = get_origin(hint)
        if origin is not None:
            return self._generic(hint, origin, get_args(hint))
        return self._class(hint) if isinstance(hint, type) else self._special(hint)

    def _generic(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Form:
        if origin is Annotated:
            return self.annotated(self.form(arguments[0]), arguments[1:], hint)
        if origin is Union or origin is types.UnionType:
            return self.union(arguments)
        if origin is Literal:
            return self._literal(hint, arguments)
        if origin in _WRAPPERS:
            return self.form(arguments[0])
        if origin is tuple and hint is not typing.Tuple:  # noqa: UP006  # the bare one is any tuple
            return self._tuple(arguments)
        collection = self._collection(hint, origin, arguments)
        if collection is not None:
            return collection
        if type(origin).__name__ == "TypeAliasType":
            return self._alias(origin, arguments)
        return self._class(origin, arguments)

    def annotated(self, form: Form, metadata: Sequence[Any], hint: Any) -> Form:
        """The form under the constraints and the description of its metadata."""
        try:
            return described(constrained(form, keywords_of(metadata)), text_of(metadata))
        except (TypeError, ValueError, re.error) as error:
            self.refuse(hint, f"a constraint: {error}")

    def union(self, arguments: Sequence[Any]) -> Form:
        """The form of a union of types."""
        branches: list[Form] = []
        for argument in arguments:
            one = self.form(argument)
            # `Decimal` and nested aliases are unions themselves.
            if one not in branches:
                branches.append(one)
        return branches[0] if len(branches) == 1 else containers.union_form(branches)

    def _literal(self, hint: Any, values: tuple[Any, ...]) -> Form:
        pairs = [(said_of(value) if isinstance(value, Enum) else value, value) for value in values]
        if not all(said is None or type(said) in (bool, int, str) for said, _ in pairs):
            self.refuse(hint, "its values are not all JSON scalars")
        return forms.choice_form(pairs)

    def _tuple(self, arguments: tuple[Any, ...]) -> Form:
        if arguments[1:] == (Ellipsis,):
            return containers.array_form(self.form(arguments[0]), tuple, hashable=True)
        return containers.tuple_form([self.form(argument) for argument in arguments])

    def _collection(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Form | None:
        if origin in _LISTS or origin is deque:
            element = self.form(arguments[0]) if arguments else ANYTHING
            return containers.array_form(element, deque if origin is deque else list, hashable=False)
        if origin in _SETS:
            return self._set(hint, _SETS[origin], arguments)
        if origin in _MAPS:
            return self._map(hint, _MAPS[origin], arguments)
        return None

    def _set(self, hint: Any, make: Callable[[list[Any]], Any], arguments: tuple[Any, ...]) -> Form:
        element = self.form(arguments[0]) if arguments else ANYTHING
        if element is ANYTHING:
            element = _ANY_SCALAR
        if not element.hashable:
            self.refuse(hint, "its elements cannot be hashed")
        return containers.array_form(element, make, hashable=make is frozenset)

    def _map(self, hint: Any, make: Callable[[dict[Any, Any]], Any], arguments: tuple[Any, ...]) -> Form:
        key, value = (self.form(argument) for argument in arguments or (Any, Any))
        if key is forms.scalar(str) or key is ANYTHING:
            return containers.map_form(None, value, make)
        if key is forms.scalar(int):
            read = forms.text_form(int, pattern=_INTEGER_KEY)
            return containers.map_form(constrained(read, {"pattern": _INTEGER_KEY}), value, make)
        schema = self.definitions.get(str(key.schema.get("$ref", "")).rpartition("/")[2], key.schema)
        if schema.get("type") != "string" or not key.hashable:
            self.refuse(hint, "its keys are not text")
        return containers.map_form(key, value, make)

    def _special(self, hint: Any) -> Form:
        if isinstance(hint, TypeVar | typing_extensions.TypeVar):
            return self._variable(hint)
        if isinstance(hint, str | typing.ForwardRef):
            return self._forward(hint if isinstance(hint, str) else hint.__forward_arg__)
        supertype = getattr(hint, "__supertype__", None)
        if supertype is not None:
            return self.form(supertype)
        if type(hint).__name__ == "TypeAliasType":
            return self._alias(hint, ())
        return self.refuse(hint)

    def _variable(self, variable: Any) -> Form:
        if variable in self._bound:
            hint, outer = self._bound[variable]
            # What it stands for is said where the class was named, and means what it means there.
            return self._under(outer, hint)
        if variable.__constraints__:
            # Text before bytes, whatever the order: bytes are text in base64.
            return self.union(sorted(variable.__constraints__, key=lambda one: one not in forms.SCALARS))
        return self.form(variable.__bound__) if variable.__bound__ is not None else ANYTHING

    def _forward(self, text: str) -> Form:
        hint = self.evaluated(text)
        if isinstance(hint, type):
            return self.form(hint)
        # Anything else may refer to itself, as in `Json = list["Json"] | str`.
        return self.named(("forward", text), text, lambda: self.form(hint))

    def evaluated(self, text: str) -> Any:
        """The type that a forward reference, or an annotation that is text, stands for."""
        try:
            return self.scope.evaluate(text)
        except Exception as error:  # noqa: BLE001  # an annotation may raise anything
            self.refuse(text, f"{type(error).__name__}: {error}")

    def _alias(self, alias: Any, arguments: tuple[Any, ...]) -> Form:
        bound = dict(zip(alias.__type_params__, arguments, strict=False))
        return self.named((alias, arguments), alias.__name__, lambda: self.within(bound, alias.__value__))

    def within(self, bound: Mapping[Any, Any], hint: Any) -> Form:
        """The form of a type in which type variables stand for other types."""
        outer = self._bound
        return self._under({**outer, **{variable: (meant, outer) for variable, meant in bound.items()}}, hint)

    def _under(self, bound: dict[Any, Any], hint: Any) -> Form:
        before, self._bound = self._bound, bound
        try:
            return self.form(hint)
        finally:
            self._bound = before

    def named(self, key: Any, name: str, build: Callable[[], Form]) -> Form:
        """The form that stands in `$defs` under a name; it may refer to itself."""
        known = self._known.get(key)
        if known is not None:
            return known
        label = self.label(name)
        reference = {"$ref": f"#/$defs/{label}"}
        made: list[Form] = []
        self.definitions[label] = {}
        self._known[key] = Form(reference, lambda value: made[0].decode(value))  # noqa: PLW0108  # it is made below
        made.append(build())
        self.definitions[label] = made[0].schema
        self._known[key] = done = Form(reference, made[0].decode, made[0].hashable)
        return done

    def label(self, name: str) -> str:
        """A name for a definition that no other has."""
        label = base = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "type"
        count = 1
        while label in self.definitions:
            count += 1
            label = f"{base}_{count}"
        return label

    def _class(self, kind: Any, arguments: tuple[Any, ...] = ()) -> Form:
        from fnagents.schemas.classes import class_form

        if kind is tuple:
            return containers.array_form(ANYTHING, tuple, hashable=False)
        if kind.__name__ == "PathLike":
            return _BUILDING_BLOCKS[Path]
        bare = self._collection(kind, kind, arguments)
        if bare is not None:
            return bare
        return class_form(self, kind, arguments)

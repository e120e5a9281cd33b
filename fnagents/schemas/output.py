"""The type of a final output: the schema that is sent, and what reads the model's text.

A provider wants an object at the root, so any other type is wrapped as `{"response": ...}` on the wire and
unwrapped here; a run keeps the value's own JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias

from attrs import field, frozen
from typing_extensions import TypeVar

from fnagents.errors import DeclarationError, InvalidArguments, InvalidJson
from fnagents.jsontext import Json, canonical, compact, read_json
from fnagents.outcome import Failure, Outcome, Success
from fnagents.schemas.data import is_object
from fnagents.schemas.forms import MismatchError
from fnagents.schemas.judging import Judge, checked_judge, judge
from fnagents.schemas.plain import plain
from fnagents.schemas.scope import Scope
from fnagents.schemas.strict import strict_text
from fnagents.schemas.types import Builder

__all__ = ["Schema", "schema"]

Out = TypeVar("Out", covariant=True)
_KEY = "response"
_Problem: TypeAlias = InvalidJson | InvalidArguments


@frozen(eq=False)
class Schema(Generic[Out]):
    """The schema of an output: its name, the text that is sent, and what decodes the model's answer."""

    name: str
    #: the JSON Schema that is sent
    text: str
    strict: bool
    #: whether the value stands under the key "response" on the wire
    wrapped: bool
    _decode: Callable[[Any], Out] = field(repr=False)
    _problems: Judge = field(repr=False)

    def read(self, text: str) -> Outcome[Out, _Problem]:
        """The value in the model's final text, or what is wrong with it.

        >>> schema(list[int]).read('{"response": [1, 2]}')
        <Success: [1, 2]>
        """
        outcome = read_json(text)
        return outcome if isinstance(outcome, Failure) else self._value(outcome.unwrap())

    def write(self, value: object) -> str:
        """Canonical JSON of a value that was read: what a run keeps.

        >>> schema(list[int]).write([1, 2])
        '[1,2]'
        """
        return canonical(plain(value))

    def decode(self, text: str) -> Outcome[Out, _Problem]:
        """The value in what a run kept.

        >>> schema(list[int]).decode("[1,2]")
        <Success: [1, 2]>
        """
        outcome = read_json(text)
        if isinstance(outcome, Failure):
            return outcome
        data = outcome.unwrap()
        return self._value({_KEY: data} if self.wrapped else data)

    def _value(self, data: Json) -> Outcome[Out, _Problem]:
        try:
            return Success(self._decode(data))
        except Exception as error:  # noqa: BLE001  # whatever a class's own code raised, the output does not fit
            problems = self._problems(data) or (f"$: {type(error).__name__}: {error!s:.400}",)
            return Failure(InvalidArguments(problems))


def schema(output: Any, *, strict: bool = True, name: str = "final_output") -> Schema[Any]:
    """The schema of an output type: any type with a JSON form, or a JSON Schema written by hand.

    With `strict`, the strict form is sent.  Raises `DeclarationError`.

    >>> schema({"type": "object", "properties": {"n": {"type": "integer"}}}).read('{"n": 1}')
    <Success: {'n': 1}>
    """
    what = f"output {name!r}"
    if is_object(output):
        return _by_hand(output, strict, name, what)
    builder = Builder(what, Scope(schema))
    form = builder.form(output)
    root, decode = form.schema, form.decode
    wrapped = not _is_object(root, builder.definitions)
    if wrapped:
        root = {
            "type": "object", "properties": {_KEY: root}, "required": [_KEY], "additionalProperties": False
        }  # fmt: skip
    whole = {**root, "$defs": builder.definitions} if builder.definitions else root
    problems = judge(whole)
    return Schema(name, _sent(compact(whole), strict, what), strict, wrapped, _unwrapping(decode, wrapped), problems)


def _is_object(root: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    while "$ref" in root:
        root = definitions[root["$ref"].rpartition("/")[2]]
    return root.get("type") == "object"


def _unwrapping(decode: Callable[[Any], Any], wrapped: bool) -> Callable[[Any], Any]:
    def decode_wrapped(data: Any) -> Any:
        if type(data) is not dict or data.keys() != {_KEY}:
            raise MismatchError
        return decode(data[_KEY])

    return decode_wrapped if wrapped else decode


def _sent(text: str, strict: bool, what: str) -> str:
    return strict_text(text, f"{what}, made by schema(...)") if strict else text


def _by_hand(given: dict[str, Any], strict: bool, name: str, what: str) -> Schema[Any]:
    try:
        text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        problems = checked_judge(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise DeclarationError(f"{what}: {error}") from None

    def decode(data: Any) -> Any:
        if problems(data):
            raise MismatchError
        return data

    return Schema(name, _sent(text, strict, what), strict, False, decode, problems)

"""`tool`: a plain function becomes a tool.

The function is not wrapped or changed: a tool holds it, and calling the tool calls it.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, Concatenate, ParamSpec, TypedDict, TypeVar, get_args, get_origin, overload

from typing_extensions import Unpack

from fnagents.errors import DeclarationError, ToolError
from fnagents.schemas.docstrings import Style
from fnagents.schemas.signature import read_signature
from fnagents.tools import (
    AgentContext,
    Fatal,
    Tool,
    ToolContext,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    check_name,
)

__all__ = ["ToolOptions", "derived_name", "tool"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_CONTEXT_TEXT = re.compile(r"(?:\w+\.)*ToolContext(?:\[.*\])?", re.DOTALL)
_ODD = re.compile(r"[^a-zA-Z0-9_-]")


class ToolOptions(TypedDict, total=False):
    """What `tool` takes beside the function; those that are not described here are `Tool`'s own."""

    #: checked where it is given, derived from the function by default
    name: str | None
    #: by default the docstring's, before its first section
    description: str | None
    #: recognised by itself by default
    docstring_style: Style | None
    #: False: neither the tool nor its parameters are described by the docstring
    use_docstring: bool
    strict: bool
    timeout: float | None
    needs_approval: bool | Callable[[ToolContext[Any], Mapping[str, Any]], bool | Awaitable[bool]]
    is_enabled: bool | Callable[[AgentContext[Any]], bool | Awaitable[bool]]
    on_error: Callable[[ToolContext[Any], ToolError], str | Fatal | Awaitable[str | Fatal]] | None
    input_guardrails: Iterable[ToolInputGuardrail]
    output_guardrails: Iterable[ToolOutputGuardrail]
    serial: bool
    inline: bool
    defer_loading: bool
    namespace: str


@overload
def tool(
    function: Callable[Concatenate[ToolContext[C], P], R], /, **options: Unpack[ToolOptions]
) -> Tool[Concatenate[ToolContext[C], P], R, C]: ...
@overload
def tool(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R, Any]: ...
@overload
def tool(function: None = None, /, **options: Unpack[ToolOptions]) -> _Decorator: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """A tool made of a function: its signature, annotations and docstring say what the model is told.

    Use it as `@tool`, as `@tool(timeout=3)`, or as a function, on functions, bound methods, static methods,
    objects with `__call__`, and partials and lambdas that are given a `name`.  A first parameter annotated
    `ToolContext` gets the context and is not shown to the model.  A name that is given is checked, one that is
    derived is made to fit.  The options are those of `ToolOptions`.

    Raises `DeclarationError`, naming the tool, the parameter and the way out, for what cannot be a tool.

    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> add(2), add.name, add.description, add.parameters["required"]
    (3, 'add', 'Add two numbers.', ['a'])
    """
    if function is None:
        return functools.partial(_tool, **options)
    return _tool(function, **options)


class _Decorator:
    """The type of `tool(...)` without a function; it has no values of its own."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[ToolContext[C], P], R], /
    ) -> Tool[Concatenate[ToolContext[C], P], R, C]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Tool[P, R, Any]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any: ...


def _tool(
    given: Any,
    *,
    name: str | None = None,
    description: str | None = None,
    docstring_style: Style | None = None,
    use_docstring: bool = True,
    **options: Any,
) -> Tool[..., Any, Any]:
    function: Callable[..., Any] = given.__func__ if given.__class__ is staticmethod else given
    named = check_name(name) if name is not None else derived_name(function)
    what = f"tool {named!r}"
    _refuse_odd(function, what)
    if docstring_style not in (None, *get_args(Style)):
        raise DeclarationError(f"{what}: docstring_style={docstring_style!r} is none of {', '.join(get_args(Style))}")
    said = read_signature(
        function, what=what, is_context=_is_context, style=docstring_style, use_docstring=use_docstring
    )
    return Tool(
        named,
        said.description if description is None else description,
        said.schema_text,
        said.call,
        read=said.read,
        plain=function,
        asynchronous=_is_async(function),
        **options,
    )


def derived_name(function: Any) -> str:
    """A name for a function, or for an object by its class: made to fit where a provider would refuse it.

    >>> derived_name(len)
    'len'
    """
    if isinstance(function, functools.partial):
        raise DeclarationError("a partial has no name of its own; give one: tool(partial(...), name='...')")
    own = getattr(function, "__name__", None)
    name = own if isinstance(own, str) else type(function).__name__
    if name == "<lambda>":
        raise DeclarationError("a lambda has no name; give one: tool(lambda ..., name='...')")
    return check_name(_ODD.sub("_", name)[:64])


def _refuse_odd(function: Any, what: str) -> None:
    if isinstance(function, Tool):
        raise DeclarationError(f"{what} is a tool already; attrs.evolve changes one")
    if isinstance(function, type):
        raise DeclarationError(
            f"{what}: a class is no function; give tool() a function that makes one, or an object with __call__"
        )
    if isinstance(function, classmethod) or _is_unbound(function):
        raise DeclarationError(
            f"{what} is a method that is not bound to anything; make the tool of the bound one: tool(obj.method)"
        )
    if not callable(function):
        raise DeclarationError(
            f"{what}: a {type(function).__name__} cannot be called; tool() takes a function, and its options by name: "
            "@tool(name='...')"
        )


def _is_unbound(function: Any) -> bool:
    if not inspect.isfunction(function):
        return False
    owner = function.__qualname__.rpartition(".")[0]
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return (
        bool(owner)
        and not owner.endswith("<locals>")
        and first is not None
        and first.name in ("self", "cls")
        and first.annotation is inspect.Parameter.empty
    )


def _is_context(hint: Any) -> bool:
    if isinstance(hint, str):
        return _CONTEXT_TEXT.fullmatch(hint) is not None
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    kind = get_origin(hint) or hint
    if kind is AgentContext or any((get_origin(each) or each) is ToolContext for each in get_args(hint)):
        raise DeclarationError("the context of a tool's function is annotated as ToolContext or ToolContext[...] alone")
    return kind is ToolContext


def _is_async(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004

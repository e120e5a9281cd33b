"""`MODULE:NAME` on the command line: agents, tools, clients and contexts in Python modules, those here included."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeGuard, TypeVar, cast

from fnagents.agent import Agent, Agents, agents
from fnagents.cli.reports import Unusable
from fnagents.cli.texts import fault, line
from fnagents.errors import DeclarationError
from fnagents.models import ModelClient
from fnagents.outcome import Failure, Outcome, Success
from fnagents.tools import Tool, is_tool

__all__ = ["agents_at", "client_at", "context_at", "tool_at"]

T = TypeVar("T")


def agents_at(target: str) -> Outcome[Agents, Unusable]:
    """The agents that stand at the target, or that the function there gives; the first one begins."""
    found = _at(target, lambda value: callable(value) and not is_tool(value) and not _are_agents(value))
    if isinstance(found, Failure):
        return found
    value = found.unwrap()
    if not _are_agents(value):
        return _unfit(target, value, "neither an Agent nor agents by name")
    try:
        return Success(agents(value))
    except DeclarationError as error:
        return Failure(Unusable(f"{line(target)}: {line(str(error))}"))


def _are_agents(value: Any) -> bool:
    if not _is_mapping(value):
        return isinstance(value, Agent)
    return bool(value) and all(isinstance(one, Agent) for one in value.values())


def _is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def tool_at(target: str) -> Outcome[Tool[..., Any, Any], Unusable]:
    """The tool that stands at the target; nothing is called."""
    found = _at(target, lambda _: False)
    if isinstance(found, Failure):
        return found
    value = found.unwrap()
    return Success(value) if is_tool(value) else _unfit(target, value, "not a Tool (is it without @tool?)")


def client_at(target: str) -> Outcome[ModelClient, Unusable]:
    """The model client that stands at the target, or that the function of no arguments there gives."""
    found = _at(target, lambda value: callable(value) and _takes(value, 0) and not _takes(value, 2))
    if isinstance(found, Failure):
        return found
    client: Any = found.unwrap()
    if not callable(client) or not _takes(client, 2):
        return _unfit(target, client, "not a model client: a function of a request and `emit`")
    return Success(cast("ModelClient", client))


def context_at(target: str) -> Outcome[Any, Unusable]:
    """The object that stands at the target, or that the function or class there gives."""
    return _at(target, lambda value: inspect.isroutine(value) or inspect.isclass(value))


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


def _unfit(target: str, value: object, why: str) -> Failure[Unusable]:
    if inspect.iscoroutine(value):
        value.close()
    return Failure(Unusable(f"{line(target)} is {why}, but of type {line(type(value).__name__)}"))


# --- finding what stands there -------------------------------------------------------------------------


def _at(target: str, is_maker: Callable[[Any], bool]) -> Outcome[Any, Unusable]:
    """The value at the target; where that makes one, what it gives."""
    name, colon, attribute = target.partition(":")
    if not name or not colon or not attribute:
        return Failure(Unusable(f"{line(target)}: give a module and a name in it, as in shop:agent"))
    found = _module(name)
    if isinstance(found, Failure):
        return found
    value: Any = found.unwrap()
    for part in attribute.split("."):
        if not hasattr(value, part):
            return Failure(Unusable(f"the module {line(name)} has no {line(attribute)}"))
        value = getattr(value, part)
    return _given(f"calling {line(target)}", value) if is_maker(value) else Success(value)


def _given(doing: str, make: Callable[[], T]) -> Outcome[T, Unusable]:
    try:
        return Success(make())
    except (Exception, SystemExit) as error:  # noqa: BLE001  # somebody else's code, which fails in any way
        return Failure(Unusable(f"{doing} failed: {fault(error)}"))


def _module(name: str) -> Outcome[Any, Unusable]:
    here = os.getcwd()  # noqa: PTH109  # sys.path holds texts
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return Success(import_module(name))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # as above
        if not isinstance(error, ModuleNotFoundError) or not f"{name}.".startswith(f"{error.name}."):
            return Failure(Unusable(f"importing {line(name)} failed: {fault(error)}"))
    hint = f"; give {line(name.removesuffix('.py'))}, without .py" if name.endswith(".py") else ""
    return Failure(Unusable(f"there is no module {line(name)}, here or installed{hint}"))

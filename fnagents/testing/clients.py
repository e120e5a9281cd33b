"""Model clients for tests: a script of replies, or a function from request to reply.

A reply is text (the final message), a tool call, a sequence of items, a whole `ModelResponse`, a model error, or a
function of the request that gives one of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from attrs import Factory, define

from fnagents.errors import ModelError
from fnagents.items import Item, Message
from fnagents.models import Emit, ModelClient, ModelRequest, ModelResponse
from fnagents.outcome import Failure, Outcome, Success

__all__ = ["Reply", "Scripted", "from_function", "scripted"]

_Plain: TypeAlias = str | Item | Sequence[Item] | ModelResponse | ModelError
#: What a model says, in the shortest form that says it.
Reply: TypeAlias = "_Plain | Callable[[ModelRequest], _Plain | Awaitable[_Plain]]"


def _answer(reply: Any) -> Outcome[ModelResponse, ModelError]:
    if isinstance(reply, str):
        return Success(ModelResponse((Message("assistant", reply),)))
    if isinstance(reply, ModelResponse):
        return Success(reply)
    if isinstance(reply, ModelError):
        return Failure(reply)
    items = (reply,) if isinstance(reply, Item) else tuple(reply)
    for item in items:
        if not isinstance(item, Item):
            raise TypeError(f"a reply cannot hold a {type(item).__name__}; give text, items, a response or an error")
    return Success(ModelResponse(items))


async def _asked(reply: Any, request: ModelRequest) -> Outcome[ModelResponse, ModelError]:
    if callable(reply):
        reply = reply(request)
        if inspect.isawaitable(reply):
            reply = await reply
    return _answer(reply)


@define(eq=False)
class Scripted:
    """A model client that gives its replies in order; `requests` are the requests that it was asked."""

    replies: tuple[Reply, ...]
    requests: list[ModelRequest] = Factory(list[ModelRequest])

    async def __call__(self, request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:  # noqa: ARG002
        """The next reply; raises AssertionError when there is none."""
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self.replies):
            raise AssertionError(
                f"the script has {len(self.replies)} replies, and request {number + 1} came "
                f"(agent {request.agent!r}, turn {request.turn}): add a reply to scripted(...)"
            )
        return await _asked(self.replies[number], request)

    def assert_complete(self) -> None:
        """Raise AssertionError if a reply was not asked for."""
        left = len(self.replies) - len(self.requests)
        if left > 0:
            raise AssertionError(f"{left} of {len(self.replies)} replies were not asked for")


def scripted(*replies: Reply) -> Scripted:
    """A model client that gives these replies, one a request.

    >>> from fnagents import ToolCall
    >>> client = scripted(ToolCall("c1", "add", '{"a": 1}'), "done")
    >>> client.assert_complete()
    Traceback (most recent call last):
    AssertionError: 2 of 2 replies were not asked for
    """
    return Scripted(replies)


def from_function(function: Callable[[ModelRequest], Any]) -> ModelClient:
    """A model client made of a function from request to reply, sync or async.

    >>> import asyncio
    >>> from fnagents import Agent, run_sync
    >>> echo = from_function(lambda request: request.items[-1].text.upper())
    >>> run_sync(Agent("echo"), "hi", client=echo).outcome
    <Success: HI>
    """

    async def client(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:  # noqa: ARG001
        return await _asked(function, request)

    return client

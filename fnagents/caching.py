"""A client that asks once: `cached` keeps answers, under the digest of what was sent."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from attrs import evolve, frozen

from fnagents.codec import dump_event, load_event
from fnagents.errors import DeclarationError, ModelError
from fnagents.items import Item
from fnagents.jsontext import canonical, digest
from fnagents.models import Emit, ModelClient, ModelRequest, ModelResponse
from fnagents.outcome import Outcome, Success
from fnagents.pipeline import settled
from fnagents.protocol import Replied
from fnagents.runs import Input, Turn
from fnagents.wire.responses import write_items, write_request

__all__ = ["Store", "cached", "request_digest"]

_log = logging.getLogger("fnagents.clients")


@frozen
class Store:
    """Where texts are kept under keys, as two functions, sync or async: `get(key)` gives None for what is not there.

    A dictionary makes one: `Store(texts.get, texts.__setitem__)`.
    """

    get: Callable[[str], str | None | Awaitable[str | None]]
    put: Callable[[str, str], object]


def cached(client: ModelClient, store: Store, *, model: str = "") -> ModelClient:
    """The client, asked only for what is not in the store: an equal request gets an equal answer, its usage included.

    So a run that found its answers in the store is equal to the one that put them there.  The key is
    `request_digest`; give `model` as the client has it, or clients with other models would share answers.  What
    is kept is text of fnagents.codec, which later versions read.  Only answers are kept, no failures, and
    nothing of a conversation that the server holds, for the key cannot tell what is in it.  An answer from the
    store emits no deltas.  A store that fails, or gives what cannot be read, is logged, and the model is asked.

    >>> from fnagents import Agent, run_sync
    >>> from fnagents.testing import scripted
    >>> texts = {}
    >>> client = cached(scripted("Hello!"), Store(texts.get, texts.__setitem__))
    >>> run_sync(Agent("greeter"), "hi", client=client) == run_sync(Agent("greeter"), "hi", client=client)
    True
    """

    async def asked(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        try:
            key = None if request.conversation_id is not None else request_digest(request, model=model)
        except DeclarationError:
            key = None  # it cannot be written, and the client is who says so
        if key is not None and (found := await _found(store, key)) is not None:
            return Success(found)
        outcome = await client(request, emit)
        if key is not None and isinstance(outcome, Success):
            await _keep(store, key, outcome.unwrap())
        return outcome

    return asked


async def _found(store: Store, key: str) -> ModelResponse | None:
    try:
        text: Any = await settled(store.get(key))
        if text is None:
            return None
        event = load_event(text)
    except Exception:  # noqa: BLE001  # a store is foreign code; without it the model answers
        _log.exception("the store could not give %s", key)
        return None
    replied = event.unwrap() if isinstance(event, Success) else None
    outcome = replied.outcome if isinstance(replied, Replied) else None
    if isinstance(outcome, Success):
        return outcome.unwrap()
    _log.error("what the store has under %s is no answer", key)
    return None


async def _keep(store: Store, key: str, response: ModelResponse) -> None:
    # As the event it is in a run: one format, with versions.
    try:
        await settled(store.put(key, dump_event(Replied(0, Success(response)))))
    except Exception:  # noqa: BLE001  # a store is foreign code; without it the model answers
        _log.exception("the store could not keep %s", key)


def request_digest(request: ModelRequest, *, model: str = "") -> str:
    """SHA-256 of all that a client sends, in canonical JSON and 64 hexadecimal digits; `model` where it names none.

    Neither the run's turns nor who asks is in it: the same conversation has one digest.
    Raises `DeclarationError` where `write_request` does.

    >>> from fnagents import Input, Sent
    >>> asked = ModelRequest("a", 0, Sent(), Input(()))
    >>> request_digest(asked, model="m") == request_digest(evolve(asked, agent="b", turn=7, sent=Sent(model="m")))
    True
    """
    head = canonical(write_request(evolve(request, input=Input(()), turns=()), model_default=model))
    # Each turn is written once, so that a long run's digest costs no more than hashing it.
    items = [request.input.once(_input_text), *(turn.once(_turn_text) for turn in request.turns)]
    return digest(f"{head}[{','.join(filter(None, items))}]")


def _input_text(given: Input) -> str:
    return _text(given.items)


def _turn_text(turn: Turn) -> str:
    return _text(turn.items)


def _text(items: Iterable[Item]) -> str:
    return ",".join(canonical(item) for item in write_items(items))

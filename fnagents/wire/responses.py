"""The Responses API: requests as it takes them, its responses as values.  Pure.

`write_request` is the truth, `encode_request` the fast form of it: each turn encodes itself once and a body
joins the fragments, so that adding a turn does not cost the length of the run.
Unpaired surrogates, which no encoder takes, become visible marks on the wire; the values keep the original.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fnagents.errors import Incomplete, MalformedResponse, ModelError
from fnagents.items import Item
from fnagents.jsontext import Json, compact, encodable, read_json, visible
from fnagents.models import ModelRequest, ModelResponse, Sent, Usage
from fnagents.outcome import Failure, Outcome, Success
from fnagents.wire.hiding import NOTHING, Hidden
from fnagents.wire.items import UnreadableItemError, read_item, write_item
from fnagents.wire.parts import Data
from fnagents.wire.problems import error_in, model_error
from fnagents.wire.settings import write_sent

if TYPE_CHECKING:
    from fnagents.runs import Input, Turn

__all__ = [
    "MOST_ITEMS",
    "encode_request",
    "read_arrived",
    "read_response",
    "read_usage",
    "write_items",
    "write_request",
]

#: The most items of one response that are read.
MOST_ITEMS = 10_000

#: Responses that are not whole, and why.
_UNFINISHED = frozenset({"incomplete", "queued", "in_progress", "cancelled"})
_SNIPPET = 200
#: The most characters of a message or a reason.
_LONGEST = 1_000


# --- what comes back -----------------------------------------------------------------------------------


def _count(data: Json, name: str) -> int:
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def read_usage(data: Json) -> Usage:
    """What one model call cost; whatever is missing or null counts as 0.

    >>> read_usage({"input_tokens": 5, "input_tokens_details": None, "output_tokens": 2})
    Usage(requests=1, input_tokens=5, output_tokens=2, cached_tokens=0, reasoning_tokens=0)
    """
    details = data if isinstance(data, dict) else {}
    return Usage(
        1,
        _count(data, "input_tokens"),
        _count(data, "output_tokens"),
        _count(details.get("input_tokens_details"), "cached_tokens"),
        _count(details.get("output_tokens_details"), "reasoning_tokens"),
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _read_items(output: list[Json]) -> tuple[tuple[Item, ...], str]:
    items: list[Item] = []
    problem = f"it has more than {MOST_ITEMS} items" if len(output) > MOST_ITEMS else ""
    for index, data in enumerate(output[:MOST_ITEMS]):
        if not isinstance(data, dict):
            problem = problem or f"output[{index}] is not an object"
            continue
        try:
            items.append(read_item(data))
        except UnreadableItemError as error:
            problem = problem or f"output[{index}]: {error}"
        except (TypeError, ValueError, RecursionError) as error:
            problem = problem or f"output[{index}] is not plain JSON data: {error}"
    return tuple(items), problem


def read_response(data: Json | bytes, hidden: Hidden = NOTHING) -> Outcome[ModelResponse, ModelError]:
    """The response in the body of an answer: parsed JSON, or its text.  Total.

    A response that is not whole is `Incomplete`, one that failed the error that it tells of, and one that
    cannot be read `MalformedResponse`; they carry what arrived and its usage.  No half a call ever comes out
    as `Success`: a call without a name or arguments is malformed.  Nothing that fails repeats what is `hidden`;
    a success is what the server said.

    >>> read_response({"id": "resp_1", "model": "m", "output": []}).unwrap().id
    'resp_1'
    """
    if isinstance(data, str | bytes):
        return _read_text(data, hidden)
    if not isinstance(data, dict):
        return Failure(MalformedResponse("it is not a JSON object"))
    output = data.get("output")
    arrived, problem = read_arrived(data)
    status = data.get("status")
    if status == "failed" or data.get("error"):
        return Failure(model_error(error_in(data) or "the response failed without saying why", hidden=hidden))
    if isinstance(status, str) and status in _UNFINISHED:
        details = data.get("incomplete_details")
        reason = _text(details.get("reason")) if isinstance(details, dict) else ""
        return Failure(Incomplete(hidden.short(reason or status, _LONGEST), _clean(data, arrived, hidden)))
    if not isinstance(output, list):
        problem = "it has no list of output items"
    if problem:
        return Failure(MalformedResponse(hidden.short(problem, _LONGEST), _clean(data, arrived, hidden)))
    return Success(arrived)


def _clean(data: Data, arrived: ModelResponse, hidden: Hidden) -> ModelResponse:
    return read_arrived(hidden.data(data))[0] if hidden.words else arrived


def read_arrived(data: Data) -> tuple[ModelResponse, str]:
    """What can be read of a response, and the first thing that was wrong with its items ("" for nothing)."""
    output: Json = data.get("output")
    items, problem = _read_items(output) if isinstance(output, list) else ((), "")
    return ModelResponse(items, read_usage(data.get("usage")), _text(data.get("id")), _text(data.get("model"))), problem


def _read_text(text: str | bytes, hidden: Hidden) -> Outcome[ModelResponse, ModelError]:
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        return Failure(MalformedResponse(f"it is not UTF-8: {error.reason} at byte {error.start}"))
    outcome = read_json(decoded, surrogates=True)
    if isinstance(outcome, Failure):
        begins = f"; it begins with {visible(hidden.text(decoded)[:_SNIPPET])!r}" if decoded else ""
        reason = hidden.short(outcome.failure().reason, _SNIPPET)
        return Failure(MalformedResponse(f"it is not JSON: {reason}{begins}"))
    value = outcome.unwrap()
    return read_response(None if isinstance(value, str) else value, hidden)


# --- what is sent --------------------------------------------------------------------------------------


def _sendable(data: Data) -> Data:
    text = compact(data)
    if encodable(text):
        return data
    sendable: Data = json.loads(visible(text))
    return sendable


def write_items(items: Iterable[Item]) -> list[Data]:
    """The items as the API takes them, under the ids that they have.

    >>> from fnagents.items import Message
    >>> write_items([Message("user", "hi")])
    [{'role': 'user', 'content': 'hi'}]
    """
    return [_sendable(write_item(item)) for item in items]


def _head(request: ModelRequest, model_default: str) -> Data:
    held: Data = {}
    if model := request.model or model_default:
        held["model"] = model
    if request.previous_response_id is not None:
        held["previous_response_id"] = request.previous_response_id
    if request.conversation_id is not None:
        held["conversation"] = request.conversation_id
    return held


def write_request(request: ModelRequest, *, model_default: str = "") -> Data:
    """The body of the request, as plain data; whether it streams is the client's to say.

    Raises `DeclarationError` where a value holds JSON text that is none, or `settings.extra` contradicts.

    >>> from fnagents.runs import Input
    >>> from fnagents.items import Message
    >>> write_request(ModelRequest("a", 0, Sent(model="m"), Input((Message("user", "hi"),))))
    {'model': 'm', 'input': [{'role': 'user', 'content': 'hi'}]}
    """
    items: list[Json] = [write_item(item) for item in request.items]
    body: Data = {**_head(request, model_default), **write_sent(request.sent), "input": items}
    return _sendable(body)


def _encoded(items: Iterable[Item]) -> bytes:
    return visible(",".join(compact(write_item(item)) for item in items)).encode()


def _input_fragment(given: Input) -> bytes:
    return _encoded(given.items)


def _turn_fragment(turn: Turn) -> bytes:
    return _encoded(turn.items)


def _sent_fragment(sent: Sent) -> bytes:
    return visible(compact(write_sent(sent)))[1:-1].encode()


def encode_request(request: ModelRequest, *, model_default: str = "", stream: bool = False) -> bytes:
    """The body of the request in UTF-8: `write_request` with `stream`, made of what each turn keeps of itself."""
    fragments = (request.input.once(_input_fragment), *(turn.once(_turn_fragment) for turn in request.turns))
    items = [fragment for fragment in fragments if fragment] or [b""]
    ends: Data = {**_head(request, model_default), **({"stream": True} if stream else {})}
    fields = (visible(compact(ends))[1:-1].encode(), request.sent.once(_sent_fragment), b'"input":[')
    # What stands around the items goes to the first and the last of them: the body is then copied once.
    items[0] = b"{" + b",".join(field for field in fields if field) + items[0]
    items[-1] += b"]}"
    return b",".join(items)

"""A model's server on loopback, for tests: plain asyncio, HTTP/1.1, answering from a script and recording requests.

    async with serve([whole({"output": []}), refused(429, {"retry-after": "3"})]) as server:
        client = responses_client(base_url=server.url, api_key="a key for tests")
        ...
    server.requests[0].json["input"]

Each request takes the next answer of the script; when the script is used up the server answers 500.
Connections are kept alive, and each request says which connection it came on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

from attrs import Factory, define, field, frozen

__all__ = [
    "Answer",
    "ModelServer",
    "Received",
    "completed",
    "cut",
    "events",
    "message",
    "refused",
    "serve",
    "stalled",
    "stream",
    "whole",
]


@frozen
class Received:
    """A request as it came; `connection` counts connections from 0."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)


@frozen
class Answer:
    """What the server does with a request.

    `chunks` are sent one by one, `pause` seconds apart, framed by their length or chunked.  `then`: "end" is
    proper; "cut" breaks the connection there, "stall" sends nothing more.  With `silent` not even the head goes.
    """

    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    chunks: tuple[bytes, ...] = ()
    framing: Literal["length", "chunked"] = "length"
    then: Literal["end", "cut", "stall"] = "end"
    silent: bool = False
    pause: float = 0.0


Scripted: TypeAlias = Answer | Callable[[Received], Answer]


def message(text: str, id: str = "msg_1") -> dict[str, Any]:
    """An assistant's message as the API sends it."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": id, "status": "completed", "role": "assistant", "content": [part]}


def completed(*items: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A response as the API sends it, whole."""
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    whole_one = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "error": None}
    return {**whole_one, "output": list(items), "usage": usage, **fields}


def events(response: Mapping[str, Any], *more: Mapping[str, Any]) -> bytes:
    """The stream of a whole response: created, each item begun and done, `more`, completed."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    told: list[Mapping[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item": item}
        told += [{"type": "response.output_item.added", **place}, {"type": "response.output_item.done", **place}]
    told += [*more, {"type": f"response.{response['status']}", "response": response}]
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(told)
    )


def whole(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A JSON body; bytes are sent as they are."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return Answer(status, {"content-type": "application/json", **(headers or {})}, (body,))


def refused(status: int, headers: Mapping[str, str] | None = None, **error: Any) -> Answer:
    """An error as the API sends it."""
    return whole({"error": {"message": "it was refused", "type": None, "code": None, **error}}, status, headers)


def stream(data: bytes, size: int = 0, then: Literal["end", "cut", "stall"] = "end", pause: float = 0.0) -> Answer:
    """A stream of events in chunks of `size` bytes (0 for all at once)."""
    step = size or max(1, len(data))
    chunks = tuple(data[start : start + step] for start in range(0, len(data), step))
    return Answer(200, {"content-type": "text/event-stream"}, chunks, "chunked", then, pause=pause)


def cut(*, head: bool = False) -> Answer:
    """The connection breaks, before or after the head of the answer."""
    return Answer(chunks=(b"",), framing="chunked", then="cut", silent=not head)


def stalled() -> Answer:
    """Nothing comes, and the connection stays open."""
    return Answer(then="stall", silent=True)


@define
class ModelServer:
    """The running server: its address, and what it was asked."""

    url: str
    script: list[Scripted]
    requests: list[Received] = Factory(list)
    connections: int = 0
    #: connections that the other side has closed
    closed: int = 0
    serving: dict[asyncio.Task[None], asyncio.StreamWriter] = Factory(dict)
    _changed: asyncio.Event = Factory(asyncio.Event)

    async def until(self, holds: Callable[[ModelServer], bool]) -> None:
        """Wait until something holds of the server: `await server.until(lambda server: server.closed == 2)`."""
        while not holds(self):
            self._changed.clear()
            await self._changed.wait()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None
        self.serving[task] = writer
        number, self.connections = self.connections, self.connections + 1
        try:
            while (request := await _receive(reader, number)) is not None:
                self.requests.append(request)
                self._changed.set()
                scripted = self.script.pop(0) if self.script else refused(500, message="the script is used up")
                answer = scripted(request) if callable(scripted) else scripted
                await _send(writer, answer)
                if answer.then == "cut":
                    return
                if answer.then == "stall" and not await reader.read():
                    break
            self.closed += 1
        except ConnectionError:
            self.closed += 1
        finally:
            writer.close()
            del self.serving[task]
            self._changed.set()


async def _receive(reader: asyncio.StreamReader, connection: int) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ")
    return Received(method, path, headers, body, connection)


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    if answer.silent:
        return
    chunked = answer.framing == "chunked"
    framing = ("transfer-encoding: chunked",) if chunked else (f"content-length: {sum(map(len, answer.chunks))}",)
    lines = (f"HTTP/1.1 {answer.status} Scripted", *(f"{k}: {v}" for k, v in answer.headers.items()), *framing, "", "")
    writer.write("\r\n".join(lines).encode("latin-1"))
    for chunk in filter(None, answer.chunks):
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
        await writer.drain()
        await asyncio.sleep(answer.pause)
    if chunked and answer.then == "end":
        writer.write(b"0\r\n\r\n")
    await writer.drain()


@asynccontextmanager
async def serve(script: Iterable[Scripted]) -> AsyncIterator[ModelServer]:
    """A server on a free port of loopback; its `url` is a base_url."""
    server = ModelServer("", list(script))
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0, limit=1 << 26)
    host, port = listener.sockets[0].getsockname()[:2]
    server.url = f"http://{host}:{port}/v1"
    try:
        yield server
    finally:
        listener.close()
        # Not cancelled: `asyncio.streams` complains of cancelled handlers; without a connection they end.
        for writer in (serving := dict(server.serving)).values():
            writer.transport.abort()
        await asyncio.gather(*serving)
        await listener.wait_closed()

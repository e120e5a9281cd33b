"""The model's server in a thread of its own, for tests that start other processes."""

import asyncio
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from queue import SimpleQueue

from model_server import ModelServer, Scripted, serve

__all__ = ["serving"]


@contextmanager
def serving(script: Iterable[Scripted]) -> Generator[ModelServer, None, None]:
    """A server that runs while the block does."""
    started: SimpleQueue[tuple[ModelServer, asyncio.AbstractEventLoop, asyncio.Event]] = SimpleQueue()

    async def main() -> None:
        over = asyncio.Event()
        async with serve(script) as server:
            started.put((server, asyncio.get_running_loop(), over))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    server, loop, over = started.get(timeout=30)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(timeout=30)

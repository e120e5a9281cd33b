"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["VirtualLoop", "run_virtual"]

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: what it would have waited is added to the loop's clock."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> Any:
        """What is ready now; time passes by `timeout` seconds if nothing is."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("deadlock in virtual time: nothing is scheduled, and nothing can wake the loop")
        if not ready and timeout:
            self.loop.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time; `now` is its clock in seconds, from 0.

    Only for code that waits for timers: threads and sockets do not know of this clock.
    """

    def __init__(self) -> None:
        self.now = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """The virtual clock."""
        return self.now


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, in virtual time.

    >>> import asyncio
    >>> async def tomorrow():
    ...     await asyncio.sleep(86_400)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(tomorrow())
    86400.0
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)

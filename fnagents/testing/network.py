"""A network that refuses: proof that a test or a replay stays offline."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

__all__ = ["NetworkForbiddenError", "no_network"]


class NetworkForbiddenError(AssertionError):
    """Something tried to open a connection inside `no_network()`."""


@contextmanager
def no_network(*, loopback: bool = False) -> Generator[None, None, None]:
    """Inside the block, every connection to an address raises `NetworkForbiddenError`.

    With `loopback`, connections to this machine are let through.  It holds for the whole process.

    >>> import socket
    >>> with no_network(), socket.socket() as connection:
    ...     connection.connect(("192.0.2.1", 80))
    Traceback (most recent call last):
    fnagents.testing.network.NetworkForbiddenError: a connection to ('192.0.2.1', 80) was tried
    """
    real = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex", "sendto")}

    def guarded(name: str) -> Any:
        def method(self: socket.socket, *args: Any) -> Any:
            address: Any = args[-1]
            local = self.family == getattr(socket, "AF_UNIX", None)
            here = isinstance(address, tuple) and address[:1] in {("127.0.0.1",), ("::1",), ("localhost",)}
            if local or (loopback and here):
                return real[name](self, *args)
            raise NetworkForbiddenError(f"a connection to {address!r} was tried")

        return method

    for name in real:
        setattr(socket.socket, name, guarded(name))
    try:
        yield
    finally:
        for name, method in real.items():
            setattr(socket.socket, name, method)

"""What a client is made with, checked where it is made: a mistake that showed at the first call would be a late one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import cast

from fnagents.errors import DeclarationError
from fnagents.wire.hiding import Hidden

__all__ = ["check_seconds", "check_text", "hidden_in", "read_headers", "sendable"]

#: Headers that say nothing secret; errors may repeat them.
_OPEN = frozenset(
    {"accept", "accept-encoding", "connection", "content-type", "user-agent", "openai-organization", "openai-project"}
)


def sendable(text: str) -> bool:
    r"""Whether a text can stand in a header.

    >>> sendable("Bearer x"), sendable("Bearer\nx")
    (True, False)
    """
    return text.isascii() and text.isprintable()


def check_text(name: str, value: object) -> None:
    """Raises `DeclarationError` for what is no text; the value is not shown, for it may be a key of another type."""
    if not isinstance(value, str):
        raise DeclarationError(f"{name} is a {type(value).__name__}, not text")


def check_seconds(name: str, value: object) -> None:
    """Raises `DeclarationError` for what is neither a positive, finite number nor None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max:
        return
    if value is not None:
        raise DeclarationError(f"{name}={value!r} is not a positive number of seconds, or None for no limit")


def read_headers(given: object) -> dict[str, str]:
    """Headers by their names in small letters, of which the last one holds.  Raises `DeclarationError`.

    >>> read_headers({"X-Team": "blue"})
    {'x-team': 'blue'}
    """
    if not isinstance(given, Mapping):
        raise DeclarationError(f"headers is a {type(given).__name__}, not a mapping of names to texts")
    headers: dict[str, str] = {}
    for name, value in cast("Mapping[str, str]", given).items():
        check_text("the name of a header", name)
        check_text(f"the header {name!r}", value)
        if not sendable(name + value):
            raise DeclarationError(f"the header {name!r} has characters that cannot be sent")
        headers[name.lower()] = value
    return headers


def hidden_in(key: str, headers: Mapping[str, str]) -> Hidden:
    """What no error may repeat: the key, and the values of headers but for those that say nothing secret.

    >>> hidden_in("", {"authorization": "Bearer abcdefgh"}).text("no such key: abcdefgh")
    'no such key: [key]'
    """
    secret = [value for name, value in headers.items() if name not in _OPEN]
    # Of `Bearer ...` a server may repeat the second word alone.
    return Hidden([key, *secret, *(value.strip().partition(" ")[2] for value in secret)])

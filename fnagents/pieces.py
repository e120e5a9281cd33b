"""JSON text that always has a UTF-8 form, whatever the strings hold.

Unpaired surrogates are escaped.  Two that stand side by side without being a pair (a stream may be cut between
them) would be read as one character, so such a string is written in pieces, as
`{"$type": "Joined", "value": [piece, piece]}`, and put together again when read.
"""

from __future__ import annotations

import re
from typing import Any, TypeGuard

from fnagents.jsontext import compact, encodable
from fnagents.shapes import TAG

__all__ = ["JOINED", "encoded", "restored"]

#: The tag of a string in pieces.
JOINED = "Joined"
_SURROGATE = re.compile("[\ud800-\udfff]")
_BESIDE = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")


def encoded(data: Any) -> str:
    r"""Compact JSON text of plain data.

    >>> print(encoded(["a\udcff", "\ud83d" + "\ude00"]))
    ["a\udcff",{"$type":"Joined","value":["\ud83d","\ude00"]}]
    """
    text = compact(data)
    if encodable(text):
        return text
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", compact(_in_pieces(data)))


def restored(data: Any, text: str) -> Any:
    """The data that was read of the text, its pieces put together.

    >>> restored(["a", {"$type": "Joined", "value": ["b", "c"]}], '"Joined"')
    ['a', 'bc']
    """
    return _in_one(data) if f'"{JOINED}"' in text else data


def _is_object(data: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(data, dict)


def _is_array(data: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(data, list | tuple)


def _in_pieces(data: Any) -> Any:
    if _is_object(data):
        return {key: _in_pieces(value) for key, value in data.items()}
    if _is_array(data):
        return [_in_pieces(value) for value in data]
    if isinstance(data, str) and len(pieces := _BESIDE.split(data)) > 1:
        return {TAG: JOINED, "value": pieces}
    return data


def _in_one(data: Any) -> Any:
    if _is_array(data):
        return [_in_one(value) for value in data]
    if not _is_object(data):
        return data
    pieces = data.get("value")
    if data.get(TAG) == JOINED and _is_array(pieces) and all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    return {key: _in_one(value) for key, value in data.items()}

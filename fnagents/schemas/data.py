"""Telling JSON's arrays and objects, in words that type checkers take."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeIs

__all__ = ["is_array", "is_object"]


def is_object(value: Any) -> TypeIs[dict[str, Any]]:
    """Whether the value is a JSON object.

    >>> is_object({}), is_object([])
    (True, False)
    """
    return isinstance(value, dict)


def is_array(value: Any) -> TypeIs[list[Any]]:
    """Whether the value is a JSON array.

    >>> is_array([]), is_array("")
    (True, False)
    """
    return isinstance(value, list)

"""What servers say went wrong, as a `ModelError`: by HTTP status, by code, and where servers differ, by wording."""

from __future__ import annotations

import email.utils
import math
from collections.abc import Callable, Mapping

from fnagents.errors import (
    BadRequest,
    ContextTooLong,
    ModelError,
    NotFound,
    RateLimited,
    ServerFailed,
    Unauthorized,
)
from fnagents.jsontext import Json, compact
from fnagents.wire.hiding import NOTHING, Hidden

__all__ = ["error_in", "model_error", "retry_after"]

#: The most characters of a server's message that an error carries.
_LONGEST = 1_000
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TOO_LONG_PHRASES = ("maximum context length", "exceeds the context window")
_REFUSING = frozenset({0, 400, 413, 422})
_BUSY = frozenset({"rate_limit_exceeded", "rate_limit_error", "slow_down", "too_many_requests"})
_NO_KEY = frozenset({"invalid_api_key", "authentication_error", "permission_error", "permission_denied"})
_UNKNOWN = frozenset({"model_not_found", "DeploymentNotFound", "not_found_error", "not_found"})
_FAILING = frozenset({"server_error", "internal_server_error", "overloaded_error", "vector_store_timeout"})


def error_in(body: Json) -> Json:
    """The error that a body, a response or an event speaks of: its "error", or itself; None if it has none.

    >>> error_in({"error": {"message": "no"}})
    {'message': 'no'}
    """
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    if inner is not None:
        return inner
    return body if isinstance(body.get("message"), str) or isinstance(body.get("detail"), str) else None


def _words(error: Json) -> str:
    if isinstance(error, Mapping):
        said = error.get("message") or error.get("detail")
        return said if isinstance(said, str) and said else compact(error)
    return error if isinstance(error, str) else compact(error)


def _codes(error: Json) -> frozenset[str]:
    if not isinstance(error, Mapping):
        return frozenset()
    return frozenset(code for key in ("code", "type") if isinstance(code := error.get(key), str))


def model_error(error: Json, status: int = 0, retry_after: float | None = None, hidden: Hidden = NOTHING) -> ModelError:
    """The typed error.  `error` is the server's error object, or text; `status` is HTTP's, 0 within a response.

    A used-up quota is a `BadRequest`, though servers send it as 429: to try again does not help.
    Time-outs and conflicts (408, 409) are the server's failures, worth another try.

    >>> model_error({"code": "insufficient_quota", "message": "You exceeded your current quota."}, 429)
    BadRequest(message='You exceeded your current quota.', status=429)
    """
    message, codes = hidden.short(_words(error), _LONGEST), _codes(error)
    if "insufficient_quota" in codes:
        return BadRequest(message, status or 429)
    if codes & _TOO_LONG or (status in _REFUSING and any(phrase in message.lower() for phrase in _TOO_LONG_PHRASES)):
        return ContextTooLong(message)
    if status:
        return _by_status(message, status, retry_after)
    return _by_code(message, codes, retry_after)


def _by_status(message: str, status: int, retry_after: float | None) -> ModelError:
    match status:
        case 429:
            return RateLimited(message, retry_after)
        case 401 | 403:
            return Unauthorized(message, status)
        case 404:
            return NotFound(message)
        case 408 | 409:
            return ServerFailed(message, status, retry_after)
        case _:
            failing = status in range(500, 600)
            return ServerFailed(message, status, retry_after) if failing else BadRequest(message, status)


def _by_code(message: str, codes: frozenset[str], retry_after: float | None) -> ModelError:
    if codes & _BUSY:
        return RateLimited(message, retry_after)
    if codes & _NO_KEY:
        return Unauthorized(message)
    if codes & _UNKNOWN:
        return NotFound(message)
    if codes & _FAILING or not any(code.startswith(("invalid", "image", "unsupported")) for code in codes):
        return ServerFailed(message, 500, retry_after)
    return BadRequest(message)


def retry_after(headers: Mapping[str, str], now: Callable[[], float]) -> float | None:
    """The seconds that a server asks to wait, never negative; None if it does not say so in a known way.

    `retry-after-ms` counts milliseconds; `retry-after` is a number of seconds or an HTTP date, for which
    `now` gives the seconds since 1970.

    >>> retry_after({"retry-after": "1.5"}, lambda: 0.0)
    1.5
    >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, lambda: 10.0)
    20.0
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is not None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now())
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None

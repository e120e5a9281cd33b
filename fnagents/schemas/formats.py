"""The formats that are judged, each as a function from text to a value: one truth for decoders and for jsonschema.

Dates and times are ISO 8601 as RFC 3339 writes it, two things apart: the offset of a date-time or time and its
seconds may be left out, since models leave them out.  What is read without an offset is naive.  Which formats
jsonschema itself checks depends on what else is installed; a judgement must not, so these are all there are.
Each raises `ValueError` for text that is not of its format.
"""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import re
import uuid
from collections.abc import Callable
from typing import Any

__all__ = ["BASE64", "FORMATS", "read_base64", "read_date", "read_datetime", "read_duration", "read_time", "read_uuid"]
__all__ += ["write_duration"]

_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(_CLOCK)
_DATETIME = re.compile(rf"{_DATE.pattern}[Tt ]{_CLOCK}")
_DURATION = re.compile(
    r"(-?)P(?=[0-9T])(?:([0-9]+)W)?(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,6}))?S)?)?"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
#: Base64 as a JSON Schema pattern.
BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_BASE64 = re.compile(BASE64)


def _whole(pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r:.80} is not {what}")
    return match


def read_date(text: str) -> dt.date:
    """A day.

    >>> read_date("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    return dt.date.fromisoformat(_whole(_DATE, text, "a date such as 2024-02-29").group())


def read_datetime(text: str) -> dt.datetime:
    """A moment, naive if no offset is given.

    >>> read_datetime("2024-02-29T12:30:00Z")
    datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
    """
    whole = _whole(_DATETIME, text, "a date-time such as 2024-02-29T12:30:00Z").group()
    return dt.datetime.fromisoformat(whole.upper())


def read_time(text: str) -> dt.time:
    """A time of day.

    >>> read_time("12:30")
    datetime.time(12, 30)
    """
    return dt.time.fromisoformat(_whole(_TIME, text, "a time such as 12:30:00").group().upper())


def read_duration(text: str) -> dt.timedelta:
    """An ISO 8601 duration in weeks, days, hours, minutes and seconds; years and months have no fixed length.

    >>> read_duration("P1DT2H30M")
    datetime.timedelta(days=1, seconds=9000)
    """
    sign, *parts, fraction = _whole(_DURATION, text, "a duration such as P1DT2H30M").groups()
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in parts)
    micro = int((fraction or "").ljust(6, "0"))
    try:
        span = dt.timedelta(days, seconds, micro, 0, minutes, hours, weeks)
    except OverflowError:
        raise ValueError(f"{text!r:.80} is too long a duration") from None
    return -span if sign else span


def write_duration(span: dt.timedelta) -> str:
    """The duration as text that `read_duration` reads.

    >>> write_duration(dt.timedelta(minutes=90))
    'PT5400S'
    """
    sign, size = ("-", -span) if span < dt.timedelta(0) else ("", span)
    days = f"{size.days}D" if size.days else ""
    fraction = f".{size.microseconds:06d}" if size.microseconds else ""
    clock = f"T{size.seconds}{fraction}S" if size.seconds or fraction or not days else ""
    return f"{sign}P{days}{clock}"


def read_uuid(text: str) -> uuid.UUID:
    """A UUID with its hyphens.

    >>> read_uuid("12345678-1234-5678-1234-567812345678").node
    95073701484152
    """
    return uuid.UUID(_whole(_UUID, text, "a UUID").group())


def read_base64(text: str) -> bytes:
    """Bytes in base64.

    >>> read_base64("aGk=")
    b'hi'
    """
    if _BASE64.search(text) is None:
        raise ValueError(f"{text!r:.80} is not base64")
    return base64.b64decode(text)


def _email(text: str) -> object:
    return _whole(_EMAIL, text, "an e-mail address")


def _uri(text: str) -> object:
    return _whole(_URI, text, "a URI")


def _regex(text: str) -> object:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None


#: Every format that is judged; others are annotations.
FORMATS: dict[str, Callable[[str], Any]] = {
    "date": read_date,
    "date-time": read_datetime,
    "duration": read_duration,
    "email": _email,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "regex": _regex,
    "time": read_time,
    "uri": _uri,
    "uuid": read_uuid,
}

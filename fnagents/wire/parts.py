"""Parts of messages and of tool outputs, to and from the Responses API's JSON; and what all of the wire shares.

Reading keeps everything: a field without an attribute goes to `extra`, a part that is not understood whole to
`Opaque`; writing puts both back, so what was read is written as it was.  A value made in Python has no `extra`
and gets the fields that the API requires beside its attributes (`annotations`, `detail`); where a server left
those out, `extra` is `{}`, which says "as it was read".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, assert_never

from fnagents.errors import DeclarationError
from fnagents.items import File, Image, Opaque, Part, Refusal, Text
from fnagents.jsontext import compact, read_json, visible
from fnagents.outcome import Failure
from fnagents.prose import shortened

__all__ = [
    "Data",
    "LONGEST_ARGUMENTS",
    "LONGEST_OUTPUT",
    "bounded_arguments",
    "bounded_output",
    "joined",
    "object_of",
    "opaque_data",
    "read_part",
    "rest",
    "write_part",
]

#: A JSON object as plain data.
Data: TypeAlias = dict[str, Any]

#: The most characters that the API takes as the arguments of a call, and as its output.
LONGEST_ARGUMENTS = 1_048_576
LONGEST_OUTPUT = 10_485_760
#: Room for the count of what was left out.
_ROOM = 100
#: How much of arguments that are too long the model sees again.
_HEAD = 2_000


def rest(data: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """JSON text of the fields of `data` that are not `known` ("" for none).

    >>> rest({"type": "message", "id": "msg_1"}, {"type": "message"})
    '{"id":"msg_1"}'
    """
    left = {key: value for key, value in data.items() if key not in known}
    return compact(left) if left else ""


def object_of(text: str, what: str) -> Data:
    """The JSON object in a text that is part of a value; "" is `{}`.  Raises `DeclarationError` on any other."""
    if not text:
        return {}
    outcome = read_json(text, surrogates=True)
    if isinstance(outcome, Failure):
        raise DeclarationError(f"{what} is not a JSON object: {outcome.failure().reason}")
    found = outcome.unwrap()
    if not isinstance(found, dict):
        raise DeclarationError(f"{what} is not a JSON object: {shortened(text, 100)}")
    return found


def joined(known: Data, extra: str) -> Data:
    """The known fields and those of `extra`; a known one wins."""
    return {**known, **{key: value for key, value in object_of(extra, "extra").items() if key not in known}}


def opaque_data(opaque: Opaque) -> Data:
    """The whole of an opaque item or part.  Raises `DeclarationError` if its data is not a JSON object."""
    return object_of(opaque.data, f"the data of Opaque({opaque.type!r})")


def bounded_arguments(text: str) -> str:
    """Arguments as the API takes them back: as they are, or what they were like if they are too long.

    One call that is too long would make every later request of its run fail.  The run keeps all of it.

    >>> bounded_arguments('{"city": "Oslo"}')
    '{"city": "Oslo"}'
    """
    sent = visible(text)
    if len(sent) <= LONGEST_ARGUMENTS:
        return text
    note = f"these arguments had {len(sent)} characters, more than the {LONGEST_ARGUMENTS} that can be sent"
    return compact({"left_out": note, "began_with": sent[:_HEAD]})


def bounded_output(text: str) -> str:
    """A tool's text as the API takes it: as it is, or its beginning and the count of what was left out."""
    sent = visible(text)
    return text if len(sent) <= LONGEST_OUTPUT else shortened(sent, LONGEST_OUTPUT - _ROOM)


def _text_type(role: str) -> str:
    return "output_text" if role == "assistant" else "input_text"


def _taken(data: Data, *names: str) -> dict[str, str]:
    # Null and "" stay in `extra`: as an attribute they could not be told from absent.
    return {name: value for name in names if isinstance(value := data.get(name), str) and value}


def _read_image(data: Data) -> Image:
    taken = _taken(data, "image_url", "file_id", "detail")
    extra = rest(data, {"type": "", **taken})
    return Image(taken.get("image_url", ""), taken.get("file_id", ""), taken.get("detail", ""), extra)


def _read_file(data: Data) -> File:
    taken = _taken(data, "file_data", "file_url", "file_id", "filename")
    extra = rest(data, {"type": "", **taken})
    return File(
        taken.get("file_data", ""),
        taken.get("file_url", ""),
        taken.get("file_id", ""),
        taken.get("filename", ""),
        extra,
    )


def _understood(data: Data, role: str) -> Part | None:
    match data:
        case {"type": "input_text" | "output_text" as kind, "text": str(text)}:
            known: Data = {"text": text, "type": kind} if kind == _text_type(role) else {"text": text}
            return Text(text, rest(data, known))
        case {"type": "refusal", "refusal": str(text)}:
            return Refusal(text, rest(data, {"type": "", "refusal": ""}))
        case {"type": "input_image"}:
            return _read_image(data)
        case {"type": "input_file"}:
            return _read_file(data)
        case _:
            return None


def read_part(data: Data, role: str) -> Part:
    """A part of a message of this role, or of a tool's output ("tool").  Total.

    >>> read_part({"type": "output_text", "text": "Hello", "annotations": []}, "assistant")
    Text(text='Hello', extra='{"annotations":[]}')
    """
    part = _understood(data, role)
    if part is None:
        kind = data.get("type")
        return Opaque(kind if isinstance(kind, str) else "", compact(data))
    if isinstance(part, Text) and not part.extra and role == "assistant":
        return Text(part.text, "{}")
    if isinstance(part, Image) and not part.extra and not part.detail and role != "tool":
        return Image(part.url, part.file_id, "", "{}")
    return part


def _filled(**fields: str) -> Data:
    return {name: value for name, value in fields.items() if value}


def _write_text(part: Text, role: str) -> Data:
    if not part.extra:
        made: Data = {"type": _text_type(role), "text": part.text}
        return {**made, "annotations": []} if role == "assistant" else made
    data = joined({"text": part.text}, part.extra)
    return {"type": data.pop("type", _text_type(role)), **data}


def _write_image(part: Image, role: str) -> Data:
    known = {"type": "input_image", **_filled(image_url=part.url, file_id=part.file_id, detail=part.detail)}
    if not part.extra and role != "tool":
        known.setdefault("detail", "auto")
    return joined(known, part.extra)


def write_part(part: Part, role: str) -> Data:
    """The part as the API takes it in a message of this role, or in a tool's output ("tool").

    >>> write_part(Image("https://example.org/a.png"), "user")
    {'type': 'input_image', 'image_url': 'https://example.org/a.png', 'detail': 'auto'}
    """
    match part:
        case Text():
            return _write_text(part, role)
        case Image():
            return _write_image(part, role)
        case File(data, url, file_id, filename, extra):
            given = _filled(file_data=data, file_url=url, file_id=file_id, filename=filename)
            return joined({"type": "input_file", **given}, extra)
        case Refusal(text, extra):
            return joined({"type": "refusal", "refusal": text}, extra)
        case Opaque():
            return opaque_data(part)
        case _:
            assert_never(part)

"""Arguments that are judged by a hand-written JSON Schema and by nothing else."""

from __future__ import annotations

from collections.abc import Callable

from fnagents.errors import DeclarationError, InvalidArguments, ToolError
from fnagents.jsontext import canonical, read_object
from fnagents.outcome import Failure, Outcome, Success
from fnagents.schemas.arguments import Arguments
from fnagents.schemas.judging import checked_judge

__all__ = ["json_reader"]


def json_reader(schema_text: str, what: str = "schema") -> Callable[[str], Outcome[Arguments, ToolError]]:
    """From a JSON Schema to what reads a call's arguments: the data that fits, and its canonical text as `given`.

    The draft is the one that `$schema` names, 2020-12 by default.  Formats are checked (formats.py).  Raises
    `DeclarationError`, naming `what`, for a schema that is none or that refers to something outside of it:
    a tool made by hand is checked when it is made, so that a call can only fail for what the model wrote.

    >>> read = json_reader('{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}')
    >>> read('{"city": 3}')
    <Failure: InvalidArguments(problems=("$.city: 3 is not of type 'string'",))>
    >>> read('{"city": "Oslo"}').unwrap().given
    '{"city":"Oslo"}'
    """
    try:
        problems_of = checked_judge(schema_text)
    except DeclarationError as error:
        raise DeclarationError(f"{what}: {error}") from None

    def read(text: str) -> Outcome[Arguments, ToolError]:
        outcome = read_object(text)
        if isinstance(outcome, Failure):
            return outcome
        data = outcome.unwrap()
        if problems := problems_of(data):
            return Failure(InvalidArguments(problems))
        return Success(Arguments(data, data, canonical(data)))

    return read

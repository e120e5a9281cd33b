"""What a docstring says: the description, which is the text before its first section, and the parameters.

`docstring_parser` reads the entries.  Before it does, the docstring is cut into sections here, because what is
written in the field does not keep to the styles: headers without a blank line before them, headers as the first
line, sections for parameters under a dozen names, `name (type) : text`.  Each section of parameters is handed
over alone and in plain form, so other sections cannot leak into a description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

__all__ = ["Docstring", "Style", "read_docstring"]

Style: TypeAlias = Literal["google", "numpy", "sphinx"]


@frozen
class Docstring:
    """A description, and descriptions by parameter."""

    description: str = ""
    parameters: Mapping[str, str] = field(factory=dict[str, str])


_PARAMETERS = (
    "args|arguments|parameters|params|parameter|keyword args|keyword arguments|keyword parameters|kwargs"
    "|other parameters|other args|other arguments|optional args|optional arguments|attributes"
)
_OTHERS = (
    "return|returns|yield|yields|receives|raise|raises|except|exceptions|warn|warns|warning|warnings|note|notes"
    "|example|examples|see also|references|todo|todos|usage|methods|tip|tips|hint|hints|important|caution|danger"
    "|attention|error|deprecated|side effects|version added|versionadded"
)
_GOOGLE = re.compile(rf"^[ ]*(?:(?P<parameters>{_PARAMETERS})|(?:{_OTHERS}))[ ]?:[ ]*$", re.IGNORECASE)
_NUMPY = re.compile(rf"^[ ]*(?:(?P<parameters>{_PARAMETERS})|(?:{_OTHERS}))[ ]*:?[ ]*$", re.IGNORECASE)
_RULE = re.compile(r"^[ ]*[-=~]{3,}[ ]*$")
_SPHINX = re.compile(r"^[ ]*[:@](?P<word>[a-z]+)(?:[ ]+(?P<what>[^:\n]*))?:", re.IGNORECASE)
_SPHINX_PARAMETERS = frozenset(
    ["param", "parameter", "arg", "argument", "key", "keyword", "kwarg", "kwparam", "var", "ivar", "cvar"]
)
_SPHINX_WORDS = _SPHINX_PARAMETERS | frozenset(
    [
        "type",
        "return",
        "returns",
        "rtype",
        "raise",
        "raises",
        "except",
        "exception",
        "yield",
        "yields",
        "meta",
        "vartype",
    ]
)
#: `name`, `*name`, `name (type)`, each with a colon.
_ENTRY = re.compile(r"^[ ]*`{0,2}(\*{0,2}\w+)`{0,2}[ ]*(?:\(([^\n]*?)\))?[ ]*:(?=\s|$)")
_DIRECTIVE = re.compile(r"^[ ]*\.\.[ ]+\w[\w-]*::")


def read_docstring(text: str | None, style: Style | None = None) -> Docstring:
    """What the docstring says, in the style given or else the one that it seems to be in.

    >>> said = read_docstring('''Fetch a page.
    ... Args:
    ...     url (str) : where it is, such as "http://a:80"
    ... Raises:
    ...     OSError: never mind.
    ... ''')
    >>> said.description
    'Fetch a page.'
    >>> said.parameters
    {'url': 'where it is, such as "http://a:80"'}
    """
    if not text or not text.strip():
        return Docstring()
    lines = inspect.cleandoc(text).expandtabs().splitlines()
    return _READ[style or _style_of(lines)](lines)


def _style_of(lines: list[str]) -> Style:
    if any(_is_field(line) for line in lines):
        return "sphinx"
    underlined = any(_RULE.match(below) and _NUMPY.match(line) for line, below in pairwise(lines))
    return "numpy" if underlined else "google"


def _is_field(line: str) -> bool:
    found = _SPHINX.match(line)
    return found is not None and found["word"].lower() in _SPHINX_WORDS


def _prose(lines: list[str]) -> str:
    return "\n".join(lines).strip()


def _google(lines: list[str]) -> Docstring:
    description: list[str] = []
    entries: dict[str, str] = {}
    section: str | None = None
    body: list[str] = []
    margin = 0

    def close() -> None:
        if section == "parameters":
            entries.update(_google_entries(body))

    for line in lines:
        found = _GOOGLE.match(line)
        indent = len(line) - len(line.lstrip())
        if found is not None and (section is None or indent <= margin):
            close()
            section, body, margin = ("parameters" if found["parameters"] else "other"), [], indent
        elif section is None:
            description.append(line)
        elif line.strip() and indent <= margin and section == "parameters" and body and _ENTRY.match(line) is None:
            # Prose at the margin ends a section; whatever it is, it comes after the description.
            close()
            section, body = "other", []
        else:
            body.append(line)
    close()
    return Docstring(_prose(description), entries)


def _google_entries(body: list[str]) -> dict[str, str]:
    from docstring_parser import google

    written = [line for line in body if line.strip()]
    if not written:
        return {}
    margin = len(written[0]) - len(written[0].lstrip())
    entries: list[str] = []
    for line in written:
        found = _ENTRY.match(line) if len(line) - len(line.lstrip()) <= margin else None
        if found is not None:
            entries.append(f"    {found[1].lstrip('*')}: {line[found.end() :].strip()}")
        elif entries:
            entries.append(f"        {line.strip()}")
    return _said(google.parse("\n".join(["Summary.", "", "Args:", *entries])).params) if entries else {}


def _said(params: list[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in params:
        if one.description and one.description.strip():
            for name in one.arg_name.split(","):
                found.setdefault(name.strip().strip("`").lstrip("*\\"), one.description.strip())
    return found


def _numpy(lines: list[str]) -> Docstring:
    from docstring_parser import numpydoc

    sections = list(_numpy_sections(lines))
    description = sections[0][1]
    entries: dict[str, str] = {}
    for kind, body in sections[1:]:
        if kind == "parameters":
            text = "\n".join(["Parameters", "----------", *inspect.cleandoc("\n".join(["", *body])).splitlines()])
            entries.update(_said(numpydoc.parse(text).params))
    return Docstring(_prose(description), entries)


def _numpy_sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    kind, body = "description", list[str]()
    skip = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if skip:
            skip = False
            continue
        found = _NUMPY.match(line) if _RULE.match(below) else None
        if found is not None or (line.strip() and _RULE.match(below) and kind != "description"):
            yield kind, body
            kind, body, skip = "parameters" if found is not None and found["parameters"] else "other", [], True
        else:
            body.append(line)
    yield kind, body


def _sphinx(lines: list[str]) -> Docstring:
    from docstring_parser import rest

    start = next((number for number, line in enumerate(lines) if _is_field(line)), len(lines))
    fields: list[str] = []
    wanted = False
    for line in lines[start:]:
        found = _SPHINX.match(line)
        if found is not None and _is_field(line):
            wanted = found["word"].lower() in _SPHINX_PARAMETERS and bool(found["what"])
            if wanted:
                fields.append(f":param {found['what'].split()[-1].lstrip('*')}: {line[found.end() :].strip()}")
        elif wanted:
            fields.append(f"    {line.strip()}")
    # The parser takes away the margin of all lines but the first: with an empty one before, fields stay outermost.
    return Docstring(_prose(lines[:start]), _said(rest.parse("\n".join(["", *fields])).params))


_READ = {"google": _google, "numpy": _numpy, "sphinx": _sphinx}

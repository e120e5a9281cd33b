"""What the strict walk asks about single schemas: closing an object, merging two, following a pointer.

A refusal is an exception inside of the walk alone; outside it is the value `NotStrict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

from attrs import frozen

from fnagents.schemas.data import is_array, is_object

__all__ = [
    "ANNOTATIONS",
    "DEFINITIONS",
    "NotStrict",
    "Path",
    "RefusedError",
    "closed",
    "flat_root",
    "found",
    "merged",
    "refuse",
    "steps",
]

DEFINITIONS = ("$defs", "definitions")
#: Keywords that say something and demand nothing.
ANNOTATIONS = frozenset(
    [
        "$anchor",
        "$comment",
        "$defs",
        "$schema",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "discriminator",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    ]
)

#: Where the walk is: the way back to the root, a name at a time, so that going down costs one pair.
Path: TypeAlias = "tuple[Path, str] | None"


@frozen
class NotStrict:
    """Why a schema has no strict form.  `path` leads to the property, as in `lines[].meta` ("": the whole)."""

    path: str
    reason: str


class RefusedError(Exception):
    """Carries a `NotStrict` out of the walk."""

    def __init__(self, problem: NotStrict) -> None:
        super().__init__(problem)
        self.problem = problem


def refuse(path: Path, reason: str) -> NoReturn:
    """Leave the walk: there is no strict form, for the reason at the path."""
    names: list[str] = []
    while path is not None:
        path, name = path
        names.append(name)
    text = "".join(name if name == "[]" else f".{name}" for name in reversed(names))
    raise RefusedError(NotStrict(text.removeprefix("."), reason))


def steps(reference: str) -> list[str]:
    """The names in a reference within the document.

    >>> steps("#/$defs/a~1b")
    ['$defs', 'a/b']
    """
    return [step.replace("~1", "/").replace("~0", "~") for step in unquote(reference).split("/")[1:]]


def found(root: Any, reference: Any) -> Any:
    """What a reference within the document leads to, or None.

    >>> found({"$defs": {"A": {"type": "null"}}}, "#/$defs/A")
    {'type': 'null'}
    """
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    value: Any = root
    for name in steps(reference):
        if is_object(value):
            value = value.get(name)
        elif is_array(value) and name.isascii() and name.isdecimal() and int(name[:9]) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def merged(inner: Mapping[str, Any], outer: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The one schema that says what both say; what the outer one says about itself (title, description) wins.

    >>> merged({"type": "string", "title": "A"}, {"title": "B"}, None)
    {'type': 'string', 'title': 'B'}
    """
    both = dict(inner)
    for name, value in outer.items():
        if name in ANNOTATIONS or name not in both or both[name] == value:
            both[name] = value
        elif name == "required" and is_array(value) and is_array(both[name]):
            both[name] = [*both[name], *(key for key in value if key not in both[name])]
        elif value or name != "properties":
            refuse(path, f"{name} differs between its allOf or reference and the schema around it")
    return both


def flat_root(source: Mapping[str, Any]) -> dict[str, Any]:
    """The source with a reference at its root followed: a provider wants the root to be the object itself."""
    root, seen = dict(source), set[str]()
    while "$ref" in root:
        reference = root.pop("$ref")
        target = found(source, reference)
        if not is_object(target) or reference in seen:
            refuse(None, f"its reference {reference!r} leads to no schema in it")
        seen.add(reference)
        root = merged(target, root, None)
    return root


def closed(form: dict[str, Any], schema: Mapping[str, Any], path: Path) -> None:
    """Close the form of an object, and require all of its keys."""
    kind = form.get("type")
    names: list[Any] = kind if is_array(kind) else [kind]
    extra = schema.get("additionalProperties", False)
    if kind is None and ("properties" in form or "additionalProperties" in form):
        form["type"] = "object"
    elif "object" not in names:
        return
    if extra is not False:
        refuse(path, "it takes keys that are not declared (additionalProperties)")
    form["additionalProperties"] = False
    properties = form.get("properties", {})
    required = form.get("required", [])
    if not is_array(required) or not all(name in properties for name in required):
        refuse(path, f"it requires a key that it does not declare: {required!r:.80}")
    if "properties" in form:
        form["required"] = list(properties)

"""The walk that makes a schema strict: one pass, every node once, nothing of the source touched or shared.

What the form is, and why, stands in strict.py.  Definitions are walked after the root, each by the path of the
parameter that leads to it, so that a refusal names the parameter and not a class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from fnagents.schemas.apart import apart
from fnagents.schemas.closing import (
    ANNOTATIONS,
    DEFINITIONS,
    Path,
    closed,
    flat_root,
    found,
    merged,
    refuse,
    steps,
)
from fnagents.schemas.data import is_array, is_object

__all__ = ["Conversion"]

#: The deepest nesting of arrays and objects in a schema, and the most subschemas and values it may have.
_DEEPEST = 100
_MOST = 100_000
#: Keywords whose subschemas stay as they are.
_UNTOUCHED = frozenset(
    [
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "dependentSchemas",
        "dependencies",
        "unevaluatedItems",
        "additionalItems",
    ]
)
_SCALARS = frozenset({str, int, float, bool, type(None)})


class Conversion:
    """One conversion: its source, what is left to spend, the references seen and the nodes made."""

    def __init__(self, source: dict[str, Any]) -> None:
        self.source = source
        self.left = _MOST
        self.references: dict[str, Path] = {}
        self.made: set[int] = set()

    def whole(self) -> dict[str, Any]:
        """The strict form of the source; raises `RefusedError`."""
        root = flat_root(self.source)
        definitions = {name: root.pop(name) for name in DEFINITIONS if name in root}
        if root.get("type") == ["object"]:
            root["type"] = "object"
        if root.setdefault("type", "object") != "object" or "anyOf" in root or "oneOf" in root:
            refuse(None, "the root must be a plain object, neither nullable nor a union")
        root.setdefault("properties", {})
        identity = {"$id": root.pop("$id")} if "$id" in root else {}
        form = {**identity, **self.node(root, None, 0)}
        self.made.add(id(form))
        form.update(self._definitions(definitions))
        for reference, path in self.references.items():
            if id(found(form, reference)) not in self.made:
                refuse(path, f"its reference {reference!r} leads to no schema in it")
        return form

    def _definitions(self, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        made: dict[str, dict[str, Any]] = {}
        for keyword, names in given.items():
            if not is_object(names):
                refuse(None, f"{keyword} is not an object")
            made[keyword] = {}
        for keyword, name, path in self._in_order(given):
            if name not in made[keyword]:
                made[keyword][name] = self.node(given[keyword][name], path, 2)
        return {keyword: {name: made[keyword][name] for name in names} for keyword, names in given.items()}

    def _in_order(self, given: Mapping[str, Any]) -> Iterator[tuple[str, str, Path]]:
        # `references` grows while this runs.
        rest = [(keyword, name) for keyword, names in given.items() for name in names]
        position = 0
        while True:
            known = list(self.references.items())
            for reference, path in known[position:]:
                keyword, name = (*steps(reference), "", "")[:2]
                if keyword in given and name in given[keyword]:
                    yield keyword, name, path
            if len(known) == len(self.references):
                if not rest:
                    return
                keyword, name = rest.pop(0)
                yield keyword, name, (None, name)
            position = len(known)

    def node(self, schema: Any, path: Path, depth: int) -> dict[str, Any]:
        """One subschema, converted."""
        self.spend(path, depth)
        if not is_object(schema):
            refuse(path, f"a subschema must be an object, and one of its is {schema!r:.40}")
        if "allOf" in schema:
            schema = self._flat(schema, path)
        if "$ref" in schema:
            return self._reference(schema, path, depth)
        form: dict[str, Any] = {}
        for keyword, value in schema.items():
            convert = _CONVERT.get(keyword)
            if convert is not None:
                convert(self, form, keyword, value, path, depth)
            elif type(value) in _SCALARS:
                form[keyword] = value
            else:
                form[keyword] = self.copy(value, path, depth + 1, bare=keyword in _UNTOUCHED)
        closed(form, schema, path)
        self.made.add(id(form))
        return form

    def spend(self, path: Path, depth: int) -> None:
        """Count one part of the schema; its size and its depth are bounded."""
        self.left -= 1
        if depth > _DEEPEST:
            refuse(path, f"it is nested more than {_DEEPEST} deep")
        if self.left < 0:
            refuse(path, f"it has more than {_MOST} parts")

    def copy(self, value: Any, path: Path, depth: int, *, bare: bool = False) -> Any:
        """A copy of plain data; if `bare`, of data without references."""
        self.spend(path, depth)
        if is_object(value):
            if bare and "$ref" in value:
                refuse(path, "it has a reference inside of not, if, contains or the like")
            return {name: self.copy(each, path, depth + 1, bare=bare) for name, each in value.items()}
        if is_array(value):
            return [self.copy(each, path, depth + 1, bare=bare) for each in value]
        if type(value) not in _SCALARS:
            refuse(path, f"a schema is plain data, and it has a {type(value).__name__}")
        return value

    def _reference(self, schema: dict[str, Any], path: Path, depth: int) -> dict[str, Any]:
        reference = schema["$ref"]
        target = self.look(schema)
        if target is None:
            refuse(path, f"its reference {reference!r} leads to no schema in it")
        beside = {
            name: self.copy(value, path, depth + 1)
            for name, value in schema.items()
            if name != "$ref"
            and not (name == "default" and value is None)
            # What the target says already need not be said again.
            and (name in ANNOTATIONS or name not in target or target[name] != value)
        }
        if demands := sorted(beside.keys() - ANNOTATIONS):
            refuse(path, f"it has {', '.join(demands)} beside a reference")
        self.references.setdefault(reference, path)
        form: dict[str, Any] = {"$ref": reference}
        self.made.add(id(form))
        if not beside:
            return form
        wrapped = {"anyOf": [form], **beside}
        self.made.add(id(wrapped))
        return wrapped

    def look(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The schema that a reference leads to, through as many more as there are; None if it leads nowhere."""
        seen = set[str]()
        while is_object(schema) and "$ref" in schema:
            reference = schema["$ref"]
            if not isinstance(reference, str) or reference in seen:
                return None
            seen.add(reference)
            schema = found(self.source, reference)
        return schema if is_object(schema) else None

    def _flat(self, schema: dict[str, Any], path: Path) -> dict[str, Any]:
        while "allOf" in schema:
            parts = schema["allOf"]
            if not is_array(parts) or len(parts) != 1 or not is_object(parts[0]):
                refuse(path, "it has an allOf of more than one schema")
            self.spend(path, 0)
            schema = merged(parts[0], {name: value for name, value in schema.items() if name != "allOf"}, path)
        return schema

    # --- one method per keyword that holds subschemas ------------------------------------------------------

    def properties(self, form: dict[str, Any], keyword: str, value: Any, path: Path, depth: int) -> None:
        """`properties`: a schema by name."""
        if not is_object(value):
            refuse(path, f"{keyword} is not an object")
        form[keyword] = {name: self.node(each, (path, str(name)), depth + 2) for name, each in value.items()}

    def items(self, form: dict[str, Any], keyword: str, value: Any, path: Path, depth: int) -> None:
        """`items` and `prefixItems`: a schema, or one by position."""
        below = (path, "[]")
        form[keyword] = (
            [self.node(each, below, depth + 2) for each in value]
            if is_array(value)
            else self.node(value, below, depth + 1)
        )

    def union(self, form: dict[str, Any], keyword: str, value: Any, path: Path, depth: int) -> None:
        """`anyOf`, and `oneOf` as one."""
        if not is_array(value):
            refuse(path, f"{keyword} is not an array")
        if "anyOf" in form:
            refuse(path, "it has both anyOf and oneOf")
        form["anyOf"] = [self.node(each, path, depth + 2) for each in value]
        if keyword == "oneOf" and not all(
            apart(one, other, self.look) for one in value for other in value if one is not other
        ):
            refuse(path, "two branches of its oneOf may accept one value; say anyOf, or tell them apart by a constant")

    def default(self, form: dict[str, Any], keyword: str, value: Any, path: Path, depth: int) -> None:
        """`default`: stays, unless it is null."""
        if value is not None:
            form[keyword] = self.copy(value, path, depth + 1)

    def nested(self, form: dict[str, Any], keyword: str, value: Any, path: Path, depth: int) -> None:
        """Definitions below the root: a reference may lead there."""
        self.properties(form, keyword, value, path, depth)

    def unsupported(self, form: dict[str, Any], keyword: str, value: Any, path: Path, depth: int) -> None:
        """What no strict schema has."""
        del form, value, depth  # the shape of a conversion
        refuse(path, f"{keyword} has no strict form")


_Convert: TypeAlias = Callable[[Conversion, dict[str, Any], str, Any, Path, int], None]
_CONVERT: dict[str, _Convert] = {
    "properties": Conversion.properties,
    "items": Conversion.items,
    "prefixItems": Conversion.items,
    "anyOf": Conversion.union,
    "oneOf": Conversion.union,
    "default": Conversion.default,
    **dict.fromkeys(DEFINITIONS, Conversion.nested),
    **dict.fromkeys(
        ("$id", "$dynamicRef", "$recursiveRef", "patternProperties", "unevaluatedProperties"), Conversion.unsupported
    ),
}

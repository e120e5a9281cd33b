"""Where the names in an annotation are looked up."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

__all__ = ["Scope"]


class Scope:
    """The names that a function's annotations may use: its module's, its closure's, its type parameters.

    For a name that is none of these, the local names of the functions that are now running in the same module
    serve: a class that stands in a function, above the tool, is found there.
    """

    def __init__(self, function: Any) -> None:
        plain = inspect.unwrap(function)
        self.names: dict[str, Any] = getattr(plain, "__globals__", {})
        self._function = plain

    def evaluate(self, text: str) -> Any:
        """The value of an annotation that is text; raises whatever it raises.

        >>> Scope(lambda: None).evaluate("dict[str, int]")
        dict[str, int]
        """
        try:
            return eval(text, self.names, self._closure())  # noqa: S307  # an annotation, evaluated as `typing` does
        except NameError:
            return eval(text, self.names, dict(self.local()))  # noqa: S307

    def _closure(self) -> dict[str, Any]:
        code = getattr(self._function, "__code__", None)
        found = {each.__name__: each for each in getattr(self._function, "__type_params__", ())}
        for name, cell in zip(code.co_freevars if code else (), self._function.__closure__ or (), strict=False):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # a name that is not bound yet
                continue
        return found

    def local(self) -> Mapping[str, Any]:
        """The local names of the functions running in this module, the innermost first, and the closure's."""
        found = self._closure()
        frame = inspect.currentframe()
        while frame is not None:
            if frame.f_globals is self.names:
                found = {**frame.f_locals, **found}
            frame = frame.f_back
        return found

"""The validated arguments of one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from fnagents.jsontext import Json, canonical

__all__ = ["Arguments"]


@frozen
class Arguments:
    """Arguments that were parsed, judged and decoded: what will run, in three forms.

    `data` is the JSON that was accepted, with the defaults of parameters that were left out, as far as they
    have a JSON form; `values` are the Python values by parameter, every default filled in: what predicates and
    guardrails see; `given` is what the tool's function takes beside the context.
    """

    data: Mapping[str, Json]
    values: Mapping[str, Any]
    given: Any

    @property
    def text(self) -> str:
        """Canonical JSON of the arguments: what an approver reads, and what a digest is taken of."""
        return canonical(self.data)

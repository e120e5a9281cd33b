"""Runs as plain data, for machines that read what a command says."""

from __future__ import annotations

from typing import Any

import attrs

from fnagents.cli.telling import state_of
from fnagents.converting import converter
from fnagents.decisions import interruptions
from fnagents.outcome import Failure, Success
from fnagents.prose import explain
from fnagents.protocol import Ask
from fnagents.runs import Run

__all__ = ["conversation", "summary"]


def summary(run: Run) -> dict[str, Any]:
    """How a run stands: its output or error, its questions, what it cost."""
    outcome = run.outcome
    error = outcome.failure() if isinstance(outcome, Failure) else None
    return {
        "agent": run.agent,
        "id": run.id,
        "state": state_of(run),
        "output": outcome.unwrap() if isinstance(outcome, Success) else None,
        "error": None if error is None else {"kind": type(error).__name__, "message": explain(error)},
        "questions": [_question(ask) for ask in interruptions(run)],
        "turns": [{"agent": turn.agent, "calls": len(turn.calls), **attrs.asdict(turn.usage)} for turn in run.turns],
        "usage": attrs.asdict(run.usage),
    }


def _question(ask: Ask) -> dict[str, Any]:
    return {
        "path": list(ask.path),
        "place": ask.place,
        "agent": ask.agent,
        "tool": ask.tool,
        "arguments": ask.arguments,
    }


def conversation(run: Run) -> list[Any]:
    """The items of a run, as its document would have them."""
    return [converter().unstructure(item) for item in run.items]

"""What a run began with: the part of its document that its events are folded into."""

from __future__ import annotations

from attrs import frozen

from fnagents.errors import TurnsExhausted
from fnagents.items import Item
from fnagents.outcome import Failure
from fnagents.protocol import Finished
from fnagents.runs import Input, Run

__all__ = ["Start", "beginning"]


@frozen
class Start:
    """What a run begins with, in a document."""

    agent: str
    input: tuple[Item, ...]
    max_turns: int | None = 10
    id: str = ""
    tool_input: str = ""
    previous_response_id: str | None = None
    conversation_id: str | None = None

    @property
    def run(self) -> Run:
        """The run that has not begun."""
        return Run(
            self.agent,
            Input(self.input),
            self.max_turns,
            self.id,
            self.tool_input,
            previous_response_id=self.previous_response_id,
            conversation_id=self.conversation_id,
        )


def beginning(run: Run) -> Start:
    """What the run began with: its events folded into `beginning(run).run` are the run again.

    Reopening sets a new limit of turns.  The first one is known only where the run ended at it; where it did not,
    it is not what ended the run, and none is as good.

    >>> from fnagents.runs import start
    >>> beginning(start("a", "hi", max_turns=3)).max_turns
    3
    """
    limit = run.max_turns
    if len(run.ends) > 1:
        first = run.ends[0]
        error = first.outcome.failure() if isinstance(first, Finished) and isinstance(first.outcome, Failure) else None
        limit = error.limit if isinstance(error, TurnsExhausted) else None
    held = (run.previous_response_id, run.conversation_id)
    return Start(run.agent, run.input.items, limit, run.id, run.tool_input, *held)

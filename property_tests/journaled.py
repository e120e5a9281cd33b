"""A program that drives one run with a journal, for tests that kill it: `journaled.py JOURNAL LEDGER [MOMENT]`.

Each tool writes a line to the ledger, its side effect.  With MOMENT "recorded" it says "waiting" after the first
event that it has written down, and waits to be killed; with "working", after the first side effect that the ledger
did not have, before that is written down.  Without one it runs to its end.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen

from fnagents import Agent, Agents, Delegate, Effect, Event, Run, Tool, ToolCall, ToolContext, agents, drive, start
from fnagents.journals import Journal, RunBehind, journal
from fnagents.outcome import Success
from fnagents.perform import performer
from fnagents.testing import from_function
from fnagents.wrap import approved_by, recorded

__all__ = ["BEGUN", "Waiting", "everyone", "program"]

BEGUN = start("clerk", "hi", id="killed")


def _said(request: Any) -> Any:
    """What the models say depends on the request alone: a process that is started again hears the same."""
    if request.agent == "expert":
        return ToolCall("x", "dig") if request.turn == 0 else "a bone"
    if request.turn == 0:
        return [ToolCall("a", "add"), ToolCall("b", "pay"), ToolCall("c", "ask")]
    return [ToolCall("d", "add"), ToolCall("e", "add")] if request.turn == 1 else "done"


def everyone(work: Callable[[str], None]) -> Agents:
    """The agents; each tool does its `work`, of the place where it was called, and answers."""

    def made(name: str, answer: Any, **options: Any) -> Tool[..., Any, Any]:
        def function(context: ToolContext[Any], text: str) -> Any:
            work("/".join((*context.path, context.place)))
            return answer

        return Tool(name, "", {}, function, inline=True, **options)

    asks = made("ask", Delegate("expert", "where?"))
    clerk = Agent("clerk", "Help.", tools=[made("add", "3"), made("pay", "paid", needs_approval=True), asks])
    return agents(clerk, Agent("expert", lambda context: "Dig.", tools=[made("dig", "dug", needs_approval=True)]))


@frozen
class Waiting:
    """A record that calls `wait` after each event."""

    record: Journal
    wait: Callable[[], None]

    def reach(self, effect: Effect) -> None:
        """As the journal."""
        self.record.reach(effect)

    def append(self, event: Event) -> None:
        """As the journal; then wait."""
        self.record.append(event)
        self.wait()


def _wait() -> None:
    sys.stdout.write("waiting\n")
    sys.stdout.flush()
    time.sleep(600)


def program(path: Path, ledger: Path, moment: str = "") -> Run:
    """The run, from where its journal ends, to its end."""

    def work(where: str) -> None:
        new = where not in (ledger.read_text().split() if ledger.exists() else [])
        with ledger.open("a") as file:
            file.write(f"{where}\n")
        if new and moment == "working":
            _wait()

    everybody = everyone(work)
    opened = journal(path, BEGUN)
    if not isinstance(opened, Success):
        assert isinstance(opened.failure(), RunBehind)
        opened = journal(path)
    with opened.unwrap() as record:
        kept = Waiting(record, _wait) if moment == "recorded" else record
        perform = approved_by(performer(everybody, from_function(_said)), lambda ask: True)
        return asyncio.run(drive(everybody, record.run, recorded(perform, kept)))


if __name__ == "__main__":
    program(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])

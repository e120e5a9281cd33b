"""A run while events are folded into it: what the rules of folding.py read and write.

A `Growing` is changed in place and seen by nobody else.  So many events cost what as many single ones do that are
folded into a short run: no tuple of turns is copied for each.  `Growing.run` is the value that comes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from attrs import evolve

from fnagents.errors import RunError, UnexpectedEventError
from fnagents.outcome import Outcome
from fnagents.protocol import Event, Finished, Reopened
from fnagents.runs import CallState, Run, Sticky, StickyKey, Turn
from fnagents.tools import Handoff

__all__ = ["Growing", "refuse"]


def refuse(event: Event, why: str) -> NoReturn:
    """The run does not wait for this event."""
    at = "/".join((*event.path, getattr(event, "place", "") or f"turn {getattr(event, 'turn', '?')}"))
    raise UnexpectedEventError(f"{type(event).__name__} at {at} does not fit the run: {why}")


class Growing:
    """A run to which events are added.

    `turn` is the last turn without what came to its calls since it became that; they stand in `calls`.  Nested runs
    to which events came grow beside `calls`, until they end.
    """

    __slots__ = (
        "_children",
        "_ended",
        "_kept",
        "_passed",
        "_run",
        "calls",
        "handoff",
        "ids",
        "max_turns",
        "number",
        "outcome",
        "sticky",
        "turn",
    )

    def __init__(self, run: Run) -> None:
        turns = run.turns
        turn = turns[-1] if turns else None
        self.turn: Turn | None = turn
        #: of `turn`; -1 without one
        self.number = len(turns) - 1
        self.calls: Sequence[CallState] = () if turn is None else turn.calls
        #: as `Turn.handoff`
        self.handoff: Handoff | None = None if turn is None else turn.handoff
        self.outcome: Outcome[str, RunError] | None = run.outcome
        self.max_turns = run.max_turns
        self.ids = run.ids
        self.sticky: Mapping[StickyKey, tuple[Sticky, ...]] = run.sticky
        self._run = run
        # All turns: so many of `_run`, those that have passed since, and `turn`.
        self._kept = max(self.number, 0)
        self._passed: list[Turn] = []
        self._ended: list[Finished | Reopened] = []
        self._children: dict[int, Growing] = {}

    @property
    def speaker(self) -> str:
        """The name of the agent that has the next turn."""
        if self.handoff is not None:
            return self.handoff.agent
        return self._run.agent if self.turn is None else self.turn.agent

    @property
    def open(self) -> tuple[int, ...]:
        """As `Turn.open`."""
        if self.handoff is not None:
            return ()
        return tuple(index for index, state in enumerate(self.calls) if state.is_open)

    def add(self, turn: Turn) -> None:
        """A new turn: the last one from now on."""
        if self.turn is not None:
            self._passed.append(self._settled(self.turn))
        self.number += 1
        self._become(turn)

    def change(self, turn: Turn, **changes: Any) -> None:
        """The last turn, with these changes."""
        self._become(evolve(self._settled(turn), **changes))

    def _become(self, turn: Turn) -> None:
        self.turn, self.calls, self.handoff = turn, turn.calls, turn.handoff

    def put(self, index: int, state: CallState) -> None:
        """A call of the last turn, as it is now."""
        if not isinstance(self.calls, list):
            self.calls = list(self.calls)
        self.calls[index] = state

    def child(self, index: int, run: Run) -> Growing:
        """The nested run of a call of the last turn, as it grows; once it has ended, `settle` must be told."""
        found = self._children.get(index)
        if found is None:
            found = self._children[index] = Growing(run)
        return found

    def settle(self, index: int) -> None:
        """What has become of the call's nested run so far stands in `calls`."""
        self.put(index, evolve(self.calls[index], child=self._children.pop(index).run))

    def end(self, event: Finished | Reopened) -> None:
        """The run has ended, or goes on."""
        self._ended.append(event)
        self.outcome = event.outcome if isinstance(event, Finished) else None

    def stick(self, key: StickyKey, decisions: tuple[Sticky, ...]) -> None:
        """The sticky decisions of this key, as they are now."""
        if self.sticky is self._run.sticky:
            self.sticky = dict(self.sticky)
        assert isinstance(self.sticky, dict)  # a copy of the run's own, made here
        self.sticky[key] = decisions

    def _settled(self, turn: Turn) -> Turn:
        """The last turn with all that came to its calls."""
        for index in tuple(self._children):
            self.settle(index)
        if self.calls is turn.calls:
            return turn
        return evolve(turn, calls=tuple(self.calls), handoff=self.handoff)

    @property
    def run(self) -> Run:
        """The run with all that was added."""
        turns = self._run.turns
        if self.turn is not None:
            turn = self._settled(self.turn)
            if self._passed or not turns or turn is not turns[-1]:
                turns = (*turns[: self._kept], *self._passed, turn) if self._passed else (*turns[: self._kept], turn)
        return evolve(
            self._run,
            turns=turns,
            ends=(*self._run.ends, *self._ended),
            max_turns=self.max_turns,
            ids=self.ids,
            sticky=self.sticky,
        )

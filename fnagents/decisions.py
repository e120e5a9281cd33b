"""What a caller decides about a run: answers to its questions, and going on after a failure.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from fnagents.errors import UnexpectedEventError
from fnagents.folding import step
from fnagents.outcome import Failure
from fnagents.protocol import Approved, Ask, Declined, Reopened
from fnagents.runs import Run

__all__ = ["approve", "interruptions", "reject", "reopen"]


def interruptions(run: Run) -> tuple[Ask, ...]:
    """The questions that a paused run waits for, nested ones included, each with path, agent and arguments.

    An `Ask` has `path`, `place`, `agent`, `tool`, `call_id` and `arguments` (canonical JSON of what will run).
    """
    return tuple(_questions(run, ()))


def _questions(run: Run, path: tuple[str, ...]) -> Iterator[Ask]:
    if run.outcome is not None or not run.turns:
        return
    turn = run.turns[-1]
    for index in turn.open:
        state, place = turn.calls[index], f"{len(run.turns) - 1}.{index}"
        if state.child is not None:
            yield from _questions(state.child, (*path, place))
            continue
        checkup = state.checkup
        if checkup is not None and checkup.needed and state.decision is None:
            again = len(state.gate) if len(state.gate) > 1 else 0
            yield Ask(turn.agent, place, state.call, checkup, path, again, seen=run)


def approve(run: Run, ask: Ask, always: bool = False) -> Run:
    """The run with this call approved, exactly as its arguments are now.

    With `always`, the tool's other waiting questions of that (nested) run are approved too, and its calls in
    later turns need no question.  Raises `UnexpectedEventError` if the call does not wait for a decision.
    """
    _check(ask, always)
    run = step(run, Approved(ask.place, ask.checkup.digest, always, ask.path))
    for other in _same(run, ask) if always else ():
        run = step(run, Approved(other.place, other.checkup.digest, path=other.path))
    return run


def reject(run: Run, ask: Ask, reason: str = "", always: bool = False) -> Run:
    """The run with this call declined; the model reads `reason` as the call's output.  `always` as in `approve`."""
    _check(ask, always)
    run = step(run, Declined(ask.place, ask.checkup.digest, reason, always, ask.path))
    for other in _same(run, ask) if always else ():
        run = step(run, Declined(other.place, other.checkup.digest, reason, path=other.path))
    return run


def _check(ask: object, always: object) -> None:
    if not isinstance(ask, Ask):
        raise TypeError(f"a decision is about an Ask, one of interruptions(run), not about a {type(ask).__name__}")
    if not isinstance(always, bool):
        raise TypeError(f"always={always!r} is neither True nor False")


def _same(run: Run, ask: Ask) -> tuple[Ask, ...]:
    """The other waiting questions about the same tool, in the same (nested) run."""

    def tool(one: Ask) -> tuple[object, ...]:
        return (one.path, one.agent, one.call.kind, one.call.namespace, one.call.name, one.checkup.definition)

    return tuple(other for other in interruptions(run) if tool(other) == tool(ask))


class _Same:
    """The default of `reopen`: the limit stays as it is."""


def reopen(run: Run, *, max_turns: int | None | _Same = _Same()) -> Run:  # noqa: B008  # a constant without state
    """A failed run that can go on; `max_turns` sets a new limit (None for no limit), by default it stays.

    A failure is not the end of a conversation: after a server error at turn 50, `resume(agent, reopen(run))`
    asks the model again.  Raises `UnexpectedEventError` if the run has not failed.
    """
    if not isinstance(run.outcome, Failure):
        raise UnexpectedEventError("only a failed run can be reopened; go on with a finished one by start(...)")
    limit = run.max_turns if isinstance(max_turns, _Same) else max_turns
    return step(run, Reopened(len(run.turns), limit))

"""The commands that read: `show`, `replay`, `verify`, `seal`, `schema`.  None of them calls a model or a tool."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator

import attrs

from fnagents.cli.data import conversation, summary
from fnagents.cli.files import key_in, loaded, read, written
from fnagents.cli.reports import FAILED, OK, Report, unusable
from fnagents.cli.targets import agents_at, tool_at
from fnagents.cli.telling import asked, costs, indented, state_of, story
from fnagents.cli.texts import exact, line, parted, safe
from fnagents.codec import LoadError
from fnagents.decisions import interruptions
from fnagents.outcome import Failure, Success
from fnagents.prose import explain
from fnagents.replays import Divergence, replay
from fnagents.runs import Run
from fnagents.sealing import seal, verify

__all__ = ["replay_run", "seal_file", "show_run", "show_schemas", "verify_file"]

#: The longest text of one item or event that is shown to people, in characters.
_LONGEST = 20_000


def show_run(arguments: Namespace) -> Report:
    """The conversation, the turns, the costs, how it ended, and what it waits for."""
    held = loaded(arguments.file)
    if isinstance(held, Failure):
        return unusable(held.failure())
    run = held.unwrap()
    data = {**summary(run), "items": conversation(run)}
    return Report(OK, data, "".join(f"{text}\n" for text in _shown(run)))


def _shown(run: Run) -> Iterator[str]:
    yield f"run {exact(run.id) or 'without an id'} of {exact(run.agent)}: {state_of(run)}\n"
    yield from (text for _, text in indented(story(run), _LONGEST))
    yield ""
    for number, turn in enumerate(run.turns):
        plural = "" if len(turn.calls) == 1 else "s"
        yield f"turn {number}: {exact(turn.agent)}, {len(turn.calls)} call{plural}; {costs(turn.usage)}"
    yield f"in all: {costs(run.usage)}"
    for ask in interruptions(run):
        yield f"waiting: {asked(ask)}"
    outcome = run.outcome
    if isinstance(outcome, Success):
        yield f"output: {safe(outcome.unwrap())}"
    elif isinstance(outcome, Failure):
        yield f"failed: {safe(explain(outcome.failure()))}"


def replay_run(arguments: Namespace) -> Report:
    """Whether today's agents make the recorded run again, or where they first differ from it."""
    agents, run = agents_at(arguments.agent), loaded(arguments.file)
    if isinstance(agents, Failure):
        return unusable(agents.failure())
    if isinstance(run, Failure):
        return unusable(run.failure())
    again = replay(agents.unwrap(), run.unwrap())
    if isinstance(again, Success):
        turns = len(again.unwrap().turns)
        return Report(OK, {"equal": True, "divergence": None}, f"equal: {turns} turn{'' if turns == 1 else 's'}\n")
    found = again.failure()
    problem = f"{line(arguments.file)}: today's agent differs: {found.cause}"
    return Report(FAILED, {"equal": False, "divergence": attrs.asdict(found)}, _parting(found), problem)


def _parting(found: Divergence) -> str:
    expected, got = parted(found.expected, found.got)
    return (
        f"cause:    {found.cause}\n"
        f"index:    {found.index}\n"
        f"key:      {exact(found.key)}\n"
        f"expected: {expected}\n"
        f"got:      {got}\n"
    )


def verify_file(arguments: Namespace) -> Report:
    """Whether a run's seal holds."""
    key, text = key_in(arguments.key_file), read(arguments.file)
    if isinstance(key, Failure):
        return unusable(key.failure())
    if isinstance(text, Failure):
        return unusable(text.failure())
    verdict = verify(text.unwrap(), key.unwrap())
    if isinstance(verdict, Success):
        found = verdict.unwrap()
        by = "and by this key" if found.signed else "as far as a seal without a key can say"
        told = f"as it was sealed, {by}: {found.events} events\n"
        return Report(OK, {"verified": True, "problem": None, **attrs.asdict(found)}, told)
    error = verdict.failure()
    problem = f"{line(arguments.file)}: {error.problem}"
    if isinstance(error, LoadError):
        return unusable(problem)
    return Report(FAILED, {"verified": False, "problem": error.problem}, problem=problem)


def seal_file(arguments: Namespace) -> Report:
    """A copy with a seal, in a new file."""
    key, text = key_in(arguments.key_file), read(arguments.file)
    if isinstance(key, Failure):
        return unusable(key.failure())
    if isinstance(text, Failure):
        return unusable(text.failure())
    made = seal(text.unwrap(), key.unwrap())
    if isinstance(made, Failure):
        return unusable(f"{line(arguments.file)}: {made.failure().problem}")
    done = written(arguments.output, made.unwrap())
    if isinstance(done, Failure):
        return unusable(done.failure())
    return Report(OK, {"file": arguments.output}, f"sealed: {line(arguments.output)}\n")


def show_schemas(arguments: Namespace) -> Report:
    """By which schema a tool's calls are judged, and what the model is sent."""
    found = tool_at(arguments.tool)
    if isinstance(found, Failure):
        return unusable(found.failure())
    tool = found.unwrap()
    data = {"name": tool.name, "judging": tool.parameters, "definition": tool.definition}
    judging, definition = (json.dumps(data[part], indent=2, ensure_ascii=False) for part in ("judging", "definition"))
    return Report(OK, data, safe(f"judging:\n{judging}\n\ndefinition, as sent:\n{definition}\n"))

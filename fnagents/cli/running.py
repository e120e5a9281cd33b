"""The command `run`: drive an agent, watched at the terminal, with a journal if one is asked for."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from attrs import frozen
from rich.console import Console

from fnagents.agent import Agents
from fnagents.cli.data import summary
from fnagents.cli.files import loaded
from fnagents.cli.person import Person
from fnagents.cli.reports import FAILED, INTERRUPTED, OK, PAUSED, Report, Unusable, unusable
from fnagents.cli.screen import Screen
from fnagents.cli.targets import agents_at, client_at, context_at
from fnagents.cli.telling import asked, costs
from fnagents.cli.texts import fault, line, safe
from fnagents.clients import responses_client
from fnagents.codec import LoadError
from fnagents.decisions import interruptions, reopen
from fnagents.driving import drive, interrupt
from fnagents.errors import DeclarationError
from fnagents.journals import Journal, journal
from fnagents.models import ModelClient
from fnagents.outcome import Failure, Outcome, Success
from fnagents.perform import Perform, performer
from fnagents.prose import explain
from fnagents.runs import Run, start
from fnagents.wrap import approved_by, observed, recorded

__all__ = ["run_agent"]


@frozen
class _Job:
    """What is to be driven, and with what."""

    agents: Agents
    run: Run
    client: ModelClient
    context: Any
    record: Journal | None


def run_agent(arguments: Namespace, console: Console, terminal: int | None) -> Report:
    """Run the agent to its end or a pause.  `terminal` is where a person can be asked, if there is one."""
    screen = Screen(console, quiet=arguments.json)
    prepared = _prepared(arguments, streaming=console.is_terminal and not arguments.json)
    if isinstance(prepared, Failure):
        return unusable(prepared.failure())
    job = prepared.unwrap()
    file = None if job.record is None else str(job.record.path)
    try:
        ended = asyncio.run(_driven(job, screen, _answering(arguments, screen, terminal)))
    except KeyboardInterrupt:
        problem = f"interrupted; {_go_on(arguments, file)}"
        return Report(INTERRUPTED, {"error": problem, "file": file}, problem=problem)
    except Exception as error:  # noqa: BLE001  # a client or a disk that raises ends the command, not in a traceback
        problem = f"the run cannot go on: {fault(error)}"
        return Report(FAILED, {"error": problem, "file": file}, problem=problem)
    finally:
        if job.record is not None:
            job.record.close()
    screen.say("dim", costs(ended.usage))
    for ask in interruptions(ended):
        screen.say("yellow", f"waiting: {asked(ask)}")
    return _reported(ended, file, _go_on(arguments, file))


def _reported(run: Run, file: str | None, how: str) -> Report:
    data = {**summary(run), "file": file}
    outcome = run.outcome
    if isinstance(outcome, Success):
        return Report(OK, data, f"{safe(outcome.unwrap())}\n")
    if isinstance(outcome, Failure):
        return Report(FAILED, data, problem=f"the run failed: {line(explain(outcome.failure()), 4_000)}")
    count = len(interruptions(run))
    waits = "a question waits" if count == 1 else f"{count} questions wait"
    return Report(PAUSED, data, problem=f"paused: {waits} for an answer; {how}")


def _go_on(arguments: Namespace, file: str | None) -> str:
    if file is None:
        return "nothing was saved (-o FILE keeps a journal)"
    return f"go on with: fnagents run {line(arguments.agent)} --resume {line(file)}"


# --- driving -------------------------------------------------------------------------------------------


def _answering(arguments: Namespace, screen: Screen, terminal: int | None) -> Callable[[Perform], Perform]:
    """Who answers questions: the options, a person, or nobody."""
    if arguments.yes or arguments.no:
        return lambda perform: approved_by(perform, lambda _: bool(arguments.yes))
    return Person(screen, terminal).answering if terminal is not None else lambda perform: perform


async def _driven(job: _Job, screen: Screen, answering: Callable[[Perform], Perform]) -> Run:
    async with AsyncExitStack() as stack:
        if (close := getattr(job.client, "aclose", None)) is not None:
            stack.push_async_callback(close)
        perform = answering(performer(job.agents, job.client, context=job.context, watch=screen.watch))
        if job.record is not None:
            perform = recorded(perform, job.record)
        with screen:
            return await drive(job.agents, job.run, observed(perform, screen.observe))


# --- what was asked for --------------------------------------------------------------------------------


def _prepared(arguments: Namespace, *, streaming: bool) -> Outcome[_Job, Unusable]:
    """Everything that the command names, in hand; the journal is opened last, so that nothing is left half begun."""
    if (arguments.input is None) == (arguments.resume is None):
        return Failure(Unusable("give an input for a new run, or --resume FILE to go on with one"))
    agents = agents_at(arguments.agent)
    if isinstance(agents, Failure):
        return agents
    client = _client(arguments, agents.unwrap(), streaming)
    if isinstance(client, Failure):
        return client
    context = Success(None) if arguments.context is None else context_at(arguments.context)
    if isinstance(context, Failure):
        return context
    begun = _begun(arguments, agents.unwrap())
    if isinstance(begun, Failure):
        return begun
    run, record = begun.unwrap()
    return Success(_Job(agents.unwrap(), run, client.unwrap(), context.unwrap(), record))


def _client(arguments: Namespace, agents: Agents, streaming: bool) -> Outcome[ModelClient, Unusable]:
    if arguments.client is not None:
        if arguments.model is not None:
            return Failure(Unusable("--model is for the default client: give it or --client"))
        return client_at(arguments.client)
    named = [agent for agent in agents.values() if agent.model]
    if arguments.model is not None and len(named) == len(agents):
        return Failure(Unusable(f"--model is for agents that name no model: {line(named[0].name)} names its own"))
    if not os.environ.get("OPENAI_API_KEY", "").strip():
        return Failure(Unusable("there is no OPENAI_API_KEY in the environment; set it, or give --client MODULE:NAME"))
    try:
        return Success(responses_client(model=arguments.model, stream=streaming))
    except DeclarationError as error:
        return Failure(Unusable(line(str(error))))


def _begun(arguments: Namespace, agents: Agents) -> Outcome[tuple[Run, Journal | None], Unusable]:
    """The run to drive, and its journal."""
    output, resumed = arguments.output, arguments.resume
    if output is not None and Path(output).exists():
        return Failure(Unusable(f"{line(output)} is there already: go on with it by --resume, or name another file"))
    if resumed is None:
        limit = 10 if arguments.max_turns is None else arguments.max_turns
        run = start(next(iter(agents.values())), arguments.input, max_turns=limit)
        return Success((run, None)) if output is None else _recorded(arguments, agents, output, run)
    if output is None:
        return _recorded(arguments, agents, resumed, None)
    held = loaded(resumed)
    if isinstance(held, Failure):
        return held
    run = held.unwrap()
    return _stranger(arguments, agents, run) or _recorded(arguments, agents, output, run)


def _recorded(
    arguments: Namespace, agents: Agents, path: str, run: Run | None
) -> Outcome[tuple[Run, Journal | None], Unusable]:
    """The journal at this path, begun with the run or opened for the one that it holds."""
    opened = journal(path, run)
    if isinstance(opened, Failure):
        error = opened.failure()
        where = f"{line(path)}: " if isinstance(error, LoadError) else ""
        return Failure(Unusable(f"{where}{line(error.problem)}"))
    record = opened.unwrap()
    stranger = _stranger(arguments, agents, record.run)
    if stranger is not None:
        record.close()
        return stranger
    return Success((_going_on(arguments, agents, record.run), record))


def _stranger(arguments: Namespace, agents: Agents, run: Run) -> Failure[Unusable] | None:
    if run.agent in agents:
        return None
    return Failure(Unusable(f"the run is of an agent {line(run.agent)!r}, who is not among {line(arguments.agent)}"))


def _going_on(arguments: Namespace, agents: Agents, run: Run) -> Run:
    """A run that can go on: a failed one is reopened, with `--max-turns` as its new limit."""
    if isinstance(run.outcome, Failure):
        run = reopen(run) if arguments.max_turns is None else reopen(run, max_turns=arguments.max_turns)
    return interrupt(agents, run, "the process ended") if arguments.interrupted == "answer" else run

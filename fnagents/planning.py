"""`plan`: what a run needs next, derived from it and its agents.  Pure; see core.py for the theory.

`plan` reads the last turn only:

    no turn, or the last one is behind us        Prepare | CallModel, or Finish if the turns are used up
    it is open (Prepared)                        CallModel
    calls of it are open                         for each: Check, Ask, CallTool, Extract, or its nested run's plan
    all are answered                             Finish if one was fatal or ends the run, Decide if a function says
    it is a final answer                         Finish
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from fnagents.agent import Agent, Agents
from fnagents.errors import (
    GuardrailTripped,
    InvalidOutput,
    ModelFailed,
    ModelRefused,
    NestedTooDeep,
    RunError,
    ToolFailed,
    TurnsExhausted,
    UnknownAgent,
)
from fnagents.items import Message
from fnagents.outcome import Failure, Outcome, Success
from fnagents.protocol import (
    Approved,
    Ask,
    CallModel,
    CallTool,
    Check,
    Checked,
    Decide,
    Effect,
    Extract,
    Finish,
    Finished,
    Prepare,
    Returned,
    Verdict,
)
from fnagents.runs import DEEPEST_RUN, CallState, Run, Turn
from fnagents.transcript import (
    Known,
    final_text,
    identity,
    is_dynamic,
    known_tools,
    request,
    speaker,
    stopping_output,
)

__all__ = ["DEEPEST_RUN", "plan"]


def plan(agents: Agents, run: Run) -> tuple[Effect, ...]:
    """What this run needs next; () if and only if it has ended.  Derived from the run, nothing is remembered.

    >>> from fnagents import Agent, agents, start, plan, key
    >>> greeter = Agent("greeter", "Greet the user.")
    >>> [key(effect) for effect in plan(agents(greeter), start(greeter, "hi"))]
    ['model-0']
    """
    return _plan(agents, run, 0)


def _plan(agents: Agents, run: Run, depth: int) -> tuple[Effect, ...]:
    if run.outcome is not None:
        return ()
    name = speaker(run)
    if depth > DEEPEST_RUN:
        return (_finish(run, Failure(NestedTooDeep(DEEPEST_RUN))),)
    if name not in agents:
        return (_finish(run, Failure(UnknownAgent(name, tuple(agents)))),)
    if run.turns and (effects := _of_turn(agents, run, run.turns[-1], depth)):
        return effects
    return (_next_turn(agents[name], run),)


def _of_turn(agents: Agents, run: Run, turn: Turn, depth: int) -> tuple[Effect, ...]:
    """What the last turn still needs; () if it is behind us."""
    forgiven = _forgiven(run)
    error = _early_failure(turn)
    if error is not None and error not in forgiven:
        return (_finish(run, Failure(error)),)
    if turn.replied is None:
        return () if error is not None else (_call_model(agents[turn.agent], run),)
    if turn.response is None:
        return ()
    if still_open := turn.open:
        return tuple(_of_calls(agents, run, turn, still_open, depth))
    error = _fatal(run, turn)
    if error is not None and error not in forgiven:
        return (_finish(run, Failure(error)),)
    return () if turn.handoff is not None else _ending(agents[turn.agent], run, turn, forgiven)


def _forgiven(run: Run) -> tuple[RunError, ...]:
    """The failures at this turn that `reopen` has cleared."""
    now = len(run.turns)
    return tuple(
        end.outcome.failure()
        for end in run.ends
        if end.turn == now and isinstance(end, Finished) and isinstance(end.outcome, Failure)
    )


def _tripped(verdicts: tuple[Verdict, ...], place: str) -> GuardrailTripped | None:
    return next((GuardrailTripped(one.guardrail, one.info, place) for one in verdicts if one.tripped), None)


def _early_failure(turn: Turn) -> RunError | None:
    """Why no tool of the turn runs, if none does."""
    if turn.replied is None:
        return turn.prepared.failure if turn.prepared is not None else None
    tripped = _tripped(turn.replied.verdicts, "input")
    if tripped is not None:
        return tripped
    match turn.replied.outcome:
        case Failure(error):
            return ModelFailed(error)
        case _:
            return None


def _fatal(run: Run, turn: Turn) -> RunError | None:
    """The first call in call order that ends the run."""
    for index, state in enumerate(turn.calls):
        event = state.last
        place = f"{len(run.turns) - 1}.{index}"
        if isinstance(event, Returned) and (tripped := _tripped(event.verdicts, place)) is not None:
            return tripped
        if event is not None and event.fatal and isinstance(event.outcome, Failure):
            return ToolFailed(place, event.outcome.failure())
    return None


# --- open calls ----------------------------------------------------------------------------------------


def _of_calls(agents: Agents, run: Run, turn: Turn, still_open: tuple[int, ...], depth: int) -> Iterator[Effect]:
    tools = known_tools(agents[turn.agent], turn)
    known = {index: tools.get(identity(turn.calls[index].call)) for index in still_open}
    ordinary = [index for index in still_open if not _is_handoff(known[index])]
    # Handoffs come after all other calls of the turn, so that none of them overtakes a pending approval.
    serial_busy = False
    number = len(run.turns) - 1
    for index in ordinary or still_open[:1]:
        tool, state = known[index], turn.calls[index]
        place, serial = f"{number}.{index}", tool is not None and tool.listing.serial
        if state.child is not None:
            yield from _of_child(agents, run, turn, place, state.child, depth)
        else:
            effect = _of_call(run, turn, place, state, tool)
            if not (serial and serial_busy and isinstance(effect, CallTool)):
                yield effect
        serial_busy = serial_busy or serial


def _is_handoff(tool: Known | None) -> bool:
    return tool is not None and tool.handoff


def _of_child(agents: Agents, run: Run, turn: Turn, place: str, child: Run, depth: int) -> Iterator[Effect]:
    effects = _plan(agents, child, depth + 1)
    for effect in effects:
        yield evolve(effect, path=(place, *effect.path))
    if not effects:
        yield Extract(turn.agent, place, seen=run)


def _of_call(run: Run, turn: Turn, place: str, state: CallState, tool: Known | None) -> Effect:
    """What one open call without a nested run needs."""
    checkup = state.checkup if state.gate else None
    if checkup is None:
        if tool is not None and tool.listing.gate:
            return Check(turn.agent, place, state.call, seen=run)
        return CallTool(turn.agent, place, state.call, seen=run)
    again = len(state.gate) > 1 and sum(isinstance(event, Checked) for event in state.gate) > 1
    attempt = len(state.gate) if again else 0
    if checkup.needed and state.decision is None:
        return Ask(turn.agent, place, state.call, checkup, attempt=attempt, seen=run)
    approved = isinstance(state.decision, Approved)
    return CallTool(turn.agent, place, state.call, checkup.digest, approved=approved, attempt=attempt, seen=run)


# --- the end of a turn ---------------------------------------------------------------------------------


def _ending(agent: Agent[Any, Any], run: Run, turn: Turn, forgiven: tuple[RunError, ...]) -> tuple[Effect, ...]:
    if turn.refused is not None:
        return _after_refusal(agent, run, turn, forgiven)
    if any(_judged(error) for error in forgiven):
        return ()
    if turn.calls and callable(agent.tool_use_behavior):
        if turn.decided is None:
            return (Decide(agent.name, len(run.turns) - 1, seen=run),)
        if turn.decided.failure is not None:
            failure = turn.decided.failure
            return () if failure in forgiven else (_finish(run, Failure(failure)),)
        text = turn.decided.output
    else:
        text = stopping_output(agent, turn) if turn.calls else final_text(turn)
    if text is None:
        return ()
    refusal = None if turn.calls else _refusal(turn)
    return (_finish(run, Success(text) if refusal is None else Failure(ModelRefused(refusal))),)


def _judged(error: RunError) -> bool:
    """Whether this failure was the verdict on the final output itself, which reopening does not judge again."""
    return isinstance(error, InvalidOutput | ModelRefused) or (
        isinstance(error, GuardrailTripped) and error.place == "output"
    )


def _refusal(turn: Turn) -> str | None:
    response = turn.response
    messages = (item for item in reversed(response.items) if isinstance(item, Message)) if response else iter(())
    last = next(messages, None)
    return None if last is None else last.refusal


def _after_refusal(agent: Agent[Any, Any], run: Run, turn: Turn, forgiven: tuple[RunError, ...]) -> tuple[Effect, ...]:
    assert turn.refused is not None  # the caller looked
    error = InvalidOutput(turn.refused.problem)
    last = run.turns[-agent.output_retries - 1 :]
    again = len(last) <= agent.output_retries or any(one.refused is None for one in last)
    return () if again or error in forgiven else (_finish(run, Failure(error)),)


def _finish(run: Run, outcome: Outcome[str, RunError]) -> Finish:
    turn = len(run.turns)
    refused = bool(run.turns) and run.turns[-1].refused is not None
    attempt = sum(end.turn == turn for end in run.ends) + refused
    return Finish(speaker(run), turn, outcome, attempt=attempt, seen=run)


def _next_turn(agent: Agent[Any, Any], run: Run) -> Effect:
    if run.max_turns is not None and _turns_used(run) >= run.max_turns:
        return _finish(run, Failure(TurnsExhausted(run.max_turns)))
    if is_dynamic(agent):
        return Prepare(agent.name, len(run.turns), seen=run)
    return _call_model(agent, run)


def _turns_used(run: Run) -> int:
    """Turns that count against the limit: not those whose model call failed before the run was reopened."""
    failed = {end.turn for end in run.ends if end.turn and run.turns[end.turn - 1].response is None}
    return len(run.turns) - len(failed)


def _call_model(agent: Agent[Any, Any], run: Run) -> CallModel:
    asked = request(agent, run)
    return CallModel(agent.name, asked.turn, asked, seen=run)

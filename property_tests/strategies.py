"""Strategies for the library's values: everything a run may hold, hostile text included.

Sections: text; nouns and events; runs.  New nouns are found by their annotations; add new kinds of worlds here.
"""

from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from hypothesis import strategies as st
from worlds import worlds  # noqa: F401  # for whoever looks for strategies here

from fnagents import (
    Agent,
    Approved,
    Ask,
    CallModel,
    CallTool,
    Check,
    Checked,
    Checkup,
    Decide,
    Decided,
    Declined,
    Delegate,
    Effect,
    Event,
    Extract,
    Failure,
    Finish,
    Finished,
    FunctionRaised,
    Handoff,
    Item,
    ModelError,
    ModelResponse,
    Output,
    Prepare,
    Prepared,
    Refused,
    Reopened,
    Replied,
    Returned,
    Run,
    Success,
    Tool,
    ToolCall,
    ToolError,
    Usage,
    Verdict,
    agents,
    plan,
    start,
    step,
)
from fnagents.converting import converter
from fnagents.errors import AwaitingApproval
from fnagents.transcript import listing

# --- text ----------------------------------------------------------------------------------------------

#: Texts that have broken a codec somewhere.
HOSTILE = (
    "",
    "\x00",
    "\ud800",
    "a\udcffb",
    # two that stand side by side without being a pair
    "\ud83d" + "\ude00",
    "\U0001f600",
    "\u2028\ufeff\ufffe",
    '{"$type": "Joined", "value": ["a", "b"]}',
    '"Joined"',
    '{"n": 1e999, "m": ' + "9" * 5000 + "}",
    '{"a": NaN}',
    "\\ud83d\\ude00",
    "</script>",
)


@cache
def texts() -> st.SearchStrategy[str]:
    """Any text that Python can hold."""
    anything = st.text(st.characters(exclude_categories=()), max_size=12)
    return st.one_of(st.text(st.characters(codec="ascii"), max_size=12), anything, st.sampled_from(HOSTILE))


# --- nouns and events ----------------------------------------------------------------------------------


@cache
def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, by its annotations."""
    converter()  # which resolves the annotations of all classes
    return _of(kind)


@cache
def _of(kind: Any) -> st.SearchStrategy[Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is str:
        return texts()
    if kind is int:
        return st.integers(0, 2**70)
    if kind is float:
        return st.one_of(st.floats(allow_nan=False), st.integers(0, 9))
    if kind in (bool, type(None)):
        return st.booleans() if kind is bool else st.none()
    if origin is Literal:
        return st.sampled_from(inner)
    if origin is tuple:
        return st.lists(_of(inner[0]), max_size=3).map(tuple)
    if origin in (Union, UnionType):
        return st.one_of([_of(one) for one in inner if one is not AwaitingApproval])
    if origin in (Success, Failure):
        return _of(inner[0]).map(origin)
    return st.deferred(lambda: st.builds(kind, **{one.alias: _of(one.type) for one in attrs.fields(kind) if one.init}))


def events() -> st.SearchStrategy[Event]:
    """Any event, whether or not it fits a run."""
    return values(Event)


def items() -> st.SearchStrategy[Item]:
    """Any item."""
    return values(Item)


# --- runs ----------------------------------------------------------------------------------------------


def _tool(name: str, **options: Any) -> Tool[..., Any, Any]:
    return Tool(name, f"Do {name}.", {"properties": {}}, lambda context, arguments: "done", **options)


EXPERT = Agent("expert", "You know things.", tools=(_tool("look_up"), _tool("dig", needs_approval=True)))
#: A root with every kind of tool that `plan` tells apart, and an agent whose instructions are a function.
WORLD = agents(
    Agent(
        "root",
        "Do your best.",
        tools=(
            _tool("add"),
            _tool("pay", needs_approval=True),
            _tool("move", serial=True),
            _tool("ask_expert", agents=(EXPERT,)),
        ),
        handoffs=(_tool("to_other"),),
    ),
    Agent("other", lambda context: "Be brief.", tools=(_tool("add"),), tool_use_behavior=lambda context, results: None),
)


@st.composite
def runs(draw: st.DrawFn, most: int = 20) -> Run:
    """A run that the world could have: up to `most` answers to what `plan` asks for, in any order."""
    given = draw(st.just("hi") | st.lists(items(), max_size=2))
    held = draw(st.sampled_from([{}, {}, {"previous_response_id": "r"}, {"conversation_id": "c"}]))
    run = start("root", given, max_turns=draw(st.integers(1, 6)), **held)
    for _ in range(draw(st.integers(0, most))):
        planned = plan(WORLD, run)
        if not planned:
            if not isinstance(run.outcome, Failure) or not draw(st.booleans()):
                break
            run = step(run, Reopened(len(run.turns), draw(st.integers(1, 9) | st.none())))
            continue
        effect = draw(st.sampled_from(planned))
        run = step(run, draw(answers(effect)))
    return run


@st.composite
def answers(draw: st.DrawFn, effect: Effect) -> Event:
    """What the world may answer to an effect."""
    path = effect.path
    match effect:
        case Prepare():
            return _prepared(draw, effect)
        case CallModel():
            return _replied(draw, effect)
        case Check():
            checkup = st.builds(Checkup, texts(), texts(), st.booleans(), st.sampled_from(["", "d"]))
            outcome: Any = Failure(draw(values(ToolError))) if _one_in(draw, 5) else Success(draw(checkup))
            return Checked(effect.place, outcome, draw(texts()), path=path)
        case Ask():
            digest, always = effect.checkup.digest, draw(st.booleans())
            if draw(st.booleans()):
                return Approved(effect.place, digest, always, path)
            return Declined(effect.place, digest, draw(texts()), always, path)
        case CallTool():
            return _returned(draw, effect)
        case Extract():
            return Returned(effect.place, Success(Output(draw(texts()))), path=path)
        case Decide():
            failure = draw(values(FunctionRaised)) if _one_in(draw, 5) else None
            return Decided(effect.turn, draw(st.none() | texts()), failure, path)
        case Finish():
            if isinstance(effect.outcome, Success) and _one_in(draw, 4):
                return Refused(effect.turn, draw(texts()), path)
            return Finished(effect.turn, effect.outcome, path=path)


def _prepared(draw: st.DrawFn, effect: Prepare) -> Prepared:
    failure = draw(values(FunctionRaised)) if _one_in(draw, 5) else None
    agent = WORLD[effect.agent]
    tools = tuple(listing(tool) for tool in agent.tools if isinstance(tool, Tool))
    return Prepared(effect.turn, draw(texts()), tools, failure=failure, path=effect.path)


def _one_in(draw: st.DrawFn, number: int) -> bool:
    """Seldom: a choice among alternatives would favour the side that has more of them."""
    return draw(st.sampled_from([False] * (number - 1) + [True]))


def _replied(draw: st.DrawFn, effect: CallModel) -> Replied:
    verdicts = (Verdict("g", tripped=True),) if _one_in(draw, 15) else ()
    if verdicts and draw(st.booleans()):
        return Replied(effect.turn, None, effect.request.sent, verdicts, effect.path)
    if _one_in(draw, 12):
        return Replied(effect.turn, Failure(draw(values(ModelError))), effect.request.sent, verdicts, effect.path)
    agent = WORLD[effect.agent]
    names = [tool.name for tool in (*agent.tools, *agent.handoffs) if isinstance(tool, Tool)]
    called = st.builds(ToolCall, st.sampled_from(["", "c1", "c2"]), st.sampled_from([*names, "nothing"]), texts())
    said: list[Item] = draw(st.lists(called, max_size=3))
    if _one_in(draw, 3):
        said.append(draw(items()))
    response = ModelResponse(tuple(said), draw(values(Usage)), draw(texts()))
    return Replied(effect.turn, Success(response), effect.request.sent, verdicts, effect.path)


def _returned(draw: st.DrawFn, effect: CallTool) -> Returned:
    outcome: Any = Failure(draw(values(ToolError))) if _one_in(draw, 5) else Success(draw(_given(effect)))
    return Returned(effect.place, outcome, draw(texts()), _one_in(draw, 8), path=effect.path)


def _given(effect: CallTool) -> st.SearchStrategy[Any]:
    if effect.call.name == "to_other" and effect.agent == "root":
        return st.builds(Handoff, st.just("other"), texts())
    if effect.call.name == "ask_expert":
        return st.builds(Delegate, st.just("expert"), texts(), st.integers(1, 3), texts(), st.booleans())
    return values(Output)

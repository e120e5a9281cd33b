"""Random worlds: a few agents with hand-made tools, what their models say, how people answer, how long things take.

A world is data.  `World.stage()` makes it live: agents, and one `perform` that answers every effect.  What it
answers depends on the effect alone, never on the order in which effects come or on how often they are asked; so
any two ways of playing a world must give equal runs, and one that was cut off must go on as if it had not been.

    worlds()      the strategy
    Stage         a world come alive; it keeps a ledger of who allowed what, and every breach of it
    Watch         looks at a run after each event and holds the laws that need nothing but `plan`
    features(...) what a played world reached, by name: so that no law is tested on shallow worlds alone
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any
from zlib import crc32

from attrs import define, evolve, field, frozen
from hypothesis import strategies as st

from fnagents import (
    Agent,
    Agents,
    Allow,
    Approved,
    Ask,
    BadRequest,
    CallTool,
    Check,
    Checked,
    Declined,
    Delegate,
    Effect,
    Event,
    Failure,
    Handoff,
    Incomplete,
    InputGuardrail,
    Item,
    Message,
    ModelResponse,
    Opaque,
    Output,
    Perform,
    Prepare,
    Refusal,
    Reject,
    Reopened,
    Run,
    ServerFailed,
    StopAt,
    Success,
    Tool,
    ToolCall,
    ToolContext,
    ToolOutput,
    Trip,
    agents,
    approve,
    drive,
    fatal,
    interruptions,
    key,
    performer,
    plan,
    reject,
    reopen,
    start,
    step,
)
from fnagents.errors import (
    FunctionRaised,
    GuardrailTripped,
    InvalidArguments,
    InvalidJson,
    InvalidOutput,
    ModelFailed,
    ModelRefused,
    NestedFailed,
    ToolFailed,
    ToolRaised,
    ToolRejected,
    ToolTimedOut,
    TurnsExhausted,
    UnknownAgent,
    UnknownTool,
    UnrenderableOutput,
)
from fnagents.runs import ALREADY_HANDED_OVER, CallState, Turn
from fnagents.schemas.read import json_reader
from fnagents.transcript import identity, known_tools

__all__ = [
    "FEATURES",
    "AgentSpec",
    "CallSpec",
    "Stage",
    "ToolSpec",
    "TurnSpec",
    "Watch",
    "World",
    "at_once",
    "features",
    "hidden",
    "worlds",
]

NAMES = ("ann", "bob", "cyd")
DEEPEST = 4
SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}'
READ = json_reader(SCHEMA)
_READ_ANY = json_reader('{"type":"object"}')

#: How often the call that is being read was checked; what lets the `read` of a tool change its mind.
_checks: ContextVar[int] = ContextVar("_checks", default=0)


# --- the data ------------------------------------------------------------------------------------------


@frozen
class ToolSpec:
    """One tool: what its function answers, and its policies."""

    name: str
    answer: str = "text"
    target: str = "ann"
    gate: str = "no"
    serial: bool = False
    errors: str = ""
    guard: str = ""
    enabled: str = "yes"
    #: how often its arguments read differently from when they were checked
    shifts: int = 0
    sync: bool = False


@frozen
class CallSpec:
    """One call in a reply: of the agent's tool with this number (modulo; below 0 its handoffs), or of none it has."""

    tool: int
    arguments: str = '{"n": 0}'
    id: str = ""
    unknown: bool = False


@frozen
class TurnSpec:
    """One reply of a model."""

    kind: str
    calls: tuple[CallSpec, ...] = ()


@frozen
class AgentSpec:
    """One agent and what its model says, turn by turn; after the script it says a valid final output."""

    name: str
    tools: tuple[ToolSpec, ...] = ()
    handoffs: tuple[ToolSpec, ...] = ()
    script: tuple[TurnSpec, ...] = ()
    instructions: str = "static"
    source: bool = False
    behavior: str = "run_llm_again"
    guard: str = ""
    numbers: bool = False


@frozen
class World:
    """Agents, the input, answers to questions (chosen by the question's key) and delays (by the effect's)."""

    agents: tuple[AgentSpec, ...]
    input: tuple[Item, ...] = (Message("user", "depth 0"),)
    max_turns: int = 4
    decisions: tuple[str, ...] = ("yes",)
    reopens: int = 0
    seed: int = 0

    @property
    def start(self) -> Run:
        """The run that has not begun."""
        return start(self.agents[0].name, self.input, max_turns=self.max_turns)

    def stage(self) -> Stage:
        """The world, live."""
        return Stage(self)


# --- the strategy --------------------------------------------------------------------------------------

_often = st.sampled_from

_GATED: tuple[dict[str, Any], ...] = (
    {"gate": "yes"},
    {"gate": "odd"},
    {"gate": "odd", "errors": "fatal"},
    {"gate": "yes", "shifts": 1},
    {"gate": "yes", "shifts": 2},
    {"gate": "odd", "shifts": 1, "serial": True},
    {"gate": "yes", "serial": True},
)
_POLICIES: tuple[dict[str, Any], ...] = (
    {},
    {"gate": "broken"},
    {"serial": True},
    {"serial": True, "errors": "fatal"},
    {"errors": "fatal"},
    {"errors": "worded"},
    {"guard": "allow"},
    {"guard": "reject before"},
    {"guard": "reject after"},
    {"guard": "trip before"},
    {"guard": "trip after"},
    {"enabled": "no"},
    {"enabled": "even"},
    {"enabled": "vanishing"},
)
_ANSWERS = ("text", "delegate", "extract", "raise", "stray", "slow", "odd")
_KINDS = ("text", "wrong", "wrong", "error", "refusal", "opaque", "empty", "incomplete")


@frozen
class _Theme:
    """What a world is mostly made of: all of everything at once would end too early to go deep."""

    answers: tuple[str, ...] = ("text",) * 4 + _ANSWERS
    policies: tuple[dict[str, Any], ...] = ({},) * 6 + _GATED + _POLICIES
    kinds: tuple[str, ...] = ("calls",) * 12 + _KINDS
    guards: tuple[str, ...] = ("",) * 8 + ("blocking", "beside", "allow output")
    behaviors: tuple[str, ...] = ("run_llm_again",) * 4 + ("stop_on_first_tool", "StopAt", "function")
    instructions: tuple[str, ...] = ("static", "static", "dynamic")
    handoffs: tuple[int, ...] = (0, 1, 2)
    #: which of the agent's tools the calls are of: those from -1 down are its handoffs
    first: int = -2


_CALLS = ("calls",) * 12 + ("text",)
_NESTING = _Theme(("delegate", "delegate", "delegate", "extract", "text"), ({},) * 3 + _GATED, _CALLS, ("",))
_HANDOFFS = _Theme(("text", "delegate"), ({},) * 7 + _GATED, _CALLS, handoffs=(1, 2), first=-6)
_QUESTIONS = _Theme(("text", "text", "delegate"), ({}, *_GATED), _CALLS, ("",), ("run_llm_again",))
_TOOLS = _Theme(("text", "text", *_ANSWERS), ({}, *_POLICIES), ("calls",) * 6 + ("text",), ("",), first=0)
_DECIDERS = _Theme(
    policies=({}, {"guard": "trip before"}, {"guard": "trip after"}, {"guard": "reject after"}),
    guards=("",),
    behaviors=("function", "stop_on_first_tool", "StopAt"),
)
_ENDS = _Theme(
    kinds=("calls",) * 5 + _KINDS,
    guards=("", "", "trip blocking", "trip beside", "trip late", "trip output"),
    behaviors=("run_llm_again", "stop_on_first_tool", "StopAt", "function", "raising function"),
    instructions=("static", "dynamic", "raising"),
)
_OUTPUTS = _Theme(kinds=("calls", "calls", "text", "wrong", "wrong", "wrong"), guards=("", "trip output"))
_THEMES = (_Theme(), _NESTING, _HANDOFFS, _QUESTIONS, _DECIDERS, _TOOLS, _ENDS, _OUTPUTS, _HANDOFFS)


@st.composite
def _tools(draw: st.DrawFn, theme: _Theme, handoff: bool, count: int) -> tuple[ToolSpec, ...]:
    made = []
    for number in range(count):
        answer = draw(_often(("handoff",) * 10 + ("text", "raise") if handoff else theme.answers))
        target = draw(_often(NAMES * 6 + ("ghost",)))
        policy = draw(_often(theme.policies))
        name = f"{'to' if handoff else 'tool'}_{number}"
        made.append(ToolSpec(name, answer, target, sync=draw(st.booleans()), **policy))
    return tuple(made)


_ARGUMENTS = ('{"n": 0}', '{"n": 1}', '{"n":1}', '{"n": 2}', '{"n": 3}', '{"n": 4}') * 2 + ('{"n":', '{"n": "x"}', "")
_IDS = ("", "c1", "c1", "c2", "c3", "c4", "call_0_0", "call_1_0", "call_1_1")


@st.composite
def _replies(draw: st.DrawFn, theme: _Theme) -> TurnSpec:
    kind = draw(_often(theme.kinds))
    if kind != "calls":
        return TurnSpec(kind)
    call = st.builds(
        CallSpec,
        tool=st.integers(theme.first, 2),
        arguments=_often(_ARGUMENTS),
        id=_often(_IDS),
        unknown=_often((False,) * 14 + (True,)),
    )
    return TurnSpec(kind, tuple(draw(call) for _ in range(draw(_often((1, 2, 3, 4))))))


@st.composite
def _agents(draw: st.DrawFn, theme: _Theme, name: str) -> AgentSpec:
    return AgentSpec(
        name,
        draw(_tools(theme, False, draw(_often((1, 2, 3))))),
        draw(_tools(theme, True, draw(_often(theme.handoffs)))),
        tuple(draw(_replies(theme)) for _ in range(draw(_often((1, 2, 3, 4, 5))))),
        draw(_often(theme.instructions)),
        draw(_often((False, False, True))),
        draw(_often(theme.behaviors)),
        draw(_often(theme.guards)),
        draw(_often((False, True) if theme is _OUTPUTS else (False, False, True))),
    )


_INPUTS = (
    (Message("user", "depth 0"),),
    (Message("user", "depth 0"),),
    (ToolCall("c1", "old"), ToolOutput("c1", "old"), Message("user", "depth 0")),
    (ToolCall("call_0_0", "old"), ToolOutput("call_0_0", "old"), Message("user", "depth 0")),
)


@st.composite
def worlds(draw: st.DrawFn, *, gated: bool = False) -> World:
    """Worlds of three agents that hand over and delegate to each other; `gated` ones ask much."""
    theme = draw(_often((_QUESTIONS, _NESTING, _HANDOFFS) if gated else _THEMES))
    decision = _often(("yes", "yes", "no", "yes always", "no always", "later"))
    return World(
        tuple(draw(_agents(theme, name)) for name in NAMES),
        draw(_often(_INPUTS)),
        draw(_often((6, 5, 4, 3, 2, 1, 0))),
        tuple(draw(decision) for _ in range(draw(_often((1, 3, 5))))),
        draw(_often((0, 1, 2))),
        draw(st.integers(0, 1000)),
    )


# --- a world come alive --------------------------------------------------------------------------------


async def at_once(work: Callable[[], Any]) -> Any:
    """As `in_thread`, without a thread: for sync functions in virtual time."""
    try:
        return Success(work())
    except BaseException as error:  # noqa: BLE001  # as the real one
        return Failure(error)


@frozen
class _Said:
    path: tuple[str, ...]
    place: str
    agent: str
    tool: str
    arguments: str
    approved: bool
    always: bool


def _if(there: bool, one: Any) -> list[Any]:
    return [one] if there else []


def _order(place: str) -> tuple[int, int]:
    turn, _, index = place.partition(".")
    return int(turn), int(index)


@define(eq=False)
class Stage:
    """A world that is being played.  `breaches` are the gated calls that ran without anybody's leave."""

    world: World
    said: list[_Said] = field(factory=list)
    executed: list[tuple[tuple[str, ...], str, str]] = field(factory=list)
    breaches: list[str] = field(factory=list)
    agents: Agents = field(init=False)
    answer: Perform = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.agents = agents(*(self._agent(spec) for spec in self.world.agents))
        self.answer = performer(self.agents, self._client, in_thread=at_once)

    # --- agents and tools ------------------------------------------------------------------------------

    def _agent(self, spec: AgentSpec) -> Agent[Any, Any]:
        tools: list[Any] = [self._tool(one) for one in spec.tools]
        if spec.source:
            sourced = tuple(tools[1:])

            async def source(context: Any) -> tuple[Tool[..., Any, Any], ...]:
                return sourced

            tools = [tools[0], source]

        def instructions(context: Any) -> str:
            if spec.instructions == "raising" and context.turn == 1:
                raise RuntimeError("no instructions")
            return f"turn {context.turn}"

        def decided(context: Any, results: Any) -> str | None:
            if spec.behavior == "raising function":
                raise LookupError("no decision")
            good = [one.outcome for one in results if isinstance(one.outcome, Success)]
            return '{"response":8}' if len(good) > 1 else None

        behavior: Any = {"StopAt": StopAt("tool_0", "to_0"), "function": decided, "raising function": decided}
        trips = Trip("as told") if spec.guard.startswith("trip") else Allow("fine")

        async def late(context: Any, items: Any) -> Allow | Trip:
            await asyncio.sleep(1)
            return trips

        def outputs(context: Any, text: str) -> Allow | Trip:
            return trips

        inputs: tuple[InputGuardrail, ...] = ()
        if spec.guard.endswith(("blocking", "beside")):
            inputs = (InputGuardrail(lambda context, items: trips, blocking=spec.guard.endswith("blocking")),)
        elif spec.guard == "trip late":
            inputs = (InputGuardrail(late),)
        return Agent(
            spec.name,
            "static" if spec.instructions == "static" else instructions,
            tools=tools,
            handoffs=[self._tool(one) for one in spec.handoffs],
            output_type=int if spec.numbers else None,
            tool_use_behavior=behavior.get(spec.behavior, spec.behavior),
            input_guardrails=inputs,
            output_guardrails=_if(spec.guard.endswith("output"), outputs),
        )

    def _tool(self, spec: ToolSpec) -> Tool[..., Any, Any]:
        def read(text: str) -> Any:
            reading = READ(text)
            match reading:
                case Success(arguments) if version := min(_checks.get(), spec.shifts):
                    data = {**arguments.data, "version": version}
                    return Success(evolve(arguments, data=data, values=data, given=arguments.given))
                case _:
                    return reading

        def function(context: ToolContext[Any], given: str) -> Any:
            self._executed(context, spec)
            return _answered(context, spec, given)

        async def patient(context: ToolContext[Any], given: str) -> Any:
            if spec.answer == "slow":
                await asyncio.sleep(9)
            return function(context, given)

        def odd(context: ToolContext[Any], values: Mapping[str, Any]) -> bool:
            return bool(values["n"] % 2)

        def broken(context: ToolContext[Any], values: Mapping[str, Any]) -> bool:
            raise KeyError("gate")

        def guardrail(context: ToolContext[Any], judged: Any) -> Allow | Reject | Trip:
            if spec.guard == "allow" or '"n":2' not in context.arguments.replace(" ", ""):
                return Allow()
            return Reject("not that") if spec.guard.startswith("reject") else Trip("not that")

        enabled: dict[str, Any] = {
            "yes": True,
            "no": False,
            "even": lambda context: context.turn % 2 == 0,
            "vanishing": lambda context: not (context.seen.turns and context.seen.turns[-1].replied),
        }
        gates: dict[str, Any] = {"no": False, "yes": True, "odd": odd, "broken": broken}
        errors: dict[str, Any] = {"": None, "fatal": fatal, "worded": lambda context, error: "try something else"}
        return Tool(
            spec.name,
            "A tool.",
            SCHEMA,
            patient if spec.answer == "slow" or not spec.sync else function,
            read=read,
            timeout=2 if spec.answer == "slow" else None,
            serial=spec.serial,
            needs_approval=gates[spec.gate],
            is_enabled=enabled[spec.enabled],
            on_error=errors[spec.errors],
            input_guardrails=_if(spec.guard in {"allow", "reject before", "trip before"}, guardrail),
            output_guardrails=_if(spec.guard in {"reject after", "trip after"}, guardrail),
            extract=_extracted if spec.answer == "extract" else None,
        )

    # --- law 4: the ledger -----------------------------------------------------------------------------

    def _executed(self, context: ToolContext[Any], spec: ToolSpec) -> None:
        self.executed.append((context.path, context.place, spec.name))
        arguments: Mapping[str, Any] = READ(context.arguments).unwrap().data
        checks = min(_checks.get(), spec.shifts)
        text = str({**arguments, "version": checks} if checks else arguments)
        if spec.gate == "no" or (spec.gate == "odd" and arguments["n"] % 2 == 0):
            return
        if not self._allowed(context.path, context.place, context.agent, spec.name, text):
            self.breaches.append(f"{'/'.join(context.path)} {context.place} {spec.name}({text})")

    def _allowed(self, path: tuple[str, ...], place: str, agent: str, tool: str, arguments: str) -> bool:
        here = [one for one in self.said if one.path == path and one.agent == agent and one.tool == tool]
        exact = [one for one in here if one.place == place and one.arguments == arguments]
        if exact:
            return exact[-1].approved
        sticky = [one for one in here if one.always and _order(one.place)[0] < _order(place)[0]]
        return bool(sticky) and max(sticky, key=lambda one: _order(one.place)).approved

    def tell(self, ask: Ask, *, approved: bool, always: bool = False) -> None:
        """Note in the ledger what somebody answered."""
        arguments = str(_READ_ANY(ask.arguments).unwrap().data)
        self.said.append(_Said(ask.path, ask.place, ask.agent, ask.tool, arguments, approved, always))

    # --- the world -------------------------------------------------------------------------------------

    async def _client(self, request: Any, emit: Any) -> Any:
        spec = next(one for one in self.world.agents if one.name == request.agent)
        last = request.input.items[-1]
        depth = int(last.text.rpartition(" ")[2])
        number = request.turn + depth
        reply = spec.script[number] if number < len(spec.script) else TurnSpec("text")
        return _said_by_model(spec, reply, depth)

    def decision(self, ask: Ask) -> str:
        """What somebody will say to this question, now or later."""
        decisions = self.world.decisions
        return decisions[crc32(key(ask).encode()) % len(decisions)]

    async def perform(self, effect: Effect) -> Event | None:
        """Answer an effect; None for a question whose answer comes later."""
        if isinstance(effect, Ask):
            return self._decided(effect)
        if isinstance(effect, Check | CallTool):
            state = effect.seen.turns[-1].calls[_order(effect.place)[1]]
            _checks.set(sum(isinstance(event, Checked) for event in state.gate))
        return await self.answer(effect)

    async def slowly(self, effect: Effect) -> Event | None:
        """As `perform`, after a while of its own."""
        await asyncio.sleep(crc32(f"{self.world.seed} {key(effect)}".encode()) % 11)
        return await self.perform(effect)

    def _decided(self, ask: Ask) -> Event | None:
        said = self.decision(ask)
        if said == "later":
            return None
        always = said.endswith("always")
        self.tell(ask, approved=said.startswith("yes"), always=always)
        if said.startswith("yes"):
            return Approved(ask.place, ask.checkup.digest, always, ask.path)
        return Declined(ask.place, ask.checkup.digest, "no", always, ask.path)

    def answered(self, run: Run) -> Run:
        """A paused run with its questions answered, from the first to the last."""
        while questions := interruptions(run):
            ask = questions[0]
            number = crc32(key(ask).encode())
            always, approved = number % 3 == 0, number % 5 != 0
            for other in questions if always else (ask,):
                if (other.path, other.agent, other.tool) == (ask.path, ask.agent, ask.tool):
                    self.tell(other, approved=approved, always=always and other is ask)
            run = approve(run, ask, always) if approved else reject(run, ask, "no", always)
        return run

    def reopened(self, run: Run) -> Run | None:
        """The run reopened if it failed and this world does so; None at its end."""
        times = sum(isinstance(end, Reopened) for end in run.ends)
        if not isinstance(run.outcome, Failure) or times >= self.world.reopens:
            return None
        return reopen(run, max_turns=(run.max_turns or 0) + 2)

    # --- playing ---------------------------------------------------------------------------------------

    async def played(self, run: Run, driver: Any = drive, *, slowly: bool = True) -> Run:
        """The run to its very end: pauses answered, failures reopened as often as the world does."""
        while True:
            run = await driver(self.agents, run, self.slowly if slowly else self.perform)
            if run.outcome is None:
                run = self.answered(run)
            elif (again := self.reopened(run)) is not None:
                run = again
            else:
                return run

    async def by_hand(
        self, run: Run, order: Iterable[int] = (), watch: Watch | None = None, log: list[Run] | None = None
    ) -> Run:
        """As `played`, one effect at a time, chosen by `order`; `watch` looks on, `log` gets each run between."""
        choices, asked = iter(order), set[str]()

        def seen(now: Run, *keys: str) -> Run:
            if watch is not None:
                watch.see(now, *keys)
            if log is not None:
                log.append(now)
            return now

        while True:
            effects = [effect for effect in plan(self.agents, run) if key(effect) not in asked]
            if effects:
                effect = effects[next(choices, 0) % len(effects)]
                event = await self.perform(effect)
                if event is None:
                    asked.add(key(effect))
                else:
                    run = seen(step(run, event), key(effect))
            elif run.outcome is None:
                questions = plan(self.agents, run)
                assert all(isinstance(one, Ask) for one in questions), "law 6: a pause holds questions only"
                assert questions == interruptions(run), "law 6: what a person is shown is what is planned"
                run = seen(self.answered(run), *map(key, questions))
            elif (again := self.reopened(run)) is not None:
                run = seen(again)
            else:
                return run


def _extracted(context: ToolContext[Any], run: Run) -> Any:
    if '"n":3' in context.arguments.replace(" ", ""):
        raise ValueError("nothing to extract")
    return f"extracted from {len(run.turns)} turns"


def _answered(context: ToolContext[Any], spec: ToolSpec, given: str) -> Any:
    depth = len(context.path)
    match spec.answer:
        case "delegate" | "extract" if depth < DEEPEST:
            turns = (3, 1, 2)[crc32(given.encode()) % 3]
            return Delegate(spec.target, f"depth {depth + 1}", max_turns=turns, extract=spec.answer == "extract")
        case "handoff" | "stray":
            return Handoff(spec.target, "over to you" if depth else "")
        case "raise":
            raise ValueError("as always")
        case "odd":
            return object()
        case _:
            return Output(f"{spec.name} at {'/'.join((*context.path, context.place))} {given}", memory="m")


def _named(spec: AgentSpec, number: int) -> str:
    tools = spec.handoffs if number < 0 and spec.handoffs else spec.tools
    return tools[number % len(tools)].name


def _said_by_model(spec: AgentSpec, turn: TurnSpec, depth: int) -> Any:
    match turn.kind:
        case "calls":
            made = tuple(
                ToolCall(one.id, "nobody" if one.unknown else _named(spec, one.tool), one.arguments)
                for one in turn.calls[: max(1, 4 - depth)]
            )
            return Success(ModelResponse((Message("assistant", "let me see"), *made) if depth else made))
        case "error":
            return Failure(ServerFailed("down") if depth else BadRequest("no"))
        case "incomplete":
            return Failure(Incomplete("max_output_tokens", ModelResponse((ToolCall("c9", "tool_0"),))))
        case "refusal":
            return Success(ModelResponse((Message("assistant", (Refusal("I will not"),)),)))
        case "opaque":
            return Success(ModelResponse((Opaque("web_search_call", '{"type":"web_search_call"}'),)))
        case "empty":
            return Success(ModelResponse(()))
        case kind:
            return Success(ModelResponse((Message("assistant", "seven" if kind == "wrong" else '{"response":7}'),)))


# --- looking on ----------------------------------------------------------------------------------------


@define(eq=False)
class Watch:
    """Holds laws 5, 7 and 19 from one event to the next, and the order of serial tools and handoffs."""

    agents: Agents
    planned: dict[str, Effect] = field(factory=dict)
    spent: set[str] = field(factory=set)

    def see(self, run: Run, *answered: str, interrupted: bool = False) -> tuple[Effect, ...]:
        """Look at the run after the events that answered these keys."""
        effects = plan(self.agents, run)
        assert (effects == ()) == (run.outcome is not None), "law 5: never stuck"
        now = {key(effect): effect for effect in effects}
        assert len(now) == len(effects), f"law 7: a key is planned twice at once: {[key(one) for one in effects]}"
        for name in answered:
            assert name not in now, f"law 7: {name} was answered and is planned again"
        for name in now:
            assert name not in self.spent, f"law 7: {name} comes back"
        for name, effect in self.planned.items():
            if name not in answered and not interrupted:
                assert now.get(name) == effect, f"law 19: {name} was planned and is not any more"
        for effect in effects:
            if isinstance(effect, CallTool):
                self._in_order(effect)
        self.spent |= self.planned.keys() - now.keys()
        self.planned = now
        return effects

    def _in_order(self, effect: CallTool) -> None:
        """Handoffs come after all other calls of the turn; serial calls, and handoffs, one at a time in call order."""
        turn = effect.seen.turns[-1]
        known = known_tools(self.agents[effect.agent], turn)
        mine = known.get(identity(effect.call))
        for index in turn.open:
            other = known.get(identity(turn.calls[index].call))
            earlier = index < _order(effect.place)[1]
            if mine is not None and mine.handoff:
                assert other is not None, f"order: {key(effect)} overtakes {index}"
                assert other.handoff, f"order: {key(effect)} overtakes {index}"
                assert not earlier, f"order: {key(effect)} overtakes {index}"
            elif earlier and mine is not None and mine.listing.serial and other is not None and not other.handoff:
                assert not other.listing.serial, f"order: {key(effect)} overtakes {index}"


def hidden(run: Run) -> Iterator[object]:
    """What a run has beside what is compared: ids in use and sticky decisions, nested ones too."""
    yield (frozenset().union(*run.ids), run.sticky)
    for turn in run.turns:
        for state in turn.calls:
            if state.child is not None:
                yield from hidden(state.child)


# --- what was reached ----------------------------------------------------------------------------------


def _states(run: Run, depth: int = 0) -> Iterator[tuple[int, Run, Any, int, CallState]]:
    for turn in run.turns:
        for index, state in enumerate(turn.calls):
            yield depth, run, turn, index, state
            if state.child is not None:
                yield from _states(state.child, depth + 1)


def _runs(run: Run) -> Iterator[Run]:
    yield run
    for _, _, _, _, state in _states(run):
        if state.child is not None:
            yield state.child


def features(stage: Stage, log: Iterable[Run]) -> set[str]:
    """What a played world reached, by name (see FEATURES)."""
    found: set[str] = set()
    last: Run | None = None
    for run in log:
        found |= _of_plan(stage, run)
        last = run
    if last is not None:
        for one in _runs(last):
            found |= set(_of_run(one))
        for state in _states(last):
            found |= set(_of_state(stage, *state))
    return found


def _of_plan(stage: Stage, run: Run) -> set[str]:
    found: set[str] = set()
    effects = plan(stage.agents, run)
    if effects and all(isinstance(one, Ask) for one in effects):
        found.add("everything waits for a person")
    for effect in effects:
        if isinstance(effect, Ask):
            turn = effect.seen.turns[-1]
            handoffs = {tool.name for tool in stage.agents[turn.agent].handoffs}
            if effect.tool not in handoffs and any(turn.calls[one].call.name in handoffs for one in turn.open):
                found.add("a handoff waits for a pending approval")
            if effect.tool in handoffs:
                found.add("a gated handoff")
            if effect.path:
                found.add("a question of a nested run")
            if effect.attempt:
                found.add("asked again")
        if isinstance(effect, Prepare):
            found.add("Prepare")
    keys = [key(one) for one in effects if isinstance(one, CallTool)]
    if len(keys) > 1:
        found.add("siblings run side by side")
    if len({len(one.path) for one in effects}) > 1:
        found.add("a nested run beside its uncle")
    return found


_ENDINGS: dict[type, str] = {
    ToolFailed: "a fatal error",
    TurnsExhausted: "turns exhausted",
    InvalidOutput: "output tries used up",
    ModelRefused: "the model refused",
    UnknownAgent: "an unknown agent",
    ModelFailed: "a model error",
    FunctionRaised: "a function of the agent raised",
}


def _of_run(run: Run) -> Iterator[str]:
    for end in run.ends:
        if isinstance(end, Reopened):
            yield "reopened"
        elif isinstance(end.outcome, Failure):
            error = end.outcome.failure()
            if isinstance(error, GuardrailTripped):
                yield "a tool guardrail tripped" if "." in error.place else f"an {error.place} guardrail tripped"
            else:
                yield _ENDINGS.get(type(error), type(error).__name__)
    speakers = [turn.agent for turn in run.turns]
    for first in range(len(speakers)):
        if speakers[first] in speakers[first + 2 :] and len(set(speakers[first:])) > 1:
            yield "a cycle of handoffs"
    for turn in run.turns:
        yield from _of_turn(turn)
    if run.turns and isinstance(run.outcome, Success) and run.turns[-1].calls and run.turns[-1].decided is None:
        yield "a tool's output ends the run"


def _of_turn(turn: Turn) -> Iterator[str]:
    if turn.handoff is not None:
        yield "a handoff"
    if any(output.output == ALREADY_HANDED_OVER for output in turn.outputs):
        yield "several handoffs in a turn"
    if turn.refused is not None:
        yield "a refused output"
    if turn.decided is not None:
        yield "Decided to end" if turn.decided.output is not None else "Decided to go on"
    if turn.replied is not None and turn.replied.outcome is None:
        yield "a guardrail tripped before the model answered"
    if turn.replied is not None and turn.response is not None and any(v.tripped for v in turn.replied.verdicts):
        yield "a guardrail tripped after the model answered"


_ERRORS: dict[type, str] = {
    UnknownTool: "an unknown tool",
    InvalidJson: "bad JSON",
    InvalidArguments: "invalid arguments",
    ToolRaised: "a tool raised",
    ToolTimedOut: "a timeout",
    NestedFailed: "a nested run failed",
    UnrenderableOutput: "an unrenderable output",
}


def _of_state(stage: Stage, depth: int, run: Run, turn: Any, index: int, state: CallState) -> Iterator[str]:
    if depth:
        yield f"nested {depth} deep"
    if state.id != state.call.id:
        yield "an id is made" if not state.call.id else "an id is repeated"
    if sum(isinstance(event, Checked) for event in state.gate) > 1:
        yield "checked again"
    if state.decision is not None and state.decision not in state.gate:
        yield "a sticky approval" if isinstance(state.decision, Approved) else "a sticky rejection"
    elif state.decision is not None:
        yield "an approval" if isinstance(state.decision, Approved) else "a rejection"
    if state.checkup is not None and not state.checkup.needed:
        yield "a predicate that needs nobody"
    if state.extracted is not None:
        yield "extracted"
        if isinstance(state.extracted.outcome, Failure):
            yield "an extractor raised"
    tools = {one.name: one for one in stage.agents[turn.agent].handoffs}
    tools |= {one.name: one for one in stage.agents[turn.agent].tools if isinstance(one, Tool)}
    tool = tools.get(state.call.name)
    if tool is not None and tool.serial and sum(one.call.name == tool.name for one in turn.calls) > 1:
        yield "serial calls"
    match state.answer:
        case Failure(ToolRejected(by="guardrail")):
            yield "a guardrail rejected"
        case Failure(error) if type(error) in _ERRORS:
            yield _ERRORS[type(error)]
        case _:
            pass


#: Everything that worlds must reach, each often.
FEATURES = (
    "everything waits for a person",
    "a handoff waits for a pending approval",
    "a gated handoff",
    "a question of a nested run",
    "asked again",
    "checked again",
    "Prepare",
    "siblings run side by side",
    "a nested run beside its uncle",
    "nested 1 deep",
    "nested 2 deep",
    "nested 3 deep",
    "a handoff",
    "a cycle of handoffs",
    "several handoffs in a turn",
    "serial calls",
    "an approval",
    "a rejection",
    "a sticky approval",
    "a sticky rejection",
    "a predicate that needs nobody",
    "a fatal error",
    "turns exhausted",
    "a refused output",
    "output tries used up",
    "the model refused",
    "an unknown agent",
    "a model error",
    "a function of the agent raised",
    "a tool guardrail tripped",
    "an input guardrail tripped",
    "an output guardrail tripped",
    "a guardrail rejected",
    "a guardrail tripped before the model answered",
    "a guardrail tripped after the model answered",
    "reopened",
    "Decided to end",
    "Decided to go on",
    "a tool's output ends the run",
    "extracted",
    "an extractor raised",
    "an id is made",
    "an id is repeated",
    "an unknown tool",
    "bad JSON",
    "invalid arguments",
    "a tool raised",
    "a timeout",
    "a nested run failed",
    "an unrenderable output",
)

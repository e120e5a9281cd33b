"""What a person sees of a run that goes on: a line for what was said and done, and below them what is under way."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from attrs import define, field
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from fnagents.cli.telling import Line, indented, told
from fnagents.cli.texts import exact, safe
from fnagents.items import Message
from fnagents.models import Delta, ReasoningDelta, Restarted, TextDelta
from fnagents.outcome import Success
from fnagents.protocol import Ask, CallModel, CallTool, Check, Effect, Event, Extract, Replied, key

__all__ = ["Screen"]

#: The longest text of one event, in characters; all of it is in the journal.
_LONGEST = 2_000
#: How many characters of what a model is writing are shown.
_TAIL = 300


@define
class _Doing:
    """An effect under way: at which depth, in words, since when; and what the model has written so far."""

    depth: int
    what: str
    since: float
    written: str = ""
    spinner: Spinner = field(factory=lambda: Spinner("dots"))


@define(eq=False)
class Screen:
    """Where a run is watched, a context manager; on a terminal it also shows what is under way, with what streams in.

    `observe` and `watch` are for `observed` and `performer`.  While `aside` holds, lines wait: somebody is asked.
    """

    console: Console
    quiet: bool = False
    _doing: dict[str, _Doing] = field(factory=dict[str, _Doing])
    _live: Live | None = None
    _held: list[Line] | None = None

    def observe(self, effect: Effect, event: Event | None) -> None:
        """An effect begins, or was answered."""
        name = key(effect)
        if event is None:
            if (what := _doing(effect)) is not None:
                self._doing[name] = _Doing(len(effect.path), what, time.monotonic())
            return
        self._doing.pop(name, None)
        if _is_last_word(event):
            return
        for said in indented(((len(event.path), one) for one in told(event, effect.agent, _tool(effect))), _LONGEST):
            self.say(*said)

    def watch(self, path: tuple[str, ...], turn: int, delta: Delta) -> None:
        """A piece of what a model is writing."""
        doing = self._doing.get("/".join((*path, f"model-{turn}")))
        if doing is None:
            return
        if isinstance(delta, TextDelta | ReasoningDelta):
            doing.written += delta.text
        elif isinstance(delta, Restarted):
            doing.written = ""

    def say(self, style: str, text: str) -> None:
        """A line, now or when nobody is asked any more; the text is safe already."""
        if self.quiet:
            return
        if self._held is None:
            self.console.print(Text(text, style), soft_wrap=True)
        else:
            self._held.append((style, text))

    @contextmanager
    def aside(self) -> Generator[Console, None, None]:
        """The console for a question, with nothing else on it."""
        self._stop()
        held = self._held = []
        try:
            yield self.console
        finally:
            self._held = None
            for style, text in held:
                self.say(style, text)
            self._start()

    def _start(self) -> None:
        if self.console.is_terminal and not self.quiet:
            self._live = Live(get_renderable=self.under_way, console=self.console, transient=True, refresh_per_second=8)
            self._live.start()

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def under_way(self) -> Group:
        """What is shown of the effects that were not answered yet."""
        now = time.monotonic()
        return Group(*(one for doing in list(self._doing.values()) for one in _shown(doing, now)))

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()


def _shown(doing: _Doing, now: float) -> Iterator[Spinner | Text]:
    margin = "  " * doing.depth
    doing.spinner.update(text=Text(f"{margin}{doing.what} ({now - doing.since:.0f} s)", "dim"))
    yield doing.spinner
    if doing.written:
        yield Text(f"{margin}  {safe(doing.written[-_TAIL:])}")


def _doing(effect: Effect) -> str | None:
    """An effect that may take long, in words."""
    match effect:
        case CallModel():
            return f"{exact(effect.agent)} thinks"
        case CallTool():
            return f"{exact(effect.call.name)} runs"
        case _:
            return None


def _tool(effect: Effect) -> str:
    if isinstance(effect, Check | Ask | CallTool):
        return effect.call.name
    if isinstance(effect, Extract):
        return effect.seen.turns[-1].calls[int(effect.place.partition(".")[2])].call.name
    return ""


def _is_last_word(event: Event) -> bool:
    """Whether the event is an answer of the root run that calls nothing: the result itself will be printed."""
    if not isinstance(event, Replied) or event.path or not isinstance(event.outcome, Success):
        return False
    return all(isinstance(item, Message) for item in event.outcome.unwrap().items)

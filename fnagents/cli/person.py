"""Asking somebody at the terminal whether a call may run."""

from __future__ import annotations

import asyncio
import os
import termios
from typing import Literal, TypeAlias, assert_never

from attrs import define, field
from rich.text import Text

from fnagents.cli.screen import Screen
from fnagents.cli.texts import exact
from fnagents.perform import Perform
from fnagents.protocol import Approved, Ask, Declined, Effect, Event, key

__all__ = ["Person", "meant"]

#: What was answered: yes, no, always, or a reason against it; None for nothing that can be understood.
Meant: TypeAlias = Literal["yes", "no", "always"] | tuple[str] | None

_HOW = "y = yes, n = no, a = always this tool, or a reason against it: "


def meant(said: str) -> Meant:
    """What an answer means.  One letter that says nothing is a slip of the finger, and no reason.

    >>> meant("Y"), meant("always"), meant("u"), meant("too much")
    ('yes', 'always', None, ('too much',))
    """
    said = said.strip()
    match said.lower():
        case "y" | "yes":
            return "yes"
        case "n" | "no":
            return "no"
        case "a" | "always":
            return "always"
        case _:
            return (said,) if len(said) > 1 else None


@define(eq=False)
class Person:
    """Somebody at a terminal (a file descriptor), who is asked one question at a time."""

    screen: Screen
    terminal: int
    _free: asyncio.Lock = field(factory=asyncio.Lock)
    #: questions that wait for their turn, and answers that an "always" has given them meanwhile
    _waiting: dict[str, Ask] = field(factory=dict[str, Ask])
    _answers: dict[str, Approved] = field(factory=dict[str, Approved])

    def answering(self, perform: Perform) -> Perform:
        """As `perform`, with questions put to the person; one that is not answered stays open."""

        async def performing(effect: Effect) -> Event | None:
            return await self.answer(effect) if isinstance(effect, Ask) else await perform(effect)

        return performing

    async def answer(self, ask: Ask) -> Approved | Declined | None:
        """What the person says; "always" answers the questions of the same tool that wait, as `approve` does."""
        name = key(ask)
        self._waiting[name] = ask
        async with self._free:
            del self._waiting[name]
            return self._answers.pop(name, None) or self._decided(ask, await self._asked(ask))

    def _decided(self, ask: Ask, said: Meant) -> Approved | Declined | None:
        digest = ask.checkup.digest
        match said:
            case None:
                return None
            case "yes":
                return Approved(ask.place, digest, path=ask.path)
            case "always":
                for name, other in self._waiting.items():
                    if _tool(other) == _tool(ask):
                        self._answers[name] = Approved(other.place, other.checkup.digest, path=other.path)
                return Approved(ask.place, digest, always=True, path=ask.path)
            case "no":
                return Declined(ask.place, digest, path=ask.path)
            case (reason,):
                return Declined(ask.place, digest, reason, path=ask.path)
            case _:
                assert_never(said)

    async def _asked(self, ask: Ask) -> Meant:
        """What was answered; None where nobody answers."""
        where = f" (in {'/'.join(ask.path)})" if ask.path else ""
        with self.screen.aside() as console:
            # What was typed before the question is no answer to it.
            termios.tcflush(self.terminal, termios.TCIFLUSH)
            console.print(
                Text(f"{exact(ask.agent)} asks to call {exact(ask.tool)}{where} with", "bold yellow"), soft_wrap=True
            )
            console.print(Text(f"  {exact(ask.arguments)}"), soft_wrap=True)
            while True:
                console.print(Text(_HOW, "yellow"), end="", soft_wrap=True)
                said = await _line(self.terminal)
                if said is None:
                    console.print(Text("\nleft open", "yellow"))
                    return None
                if (found := meant(said)) is not None:
                    return found


def _tool(ask: Ask) -> tuple[object, ...]:
    return (ask.path, ask.agent, ask.call.namespace, ask.call.name, ask.checkup.definition)


async def _line(terminal: int) -> str | None:
    """The next line; None at the end of input, or when the terminal is gone.  Unlike a thread, it can be cancelled."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(terminal, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(terminal)
    return os.read(terminal, 65_536).decode(errors="replace") or None

"""The command line on a real pseudo-terminal: questions, answers, progress, and an interrupt."""

import asyncio
import os
import pty
import re
import threading
import time
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from background import serving
from cli_agents import HOSTILE, banker, nested, paying
from helpers import call, made
from model_server import completed, message, stream
from model_server import events as as_stream
from rich.console import Console
from terminal import heard, on_terminal

from fnagents import (
    Agent,
    Approved,
    ArgumentsDelta,
    Declined,
    Delegate,
    Emit,
    Message,
    ModelError,
    ModelRequest,
    ModelResponse,
    Outcome,
    ReasoningDelta,
    Restarted,
    Run,
    Success,
    TextDelta,
    agents,
    drive,
    events,
    load_run,
    performer,
    start,
)
from fnagents.cli.main import main
from fnagents.cli.person import Person
from fnagents.cli.screen import Screen
from fnagents.testing import scripted
from fnagents.wrap import observed

QUESTION = "or a reason against it: "
RUN = ["run", "cli_agents:banker", "hi", "-o", "run.jsonl", "--client"]


def decisions(folder: Path) -> list[Any]:
    """What was decided in the journal of this folder."""
    run = load_run((folder / "run.jsonl").read_bytes()).unwrap()
    return [one for one in events(run) if isinstance(one, Approved | Declined)]


def plain(shown: str) -> str:
    """What was shown, without what steers the terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).replace("\r", "")


# --- as a process ----------------------------------------------------------------------------------------


def test_a_person_approves(tmp_path: Path) -> None:
    """The question shows the agent, the tool and the validated arguments; the run goes on at once."""
    code, shown = on_terminal(tmp_path, [*RUN, "cli_agents:pays"], [(QUESTION, b"y\n")])
    assert code == 0
    told = plain(shown)
    assert 'banker asks to call pay with\n  {"amount":3,"to":"ann"}\n' in told
    assert "pay is approved" in told
    assert told.endswith("all done\n")
    assert [(type(one), one.always) for one in decisions(tmp_path)] == [(Approved, False)]


def test_a_person_declines_with_a_reason(tmp_path: Path) -> None:
    """A single letter that says nothing is asked again; the model reads the reason."""
    answers = [(QUESTION, b"u\n"), (QUESTION, "zu teuer für uns\n".encode())]
    code, shown = on_terminal(tmp_path, [*RUN, "cli_agents:pays"], answers)
    assert code == 0
    assert "pay is declined: zu teuer für uns" in plain(shown)
    assert [one.reason for one in decisions(tmp_path)] == ["zu teuer für uns"]


def test_always_answers_later_turns(tmp_path: Path) -> None:
    """The person is asked once."""
    code, shown = on_terminal(tmp_path, [*RUN, "cli_agents:pays_twice"], [(QUESTION, b"a\n")])
    assert (code, shown.count(QUESTION)) == (0, 1)
    assert [one.always for one in decisions(tmp_path)] == [True]
    assert "5 paid to ann" in plain(shown)


def test_the_end_of_input_leaves_a_question_open(tmp_path: Path) -> None:
    """Ctrl-D pauses the run, which can be gone on with."""
    code, shown = on_terminal(tmp_path, [*RUN, "cli_agents:pays"], [(QUESTION, b"\x04")])
    assert code == 3
    assert "left open" in plain(shown)
    more = ["run", "cli_agents:banker", "--resume", "run.jsonl", "--client", "cli_agents:done"]
    code, shown = on_terminal(tmp_path, more, [(QUESTION, b"n\n")])
    assert code == 0
    assert "pay is declined" in plain(shown)


def test_ctrl_c_at_a_question(tmp_path: Path) -> None:
    """It ends the command, not the run."""
    with heard():
        code, shown = on_terminal(tmp_path, [*RUN, "cli_agents:pays"], [(QUESTION, b"\x03")])
    assert code == 130
    assert plain(shown).endswith("interrupted; go on with: fnagents run cli_agents:banker --resume run.jsonl\n")
    assert load_run((tmp_path / "run.jsonl").read_bytes()).unwrap().outcome is None


def test_what_was_typed_before_the_question_is_no_answer(tmp_path: Path) -> None:
    """A key that was pressed too early approves nothing."""
    words = [*RUN, "cli_agents:pays_slowly"]
    code, _ = on_terminal(tmp_path, words, [("thinks", b"y\n"), (QUESTION, b"n\n")])
    assert code == 0
    assert [type(one) for one in decisions(tmp_path)] == [Declined]


def test_words_are_shown_as_they_stream_in(tmp_path: Path) -> None:
    """Those that no longer count go away; nothing in them steers the terminal."""
    code, shown = on_terminal(tmp_path, [*RUN, "cli_agents:streaming"], [])
    assert code == 0
    assert "banker thinks" in shown
    assert "wrong words" in shown
    assert "right words \\x1b]0;owned\\x07\\x1b[2J\\u202ered" in shown
    assert HOSTILE not in shown
    assert plain(shown).endswith("right words\n")


def test_the_default_client_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the API is asked for a stream."""
    with serving([stream(as_stream(completed(message("hello"))))]) as server:
        monkeypatch.setattr("terminal.environment", _with(server.url))
        code, shown = on_terminal(tmp_path, ["run", "cli_agents:banker", "hi"], [])
        assert (code, server.requests[0].json["stream"]) == (0, True)
    assert plain(shown).endswith("hello\n")


def _with(url: str) -> Callable[[], dict[str, str]]:
    from terminal import environment

    return lambda: environment(OPENAI_API_KEY="k", OPENAI_BASE_URL=url)


# --- inside of this process ------------------------------------------------------------------------------


@pytest.fixture(name="ends")
def ends_fixture() -> Iterator[tuple[int, int]]:
    """A pseudo-terminal: where a person types, and where the program reads."""
    main_end, end = pty.openpty()
    yield main_end, end
    for one in (main_end, end):
        try:
            os.close(one)
        except OSError:
            assert one == main_end


def screen(**options: Any) -> Screen:
    return Screen(Console(file=StringIO(), **options))


def shown(given: Screen) -> str:
    file = given.console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what nobody tells."""
    while not holds():  # noqa: ASYNC110  # a text that is printed sets no event
        await asyncio.sleep(0.01)


async def typed(given: Screen, end: int, *answers: bytes) -> None:
    """A person who answers each question when it is there."""
    for answer in answers:
        before = len(shown(given))
        await until(lambda: QUESTION in shown(given)[before:])  # noqa: B023  # it is called here only
        os.write(end, answer)


async def asked(
    given: Screen, ends: tuple[int, int], agent: Agent[Any, Any], replies: list[Any], *answers: bytes
) -> Run:
    """A run whose questions are answered by a person."""
    everyone = agents(agent)
    perform = Person(given, ends[1]).answering(performer(everyone, scripted(*replies), watch=given.watch))
    person = asyncio.create_task(typed(given, ends[0], *answers))
    with given:
        run = await drive(everyone, start(agent, "hi"), observed(perform, given.observe))
    await person
    return run


def decided(run: Run) -> list[tuple[str, str, bool, str]]:
    found = [one for one in events(run) if isinstance(one, Approved | Declined)]
    return [(type(one).__name__, one.place, one.always, getattr(one, "reason", "")) for one in found]


def test_questions_come_one_at_a_time(ends: tuple[int, int]) -> None:
    """Each answer is for its own call."""
    given = screen()
    replies = [paying(3, 4, 5), "done"]
    run = asyncio.run(asked(given, ends, banker, replies, b"?\n", b"yes\n", b"no\n", b"too much\n"))
    assert decided(run) == [
        ("Approved", "0.0", False, ""),
        ("Declined", "0.1", False, ""),
        ("Declined", "0.2", False, "too much"),
    ]


def test_always_answers_what_waits_for_its_turn(ends: tuple[int, int]) -> None:
    """The other calls of the same tool, and no call of another one."""
    other = made("other", lambda context, text: "x", needs_approval=True)
    agent = Agent("banker", tools=[*banker.tools, other])
    replies = [[*paying(3, 4), call("other", "o")], "done"]
    run = asyncio.run(asked(screen(), ends, agent, replies, b"always\n", b"n\n"))
    assert decided(run) == [
        ("Approved", "0.0", True, ""),
        ("Approved", "0.1", False, ""),
        ("Declined", "0.2", False, ""),
    ]


def test_a_question_of_a_nested_run_says_where_it_is(ends: tuple[int, int]) -> None:
    """By the places that lead there."""
    given = screen()
    run = asyncio.run(asked(given, ends, nested, [call("ask"), paying(3), "inner", "outer"], b"y\n"))
    assert run.outcome == Success("outer")
    assert "banker asks to call pay (in 0.0) with" in shown(given)


def test_lines_wait_while_somebody_is_asked(ends: tuple[int, int]) -> None:
    """What other calls do meanwhile is told after the answer."""

    async def soon(context: Any, text: str) -> str:
        await asyncio.sleep(0.05)
        return "soon done"

    given = screen()

    async def late() -> Run:
        agent = Agent("banker", tools=[*banker.tools, made("soon", soon)])
        run = asyncio.create_task(asked(given, ends, agent, [[*paying(3), call("soon", "s")], "done"]))
        await until(lambda: QUESTION in shown(given))
        await asyncio.sleep(0.2)
        assert "soon done" not in shown(given)
        os.write(ends[0], b"y\n")
        return await run

    assert asyncio.run(late()).outcome == Success("done")
    assert shown(given).index(QUESTION) < shown(given).index("soon gives soon done")


def test_a_terminal_that_goes_away_answers_nothing(ends: tuple[int, int]) -> None:
    """The question stays open."""
    given = screen()

    async def leaving() -> Run:
        run = asyncio.create_task(asked(given, ends, banker, [paying(3)]))
        await until(lambda: QUESTION in shown(given))
        os.close(ends[0])
        return await run

    run = asyncio.run(leaving())
    assert (run.outcome, decided(run)) == (None, [])
    assert "left open" in shown(given)


def test_a_terminal_shows_what_is_under_way(ends: tuple[int, int]) -> None:
    """Agents that think and tools that run, each at its depth, with what streams in; all of it is gone in the end."""
    given = screen(force_terminal=True, width=100)

    async def slow(context: Any, text: str) -> str:
        await asyncio.sleep(0.3)
        return "slept"

    inner = Agent("inner", tools=[made("sleep", slow)])
    delegate = Delegate("inner", "sleep!", extract=True)
    ask = made("ask", lambda context, text: delegate, agents=(inner,), extract=lambda context, run: "extracted")
    outer = Agent("outer", tools=[ask])
    replies = [call("ask"), call("sleep"), "inner done", "outer done"]
    run = asyncio.run(asked(given, ends, outer, replies))
    assert run.outcome == Success("outer done")
    assert "  sleep runs (0 s)" in plain(shown(given))
    assert "ask gives extracted" in plain(shown(given))
    assert "\x1b[?25h" in shown(given)


def test_deltas_are_gathered() -> None:
    """Text and reasoning; what no longer counts is forgotten, and what belongs to nothing under way is nothing."""
    given = screen()
    everyone = agents(banker)
    seen: list[str] = []

    async def client(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        for delta in (TextDelta("wrong"), Restarted(), ReasoningDelta("hm "), ArgumentsDelta("{"), TextDelta("right")):
            emit(delta)
            seen.append(rendered(given).split(" s)\n")[1].strip())
        return Success(ModelResponse((Message("assistant", "right"),)))

    given.watch((), 7, TextDelta("nobody"))
    perform = observed(performer(everyone, client, watch=given.watch), given.observe)
    asyncio.run(drive(everyone, start(banker, "hi"), perform))
    assert seen == ["wrong", "", "hm", "hm", "hm right"]
    assert rendered(given) == ""


def rendered(given: Screen) -> str:
    """What a terminal shows of it at this moment."""
    console = Console(file=StringIO(), width=100)
    console.print(given.under_way(), end="")
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_quiet_screen_says_nothing() -> None:
    """As for machines; a terminal shows nothing under way either."""
    given = Screen(Console(file=StringIO(), force_terminal=True), quiet=True)
    with given:
        given.say("", "x")
    assert shown(given) == ""


def test_a_terminal_is_asked_where_there_is_one(
    ends: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The standard input, if it is one: what the command finds is used."""
    monkeypatch.chdir(tmp_path)
    err = StringIO()

    def person() -> None:
        while QUESTION not in err.getvalue():
            time.sleep(0.01)
        os.write(ends[0], b"y\n")

    with os.fdopen(os.dup(ends[1])) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stderr", err)
        thread = threading.Thread(target=person)
        thread.start()
        assert main([*RUN, "cli_agents:pays"]) == 0
        thread.join()
    assert "pay is approved" in err.getvalue()
    assert capsys.readouterr().out == "all done\n"

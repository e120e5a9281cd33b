"""The command `run`: its options, its journal, who answers, and what is left when it ends."""

import asyncio
import errno
import json
import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from background import serving
from cli_agents import HOSTILE, banker, pair, paying
from model_server import completed, message, whole
from terminal import COMMAND, command, environment, heard

from fnagents import Agent, ModelFailed, Run, ServerFailed, Success, TurnsExhausted, dump_run, load_run, run_sync
from fnagents.cli.main import main
from fnagents.testing import scripted

ASKED = 'banker asks to call pay with {"amount":3,"to":"ann"}'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a folder of its own, and a key of nobody."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_DEFAULT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*words: str, agent: str = "banker", client: str = "done") -> int:
    return main(["run", f"cli_agents:{agent}", "--client", f"cli_agents:{client}", *words])


def held(name: str = "run.jsonl") -> Run:
    """The run in a journal of this folder."""
    return load_run(Path(name).read_bytes()).unwrap()


# --- a run from its input to its end ---------------------------------------------------------------------


def test_the_output_goes_to_stdout_and_the_rest_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """So that a pipe gets the answer alone; what tools print is no part of it, and nothing steers the terminal."""
    assert run("hi", client="hostile") == 0
    shown = capsys.readouterr()
    safe = "\\x1b]0;owned\\x07\\x1b[2J\\u202ered"
    assert shown.out == f"{safe}\n"
    lines = shown.err.splitlines()
    assert lines[0].startswith('banker calls look {"where": "here"}')
    assert f"look gives {safe} in here" in lines
    assert f"fail: The tool failed: ValueError: {safe}" in lines
    assert any(
        one.startswith(f"tool fail raised at call 0.1: ValueError: {safe} (cli_agents.py, line ") for one in lines
    )
    assert lines[-1] == "2 requests, 0 input tokens, 0 output tokens"
    assert "\x1b" not in shown.err


def test_machines_get_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """With nothing beside it but what tools and the log say, on stderr."""
    assert run("hi", "--json", "-o", "run.jsonl", client="hostile") == 0
    shown = capsys.readouterr()
    assert shown.out.isascii()
    data = json.loads(shown.out)
    assert (data["state"], data["output"], data["file"], len(data["turns"])) == ("finished", HOSTILE, "run.jsonl", 2)
    assert "gives" not in shown.err


def test_the_journal_has_the_whole_run(capsys: pytest.CaptureFixture[str]) -> None:
    """What is in it is what happened."""
    assert run("hi", "-o", "run.jsonl") == 0
    assert held().outcome == Success("all done")
    assert held() == run_sync(banker, "hi", client=scripted("all done"))
    assert capsys.readouterr().out == "all done\n"


def test_a_failed_run_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    """One line says why."""
    assert run("hi", client="down") == 1
    told = "the run failed: The model's server failed (500): down"
    assert capsys.readouterr().err.splitlines()[-1] == f"fnagents: {told}"
    assert run("hi", "--json", client="down") == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "ModelFailed"


def test_the_number_of_turns_is_limited(capsys: pytest.CaptureFixture[str]) -> None:
    """By the option, else by the library's own limit."""
    assert run("hi", "--max-turns", "0", "-o", "run.jsonl") == 1
    assert held().outcome is not None
    assert held().outcome.failure() == TurnsExhausted(0)
    assert run("hi", "--max-turns", "1") == 0
    assert run("hi", "-o", "other.jsonl") == 0
    assert held("other.jsonl").max_turns == 10
    capsys.readouterr()


def test_agents_by_name_and_functions_that_give_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The first of several begins."""
    assert run("hi", agent="factory") == run("hi", agent="pair") == 0
    assert next(iter(pair)) == "banker"
    capsys.readouterr()


def test_nested_runs_are_indented(capsys: pytest.CaptureFixture[str]) -> None:
    """Each level by two spaces."""
    assert run("hi", "--yes", agent="nested", client="pays_nested") == 0
    lines = capsys.readouterr().err.splitlines()
    assert "boss calls ask {}" in lines
    assert "ask asks banker" in lines
    assert "  pay is approved" in lines
    assert "  pay gives 3 paid to ann" in lines
    assert "  banker: inner done" in lines


@pytest.mark.parametrize("context", ["Shop", "shop"])
def test_tools_are_given_a_context(context: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An object, or the class or function that makes it."""
    assert run("hi", "--context", f"cli_agents:{context}", agent="keeper", client="asks_name") == 0
    assert "shop_name gives Nuts & Co" in capsys.readouterr().err


def test_a_client_is_closed(capsys: pytest.CaptureFixture[str]) -> None:
    """When the run has ended, and its loop has not."""
    from cli_agents import closing

    assert run("hi", client="closing") == 0
    assert capsys.readouterr().out == "closed: False\n"
    assert closing.closed


# --- who answers -----------------------------------------------------------------------------------------


def test_without_anybody_to_ask_the_run_is_paused(capsys: pytest.CaptureFixture[str]) -> None:
    """It exits with 3, says what waits, and how to go on."""
    assert run("hi", "-o", "run.jsonl", client="pays") == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2] == f"waiting: {ASKED}"
    how = "go on with: fnagents run cli_agents:banker --resume run.jsonl"
    assert lines[-1] == f"fnagents: paused: a question waits for an answer; {how}"
    assert held().outcome is None
    assert run("hi", "--json", client="pays_both") == 3
    shown = capsys.readouterr()
    assert json.loads(shown.out)["state"] == "paused"
    how = "nothing was saved (-o FILE keeps a journal)"
    assert shown.err == f"fnagents: paused: 2 questions wait for an answer; {how}\n"


def test_yes_and_no_answer_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """One or the other."""
    assert run("hi", "--yes", client="pays_both") == 0
    assert capsys.readouterr().err.count("pay is approved") == 2
    assert run("hi", "--no", client="pays") == 0
    shown = capsys.readouterr().err
    assert "pay is declined" in shown
    assert "gives" not in shown
    assert run("hi", "--no", "--yes", client="pays") == 2
    capsys.readouterr()


# --- going on --------------------------------------------------------------------------------------------


def test_a_paused_run_goes_on_in_its_journal(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that is recorded is done again."""
    assert run("hi", "-o", "run.jsonl", client="pays") == 3
    assert run("--resume", "run.jsonl", "--yes") == 0
    assert held().outcome == Success("all done")
    assert len(held().turns) == 2
    assert run("--resume", "run.jsonl") == 0
    assert capsys.readouterr().out == "all done\nall done\n"


def test_a_saved_run_goes_on_in_a_new_journal(capsys: pytest.CaptureFixture[str]) -> None:
    """The file that it came from stays as it is."""
    paused = run_sync(banker, "hi", client=scripted(paying(3)))
    Path("run.json").write_text(dump_run(paused))
    assert run("--resume", "run.json", "-o", "run.jsonl", "--yes") == 0
    assert (load_run(Path("run.json").read_text()), held().outcome) == (Success(paused), Success("all done"))
    assert run("--resume", "run.json", "--yes") == 2
    told = "fnagents: run.json: not a file of fnagents: it is a saved run, not a journal"
    assert capsys.readouterr().err.splitlines()[-1] == told


def test_a_failed_run_is_reopened(capsys: pytest.CaptureFixture[str]) -> None:
    """It goes on where it was, with another limit of turns if one is given."""
    assert run("hi", "-o", "run.jsonl", client="down") == 1
    assert held().outcome is not None
    assert held().outcome.failure() == ModelFailed(ServerFailed("down"))
    assert run("--resume", "run.jsonl") == 0
    assert run("hi", "-o", "other.jsonl", "--max-turns", "0") == 1
    assert run("--resume", "other.jsonl") == 1
    assert run("--resume", "other.jsonl", "--max-turns", "1") == 0
    assert held("other.jsonl").outcome == Success("all done")
    capsys.readouterr()


@pytest.mark.parametrize(("how", "read"), [("rerun", "3 paid to ann"), ("answer", "was interrupted")])
def test_calls_that_were_under_way(how: str, read: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are run again, or the model is told, so that nothing is done twice."""
    assert run("hi", "-o", "run.jsonl", "--yes", client="pays") == 0
    lines = Path("run.jsonl").read_text().splitlines(keepends=True)
    cut = next(index for index, one in enumerate(lines) if '"$type":"Returned"' in one)
    Path("run.jsonl").write_text("".join(lines[:cut]))
    assert run("--resume", "run.jsonl", "--interrupted", how) == 0
    (output,) = held().turns[0].outputs
    assert read in output.text
    capsys.readouterr()


def test_a_run_of_another_agent_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is written."""
    Path("run.json").write_text(dump_run(run_sync(Agent("somebody"), "hi", client=scripted("x"))))
    assert run("--resume", "run.json", "-o", "run.jsonl") == 2
    told = "fnagents: the run is of an agent 'somebody', who is not among cli_agents:banker\n"
    assert capsys.readouterr().err == told
    assert not Path("run.jsonl").exists()
    assert run("hi", "-o", "run.jsonl", agent="named") == 0
    before = Path("run.jsonl").read_bytes()
    assert run("--resume", "run.jsonl") == 2
    assert Path("run.jsonl").read_bytes() == before
    capsys.readouterr()


def test_a_journal_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there is another run's."""
    Path("run.jsonl").write_text("notes")
    assert run("hi", "-o", "run.jsonl") == 2
    told = "fnagents: run.jsonl is there already: go on with it by --resume, or name another file\n"
    assert (capsys.readouterr().err, Path("run.jsonl").read_text()) == (told, "notes")
    assert run("hi", "-o", "no/such/folder.jsonl") == 2
    assert capsys.readouterr().err == "fnagents: no/such/folder.jsonl: No such file or directory\n"


# --- the model -------------------------------------------------------------------------------------------


def test_without_a_key_or_a_client_there_is_nobody_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and no journal is left."""
    assert main(["run", "cli_agents:banker", "hi", "-o", "run.jsonl"]) == 2
    told = "there is no OPENAI_API_KEY in the environment; set it, or give --client MODULE:NAME"
    assert capsys.readouterr().err == f"fnagents: {told}\n"
    assert not Path("run.jsonl").exists()


def test_the_default_client_asks_the_api(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the key of the environment; `--model` is for agents that name none."""
    with serving([whole(completed(message("hello")))]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "a key for tests")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert main(["run", "cli_agents:banker", "hi", "--model", "m-1", "-o", "run.jsonl"]) == 0
        assert capsys.readouterr().out == "hello\n"
        assert (server.requests[0].json["model"], server.requests[0].json.get("stream")) == ("m-1", None)
    assert main(["replay", "cli_agents:banker", "run.jsonl"]) == 0
    assert "a key for tests" not in Path("run.jsonl").read_text()
    monkeypatch.setenv("OPENAI_BASE_URL", "ftp://nowhere")
    assert main(["run", "cli_agents:banker", "hi"]) == 2
    assert "base_url must be http" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cli_agents:named", "hi", "--model", "m"], "--model is for agents that name no model: named names its own"),
        (
            ["cli_agents:banker", "hi", "--model", "m", "--client", "cli_agents:done"],
            "--model is for the default client: give it or --client",
        ),
        (
            ["cli_agents:banker", "hi", "--client", "cli_agents:number"],
            "cli_agents:number is not a model client: a function of a request and `emit`, but of type int",
        ),
        (
            ["cli_agents:banker", "hi", "--client", "cli_agents:factory"],
            "cli_agents:factory is not a model client: a function of a request and `emit`, but of type Agent",
        ),
        (["cli_agents:banker", "hi", "--client", "cli_agents:none"], "the module cli_agents has no none"),
        (
            ["cli_agents:banker", "hi", "--client", "cli_agents:done", "--context", "cli_agents:none"],
            "the module cli_agents has no none",
        ),
        (["cli_agents:none", "hi"], "the module cli_agents has no none"),
        (["cli_agents:banker", "hi", "ho"], "unrecognized arguments: ho (see fnagents --help)"),
        (["cli_agents:banker", "hi", "--", "--ho"], "unrecognized arguments: --ho (see fnagents --help)"),
        (["cli_agents:banker", "--nope"], "unrecognized arguments: --nope (see fnagents --help)"),
        (["cli_agents:banker"], "give an input for a new run, or --resume FILE to go on with one"),
        (
            ["cli_agents:banker", "hi", "--resume", "x"],
            "give an input for a new run, or --resume FILE to go on with one",
        ),
        (
            ["cli_agents:banker", "hi", "--max-turns", "-1"],
            "argument --max-turns: '-1' is no count of turns (see fnagents run --help)",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is begun."""
    assert main(["run", *words]) == 2
    assert capsys.readouterr() == ("", f"fnagents: {told}\n")


def test_a_client_that_raises_ends_the_run_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """The line says where it was raised; what was recorded is kept."""
    assert run("hi", "-o", "run.jsonl", client="raises") == 1
    told = "fnagents: the run cannot go on: IndexError: list index out of range (cli_agents.py, line "
    assert capsys.readouterr().err.splitlines()[-1].startswith(told)
    assert run("hi", "--json", client="raises") == 1
    assert json.loads(capsys.readouterr().out)["file"] is None
    assert run("--resume", "run.jsonl") == 0
    capsys.readouterr()


def test_a_full_disk_ends_the_run_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that cannot be recorded does not go on."""

    def full(self: Any, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert run("hi", "-o", "run.jsonl", client="down") == 1
    monkeypatch.setattr("fnagents.linefiles.LineFile.write", full)
    assert run("--resume", "run.jsonl") == 1
    assert "the run cannot go on: OSError: [Errno 28] No space left" in capsys.readouterr().err.splitlines()[-1]


# --- interrupted -----------------------------------------------------------------------------------------


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, its streams in pipes."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *words], cwd=folder, env=environment(), text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_leaves_a_journal_to_go_on_with(as_json: bool, folder: Path) -> None:
    """Exit code 130, one line, and everything that had happened in the file."""
    words = ["run", "cli_agents:banker", "hi", "--client", "cli_agents:waits", "-o", "run.jsonl"]
    with heard(), started(folder, *words, *(["--json"] if as_json else [])) as process:
        assert process.stderr is not None
        while "waiting" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    told = "interrupted; go on with: fnagents run cli_agents:banker --resume run.jsonl"
    assert err == f"fnagents: {told}\n"
    assert json.loads(out) == {"error": told, "file": "run.jsonl"} if as_json else out == ""
    assert [state.is_open for state in held().turns[0].calls] == [True]
    again = command(folder, "run", "cli_agents:banker", "--resume", "run.jsonl", "--interrupted", "answer",
                    "--client", "cli_agents:done")  # fmt: skip
    assert (again.returncode, again.stdout) == (0, "all done\n")


def test_an_interrupt_outside_of_a_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A module that takes long to import, for example."""
    Path("slow_module.py").write_text("raise KeyboardInterrupt\n")
    monkeypatch.syspath_prepend(Path.cwd())
    assert main(["schema", "slow_module:x"]) == 130
    assert capsys.readouterr() == ("", "fnagents: interrupted\n")


def test_an_interrupt_in_a_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal ends the loop as Python does it, and the journal is closed."""

    def interrupting(request: Any, emit: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return asyncio.sleep(60)

    monkeypatch.setattr("cli_agents.streaming", interrupting)
    with heard():
        assert run("hi", "-o", "run.jsonl", client="streaming") == 130
    assert "interrupted; go on with" in capsys.readouterr().err
    assert run("--resume", "run.jsonl") == 0
    capsys.readouterr()


# --- the log ---------------------------------------------------------------------------------------------


def test_the_log_is_shown_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning without an exception as well; afterwards everything is as it was."""
    before = logging.getLogger("fnagents").handlers[:]
    Path("logs.py").write_text(
        "import logging\nfrom fnagents import Agent\n"
        "logging.getLogger('fnagents.x').warning('be\\x1bware')\nagent = Agent('a')\n"
    )
    assert main(["run", "logs:agent", "hi", "--client", "cli_agents:done"]) == 0
    assert "be\\x1bware" in capsys.readouterr().err
    assert logging.getLogger("fnagents").handlers == before

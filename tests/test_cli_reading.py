"""The commands that read files and modules: what they print, what machines get, and how they exit."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_agents import HOSTILE, banker, nested, pair, paying
from helpers import call, replied

from fnagents import (
    Agent,
    Approved,
    Checked,
    Decided,
    Declined,
    Failure,
    File,
    FunctionRaised,
    Handoff,
    InvalidJson,
    Message,
    ModelFailed,
    Opaque,
    Output,
    Prepared,
    Reasoning,
    Refusal,
    Refused,
    Reopened,
    Replied,
    Returned,
    Run,
    ServerFailed,
    Success,
    ToolOutput,
    ToolRaised,
    Usage,
    dump_run,
    replay,
    run_sync,
    start,
)
from fnagents.cli.main import main
from fnagents.cli.telling import costs, told
from fnagents.protocol import Finished
from fnagents.testing import scripted


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a folder of its own, and a key of nobody."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path


def saved(run: Run, name: str = "run.json") -> str:
    """The run in a file of this folder."""
    Path(name).write_text(dump_run(run), encoding="utf-8")
    return name


def ended(*replies: Any, agent: Agent[Any, Any] = banker, **options: Any) -> Run:
    return run_sync(agent, "hi", client=scripted(*replies), **options)


def machine(capsys: pytest.CaptureFixture[str]) -> Any:
    """The one JSON document on stdout, which is ASCII."""
    out = capsys.readouterr().out
    assert out.isascii()
    return json.loads(out)


# --- show ----------------------------------------------------------------------------------------------


def test_show_tells_the_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    """From the input to the output, with what it cost."""
    run = ended(call("look", where="here"), "all done", id="r1")
    capsys.readouterr()
    assert main(["show", saved(run)]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.splitlines() == [
        "run r1 of banker: finished",
        "",
        "user: hi",
        'banker calls look {"where": "here"}',
        "look gives \\x1b]0;owned\\x07\\x1b[2J\\u202ered in here",
        "banker: all done",
        "",
        "turn 0: banker, 1 call; 1 request, 0 input tokens, 0 output tokens",
        "turn 1: banker, 0 calls; 1 request, 0 input tokens, 0 output tokens",
        "in all: 2 requests, 0 input tokens, 0 output tokens",
        "output: all done",
    ]


def test_show_indents_what_is_nested_and_names_what_waits(capsys: pytest.CaptureFixture[str]) -> None:
    """Two spaces a level; the question says where it is."""
    run = ended(call("ask"), paying(3), agent=nested)
    assert main(["show", saved(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "run without an id of boss: paused"
    assert "ask asks banker" in lines
    assert '  banker calls pay {"amount": 3, "to": "ann"}' in lines
    assert lines[-1] == 'waiting: banker asks to call pay with {"amount":3,"to":"ann"} (in 0.0)'


def test_show_tells_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """The file was read well, so the exit code is 0."""
    assert main(["show", saved(ended(ServerFailed("down")))]) == 0
    assert capsys.readouterr().out.endswith("failed: The model's server failed (500): down\n")


def test_show_tells_an_unfinished_run(capsys: pytest.CaptureFixture[str]) -> None:
    """One that was cut off has neither an outcome nor a question."""
    assert main(["show", saved(start("banker", "hi"))]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "run without an id of banker: unfinished"


def test_show_gives_machines_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """The state, the output or the error, the questions, the costs, the items."""
    assert main(["show", "--json", saved(ended(call("ask"), paying(3), agent=nested))]) == 0
    data = machine(capsys)
    question = {"path": ["0.0"], "place": "0.0", "agent": "banker", "tool": "pay"}
    assert data["questions"] == [{**question, "arguments": '{"amount":3,"to":"ann"}'}]
    assert (data["agent"], data["state"], data["output"], data["error"]) == ("boss", "paused", None, None)
    assert data["usage"]["requests"] == 2
    assert data["turns"][0]["calls"] == 1
    assert data["items"][0] == {"$type": "Message", "role": "user", "content": "hi"}
    assert main(["show", "--json", saved(ended(ServerFailed("down")))]) == 0
    message = "The model's server failed (500): down"
    assert machine(capsys)["error"] == {"kind": "ModelFailed", "message": message}
    assert main(["show", "--json", saved(ended(HOSTILE))]) == 0
    assert machine(capsys)["output"] == HOSTILE


def test_show_reads_journals_and_seals(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command reads both forms of a run, sealed or not."""
    assert main(["run", "cli_agents:banker", "hi", "--client", "cli_agents:done", "-o", "run.jsonl"]) == 0
    assert main(["seal", "run.jsonl", "-o", "sealed.jsonl"]) == 0
    capsys.readouterr()
    assert main(["show", "run.jsonl"]) == 0
    plain = capsys.readouterr().out
    assert main(["show", "sealed.jsonl"]) == 0
    assert capsys.readouterr().out == plain


def test_long_texts_are_shortened_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """What was left out is counted; lines inside of a text keep its depth."""
    run = ended("x" * 30_000)
    assert main(["show", saved(run)]) == 0
    assert "characters more)" in capsys.readouterr().out
    assert main(["show", saved(ended(call("ask"), "one\ntwo", "done", agent=nested))]) == 0
    assert "  banker: one\n    two\n" in capsys.readouterr().out


REPLIED = Replied(0, None)
RAISED = FunctionRaised("instructions", "OSError", "no")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Prepared(0), []),
        (Prepared(0, failure=RAISED), ["The agent's instructions raised OSError: no"]),
        (Decided(0, "x"), []),
        (Decided(0, failure=RAISED), ["The agent's instructions raised OSError: no"]),
        (REPLIED, ["a guardrail tripped before the model had answered"]),
        (replied(0, Message("assistant", (Refusal("no"),))), ["a: no"]),
        (replied(0, Reasoning(("hm", "so"))), ["hm\n\nso"]),
        (replied(0, Reasoning()), []),
        (replied(0, Opaque("web_search_call", "{}")), ["[web_search_call]"]),
        (replied(0, Message("developer", "x")), ["developer: x"]),
        (replied(0, ToolOutput("c", "x")), ["x"]),
        (
            Checked("0.0", Failure(InvalidJson("no"))),
            ["t: The arguments are not a valid JSON object: no. Send one JSON object."],
        ),
        (Checked("0.0", Failure(InvalidJson("no")), feedback="mend it"), ["t: mend it"]),
        (Approved("0.0", "d"), ["t is approved"]),
        (Approved("0.0", "d", always=True), ["t is approved, always"]),
        (Declined("0.0", "d"), ["t is declined"]),
        (Declined("0.0", "d", "too\nmuch"), ["t is declined: too\nmuch"]),
        (Returned("0.0", Success(Output((File(file_id="f"),)))), ["t gives "]),
        (Returned("0.0", Success(Handoff("b"))), ["the conversation goes on with b"]),
        (Returned("0.0", Failure(ToolRaised("OSError"))), ["t: The tool failed: OSError"]),
        (Finished(1, Failure(ModelFailed(ServerFailed("x")))), []),
        (Finished(1, Success("x"), path=("0.0",)), []),
        (Finished(1, Failure(ModelFailed(ServerFailed("x"))), path=("0.0",)), ["The model's server failed (500): x"]),
        (Refused(1, "no x"), ["the output does not fit: no x"]),
        (Reopened(1, None), ["the run was reopened"]),
    ],
)
def test_every_event_says_what_happened(event: Any, said: list[str]) -> None:
    """In lines for people; of what only the machinery cares about, none."""
    assert [text for _, text in told(event, "a", "t")] == said


def test_costs_are_counted_in_words() -> None:
    """Cached and reasoning tokens only where there are some."""
    assert costs(Usage(1, 5, 6)) == "1 request, 5 input tokens, 6 output tokens"
    assert costs(Usage(2, 5, 6, 3, 4)) == "2 requests, 5 input tokens (3 cached), 6 output tokens (4 reasoning)"


# --- replay --------------------------------------------------------------------------------------------


def test_replay_of_an_unchanged_agent(capsys: pytest.CaptureFixture[str]) -> None:
    """It makes the recorded run again, and exits with 0."""
    file = saved(ended(call("look", where="here"), "all done"))
    capsys.readouterr()
    assert main(["replay", "cli_agents:banker", file]) == 0
    assert capsys.readouterr().out == "equal: 2 turns\n"
    assert main(["replay", "--json", "cli_agents:factory", file]) == 0
    assert machine(capsys) == {"equal": True, "divergence": None}
    assert main(["replay", "cli_agents:pair", saved(ended("done"))]) == 0
    assert capsys.readouterr().out == "equal: 1 turn\n"


def test_replay_of_a_changed_agent(capsys: pytest.CaptureFixture[str]) -> None:
    """It exits with 1, and says what differs, where, and how."""
    file = saved(ended("all done"))
    assert main(["replay", "cli_agents:curt", file]) == 1
    shown = capsys.readouterr()
    assert shown.err == "fnagents: run.json: today's agent differs: instructions\n"
    assert shown.out.splitlines() == [
        "cause:    instructions",
        "index:    0",
        "key:      model-0",
        "expected: Pay.",
        "got:      Pay, and say nothing.",
    ]
    assert main(["replay", "cli_agents:curt", file, "--json"]) == 1
    divergence = {"index": 0, "key": "model-0", "path": [], "cause": "instructions"}
    assert machine(capsys) == {
        "equal": False,
        "divergence": {**divergence, "expected": "Pay.", "got": "Pay, and say nothing."},
    }


def test_replay_of_an_agent_that_the_run_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    """It differs, as `replay` says."""
    file = saved(ended("all done", agent=Agent("somebody")))
    assert isinstance(replay(pair, ended("all done", agent=Agent("somebody"))), Failure)
    assert main(["replay", "cli_agents:banker", file]) == 1
    capsys.readouterr()


# --- seal and verify -----------------------------------------------------------------------------------


def test_seal_and_verify(capsys: pytest.CaptureFixture[str]) -> None:
    """A copy is sealed, never the file itself; what was sealed is verified."""
    file = saved(ended("all done"))
    before = Path(file).read_bytes()
    assert main(["seal", file, "-o", "sealed.json"]) == 0
    assert Path(file).read_bytes() == before
    assert capsys.readouterr().out == "sealed: sealed.json\n"
    assert main(["verify", "sealed.json"]) == 0
    assert capsys.readouterr().out == "as it was sealed, as far as a seal without a key can say: 2 events\n"
    assert main(["verify", "sealed.json", "--json"]) == 0
    assert machine(capsys) == {"verified": True, "problem": None, "events": 2, "signed": False}


def test_verify_with_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    """The line's end that an editor adds is no part of it; the key is shown nowhere."""
    file = saved(ended("all done"))
    Path("key").write_bytes(b"my secret\r\n")
    Path("same").write_bytes(b"my secret")
    Path("other").write_bytes(b"guess")
    assert main(["seal", file, "-o", "sealed.json", "--key-file", "key", "--json"]) == 0
    assert machine(capsys) == {"file": "sealed.json"}
    assert main(["verify", "sealed.json", "--key-file", "same"]) == 0
    assert capsys.readouterr().out == "as it was sealed, and by this key: 2 events\n"
    assert main(["verify", "sealed.json", "--key-file", "other"]) == 1
    shown = capsys.readouterr()
    assert shown == ("", "fnagents: sealed.json: its seal was made with another key\n")
    assert "my secret" not in Path("sealed.json").read_text()


def test_verify_of_what_was_changed(capsys: pytest.CaptureFixture[str]) -> None:
    """It exits with 1 and names the place; so does a file that nobody has sealed."""
    file = saved(ended("all done"))
    assert main(["seal", file, "-o", "sealed.json"]) == 0
    Path("sealed.json").write_text(Path("sealed.json").read_text().replace("all done", "all gone"))
    capsys.readouterr()
    assert main(["verify", "sealed.json"]) == 1
    told = "it is not as it was sealed, at $.events[0]: its digest is another"
    assert capsys.readouterr().err == f"fnagents: sealed.json: {told}\n"
    assert main(["verify", "sealed.json", "--json"]) == 1
    assert machine(capsys) == {"verified": False, "problem": told}
    assert main(["verify", file]) == 1
    assert capsys.readouterr().err == "fnagents: run.json: it has no seal\n"


# --- schema --------------------------------------------------------------------------------------------


def test_schema_shows_both(capsys: pytest.CaptureFixture[str]) -> None:
    """The judging schema and the definition that is sent."""
    assert main(["schema", "cli_agents:pay", "--json"]) == 0
    data = machine(capsys)
    assert (data["name"], data["judging"]["required"]) == ("pay", ["to", "amount"])
    assert data["definition"]["parameters"]["required"] == ["to", "amount"]
    assert main(["schema", "cli_agents:pay"]) == 0
    shown = capsys.readouterr().out
    judging, definition = shown.removeprefix("judging:\n").split("\n\ndefinition, as sent:\n")
    assert (json.loads(judging), json.loads(definition)) == (data["judging"], data["definition"])


# --- what cannot be used -------------------------------------------------------------------------------

BROKEN = {
    "torn.json": '{"format":"fnagents.run","version":1,"defi',
    "newer.json": '{"format":"fnagents.run","version":99}',
    "hostile.json": '{"format":"fnagents.run","version":1,"\x1b[2J":1}'.replace("\x1b", "\\u001b"),
    "other.txt": "hello",
    "empty": "",
}


@pytest.mark.parametrize("name", [*BROKEN, "missing.json", ".", "/dev/zero\x1b[2J", "no\udcff"])
@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["replay", "cli_agents:banker"],
        ["verify"],
        ["seal", "-o", "new.json"],
        ["run", "cli_agents:banker", "--client", "cli_agents:done", "--resume"],
        ["run", "cli_agents:banker", "--client", "cli_agents:done", "-o", "new.json", "--resume"],
    ],
    ids=" ".join,
)
def test_a_file_that_cannot_be_used_is_one_line(
    name: str, words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, with exit code 2, and for machines as a document; whatever is in the file."""
    for other, text in BROKEN.items():
        Path(other).write_text(text, encoding="utf-8")
    assert main([*words, name]) == 2
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)
    assert shown.err.startswith("fnagents: ")
    assert shown.err.isprintable() or shown.err[:-1].isprintable()
    assert not Path("new.json").exists()
    assert main([*words, name, "--json"]) == 2
    assert list(machine(capsys)) == ["error"]


def test_a_file_without_end_is_not_read_for_ever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A little more than the largest run is read."""
    monkeypatch.setattr("fnagents.cli.files.LARGEST", 1000)
    monkeypatch.setattr("fnagents.codec.LARGEST", 1000)
    assert main(["show", "/dev/zero"]) == 2
    assert "larger than" in capsys.readouterr().err


def test_keys_that_cannot_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    """A missing or empty file of a key."""
    file = saved(ended("all done"))
    Path("empty").write_bytes(b"\n")
    for words in (["verify", file], ["seal", file, "-o", "new.json"]):
        assert main([*words, "--key-file", "empty"]) == 2
        assert capsys.readouterr().err == "fnagents: empty: there is no key in it\n"
        assert main([*words, "--key-file", "none"]) == 2
        assert capsys.readouterr().err == "fnagents: none: No such file or directory\n"


def test_seal_leaves_files_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """One that is there is not overwritten."""
    file = saved(ended("all done"))
    assert main(["seal", file, "-o", file]) == 2
    assert capsys.readouterr().err == "fnagents: run.json: File exists\n"


TARGETS = {
    "nocolon": "nocolon: give a module and a name in it, as in shop:agent",
    ":x": ":x: give a module and a name in it, as in shop:agent",
    "no_such_module:x": "there is no module no_such_module, here or installed",
    "no_such.module:x": "there is no module no_such.module, here or installed",
    "agents.py:x": "there is no module agents.py, here or installed; give agents, without .py",
    "cli_agents:none": "the module cli_agents has no none",
    "cli_agents:number": "cli_agents:number is neither an Agent nor agents by name, but of type int",
    "cli_agents:pay": "cli_agents:pay is neither an Agent nor agents by name, but of type Tool",
    "cli_agents:nobody": "cli_agents:nobody is neither an Agent nor agents by name, but of type dict",
    "cli_agents:late": "cli_agents:late is neither an Agent nor agents by name, but of type coroutine",
    "cli_agents:twins": "cli_agents:twins: two different agents are named 'twin'; names are unique in a run",
    "cli_agents:broken": "calling cli_agents:broken failed: SystemExit: no agent today (cli_agents.py, line ",
    "needs_more:x": "importing needs_more failed: ModuleNotFoundError: No module named 'no_such_module' (needs_more.py, line 1)",
    "unready:x": "importing unready failed: SyntaxError: ",
    "exits:x": "importing exits failed: SystemExit (exits.py, line 1)",
}
MODULES = {"needs_more": "import no_such_module", "unready": "def", "exits": "raise SystemExit"}


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_that_cannot_be_used_is_one_line(
    target: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is missing, or of which type it is; somebody's broken module is named with the line."""
    for name, text in MODULES.items():
        Path(f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(Path.cwd())
    assert main(["replay", target, saved(ended("x"))]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"fnagents: {TARGETS[target]}")
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)


def test_a_tool_is_a_tool(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is called to become one."""
    assert main(["schema", "cli_agents:broken"]) == 2
    told = "cli_agents:broken is not a Tool (is it without @tool?), but of type function"
    assert capsys.readouterr().err == f"fnagents: {told}\n"
    assert main(["schema", "no_such_module:x"]) == 2
    capsys.readouterr()


def test_modules_are_found_where_the_command_is_run(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder comes first; what stands in an object of the module is found, too."""
    monkeypatch.syspath_prepend("/nowhere")
    Path("found_here.py").write_text("from fnagents import Agent\nclass Holder:\n    agent = Agent('banker', 'Pay.')\n")
    assert main(["replay", "found_here:Holder.agent", saved(ended("x", agent=Agent("banker", "Pay.")))]) == 0
    assert capsys.readouterr().out == "equal: 1 turn\n"

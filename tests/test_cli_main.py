"""The command line's own parts: its streams, its texts, its arguments, and what it needs."""

import io
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import COMMAND, command, environment

from fnagents import Agent, dump_run, run_sync, start
from fnagents.cli.main import main
from fnagents.cli.sinks import Sink
from fnagents.cli.texts import exact, fault, line, parted, safe
from fnagents.testing import scripted

COMMANDS = ["run", "show", "replay", "verify", "seal", "schema"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a folder of its own, with a run in it."""
    monkeypatch.chdir(tmp_path)
    ended = run_sync(Agent("banker"), "hi", client=scripted("å" * 100_000))
    Path("run.json").write_text(dump_run(ended), encoding="utf-8")
    return tmp_path


# --- texts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain äöü 漢字 👩", "plain äöü 漢字 👩"),
        ("two\n\tlines", "two\n\tlines"),
        ("\x1b[2J\x07\x00", "\\x1b[2J\\x07\\x00"),
        ("\x9b2J\x85", "\\x9b2J\\x85"),
        ("over\rwritten\b", "over\\rwritten\\x08"),
        ("\u202edesrever\u2066\u2069", "\\u202edesrever\\u2066\\u2069"),
        ("\u2028\u2029\ufeff\u200b", "\\u2028\\u2029\\ufeff\\u200b"),
        ("half \ud83d", "half \\ud83d"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("family 👩\u200d👩", "family 👩\u200d👩"),
        ("no\u00a0break", "no\u00a0break"),
    ],
)
def test_what_would_steer_a_terminal_is_escaped(text: str, shown: str) -> None:
    """And what could not be seen; text in any script is left as it is."""
    assert safe(text) == shown
    assert exact(text).replace("\\n", "\n").replace("\\t", "\t").replace("\\u200d", "\u200d") == shown
    assert len(exact(text).splitlines()) == 1


def test_a_line_is_short() -> None:
    """However long the text is, and however long its escapes are."""
    assert line("a\nb") == "a\\nb"
    assert len(line("\x00" * 100_000)) == 500


def test_texts_that_differ_are_shown_from_their_difference() -> None:
    """With a little of what comes before; where one goes on, from its end."""
    assert parted("a", "b") == ("a", "b")
    assert parted("", "b") == ("", "b")
    one, other = parted("x" * 1000 + "a", "x" * 1000 + "b")
    assert (one[:6], one[-2:], other[-2:], len(one)) == ("... xx", "xa", "xb", 45)


def test_an_exception_is_told_in_one_line() -> None:
    """With the place where it was raised, if it was."""
    assert fault(ValueError("a\nb")) == "ValueError: a\\nb"
    assert fault(ValueError()) == "ValueError"
    with pytest.raises(KeyError) as raised:
        _ = {}["x"]
    assert fault(raised.value).startswith("KeyError: 'x' (test_cli_main.py, line ")


# --- streams ---------------------------------------------------------------------------------------------


def test_what_the_encoding_lacks_is_escaped() -> None:
    """A terminal of another time shows it, too; a stream without an encoding takes all."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii", write_through=True)
    Sink(stream).write("Malmö \ud800")
    assert raw.getvalue() == b"Malm\\xf6 \\ud800"
    text = io.StringIO()
    Sink(text).write("Malmö")
    assert text.getvalue() == "Malmö"


def test_a_process_without_streams_writes_nowhere() -> None:
    """They may have been closed before it began."""
    sink = Sink(None)
    assert sink.write("x") == 1
    sink.flush()
    assert (sink.problem, sink.isatty()) == (None, False)


@pytest.fixture(name="left")
def left_fixture() -> Iterator[io.TextIOWrapper]:
    """A pipe whose reader has gone away."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream:  # noqa: PTH123  # a descriptor has no path
        yield stream


def test_a_reader_that_goes_away_is_no_fault(left: io.TextIOWrapper) -> None:
    """What is written after that is dropped, and what was in the buffer, too."""
    sink = Sink(left)
    sink.write("x" * 100_000)
    sink.flush()
    sink.write("y")
    assert sink.problem is None
    left.flush()


def test_a_full_disk_is_a_fault() -> None:
    """It is kept, and told in the end."""
    with open("/dev/full", "w") as stream:  # noqa: PTH123
        sink = Sink(stream)
        sink.write("x")
        sink.flush()
        assert sink.problem is not None
        assert sink.problem.strerror == "No space left on device"


def test_output_that_cannot_be_written_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says so."""
    with open("/dev/full", "w") as stream:  # noqa: PTH123
        monkeypatch.setattr("sys.stdout", stream)
        assert main(["show", "run.json"]) == 2
    assert capsys.readouterr().err == "fnagents: the output cannot be written: No space left on device\n"


# --- processes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["show", "run.json"], ["show", "run.json", "--json"], ["--help"]], ids=" ".join)
def test_a_closed_pipe_is_no_crash(words: list[str], folder: Path) -> None:
    """As in `fnagents show run.json | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=folder,
            env=environment(),
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_pipe_of_a_run(folder: Path) -> None:
    """Nobody watches it any more, and it goes on to its end."""
    reader, writer = os.pipe()
    os.close(reader)
    words = ["run", "cli_agents:banker", "hi", "--client", "cli_agents:hostile", "-o", "run.jsonl"]
    try:
        done = subprocess.run(
            [*COMMAND, *words], cwd=folder, env=environment(), stdout=writer, stderr=writer, timeout=60, check=False
        )
    finally:
        os.close(writer)
    assert done.returncode == 0
    assert '"$type":"Finished"' in (folder / "run.jsonl").read_text()


def test_closed_streams_are_no_crash(folder: Path) -> None:
    """As in `fnagents show run.json >&- 2>&- <&-`."""
    script = 'exec "$@" >&- 2>&- <&-'
    words = ["run", "cli_agents:banker", "hi", "--client", "cli_agents:pays"]
    for given, code in ((["show", "run.json"], 0), (["show", "none"], 2), (words, 3)):
        done = subprocess.run(
            ["sh", "-c", script, "sh", *COMMAND, *given], cwd=folder, env=environment(), timeout=60, check=False
        )
        assert done.returncode == code


def test_an_old_encoding_is_no_crash(folder: Path) -> None:
    """What it lacks is escaped."""
    done = command(folder, "show", "run.json", PYTHONIOENCODING="ascii:strict")
    assert done.returncode == 0
    assert "\\xe5\\xe5" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["show", "run.json"], 0),
        (["replay", "cli_agents:banker", "run.json"], 1),
        (["verify", "run.json"], 1),
        (["show", "none.json"], 2),
        (["schema", "cli_agents:pay"], 0),
        (["run", "cli_agents:banker", "hi"], 2),
        (["run", "cli_agents:banker", "hi", "--client", "cli_agents:done"], 0),
        (["run", "cli_agents:banker", "hi", "--client", "cli_agents:down"], 1),
        (["run", "cli_agents:banker", "hi", "--client", "cli_agents:pays"], 3),
        ([], 2),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else None,
)
@pytest.mark.parametrize("machine", [False, True], ids=["people", "machines"])
def test_exit_codes(words: list[str], code: int, machine: bool, folder: Path) -> None:
    """Of a process of its own; no traceback, and one document for machines."""
    done = command(folder, *words, *(["--json"] if machine else []))
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code == 2:
        assert len(done.stderr.splitlines()) == 1
    if machine:
        assert isinstance(json.loads(done.stdout), dict)


def test_the_module_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m fnagents`, of which importing the module does nothing."""
    monkeypatch.setattr(sys, "argv", ["fnagents", "show", "none.json"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("fnagents", run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "fnagents: none.json: No such file or directory\n"
    assert "main" in runpy.run_module("fnagents.__main__", run_name="imported")


# --- arguments and needs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_is_shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """On stdout, with exit code 0; for machines as for people."""
    for more in ([], ["--json"]):
        assert main([*words, *more]) == 0
        shown = capsys.readouterr()
        assert shown.out.startswith("usage: fnagents")
        assert shown.err == ""


@pytest.mark.parametrize(
    "words", [[], ["none"], ["show"], ["show", "a", "b"], ["show", "run.json", "--js"], ["verify"]]
)
def test_arguments_that_are_no_command_are_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An option is not guessed from its beginning."""
    assert main(words) == 2
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)
    assert main([*words, "--json"]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"fnagents: {json.loads(shown.out)['error']}\n"


def test_what_stands_after_two_dashes_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    """A user may say anything."""
    assert main(["run", "cli_agents:banker", "--client", "cli_agents:done", "--", "--json"]) == 0
    assert capsys.readouterr().out == "all done\n"


def test_without_the_extra_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names what to install."""
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["show", "run.json"]) == 2
    told = "fnagents: the command line needs more packages: pip install 'fnagents[cli]'\n"
    assert capsys.readouterr() == ("", told)


def test_anything_else_is_one_line_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that was deleted under the command, for example."""
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["schema", "cli_agents:pay"]) == 2
    assert capsys.readouterr().err.startswith("fnagents: FileNotFoundError: [Errno 2] No such file or directory")
    monkeypatch.chdir(folder)


def test_nothing_is_written_for_who_only_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`show` leaves no trace in the folder."""
    Path("other.json").write_text(dump_run(start("a", "hi")))
    before = sorted(folder.iterdir())
    assert main(["show", "other.json"]) == 0
    assert sorted(folder.iterdir()) == before
    capsys.readouterr()

"""The README: its commands are where they should be, its blocks run."""

import re
import shlex
from pathlib import Path

import pytest
from terminal import command

from fnagents.testing import no_network

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_first_two_blocks_are_the_two_commands() -> None:
    """One installs and runs the main job, one installs and runs all tests; both are plain commands without output."""
    (first, run_it), (second, test_it) = BLOCKS[:2]
    assert (first, second) == ("sh", "sh")
    assert "examples/" in run_it
    assert "pytest tests" in test_it
    assert "pytest property_tests" in test_it
    assert all(line.startswith(("python3 -m venv ", ".venv")) for line in (run_it + test_it).splitlines())


def test_all_other_blocks_are_run() -> None:
    """Nothing is shown that is not executed: Python, and commands with what they print."""
    assert {language for language, _ in BLOCKS[2:]} == {"python", "console"}


def test_every_python_block_runs_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks run one after the other, as a reader would type them, without a network."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    with no_network():
        for language, block in BLOCKS[2:]:
            if language == "python":
                exec(compile(block, "README.md", "exec"), names)


def test_every_command_prints_what_is_shown(tmp_path: Path) -> None:
    """In a folder with the files that the Python blocks name in their first line."""
    for language, block in BLOCKS[2:]:
        if named := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / named[1]).write_text(block, encoding="utf-8")
        for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] if language == "console" else ():
            words, _, printed = shown.partition("\n")
            program, *arguments = shlex.split(words)
            assert program == "fnagents"
            done = command(tmp_path, *arguments)
            assert (done.returncode, done.stderr + done.stdout) == (0, printed), words

"""The examples run: offline by default, and against a server where a key is set."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from background import serving
from model_server import completed, message, whole

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def run_example(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return subprocess.run(
        [sys.executable, "-W", "error", str(path)], env=kept | environment, capture_output=True, text=True, timeout=60
    )


def call(name: str, arguments: str) -> dict[str, str]:
    return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": arguments}


#: What each example prints last, and what a server answers it.
CASES = {
    "01_by_hand.py": ("<Success: 2 and 40 make 42.>", [call("add", '{"a": 1, "b": 2}'), message("3")]),
    "02_hello_tool.py": (
        "final output: In Oslo it is 7 degrees and cloudy.",
        [call("get_weather", '{"city": "Rome", "unit": "celsius"}'), message("7 in Rome")],
    ),
    "03_errors_as_feedback.py": (
        "Seat A1 is booked for two.",
        [call("book_seat", '{"seat": "A2", "passengers": 2}'), message("A2 is taken.")],
    ),
    "04_approval.py": (
        "<Success: Both transfers are done.>",
        [call("transfer", '{"to": "bob", "amount": 200}'), message("bob has it")],
    ),
    "05_replay.py": (
        'price({"item": "tea"}): same',
        [call("price", '{"item": "coffee"}'), message("It is 4.20.")],
    ),
    "06_composed.py": (
        "No final output after 0 turns, the limit of this run.",
        [
            message("Salt."),
            message('{"title": "Sea"}'),
            message("Far."),
            message('{"title": "M"}'),
        ],
    ),
    "07_reopened.py": (
        "<Success: The roof is up.>",
        [call("build", '{"part": "wall"}'), message("The wall is up.")],
    ),
}


def test_every_example_has_its_cases() -> None:
    """A new example is put into the table."""
    assert [path.name for path in EXAMPLES] == sorted(CASES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run_offline_and_say_so(path: Path) -> None:
    """Without a key an example uses recorded answers, says so, and ends well."""
    done = run_example(path)
    assert done.returncode == 0, done.stderr
    assert "recorded" in done.stdout
    assert CASES[path.name][0] in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_use_the_real_api_with_a_key(path: Path) -> None:
    """With OPENAI_API_KEY an example speaks to the server at OPENAI_BASE_URL, over a real socket."""
    items = CASES[path.name][1]
    with serving([whole(completed(item)) for item in items]) as server:
        done = run_example(path, OPENAI_API_KEY="a key for tests", OPENAI_BASE_URL=server.url)
        assert done.returncode == 0, done.stderr
        assert "recorded" not in done.stdout
        assert len(server.requests) == len(items)
        assert server.requests[0].headers["authorization"] == "Bearer a key for tests"
        assert server.requests[0].json["model"]
        assert all(one.path == "/v1/responses" for one in server.requests)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_short(path: Path) -> None:
    """An example has at most 60 lines, and begins with what it shows."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert ast.get_docstring(ast.parse(text))

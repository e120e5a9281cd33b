"""The main job on real parts: a socket, a server that speaks the Responses API, files, and other processes."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from background import serving
from model_server import completed, message, serve, stream, whole
from model_server import events as as_stream

from fnagents import (
    Agent,
    Success,
    approve,
    dump_run,
    interruptions,
    load_run,
    replay,
    responses_client,
    resume,
    run,
    tool,
)

EFFECTS: list[str] = []


@tool
async def look_up(key: str) -> str:
    """Look up a key."""
    EFFECTS.append(f"look_up {key}")
    return f"{key} is a file"


@tool(needs_approval=True)
def wipe(path: str) -> str:
    """Wipe a path."""
    EFFECTS.append(f"wipe {path}")
    return f"{path} is gone"


AGENT = Agent("keeper", "Keep the house.", tools=[look_up, wipe])

RESUMING = """
import asyncio, sys
from pathlib import Path
from fnagents import approve, dump_run, interruptions, load_run, resume, responses_client
from test_end_to_end import AGENT, EFFECTS

async def main(file):
    run = load_run(file.read_text()).unwrap()
    for ask in interruptions(run):
        run = approve(run, ask)
    async with responses_client(model="m") as client:
        run = await resume(AGENT, run, client=client)
    file.write_text(dump_run(run))
    print(EFFECTS)

asyncio.run(main(Path(sys.argv[1])))
"""


def call(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }


def test_a_run_pauses_in_one_process_and_ends_in_another(tmp_path: Path) -> None:
    """Asked over a socket, paused for approval, saved, loaded by another process, resumed there to the end."""
    EFFECTS.clear()
    calls = completed(call("c1", "look_up", {"key": "a"}), call("c1", "wipe", {"path": "/a"}))
    file = tmp_path / "run.json"

    async def first() -> None:
        async with serve([stream(as_stream(calls), size=7)]) as server:
            async with responses_client(model="m", base_url=server.url, api_key="k" * 20, stream=True) as client:
                paused = await run(AGENT, "Wipe a.", client=client)
        assert paused.outcome is None
        assert [(ask.tool, ask.arguments) for ask in interruptions(paused)] == [("wipe", '{"path":"/a"}')]
        file.write_text(dump_run(paused))

    asyncio.run(first())
    assert EFFECTS == ["look_up a"]
    assert "kkkk" not in file.read_text()

    with serving([whole(completed(message("Done.")))]) as server:
        environment = os.environ | {
            "OPENAI_API_KEY": "k" * 20,
            "OPENAI_BASE_URL": server.url,
            "PYTHONPATH": str(Path(__file__).parent),
        }
        done = subprocess.run(
            [sys.executable, "-c", RESUMING, str(file)], env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "['wipe /a']\n"
        sent = server.requests[0].json["input"]

    # The provider gave two calls one id: each is answered, under an id of its own.
    assert [(item["type"], item["call_id"]) for item in sent[1:]] == [
        ("function_call", "c1"),
        ("function_call", "call_0_1"),
        ("function_call_output", "c1"),
        ("function_call_output", "call_0_1"),
    ]
    assert [item["output"] for item in sent[3:]] == ["a is a file", "/a is gone"]
    ended = load_run(file.read_text()).unwrap()
    assert ended.outcome == Success("Done.")
    assert replay(AGENT, ended) == Success(ended)
    assert ended.usage.requests == 2


def test_many_runs_share_one_client() -> None:
    """Runs side by side keep to themselves, over connections that are used again."""

    async def main() -> None:
        script = [whole(completed(message("ok"))) for _ in range(40)]
        async with serve(script) as server:
            async with responses_client(model="m", base_url=server.url, api_key="k") as client:
                for _ in range(4):
                    runs = await asyncio.gather(*(run(AGENT, str(n), client=client) for n in range(10)))
                    assert [one.outcome for one in runs] == [Success("ok")] * 10
                    assert [one.items[0].text for one in runs] == [str(n) for n in range(10)]
            assert server.connections <= 10

    asyncio.run(main())


def test_a_resumed_run_can_be_approved_here_too() -> None:
    """The same in one process: approval, and the call runs once."""
    EFFECTS.clear()

    async def main() -> None:
        async with (
            serve([whole(completed(call("c1", "wipe", {"path": "/b"}))), whole(completed(message("Done.")))]) as server,
            responses_client(model="m", base_url=server.url, api_key="k") as client,
        ):
            paused = await run(AGENT, "Wipe b.", client=client)
            (ask,) = interruptions(paused)
            ended = await resume(AGENT, approve(paused, ask), client=client)
        assert ended.outcome == Success("Done.")

    asyncio.run(main())
    assert EFFECTS == ["wipe /b"]

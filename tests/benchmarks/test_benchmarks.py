"""Single costs, measured by pytest-benchmark: `pytest tests/benchmarks --benchmark-enable`."""

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest
from workloads import AGENT, look_up, made

from fnagents import (
    Agent,
    Success,
    ToolCall,
    agents,
    drive,
    dump_run,
    invoke,
    load_run,
    performer,
    start,
    tool,
)
from fnagents.testing import from_function


def test_importing(benchmark: Any) -> None:
    """A fresh interpreter that imports the package."""
    benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", "import fnagents"], check=True), rounds=3)


def test_making_a_tool(benchmark: Any) -> None:
    """From a function to a tool, schema included."""
    benchmark(lambda: tool(look_up.plain))


def test_calling_a_tool(benchmark: Any) -> None:
    """One validated call."""
    with asyncio.Runner() as runner:
        outcome = benchmark(lambda: runner.run(invoke(look_up, '{"key": "a", "depth": 2}')))
    assert outcome.unwrap().text.startswith("a:2:")


@pytest.mark.parametrize(("turns", "calls"), [(10, 1), (100, 1), (10, 8)])
def test_whole_runs(benchmark: Any, turns: int, calls: int) -> None:
    """A run on a model that answers at once."""
    assert len(benchmark(lambda: made(turns, calls)).turns) == turns + 1


@pytest.mark.parametrize("name", ["dump", "load"])
def test_saving_and_loading(benchmark: Any, name: str) -> None:
    """A run of 1,000 items."""
    ended = made(50, 10)
    text = dump_run(ended)
    assert benchmark({"dump": lambda: dump_run(ended), "load": lambda: load_run(text)}[name])


def test_a_thousand_runs_at_once(benchmark: Any) -> None:
    """Side by side in one event loop."""
    model = from_function(lambda request: ToolCall("c", "look_up", {"key": "a"}) if request.turn < 2 else "done")
    everyone = agents(AGENT)

    async def all_of_them() -> list[Any]:
        begun = (drive(everyone, start(AGENT, str(n)), performer(everyone, model)) for n in range(1000))
        return await asyncio.gather(*begun)

    runs = benchmark.pedantic(lambda: asyncio.run(all_of_them()), rounds=1)
    assert {one.outcome for one in runs} == {Success("done")}


def test_blocking_tools_run_side_by_side(benchmark: Any) -> None:
    """Eight that block for 50 ms each take far less than eight times as long."""

    @tool
    def block() -> str:
        time.sleep(0.05)
        return "done"

    calls = [ToolCall(str(n), "block") for n in range(8)]
    model = from_function(lambda request: calls if request.turn == 0 else "done")
    agent = Agent("blocker", tools=[block])
    everyone = agents(agent)

    def once() -> float:
        began = time.perf_counter()
        asyncio.run(drive(everyone, start(agent, "go"), performer(everyone, model)))
        return time.perf_counter() - began

    alone = time.perf_counter()
    time.sleep(0.05)
    alone = time.perf_counter() - alone
    assert benchmark.pedantic(once, rounds=1) < 6 * alone

"""What is measured: runs of so many turns and calls, on a model that answers at once."""

import asyncio
import json
import time
from collections.abc import Callable

from fnagents import (
    Agent,
    Emit,
    Message,
    ModelError,
    ModelRequest,
    ModelResponse,
    Outcome,
    Run,
    Success,
    ToolCall,
    Usage,
    run,
    tool,
)


@tool
async def look_up(key: str, depth: int = 3) -> str:
    """Look up a key.

    Args:
        key: The key to look up.
        depth: How deep to look.
    """
    return f"{key}:{depth}:{'x' * 100}"


AGENT = Agent("looker", "You look things up.", tools=[look_up])


def made(turns: int, calls: int = 1) -> Run:
    """A finished run of so many turns with so many calls each, and a final text."""
    replies = [
        Success(
            ModelResponse(
                tuple(
                    ToolCall(f"call_{turn}_{n}", "look_up", json.dumps({"key": f"k{turn}-{n}", "depth": n % 5}))
                    for n in range(calls)
                ),
                Usage(1, 100, 20),
            )
        )
        for turn in range(turns)
    ]
    replies.append(Success(ModelResponse((Message("assistant", "done"),))))

    async def model(request: ModelRequest, emit: Emit) -> Outcome[ModelResponse, ModelError]:
        return replies[request.turn]

    ended = asyncio.run(run(AGENT, "Look everything up.", client=model, max_turns=None))
    assert ended.outcome == Success("done")
    return ended


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """CPU seconds of the fastest of several times."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best

"""A failed run is not lost: the server fails in the middle, the run is saved, reopened and goes on.

Without OPENAI_API_KEY the model is a recorded one that fails once, and this program says so.
"""

import asyncio
import os

from fnagents import (
    Agent,
    Failure,
    ModelClient,
    RunError,
    ServerFailed,
    ToolCall,
    dump_run,
    explain,
    load_run,
    reopen,
    responses_client,
    resume,
    retrying,
    run_sync,
    tool,
)
from fnagents.testing import scripted

BUILT: list[str] = []


@tool
def build(part: str) -> str:
    """Build a part; slow and dear, so that it should not be done twice."""
    BUILT.append(part)
    return f"{part} is ready"


def model() -> ModelClient:
    """The real API, asked again where that helps; or a recorded model whose server fails at the second turn."""
    if "OPENAI_API_KEY" in os.environ:
        return retrying(responses_client())
    print("no OPENAI_API_KEY: the model's answers are recorded")
    return scripted(ToolCall("call_1", "build", '{"part": "roof"}'), ServerFailed("overloaded", 503), "The roof is up.")


if __name__ == "__main__":
    builder = Agent("builder", "Build what is asked for.", tools=[build])
    client = model()
    run = run_sync(builder, "A roof, please.", client=client)
    if isinstance(run.outcome, Failure):
        error: RunError = run.outcome.failure()
        print("failed:", explain(error))
        saved = dump_run(run)  # ... hours later, when the server is back
        run = asyncio.run(resume(builder, reopen(load_run(saved).unwrap()), client=client))
    assert len(BUILT) == len(set(BUILT))  # nothing was done twice
    print(run.outcome)

"""Replay: a recorded run against today's agent, offline, and a divergence on purpose.

The recording is made here, by a model whose answers are recorded; with OPENAI_API_KEY, by the real one.
"""

import asyncio
import os

from attrs import evolve

from fnagents import (
    Agent,
    Failure,
    Success,
    ToolCall,
    dump_run,
    explain,
    load_run,
    reexecute,
    replay,
    responses_client,
    run_sync,
    tool,
)
from fnagents.testing import no_network, scripted


@tool
def price(item: str) -> str:
    """The price of an item."""
    return {"tea": "3.50", "coffee": "4.20"}.get(item, "not sold here")


def main() -> None:
    """Record, replay, change the agent, replay again, and run the tools again."""
    waiter = Agent("waiter", "Answer with the tools' help, in one sentence.", tools=[price])
    recorded = scripted(ToolCall("call_1", "price", '{"item": "tea"}'), "Tea is 3.50.")
    print("the model is", "real" if "OPENAI_API_KEY" in os.environ else "recorded")
    client = responses_client() if "OPENAI_API_KEY" in os.environ else recorded
    text = dump_run(run_sync(waiter, "How much is tea?", client=client))

    with no_network():  # from here on, nothing is asked, and no tool is run unless it is said so
        run = load_run(text).unwrap()
        assert replay(waiter, run) == Success(run)
        print("unchanged: the same run again")

        match replay(evolve(waiter, instructions="Answer in one word."), run):
            case Failure(divergence):
                print(f"changed: {explain(divergence)}")
            case Success(_):
                raise AssertionError("the model would have been told something else")

        for comparison in asyncio.run(reexecute(waiter, run)):
            print(f"{comparison.call.name}({comparison.call.arguments}): {'same' if comparison.same else 'differs'}")


if __name__ == "__main__":
    main()

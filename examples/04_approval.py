"""Approval: the run pauses, is saved, loaded (in another process, if you like), decided about, and resumed."""

import asyncio
import os
import tempfile
from pathlib import Path

from fnagents import Agent, Failure, ModelClient, ToolCall, responses_client, resume, run_sync, tool

from fnagents import approve, dump_run, interruptions, load_run, reject  # isort: skip
from fnagents.testing import scripted

LIMIT = 100


@tool(needs_approval=lambda _, arguments: arguments["amount"] > LIMIT)
def transfer(to: str, amount: int) -> str:
    """Transfer money; more than 100 needs a person's approval."""
    return f"{amount} transferred to {to}"


def model(*recorded: str | list[ToolCall]) -> ModelClient:
    """The real API if there is a key, else these recorded answers."""
    return responses_client() if "OPENAI_API_KEY" in os.environ else scripted(*recorded)


BANKER = Agent("banker", "Make the transfers that the user asks for, all at once.", tools=[transfer])
CALLS = [
    ToolCall("call_1", "transfer", '{"to": "ann", "amount": 50}'),
    ToolCall("call_2", "transfer", '{"to": "bob", "amount": 900}'),
]

if __name__ == "__main__":
    print("the model is", "real" if "OPENAI_API_KEY" in os.environ else "recorded")
    paused = run_sync(BANKER, "Send 50 to ann and 900 to bob.", client=model(CALLS))
    file = Path(tempfile.mkdtemp()) / "run.json"
    file.write_text(dump_run(paused), encoding="utf-8")  # ... the process may end here

    loaded = load_run(file.read_text(encoding="utf-8"))
    if isinstance(loaded, Failure):
        raise SystemExit(loaded.failure().problem)
    run = loaded.unwrap()
    assert run == paused
    for ask in interruptions(run):
        print(f"approve {ask.tool} {ask.arguments}? yes, as it is bob")
        run = approve(run, ask) if "bob" in ask.arguments else reject(run, ask, "Only bob is known.")
    run = asyncio.run(resume(BANKER, run, client=model("Both transfers are done.")))
    for item in run.items:
        print(" ", item)
    print(run.outcome)

"""The loop by hand: `plan` says what a run needs, `step` folds in what happened. No event loop anywhere.

Without OPENAI_API_KEY the model's answers are recorded ones, and this program says so.
"""

import os

from fnagents import (
    Agent,
    CallModel,
    CallTool,
    Effect,
    Event,
    Finish,
    Finished,
    Message,
    ModelResponse,
    Output,
    Replied,
    Returned,
    Success,
    ToolCall,
    agents,
    key,
    plan,
    start,
    step,
    tool,
)
from fnagents.wire.responses import read_response, write_request

RECORDED = [ToolCall("call_1", "add", '{"a": 2, "b": 40}'), Message("assistant", "2 and 40 make 42.")]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def answer(effect: Effect) -> Event:
    """The whole outside world: from what the run needs to what happened."""
    match effect:
        case CallModel(turn=turn, request=request) if "OPENAI_API_KEY" in os.environ:
            import httpx

            base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
            body = {"model": os.environ.get("OPENAI_MODEL", "gpt-5-mini"), **write_request(request)}
            headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
            reply = httpx.post(f"{base}/responses", json=body, headers=headers, timeout=60)
            return Replied(turn, read_response(reply.json()), request.sent)
        case CallModel(turn=turn, request=request):
            return Replied(turn, Success(ModelResponse((RECORDED[turn],))), request.sent)
        case CallTool(place=place, call=call):
            arguments = add.read(call.arguments).unwrap()  # a real performer feeds a Failure back
            return Returned(place, Success(Output(str(add(**arguments.values)))))
        case Finish(turn=turn, outcome=outcome):
            return Finished(turn, outcome)
    raise AssertionError(f"this agent needs no {effect}")


if __name__ == "__main__":
    print("the model is", "real" if "OPENAI_API_KEY" in os.environ else "recorded")
    everyone = agents(Agent("calculator", "Use the tools.", tools=[add]))
    run = start("calculator", "What is 2 + 40?")
    while effects := plan(everyone, run):
        for effect in effects:
            run = step(run, answer(effect))
            print(f"{key(effect):10} -> {run.items[-1]}")
    print(run.outcome)

"""The loop by hand: `plan` says what a run needs, `step` folds in what happened. No event loop anywhere.

Without OPENAI_API_KEY the model's answers are recorded ones, and this program says so.
"""

import os

import fnagents as fn
from fnagents.wire.responses import read_response, write_request

KEY = os.environ.get("OPENAI_API_KEY")
RECORDED: list[fn.Item] = [
    fn.ToolCall("call_1", "add", '{"a": 2, "b": 40}'),
    fn.Message("assistant", "2 and 40 make 42."),
]


@fn.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ask_model(request: fn.ModelRequest) -> fn.Outcome[fn.ModelResponse, fn.ModelError]:
    """The real API if there is a key: writing and reading its bodies are pure functions, any HTTP library will do."""
    if KEY is None:
        return fn.Success(fn.ModelResponse((RECORDED[request.turn],)))
    import httpx

    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/responses"
    body = {"model": os.environ.get("OPENAI_DEFAULT_MODEL", "gpt-5-mini"), **write_request(request)}
    return read_response(httpx.post(url, json=body, headers={"Authorization": f"Bearer {KEY}"}, timeout=60).json())


def answer(effect: fn.Effect) -> fn.Event:
    """The whole outside world: from what the run needs to what happened."""
    match effect:
        case fn.CallModel(turn=turn, request=request):
            return fn.Replied(turn, ask_model(request), request.sent)
        case fn.CallTool(place=place, call=call):
            arguments = add.read(call.arguments).unwrap()  # a real performer feeds a Failure back
            return fn.Returned(place, fn.Success(fn.Output(str(add(**arguments.values)))))
        case fn.Finish(turn=turn, outcome=outcome):
            return fn.Finished(turn, outcome)
        case _:
            raise AssertionError(f"this agent needs no {effect}")


if __name__ == "__main__":
    print("the model is", "real" if KEY else "recorded")
    everyone = fn.agents(fn.Agent("calculator", "Use the tools.", tools=[add]))
    run = fn.start("calculator", "What is 2 + 40?")
    while effects := fn.plan(everyone, run):
        for effect in effects:
            run = fn.step(run, answer(effect))
            print(f"{fn.key(effect):10} -> {run.items[-1]}")
    print(run.outcome)

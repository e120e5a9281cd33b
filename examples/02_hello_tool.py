"""An agent with a tool. Without OPENAI_API_KEY the model is a recorded one, and this program says so."""

import os

from fnagents import Agent, Failure, ModelClient, Success, ToolCall, explain, responses_client, run_sync, tool
from fnagents.testing import scripted


@tool
def get_weather(city: str, unit: str = "celsius") -> dict[str, str | int]:
    """Get the weather of a city.

    Args:
        city: The city's name.
        unit: "celsius" or "fahrenheit".
    """
    return {"city": city, "temperature": 7 if unit == "celsius" else 45, "sky": "cloudy"}


def model() -> ModelClient:
    """The real API if there is a key, else two recorded answers."""
    if "OPENAI_API_KEY" in os.environ:
        print("asking the real model")
        return responses_client()
    print("no OPENAI_API_KEY: the model's answers are recorded")
    return scripted(
        ToolCall("call_1", "get_weather", '{"city": "Oslo", "unit": "celsius"}'),
        "In Oslo it is 7 degrees and cloudy.",
    )


if __name__ == "__main__":
    weather = Agent("weather", "Answer with the tools' help, in one sentence.", tools=[get_weather])
    run = run_sync(weather, "What is the weather in Oslo?", client=model())
    for item in run.items:
        print(" ", item)
    match run.outcome:
        case Success(text):
            print("final output:", text)
        case Failure(error):
            raise SystemExit(explain(error))
        case None:
            raise SystemExit("paused: a call waits for approval")

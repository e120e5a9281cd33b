"""An agent is a plain function: composed with others by `bind` and `gather`, its failures included.

Without OPENAI_API_KEY the model's answers are recorded ones, and this program says so.
"""

import asyncio
import os

from attrs import frozen
from returns.future import FutureResult

from fnagents import Agent, Failure, ModelClient, Outcome, RunError, Success, as_function, explain, responses_client
from fnagents.testing import scripted


@frozen
class Summary:
    """What the second agent is asked for."""

    title: str


def model(*recorded: str) -> ModelClient:
    """The real API if there is a key, else these recorded answers."""
    return responses_client() if "OPENAI_API_KEY" in os.environ else scripted(*recorded)


write = as_function(
    Agent("writer", "Write one short sentence about the topic."),
    client=model("The sea is salt.", "The moon is far."),
)
summarise = as_function(
    Agent("summariser", "Give the text a title.", output_type=Summary),
    client=model('{"title": "Sea"}', '{"title": "Moon"}'),
)


async def report(topic: str) -> Outcome[Summary, RunError]:
    """Two agents, one after the other, as any two functions that may fail."""
    match await write(topic):
        case Success(text):
            return await summarise(text)
        case Failure(error):
            return Failure(error)


async def main() -> None:
    """By `match`, by `bind`, and a failure that stays a value."""
    print("the model is", "real" if "OPENAI_API_KEY" in os.environ else "recorded")
    print(await report("the sea"))
    moon: FutureResult[str, RunError] = FutureResult(write("the moon"))
    print(await moon.bind(lambda text: FutureResult(summarise(text))))  # pyright: ignore[reportUnknownMemberType]
    nobody = as_function(Agent("nobody"), client=model(), max_turns=0)
    for outcome in await asyncio.gather(nobody("a"), nobody("b")):
        print(explain(outcome.failure()))


if __name__ == "__main__":
    asyncio.run(main())

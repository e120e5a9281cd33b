"""A wrong call, the feedback, the corrected call: a failed tool is something the model reads, not an exception."""

import os

from fnagents import Agent, ModelClient, Success, ToolCall, ToolOutput, invoke, responses_client, run_sync, tool
from fnagents.testing import scripted

SEATS = {"A1": "free", "A2": "taken"}


@tool(timeout=5)
def book_seat(seat: str, passengers: int) -> str:
    """Book a seat.

    Args:
        seat: Row and number, such as "A1".
        passengers: How many people travel.
    """
    if SEATS.get(seat) != "free":
        raise LookupError(f"seat {seat} is {SEATS.get(seat, 'not in this train')}; free seats: A1")
    return f"{seat} is booked for {passengers}"


def model() -> ModelClient:
    """The real API if there is a key, else a recorded model that makes two mistakes and learns from them."""
    if "OPENAI_API_KEY" in os.environ:
        return responses_client()
    print("no OPENAI_API_KEY: the model's answers are recorded")
    return scripted(
        ToolCall("call_1", "book_seat", '{"seat": "A2", "passengers": "two"}'),
        ToolCall("call_2", "book_seat", '{"seat": "A2", "passengers": 2}'),
        ToolCall("call_3", "book_seat", '{"seat": "A1", "passengers": 2}'),
        "Seat A1 is booked for two.",
    )


async def failures_are_values() -> None:
    """The same pipeline for one call alone: `invoke` gives a Success or a Failure, and raises nothing."""
    print(await invoke(book_seat, '{"seat": "A1", "passengers": 2'))
    print(await invoke(book_seat, {"seat": "A1", "passengers": 2}))


if __name__ == "__main__":
    import asyncio

    asyncio.run(failures_are_values())
    clerk = Agent("clerk", "Book what the user asks for. Read errors and try again.", tools=[book_seat])
    run = run_sync(clerk, "Seat A2 for two, or another one.", client=model())
    for item in run.items:
        match item:
            case ToolCall(name=name, arguments=arguments):
                print(f"-> {name}({arguments})")
            case ToolOutput():
                print(f"<- {item.text}")
            case _:
                print(f"   {item}")
    assert isinstance(run.outcome, Success)

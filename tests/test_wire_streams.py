"""Streams of the Responses API: frames, deltas, and the one response that they come to."""

import json
import time
from typing import Any

import pytest
from model_server import completed, events, message

from fnagents.errors import BadRequest, ConnectionFailed, Incomplete, MalformedResponse, RateLimited, ServerFailed
from fnagents.items import ToolCall
from fnagents.models import ArgumentsDelta, ItemDone, ReasoningDelta, TextDelta
from fnagents.outcome import Failure
from fnagents.wire import deltas as wire_deltas
from fnagents.wire import frames as wire_frames
from fnagents.wire.deltas import Arriving, accumulate, arrive, arrived, finished, read_stream
from fnagents.wire.frames import Frame, Frames, feed, flush
from fnagents.wire.items import read_item
from fnagents.wire.responses import read_response

CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a":1}'}
OTHER = {**CALL, "id": "fc_2", "call_id": "call_2", "name": "sub"}


def line(**event: Any) -> Any:
    """One event as it stands in a stream."""
    return f"data: {json.dumps(event)}\n\n".encode()


def done(item: Any, **fields: Any) -> Any:
    """An item is whole."""
    return {"type": "response.output_item.done", "output_index": 0, "item": item, **fields}


def added(item: Any, **fields: Any) -> Any:
    """An item was begun."""
    return {**done(item, **fields), "type": "response.output_item.added"}


def over(*items: Any, status: Any = "completed", **fields: Any) -> Any:
    """The terminal event."""
    return {"type": f"response.{status}", "response": completed(*items, status=status, **fields)}


def fold(*told: Any) -> Any:
    """What the events come to, and the deltas on the way."""
    state, seen = Arriving(), []
    for event in told:
        state, more = accumulate(state, event)
        seen += more
    return finished(state), seen


# --- frames --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_frames_are_the_same_however_they_are_split(end: Any, size: Any) -> None:
    """Comments, fields, several data lines and a byte order mark, in every framing and split."""
    text = "\ufeff: hi\n\nevent: e\nid: 7\ndata: {ü\ndata:  b\nretry\n\ndata\n\n\ndata:x\n\n".replace("\n", end)
    whole, state, frames = text.encode(), Frames(), []
    for start in range(0, len(whole), size):
        state, more = feed(state, whole[start : start + size])
        frames += more
    assert frames == [Frame(b"e", "{ü\n b".encode()), Frame(b"", b""), Frame(b"", b"x")]
    assert flush(state) == []


def test_an_empty_chunk_changes_nothing() -> None:
    """No bytes, no change: not between CR and LF either."""
    state, _ = feed(Frames(), b"data: a\r")
    assert feed(state, b"") == (state, [])
    assert feed(state, b"\n\n")[1] == [Frame(b"", b"a")]


@pytest.mark.parametrize("rest", [b"data: a", b"data: a\n", b"data: a\r"])
def test_a_frame_without_its_empty_line_is_found_at_the_end(rest: Any) -> None:
    """What a stream ended in is given when asked for."""
    assert flush(feed(Frames(), rest)[0]) == [Frame(b"", b"a")]


def test_a_frame_has_a_largest_size(monkeypatch: Any) -> None:
    """More than the limit, in one line or in many, ends the stream with a typed error."""
    monkeypatch.setattr(wire_frames, "LONGEST_FRAME", 100)
    for chunk in (b"data: " + b"x" * 101, b"data: xxxxxxxxx\n" * 11, b"x" * 60 + b"", b": " + b"y" * 200 + b"\n"):
        state, _ = feed(feed(Frames(), chunk)[0], b"z" * 50)
        assert state.too_long
        assert feed(state, b"\n\n") == (state, [])
    begun, deltas = arrive(Arriving(), line(**added(CALL)) + b"data: " + b"x" * 200)
    assert begun.over
    assert not deltas
    assert isinstance(arrived(begun).failure(), MalformedResponse)


def test_a_frame_may_be_large_in_all_if_it_ends() -> None:
    """The limit is for one frame, not for the stream."""
    state = Frames()
    for _ in range(3):
        state, frames = feed(state, b"data: 1234\n\n")
        assert len(frames) == 1
    assert state.size == 0


# --- the fold ------------------------------------------------------------------------------------------


def test_a_stream_is_its_terminal_output() -> None:
    """The terminal event's output is kept, though the finished items differ."""
    outcome, seen = fold(added(CALL), done(CALL), over(OTHER))
    assert outcome == read_response(completed(OTHER))
    assert seen == [ItemDone(read_item(CALL), 0)]


def test_the_finished_items_stand_in_for_an_empty_output() -> None:
    """Where the terminal event has no items, those that were done count, by their position."""
    told = [done(OTHER, output_index=1), done(CALL, output_index=0)]
    assert fold(*told, over())[0] == read_response(completed(CALL, OTHER))
    missing = over()
    del missing["response"]["output"]
    assert fold(*told, missing)[0] == read_response(completed(CALL, OTHER))


def test_items_at_one_position_are_read_in_order_of_arrival() -> None:
    """Servers that give every item the position 0 lose none."""
    assert fold(done(CALL), done(OTHER), over())[0] == read_response(completed(CALL, OTHER))


def test_deltas_are_told_as_they_come() -> None:
    """Text, refusals, reasoning and arguments are deltas with the position of their item."""
    kinds = {
        "output_text": TextDelta,
        "refusal": TextDelta,
        "reasoning_summary_text": ReasoningDelta,
        "reasoning_text": ReasoningDelta,
        "function_call_arguments": ArgumentsDelta,
        "custom_tool_call_input": ArgumentsDelta,
    }
    told = [{"type": f"response.{kind}.delta", "delta": kind, "output_index": 3} for kind in kinds]
    assert fold(*told, over())[1] == [made(kind, 3) for kind, made in kinds.items()]


def test_a_delta_without_position_is_found_by_its_item() -> None:
    """The position of an item that was announced under the same id holds; otherwise it is a new one."""
    told = [
        added(CALL, output_index=4),
        {"type": "response.function_call_arguments.delta", "delta": "a", "item_id": "fc_1"},
        {"type": "response.function_call_arguments.delta", "delta": "b", "item_id": "fc_9"},
        {"type": "response.function_call_arguments.delta", "delta": "c", "output_index": True},
    ]
    assert [delta.index for delta in fold(*told)[1]] == [4, 1, 1]


def test_a_delta_of_no_text_is_none() -> None:
    """Empty, null and absent pieces are not told; half a pair of surrogates is visible."""
    kind = "response.output_text.delta"
    told = [
        {"type": kind, "delta": ""},
        {"type": kind, "delta": None},
        {"type": kind},
        {"type": kind, "delta": "\ud83d"},
    ]
    assert fold(*told)[1] == [TextDelta("<U+D83D>")]


def test_interleaved_calls_come_out_whole() -> None:
    """Two calls whose pieces alternate, begun in one order and done in another, are two whole calls."""
    told = [
        added({**CALL, "arguments": ""}, output_index=0),
        added({**OTHER, "arguments": ""}, output_index=1),
        {"type": "response.function_call_arguments.delta", "delta": '{"a"', "output_index": 1},
        {"type": "response.function_call_arguments.delta", "delta": '{"a":', "output_index": 0},
        done(OTHER, output_index=1),
        done(CALL, output_index=0),
        over(),
    ]
    outcome, seen = fold(*told)
    assert outcome.unwrap().calls == (read_item(CALL), read_item(OTHER))
    assert [delta for delta in seen if isinstance(delta, ItemDone)] == [
        ItemDone(read_item(OTHER), 1),
        ItemDone(read_item(CALL), 0),
    ]


def test_repeated_events_count_once() -> None:
    """An item announced or done twice, the same both times, is one item, told once."""
    outcome, seen = fold(added(CALL), added(CALL), done(CALL), done(CALL), over())
    assert outcome == read_response(completed(CALL))
    assert len(seen) == 1


def test_an_item_done_twice_differently_is_an_error() -> None:
    """Where nothing else says which one holds, neither does; where the terminal event does, it is right."""
    told = [done(CALL), done({**CALL, "arguments": "{}"})]
    failure = fold(*told, over())[0].failure()
    assert isinstance(failure, MalformedResponse)
    assert failure.message == "an item was reported done twice, differently"
    assert fold(*told, over(CALL))[0] == read_response(completed(CALL))


def test_an_item_that_never_ended_is_an_error() -> None:
    """A call that was begun and never done makes no response without it."""
    failure = fold(done(OTHER), added(CALL, output_index=2), over())[0].failure()
    assert isinstance(failure, MalformedResponse)
    assert failure.message == "the item at position 2 was begun and never finished"
    assert failure.arrived is not None
    assert failure.arrived.calls == (read_item(OTHER),)


def test_an_incomplete_stream_carries_what_was_done() -> None:
    """The token limit ends a stream in `Incomplete`, with the finished items and the usage."""
    end = over(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    failure = fold(done(OTHER), added(CALL, output_index=1), end)[0].failure()
    assert isinstance(failure, Incomplete)
    assert failure.reason == "max_output_tokens"
    assert failure.arrived is not None
    assert failure.arrived.calls == (read_item(OTHER),)


def test_the_events_type_says_how_it_ended() -> None:
    """A response without a status has that of its event."""
    end = over(status="cancelled")
    del end["response"]["status"]
    assert isinstance(fold(end)[0].failure(), Incomplete)


def test_a_failed_stream_is_its_error() -> None:
    """`response.failed` tells of the error."""
    end = over(status="failed", error={"code": "server_error", "message": "oh"})
    assert fold(done(CALL), end)[0] == Failure(ServerFailed("oh"))


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, RateLimited("slow")),
        ({"type": "error", "error": {"code": "invalid_prompt", "message": "bad"}}, BadRequest("bad")),
        ({"type": "error"}, ServerFailed('{"type":"error"}')),
        ({"type": "", "error": {"message": "oh"}}, ServerFailed("oh")),
    ],
)
def test_an_error_event_ends_the_stream(event: Any, error: Any) -> None:
    """Whatever follows it is not looked at."""
    assert fold(event, done(CALL), over(CALL)) == (Failure(error), [])


def test_the_first_terminal_event_counts() -> None:
    """A second one, and items after it, change nothing."""
    assert fold(over(CALL), done(OTHER), over(OTHER)) == (read_response(completed(CALL)), [])


def test_a_terminal_event_without_a_response_is_malformed() -> None:
    """It carries what had arrived."""
    failure = fold(done(CALL), {"type": "response.completed"})[0].failure()
    assert isinstance(failure, MalformedResponse)
    assert failure.message == "response.completed carries no response"
    assert failure.arrived is not None
    assert failure.arrived.calls == (read_item(CALL),)


def test_a_stream_without_its_end_broke() -> None:
    """No terminal event, no response: the finished call is not run."""
    message = "the stream ended before the response was complete"
    assert fold(done(CALL))[0] == Failure(ConnectionFailed(message))
    assert read_stream([]) == Failure(ConnectionFailed(message))


def test_unknown_events_change_nothing() -> None:
    """Events of other types, without items or without type, are passed over."""
    odd = [
        {"type": "response.levitation.delta", "delta": "up"},
        {"type": "response.output_item.done", "item": None},
        {"type": "response.output_item.added", "item": []},
        {"type": None},
        {},
    ]
    assert fold(*odd, over(CALL)) == (read_response(completed(CALL)), [])


def test_an_unreadable_item_is_never_told() -> None:
    """Half a call gives no delta and no response."""
    outcome, seen = fold(done({**CALL, "name": None}), over())
    assert not seen
    assert isinstance(outcome.failure(), MalformedResponse)


def test_a_stream_has_a_most_of_items(monkeypatch: Any) -> None:
    """More items than the limit end it with a typed error."""
    monkeypatch.setattr(wire_deltas, "MOST_ITEMS", 1)
    failure = fold(done(CALL), done(OTHER), over(CALL))[0].failure()
    assert failure.message == "it has more than 1 items"
    assert failure.arrived.calls == (read_item(CALL),)
    assert fold(added(CALL), added(OTHER), over(CALL))[0].failure().message == "it has more than 1 items"
    assert fold(done(CALL), done({**CALL, "name": "sub"}))[0].failure().message == "it has more than 1 items"


@pytest.mark.parametrize("placed", [True, False])
def test_a_stream_costs_what_its_events_cost(placed: Any) -> None:
    """Items and deltas are found by position or id without a search: four times as many take about four times as long."""

    def seconds(count: int) -> float:
        told = [
            event
            for number in range(count)
            for item in [{**CALL, "id": f"fc_{number}"}]
            for place in [{"output_index": number if placed else None}]
            for event in (
                added(item, **place),
                {"type": "response.function_call_arguments.delta", "delta": "x", "item_id": item["id"], **place},
                done(item, **place),
            )
        ]
        began = time.process_time()
        assert len(fold(*told, over())[0].unwrap().calls) == count
        return time.process_time() - began

    seconds(100)
    assert seconds(8_000) < 12 * min(seconds(2_000) for _ in range(3))


def test_a_server_cannot_choose_positions_that_are_slow_to_tell_apart() -> None:
    """Numbers that Python would hash alike are as fast as any, below zero and beyond every limit too."""
    began = time.process_time()
    told = [added({"type": "odd"}, output_index=(number - 5) * (2**61 - 1)) for number in range(9_000)]
    assert isinstance(fold(*told, added({"type": "odd"}, output_index=10**5_000))[0], Failure)
    assert time.process_time() - began < 5


def test_two_states_of_one_stream_do_not_mix() -> None:
    """A state is a value: whatever is folded into it leaves it, and what else was made of it, as it was."""
    state, _ = accumulate(Arriving(), done(CALL))
    forks = [accumulate(state, done({**OTHER, "id": str(number)}))[0] for number in range(3)]
    ends = [finished(accumulate(fork, over())[0]).unwrap().calls for fork in (state, *forks)]
    assert [[call.name for call in calls] for calls in ends] == [
        ["add"],
        ["add", "sub"],
        ["add", "sub"],
        ["add", "sub"],
    ]
    assert len({calls[-1].extra for calls in ends[1:]}) == 3


# --- bytes ---------------------------------------------------------------------------------------------


def test_a_recorded_stream_reads_as_its_body() -> None:
    """Whole and byte by byte, it is the response that it carries."""
    response = completed(message("hé 😀"), CALL)
    data = events(response)
    assert read_stream([data]) == read_stream(data[i : i + 1] for i in range(len(data))) == read_response(response)


def test_the_done_mark_and_what_follows_are_passed_over() -> None:
    """`[DONE]` is no event, before the end or after it; nor is anything after the end."""
    data = b"data: [DONE]\n\n" + events(completed(CALL)) + b"data: [DONE]\n\ndata: {broken\n\n"
    assert read_stream([data, b"data: {}\n\n"]) == read_response(completed(CALL))


def test_an_event_line_names_an_event_without_type() -> None:
    """Servers that put the type on the `event:` line only are understood."""
    data = f"event: response.completed\ndata: {json.dumps({'response': completed(CALL)})}\n\n".encode()
    assert read_stream([data]) == read_response(completed(CALL))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b"data: {broken\n\n", "an event is not JSON: Expecting property name"),
        (b"data: [1]\n\n", "an event is not a JSON object"),
        (b'data: "\xff"\n\n', "an event is not UTF-8: invalid start byte"),
    ],
)
def test_an_unreadable_event_ends_the_stream(broken: Any, said: Any) -> None:
    """It is malformed, and carries the items and the id that had arrived; a later end does not mend it."""
    data = line(type="response.created", response=completed(id="resp_7")) + line(**done(CALL)) + broken
    failure = read_stream([data + events(completed(CALL))]).failure()
    assert isinstance(failure, MalformedResponse)
    assert failure.message.startswith(said)
    assert failure.arrived is not None
    assert (failure.arrived.id, failure.arrived.calls) == ("resp_7", (read_item(CALL),))


def test_a_last_event_counts_without_its_empty_line() -> None:
    """A whole last event is read; a torn one means that the connection broke."""
    data = line(**over(CALL))
    assert read_stream([data.rstrip()]) == read_response(completed(CALL))
    assert isinstance(read_stream([data[:-9]]).failure(), ConnectionFailed)


def test_a_call_is_read_from_a_stream_as_from_a_body() -> None:
    """The call of a stream is a value like any other."""
    assert read_stream([events(completed(CALL))]).unwrap().calls == (
        ToolCall("call_1", "add", '{"a":1}', extra='{"id":"fc_1"}'),
    )

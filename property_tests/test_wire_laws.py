"""Law 11, *chunking*, and its neighbours at the wire: nothing is lost, nothing raises, fast is true."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import Phase, example, find, given, settings
from hypothesis import strategies as st
from strategies import HOSTILE, runs

from fnagents import Failure, ModelRequest, Run, Success, ToolCall
from fnagents.errors import Incomplete, MalformedResponse
from fnagents.models import ArgumentsDelta, ItemDone, ModelSettings, ReasoningDelta, Sent, TextDelta
from fnagents.wire.deltas import Arriving, arrive, arrived, read_stream
from fnagents.wire.items import ROWS, UnreadableItemError, read_item, write_item
from fnagents.wire.responses import encode_request, read_response, write_request

# --- what servers send, and what they should not ---------------------------------------------------------

# In JSON text, two halves of a pair side by side are a pair, so here they are one.
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8), st.text(st.characters(codec=None), max_size=4)).map(
    lambda text: str(json.loads(json.dumps(text)))
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts)
json_data = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
KINDS = (
    *ROWS,
    *(row.output_type for row in ROWS.values()),
    "message",
    "reasoning",
    "web_search_call",
    "output_text",
    "input_text",
    "input_image",
    "input_file",
    "refusal",
    "summary_text",
)
NAMES = (
    *("id", "call_id", "name", "arguments", "input", "namespace", "output", "role", "content", "summary", "status"),
    *("text", "refusal", "image_url", "file_id", "detail", "file_data", "file_url", "filename", "annotations"),
)


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects that look like items and parts: known types and fields, with values of any kind."""
    typed = st.fixed_dictionaries({}, optional={"type": st.sampled_from(KINDS) | values})
    roles = st.fixed_dictionaries({}, optional={"role": st.sampled_from(["user", "assistant", "system"]) | values})
    fields = st.dictionaries(st.sampled_from(NAMES) | texts, values, max_size=5)
    return st.builds(lambda *given: {key: value for one in given for key, value in one.items()}, fields, roles, typed)


items = objects(json_data | st.lists(objects(json_data), max_size=2))
calls = st.builds(
    lambda kind, name, text, more: {**more, "type": kind, "name": name, "arguments": text, "input": text},
    st.sampled_from([*ROWS]),
    texts.filter(bool),
    texts,
    st.fixed_dictionaries({}, optional={"call_id": texts | st.none(), "namespace": texts | st.none(), "status": texts}),
)
bodies = st.fixed_dictionaries(
    {"id": texts, "model": texts, "output": st.lists(calls | items, max_size=4)},
    optional={
        "status": st.sampled_from(["completed", "incomplete", "failed"]),
        "usage": json_data,
        "error": json_data,
        "incomplete_details": json_data,
    },
)


@given(calls | items)
@example({"type": "message", "role": "user", "content": [{"type": "input_image"}]})
@example({"role": "assistant", "content": [{"type": "output_text", "text": ""}]})
def test_reading_and_writing_gives_the_item_back(data: dict[str, Any]) -> None:
    """Any JSON object is given back exactly, or it is a call without a name or arguments."""
    try:
        item = read_item(data)
    except UnreadableItemError:
        assert data["type"] in ROWS
        field = "arguments" if data["type"] == "function_call" else "input"
        assert not (isinstance(data.get("name"), str) and data["name"] and isinstance(data.get(field), str))
        return
    assert json.dumps(write_item(item), sort_keys=True) == json.dumps(data, sort_keys=True)
    assert read_item(write_item(item)) == item


@given(bodies | json_data)
def test_reading_a_body_is_total(body: Any) -> None:
    """Any JSON gives a response or a typed error; a response has every item, and as text it is the same."""
    outcome = read_response(body)
    assert read_response(json.dumps(body)) == outcome if not isinstance(body, str) else isinstance(outcome, Failure)
    if isinstance(outcome, Success):
        assert [write_item(item) for item in outcome.unwrap().items] == body["output"]


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_reading_any_bytes_is_total(body: bytes | str) -> None:
    """Bytes and text that are no JSON are malformed, and say so without a surrogate."""
    outcome = read_response(body)
    assert isinstance(outcome, Failure)
    getattr(outcome.failure(), "message", "").encode()


# --- streams -----------------------------------------------------------------------------------------------

DELTAS = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.function_call_arguments.delta": ArgumentsDelta,
}
positions = st.integers(0, 3)
pieces = st.builds(
    lambda kind, text, place: {"type": kind, "delta": text, **place},
    st.sampled_from([*DELTAS]),
    texts,
    st.fixed_dictionaries({}, optional={"output_index": positions, "item_id": texts}),
)
told = st.builds(
    lambda kind, item, index: {"type": kind, "item": item, "output_index": index},
    st.sampled_from(["response.output_item.added", "response.output_item.done"]),
    calls | items,
    positions,
)
terminals = st.builds(
    lambda status, body: {"type": f"response.{status}", "response": body},
    st.sampled_from(["completed", "completed", "incomplete", "failed"]),
    bodies,
)
oddities = objects(json_data) | st.just({"type": "error", "message": "no"}) | st.just({"type": "response.created"})
scripts = st.lists(pieces | told | told | oddities, max_size=6).flatmap(
    lambda script: st.lists(terminals, max_size=2).map(lambda ends: [*script, *ends])
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """A stream as servers write it, with any line end, comments and several data lines; now and then torn."""
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    lines = ["\ufeff"] if draw(st.booleans()) else []
    for event in draw(scripts):
        text = json.dumps(event, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
        lines += [": keep-alive", f"event: {event.get('type')}".replace("\n", "").replace("\r", "")]
        lines += [f"data: {line}" for line in text.split("\n")] + [""]
    data = end.join([*lines, *draw(st.sampled_from([[], ["data: [DONE]", "", ""], [""]]))])
    whole = data.encode("utf-8", "surrogatepass")
    return whole[: draw(st.integers(0, len(whole)))] if draw(st.integers(0, 3)) == 0 else whole


def folded(chunks: list[bytes]) -> tuple[Any, list[Any]]:
    """What the chunks come to, and the deltas on the way."""
    state, seen = Arriving(), []
    for chunk in chunks:
        state, deltas = arrive(state, chunk)
        seen += deltas
    return arrived(state), seen


@st.composite
def splits(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The data in chunks, empty ones among them."""
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)])]


@given(st.data(), streams())
def test_any_split_of_a_stream_folds_to_the_same_response(data: st.DataObject, stream: bytes) -> None:
    """Law 11: the response and the deltas do not depend on how the bytes arrive; not byte by byte either."""
    whole = folded([stream])
    assert folded(data.draw(splits(stream))) == whole
    assert folded([stream[index : index + 1] for index in range(len(stream))]) == whole


@given(streams())
def test_a_stream_never_gives_half_a_call(stream: bytes) -> None:
    """Only a whole response is a success, with every call named; a call that is told is one that can be answered."""
    outcome, seen = folded([stream])
    whole = outcome.unwrap().calls if isinstance(outcome, Success) else ()
    told_calls = [delta.item for delta in seen if isinstance(delta, ItemDone) and isinstance(delta.item, ToolCall)]
    assert all(call.name for call in (*whole, *told_calls))


torn = st.lists(st.sampled_from([b"data: ", b"{", b"}", b"\n", b"\r", b": ", b"\xef\xbb\xbf"]))


@given(st.binary(max_size=200) | torn)
def test_any_bytes_are_a_stream(data: bytes | list[bytes]) -> None:
    """Whatever arrives ends in a response or a typed error."""
    whole = data if isinstance(data, bytes) else b"".join(data)
    assert isinstance(read_stream([whole]), Failure)


@given(bodies, st.lists(pieces | oddities, max_size=3))
def test_a_stream_is_its_body(body: dict[str, Any], more: list[Any]) -> None:
    """What the terminal event carries is read as if it had come whole."""
    event = {"type": f"response.{body.setdefault('status', 'completed')}", "response": body}
    harmless = [one for one in more if one.get("type") in [*DELTAS]]
    lines = [f"data: {json.dumps(one)}\n\n".encode() for one in (*harmless, event)]
    assert read_stream(lines) == read_response(body)


@given(st.data(), st.lists(calls, max_size=4))
def test_items_done_in_any_order_make_the_same_response(data: st.DataObject, output: list[Any]) -> None:
    """Without an output in the terminal event, items done late, early or twice stand where they belong."""
    done = [
        {"type": "response.output_item.done", "output_index": index, "item": item} for index, item in enumerate(output)
    ]
    shuffled = data.draw(st.permutations([*done, *done[: data.draw(st.integers(0, len(done)))]]))
    body = {"id": "r", "model": "m"}
    lines = [
        f"data: {json.dumps(event)}\n\n".encode()
        for event in (*shuffled, {"type": "response.completed", "response": body})
    ]
    assert read_stream(lines) == read_response({**body, "output": output})


# --- requests ------------------------------------------------------------------------------------------------


def tried(write: Any) -> Any:
    """What it gives, or the message of what it refuses."""
    try:
        return write()
    except ValueError as error:
        return type(error), str(error)


sents = st.builds(
    Sent,
    instructions=st.none() | texts,
    model=texts,
    settings=st.builds(
        ModelSettings, temperature=st.none() | st.just(0.5), extra=st.sampled_from(["", {"user": "u"}, {"model": "m"}])
    ),
)


@given(runs(), sents, texts, st.booleans(), st.none() | texts)
@settings(max_examples=60)
def test_the_fast_body_is_the_true_one(run: Run, sent: Sent, model: str, streaming: bool, previous: str | None) -> None:
    """The joined fragments are the bytes of `write_request`, for any run, again and again; UTF-8 takes them."""
    request = ModelRequest(run.agent, 1, sent, run.input, run.turns, previous)
    true = tried(lambda: write_request(request, model_default=model))
    for _ in range(2):
        fast = tried(lambda: json.loads(encode_request(request, model_default=model, stream=streaming)))
        if isinstance(fast, Mapping):
            assert fast == {**true, **({"stream": True} if streaming else {})}
        else:
            assert fast == true


# --- the deep cases are reached ----------------------------------------------------------------------------------

QUIET = settings(max_examples=20_000, database=None, phases=[Phase.generate])


@pytest.mark.parametrize("kind", [Incomplete, MalformedResponse])
def test_broken_streams_are_reached(kind: type[Any]) -> None:
    """The strategy makes streams that end in each of the errors that carry what arrived."""
    find(streams(), lambda data: isinstance(getattr(read_stream([data]), "_inner_value", None), kind), settings=QUIET)


def test_streamed_calls_are_reached() -> None:
    """The strategy makes streams that come to a response with calls."""

    def has_calls(data: bytes) -> bool:
        outcome = read_stream([data])
        return isinstance(outcome, Success) and bool(outcome.unwrap().calls)

    find(streams(), has_calls, settings=QUIET)


def test_runs_with_turns_are_reached() -> None:
    """The strategy makes runs whose bodies can be written and have turns in them."""

    def written(run: Run) -> bool:
        request = ModelRequest(run.agent, 1, Sent(), run.input, run.turns)
        return len(run.turns) > 1 and isinstance(tried(lambda: write_request(request)), dict)

    find(runs(), written, settings=QUIET)

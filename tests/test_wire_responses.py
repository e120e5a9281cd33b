"""Bodies of the Responses API, whole and broken, and what servers say went wrong."""

import json
from typing import Any

import pytest
from model_server import completed, message

from fnagents.errors import (
    BadRequest,
    ContextTooLong,
    Incomplete,
    MalformedResponse,
    NotFound,
    RateLimited,
    ServerFailed,
    Unauthorized,
)
from fnagents.items import Opaque, ToolCall
from fnagents.models import ModelResponse, Usage
from fnagents.outcome import Failure, Success
from fnagents.wire.problems import error_in, model_error
from fnagents.wire.responses import MOST_ITEMS, read_response, read_usage

CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": "{}"}


def test_a_response_is_its_items_its_cost_and_its_id() -> None:
    """Items, usage, id and model are read; unknown items are carried along."""
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    body = completed(message("Hi."), CALL, {"type": "levitation_call", "height": 1.5}, usage=usage)
    response = read_response(body).unwrap()
    assert (response.id, response.model, response.text) == ("resp_1", "m", "Hi.")
    assert response.usage == Usage(1, 10, 5, 4, 2)
    assert response.calls == (ToolCall("call_1", "add", "{}", extra='{"id":"fc_1"}'),)
    assert response.items[2] == Opaque("levitation_call", '{"type":"levitation_call","height":1.5}')


@pytest.mark.parametrize("form", [str, str.encode, lambda text: b"\xef\xbb\xbf" + text.encode()])
def test_the_text_of_a_body_reads_as_its_data(form: Any) -> None:
    """Parsed JSON, its text and its bytes, with a byte order mark too, are one response."""
    body = completed(message("hé \ud83d"))
    assert read_response(form(json.dumps(body))) == read_response(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "it is not JSON: Expecting value at line 1 column 1 (of 0 characters)"),
        (b"<html>", "it is not JSON: Expecting value at line 1 column 1 (of 6 characters); it begins with '<html>'"),
        (b'{"output": \xff}', "it is not UTF-8: invalid start byte at byte 11"),
        ('{"output": NaN}', "it is not JSON: NaN is not a JSON number; it begins with '{\"output\": NaN}'"),
        ("[" * 100_000, "it is not JSON: it is nested more than 200 deep; it begins with " + repr("[" * 200)),
        ('"{}"', "it is not a JSON object"),
        ([], "it is not a JSON object"),
        (None, "it is not a JSON object"),
        ({}, "it has no list of output items"),
        ({"output": None}, "it has no list of output items"),
        ({"object": "chat.completion", "choices": []}, "it has no list of output items"),
        ({"output": [5]}, "output[0] is not an object"),
        ({"output": [None, CALL, "x"]}, "output[0] is not an object"),
        ({"output": [CALL, {**CALL, "name": 3}]}, "output[1]: a function_call has no name"),
        ({"output": [{**CALL, "arguments": None}, {**CALL, "name": 3}, {"a": float("nan")}]}, "output[0]: the"),
        ({"output": [{"a": float("nan")}]}, "output[0] is not plain JSON data: Out of range float"),
        ({"output": [{"a": {1, 2}}]}, "output[0] is not plain JSON data: Object of type set"),
    ],
)
def test_what_cannot_be_read_is_malformed(body: Any, said: Any) -> None:
    """Anything but a response is `MalformedResponse`, which says what was wrong; nothing raises."""
    failure = read_response(body).failure()
    assert isinstance(failure, MalformedResponse)
    assert failure.message.startswith(said)


def test_a_response_has_a_most_of_items() -> None:
    """One more than the limit is malformed, and carries those within it."""
    assert len(read_response(completed(*[CALL] * MOST_ITEMS)).unwrap().items) == MOST_ITEMS
    failure = read_response(completed(*[CALL] * (MOST_ITEMS + 1))).failure()
    assert isinstance(failure, MalformedResponse)
    assert failure.message == f"it has more than {MOST_ITEMS} items"
    assert failure.arrived is not None
    assert len(failure.arrived.items) == MOST_ITEMS


def test_a_malformed_response_carries_what_could_be_read() -> None:
    """The other items and the usage are kept, and the half call is not among them."""
    body = completed(message("a"), {**CALL, "arguments": 5}, CALL)
    failure = read_response(body).failure()
    assert isinstance(failure, MalformedResponse)
    assert failure.arrived == read_response(completed(message("a"), CALL)).unwrap()
    assert failure.usage == Usage(1, 7, 3)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
        ({"status": "incomplete", "incomplete_details": None}, "incomplete"),
        ({"status": "incomplete", "incomplete_details": {"reason": None}}, "incomplete"),
        ({"status": "queued"}, "queued"),
        ({"status": "in_progress"}, "in_progress"),
        ({"status": "cancelled"}, "cancelled"),
    ],
)
def test_an_unfinished_response_is_incomplete(fields: Any, reason: Any) -> None:
    """A response cut short is no success, whatever calls it has; it carries what arrived."""
    half = {**CALL, "arguments": '{"a'}
    arrived = ModelResponse((ToolCall("call_1", "add", '{"a', extra='{"id":"fc_1"}'),), Usage(1, 7, 3), "resp_1", "m")
    assert read_response(completed(half, **fields)) == Failure(Incomplete(reason, arrived))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"error": {"code": "rate_limit_exceeded", "message": "slow"}}, RateLimited("slow")),
        ({"error": {"code": "server_error", "message": "oh"}}, ServerFailed("oh")),
        ({"error": {"code": "invalid_prompt", "message": "bad"}}, BadRequest("bad")),
        ({"error": {"code": "image_parse_error", "message": "bad"}}, BadRequest("bad")),
        ({"error": {"code": "context_length_exceeded", "message": "long"}}, ContextTooLong("long")),
        ({"error": {"code": "insufficient_quota", "message": "paid"}}, BadRequest("paid", 429)),
        ({"error": {"code": "invalid_api_key", "message": "key"}}, Unauthorized("key")),
        ({"error": {"code": "model_not_found", "message": "what"}}, NotFound("what")),
        ({"error": {"code": "brand_new_code", "message": "hm"}}, ServerFailed("hm")),
        ({"error": {"code": None, "message": ""}}, ServerFailed('{"code":null,"message":""}')),
        ({"error": "text"}, ServerFailed("text")),
        ({"error": 5}, ServerFailed("5")),
        ({"error": None}, ServerFailed("the response failed without saying why")),
    ],
)
def test_a_failed_response_is_its_error(fields: Any, error: Any) -> None:
    """The error's code decides; an unknown one is the server's failure."""
    assert read_response({"status": "failed", "output": [], **fields}) == Failure(error)


def test_an_error_without_status_is_an_error_too() -> None:
    """Servers that answer 200 with an error object have failed; an empty error is none."""
    assert read_response({"error": {"message": "no", "code": "server_error"}}) == Failure(ServerFailed("no"))
    assert isinstance(read_response({"status": "completed", "error": {}, "output": []}), Success)


@pytest.mark.parametrize("usage", [None, [], {}, {"input_tokens": None}, {"input_tokens": True, "output_tokens": -1}])
def test_usage_is_read_as_far_as_it_goes(usage: Any) -> None:
    """Null, absent and absurd counts are 0; the request counts."""
    assert read_usage(usage) == Usage(1)
    assert read_response({"output": [], "usage": usage}) == Success(ModelResponse())


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (400, "invalid_value", BadRequest("m")),
        (400, "context_length_exceeded", ContextTooLong("m")),
        (400, "exceed_context_size_error", ContextTooLong("m")),
        (401, "invalid_api_key", Unauthorized("m")),
        (403, None, Unauthorized("m", 403)),
        (404, "model_not_found", NotFound("m")),
        (408, None, ServerFailed("m", 408, 1.5)),
        (409, None, ServerFailed("m", 409, 1.5)),
        (413, None, BadRequest("m", 413)),
        (422, None, BadRequest("m", 422)),
        (418, None, BadRequest("m", 418)),
        (429, "rate_limit_exceeded", RateLimited("m", 1.5)),
        (429, "insufficient_quota", BadRequest("m", 429)),
        (500, None, ServerFailed("m", 500, 1.5)),
        (503, "overloaded", ServerFailed("m", 503, 1.5)),
    ],
)
def test_every_status_has_its_error(status: Any, code: Any, error: Any) -> None:
    """HTTP's status decides, but for a used-up quota and a conversation that is too long."""
    assert model_error({"message": "m", "code": code}, status, 1.5) == error


@pytest.mark.parametrize(
    "words", ["This model's maximum context length is 8192 tokens.", "Your input exceeds the context window of m."]
)
def test_local_servers_say_that_it_is_too_long_in_words(words: Any) -> None:
    """Servers without a code for it are known by their wording, where the status is that of a bad request."""
    assert model_error({"message": words, "type": "BadRequestError"}, 400) == ContextTooLong(words)
    assert model_error({"message": words}, 500) == ServerFailed(words)


def test_a_long_message_is_cut() -> None:
    """A page of HTML in an error is not carried along whole."""
    error = model_error({"message": "x" * 100_000}, 500)
    assert isinstance(error, ServerFailed)
    assert len(error.message) < 1_100


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": "no"}, "no"),
        ({"message": "no"}, {"message": "no"}),
        ({"detail": "no"}, {"detail": "no"}),
        ({"output": []}, None),
        ([], None),
    ],
)
def test_an_error_is_found_where_servers_put_it(body: Any, error: Any) -> None:
    """Under "error", or in the body itself."""
    assert error_in(body) == error


def test_the_detail_of_a_server_is_its_message() -> None:
    """FastAPI's word for the message is understood."""
    assert model_error({"detail": "no"}, 422) == BadRequest("no", 422)

"""Requests as the Responses API takes them, judged by the types of the `openai` package."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from fnagents.errors import DeclarationError
from fnagents.items import File, Image, Message, Text, ToolCall, ToolOutput
from fnagents.models import ModelRequest, ModelSettings, Sent, ToolDefinition
from fnagents.runs import Input, Turn
from fnagents.wire.responses import encode_request, write_request
from fnagents.wire.settings import write_tool_choice, write_tools

JUDGE = TypeAdapter(ResponseCreateParamsNonStreaming)
ADD = ToolDefinition("add", '{"type":"function","name":"add","parameters":{"type":"object"},"strict":false}')
SQL = ToolDefinition("sql", '{"type":"custom","name":"sql"}', kind="custom_tool_call")
SEARCH = ToolDefinition("web_search", '{"type":"web_search"}', kind="web_search")
MCP = ToolDefinition("docs", '{"type":"mcp","server_label":"docs"}', "docs", "mcp_approval_request")


def body(*items: Any, **fields: Any) -> Any:
    """The body of a request with these items and `Sent` fields."""
    return write_request(ModelRequest("a", 0, Sent(**{"model": "m", **fields}), Input(items)))


def settings(**fields: Any) -> Any:
    """The body of a request with these settings, without model and input."""
    data = body(settings=ModelSettings(**fields))
    return {key: value for key, value in data.items() if key not in {"model", "input"}}


def judged(data: Any) -> Any:
    """What the `openai` package's types make of a body: fields that they do not have are gone."""
    return _whole(JUDGE.validate_python(data))


def _whole(data: Any) -> Any:
    # Where the types say Iterable, the judge gives an iterator that judges as it is read.
    if isinstance(data, dict):
        return {key: _whole(value) for key, value in data.items()}
    return data if isinstance(data, str) or not isinstance(data, Iterable) else [_whole(value) for value in data]


def test_the_smallest_request_says_nothing_that_was_not_asked() -> None:
    """What is None or empty is left out."""
    assert body(Message("user", "hi")) == {"model": "m", "input": [{"role": "user", "content": "hi"}]}
    assert write_request(ModelRequest("a", 0, Sent(), Input(()))) == {"input": []}


def test_the_clients_model_is_for_requests_that_name_none() -> None:
    """The agent's own model comes first."""
    assert write_request(ModelRequest("a", 0, Sent(), Input(())), model_default="d")["model"] == "d"
    assert write_request(ModelRequest("a", 0, Sent(model="m"), Input(())), model_default="d")["model"] == "m"


def test_every_setting_goes_to_its_place() -> None:
    """Each field of the settings is sent where the API has it, zeros and false included, but `timeout`."""
    assert settings(
        temperature=0.0,
        top_p=1.0,
        max_output_tokens=16,
        tool_choice="none",
        truncation="auto",
        store=False,
        reasoning={"effort": "low"},
        verbosity="high",
        metadata={"a": "b"},
        include=("reasoning.encrypted_content", "file_search_call.results"),
        top_logprobs=0,
        max_tool_calls=3,
        service_tier="flex",
        prompt_cache_key="k",
        prompt_cache_retention="24h",
        safety_identifier="s",
        background=False,
        prompt={"id": "pmpt_1", "variables": {"x": "y"}},
        parallel_tool_calls=True,
        extra={"user": "u"},
        timeout=3.0,
    ) == {
        "temperature": 0.0,
        "top_p": 1.0,
        "max_output_tokens": 16,
        "tool_choice": "none",
        "truncation": "auto",
        "store": False,
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "high"},
        "metadata": {"a": "b"},
        "include": ["file_search_call.results", "message.output_text.logprobs", "reasoning.encrypted_content"],
        "top_logprobs": 0,
        "max_tool_calls": 3,
        "service_tier": "flex",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "safety_identifier": "s",
        "background": False,
        "prompt": {"id": "pmpt_1", "variables": {"x": "y"}},
        "parallel_tool_calls": True,
        "user": "u",
    }


def test_a_full_request_fits_the_official_types() -> None:
    """A body with every setting, tool and kind of item is what the official package's types describe, no more."""
    data = body(
        Message("system", "be kind"),
        Message("user", (Text("see"), Image("https://example.org/a.png"), File(file_id="f"))),
        Message("assistant", (Text("seen"),)),
        ToolCall("c1", "add", "{", extra='{"id":"fc_1","status":"completed"}'),
        ToolOutput("c1", (Text("6"), Image(file_id="f"))),
        ToolCall("c2", "sql", "select 1", "custom_tool_call"),
        ToolOutput("c2", "1", "custom_tool_call"),
        instructions="sys",
        tools=(ADD, SEARCH, MCP, SQL, ToolDefinition("plan", ADD.text.replace("add", "plan"), "crm")),
        output_schema='{"type":"object","properties":{},"required":[],"additionalProperties":false}',
        settings=ModelSettings(
            temperature=0.5,
            tool_choice="add",
            parallel_tool_calls=False,
            reasoning={"effort": "low", "summary": "auto"},
            verbosity="low",
            metadata={"a": "b"},
            include=("reasoning.encrypted_content",),
            top_logprobs=2,
            service_tier="auto",
            truncation="disabled",
            store=True,
            prompt={"id": "pmpt_1"},
            safety_identifier="s",
        ),
    )
    assert judged(data) == data


def test_the_judge_sees_fields_that_are_not_there() -> None:
    """The comparison with the official types does find a field that they do not have."""
    data = body(Message("user", "hi", extra='{"colour":"red"}'))
    assert judged(data) != data


def test_parallel_tool_calls_need_tools() -> None:
    """The API refuses the setting without tools, so it goes with them only."""
    assert settings(parallel_tool_calls=False) == {}
    assert body(tools=(ADD,), settings=ModelSettings(parallel_tool_calls=False))["parallel_tool_calls"] is False


def test_a_server_held_conversation_is_named() -> None:
    """A previous response or a conversation is named in the body."""
    request = ModelRequest("a", 1, Sent(), Input(()), previous_response_id="resp_1")
    assert write_request(request) == {"previous_response_id": "resp_1", "input": []}
    request = ModelRequest("a", 1, Sent(), Input(()), conversation_id="conv_1")
    assert write_request(request) == {"conversation": "conv_1", "input": []}


def test_an_output_schema_becomes_a_strict_format() -> None:
    """A schema is sent as the strict format `final_output`; a whole format is sent as it is."""
    schema = {"type": "object", "properties": {}}
    strict = {"type": "json_schema", "name": "final_output", "schema": schema, "strict": True}
    loose = {**strict, "strict": False, "name": "mine"}
    assert body(output_schema=json.dumps(schema))["text"] == {"format": strict}
    assert body(output_schema=json.dumps(loose))["text"] == {"format": loose}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "name": "add"}),
        ("sql", {"type": "custom", "name": "sql"}),
        ("web_search", {"type": "web_search"}),
        ("file_search", {"type": "file_search"}),
        ("nonexistent", {"type": "function", "name": "nonexistent"}),
        ("crm.plan", {"type": "function", "name": "crm.plan"}),
        ('{"type":"mcp","server_label":"docs"}', {"type": "mcp", "server_label": "docs"}),
    ],
)
def test_a_tool_choice_names_a_tool(choice: Any, sent: Any) -> None:
    """A name is a function's unless a tool of that name, or the provider, says otherwise."""
    assert write_tool_choice(choice, (ADD, SQL, SEARCH, MCP)) == sent


def test_a_function_may_be_named_like_a_hosted_tool() -> None:
    """A function that is called file_search is a function."""
    named = ToolDefinition("file_search", ADD.text.replace("add", "file_search"))
    assert write_tool_choice("file_search", (named,)) == {"type": "function", "name": "file_search"}


def test_tools_of_a_namespace_stand_together() -> None:
    """They are grouped where the first one stands, under the description that one of them brings along."""
    first = ToolDefinition("a", '{"type":"function","name":"a"}', "crm")
    other = ToolDefinition("b", '{"type":"function","name":"b"}', "crm")
    space = '{"type":"namespace","name":"hr","description":"People.","tools":[{"type":"function","name":"c"}]}'
    member = ToolDefinition("d", space.replace('"c"', '"d"'), "hr")
    assert write_tools((first, ADD, ToolDefinition("c", space, "hr"), other, member, MCP)) == [
        {
            "type": "namespace",
            "name": "crm",
            "description": "The tools of crm.",
            "tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "b"}],
        },
        json.loads(ADD.text),
        {
            "type": "namespace",
            "name": "hr",
            "description": "People.",
            "tools": [{"type": "function", "name": "c"}, {"type": "function", "name": "d"}],
        },
        json.loads(MCP.text),
    ]


def test_a_namespace_without_tools_is_a_mistake() -> None:
    """A namespace that has no list of tools is named."""
    bad = ToolDefinition("a", '{"type":"namespace","name":"crm"}', "crm")
    with pytest.raises(DeclarationError, match="the namespace 'crm' has no tools"):
        write_tools((ToolDefinition("b", '{"type":"function"}', "crm"), bad))


@pytest.mark.parametrize("name", ["temperature", "input", "tools", "stream", "model"])
def test_extra_settings_contradict_nothing(name: Any) -> None:
    """A further field never overrides silently what the request says already."""
    with pytest.raises(DeclarationError, match=f"settings.extra has {name}, which the request says already"):
        settings(temperature=1.0, extra={name: 1})


def test_the_fast_form_is_the_same_body() -> None:
    """`encode_request` gives the bytes of `write_request`, with and without streaming."""
    items = (Message("user", "hé \udcff"), ToolCall("c", "f"), ToolOutput("c", "o"))
    for request in (
        ModelRequest("a", 0, Sent(instructions="\ud800", tools=(ADD,)), Input(items), (Turn("a"),)),
        ModelRequest("a", 0, Sent(), Input(())),
        ModelRequest("a", 0, Sent(model="m"), Input(()), conversation_id="conv_1"),
    ):
        assert json.loads(encode_request(request, model_default="d")) == write_request(request, model_default="d")
        assert json.loads(encode_request(request, stream=True)) == {**write_request(request), "stream": True}


def test_what_was_encoded_is_not_encoded_again() -> None:
    """Input and turns keep their fragment: the second body is joined of the very same bytes."""
    given, sent = Input((Message("user", "hi"),)), Sent(model="m")
    encode_request(ModelRequest("a", 0, sent, given))
    kept = dict(given._memo or {}), dict(sent._memo or {})
    encode_request(ModelRequest("a", 1, sent, given, (Turn("a"),)))
    assert (given._memo, sent._memo) == kept

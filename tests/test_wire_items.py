"""Items and parts of the Responses API, read and written."""

import json
from typing import Any

import pytest

from fnagents.errors import DeclarationError
from fnagents.items import File, Image, Message, Opaque, Reasoning, Refusal, Text, ToolCall, ToolOutput
from fnagents.jsontext import compact
from fnagents.wire import items as wire_items
from fnagents.wire.items import ROWS, UnreadableItemError, read_item, write_item
from fnagents.wire.parts import LONGEST_ARGUMENTS, LONGEST_OUTPUT, read_part, write_part
from fnagents.wire.responses import write_items

CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a":1}'}

AS_SENT = [
    CALL,
    {**CALL, "status": None, "caller": {"type": "direct"}, "namespace": "crm"},
    {**CALL, "namespace": None},
    {**CALL, "namespace": ""},
    {**CALL, "call_id": ""},
    {**CALL, "call_id": None},
    {**CALL, "call_id": 7},
    {key: value for key, value in CALL.items() if key != "call_id"},
    {**CALL, "arguments": ""},
    {**CALL, "arguments": '{"a": '},
    {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_c", "name": "sql", "input": "select 1"},
    {"type": "function_call_output", "call_id": "call_1", "output": "6"},
    {"type": "function_call_output", "call_id": "call_1", "output": "", "id": None, "status": "completed"},
    {"type": "function_call_output", "call_id": None, "output": []},
    {"type": "function_call_output", "call_id": "call_1", "output": None},
    {"type": "function_call_output", "call_id": "call_1", "output": ["not a part"]},
    {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [
            {"type": "input_text", "text": "a"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
            {"type": "input_file", "file_data": "data:text/plain;base64,AA==", "filename": "a.txt"},
        ],
    },
    {"role": "user", "content": "hi"},
    {"type": "message", "role": "user", "content": "hi"},
    {"role": "user", "content": []},
    {"role": "user", "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "file_id": "f"}]},
    {"role": "user", "content": [{"type": "input_image", "image_url": None, "detail": "low", "file_id": ""}]},
    {"role": "user", "content": [{"type": "input_file", "file_url": "https://example.org/a", "file_id": None}]},
    {"role": "user", "content": [{"type": "output_text", "text": "odd here"}]},
    {"role": "user", "content": [{"type": "input_audio", "data": "AA"}, {"text": "no type"}, {"type": 5}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
    {"role": "assistant", "content": [{"type": "input_text", "text": "hi"}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": None}]},
    {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "phase": None,
        "role": "assistant",
        "content": [
            {"type": "output_text", "text": "x", "annotations": [{"type": "url_citation", "start_index": 0}]},
            {"type": "refusal", "refusal": "no"},
            {"type": "refusal", "refusal": "no", "why": {"a": [1.5, -0.0, 1e300, 12345678901234567890]}},
        ],
    },
    {"role": "nobody", "content": "hi"},
    {"role": ["user"], "content": "hi"},
    {"role": "user", "content": 5},
    {"role": "user", "content": ["text"]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "thus"}],
        "encrypted_content": "e",
    },
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "thus", "more": 1}]},
    {"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "hm"}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": None}},
    {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"paths": ["crm"]}},
    {"type": None, "role": "user", "content": "hi"},
    {"type": {"odd": True}},
    {},
    {"text": "\ud83d alone"},
]


@pytest.mark.parametrize("data", AS_SENT, ids=range(len(AS_SENT)))
def test_what_was_read_is_written_as_it_was(data: Any) -> None:
    """Reading and then writing gives the item back exactly: nulls, absent keys, text or list, numbers."""
    item = read_item(data)
    assert write_item(item) == data
    assert compact(write_item(item)) == compact(write_item(read_item(write_item(item))))
    assert [*map(type, json.loads(compact(data)))] == [*map(type, data)]
    hash(item)


def test_a_function_call_has_its_parts() -> None:
    """A call is read with the text of its arguments as the model wrote it; fields without an attribute are kept."""
    assert read_item({**CALL, "namespace": "crm"}) == ToolCall(
        "call_1", "add", '{"a":1}', namespace="crm", extra='{"id":"fc_1"}'
    )


def test_a_custom_call_is_a_call_of_its_kind() -> None:
    """A custom tool's input is its arguments, and its output is of the custom type."""
    data = {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "select 1"}
    assert read_item(data) == ToolCall("c", "sql", "select 1", "custom_tool_call")
    assert write_item(ToolOutput("c", "1", "custom_tool_call")) == {
        "type": "custom_tool_call_output",
        "call_id": "c",
        "output": "1",
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": None}, "a function_call has no name"),
        ({"name": ""}, "a function_call has no name"),
        ({"name": {"a": 1}}, "a function_call has no name"),
        ({"arguments": None}, "the function_call of 'add' has no arguments as text"),
        ({"arguments": {"a": 1}}, "the function_call of 'add' has no arguments as text"),
    ],
)
def test_a_call_that_cannot_be_answered_is_no_item(change: Any, said: Any) -> None:
    """A call without a name or without arguments is never carried along unseen."""
    with pytest.raises(UnreadableItemError, match=said):
        read_item({**CALL, **change})


def test_a_new_id_replaces_the_one_that_was_read() -> None:
    """The id of the call state wins over whatever stood on the wire."""
    assert read_item({**CALL, "call_id": None}) == ToolCall("", "add", '{"a":1}', extra='{"id":"fc_1","call_id":null}')
    renamed = ToolCall("call_2", "add", "{}", extra='{"call_id":null}')
    assert write_item(renamed) == {"type": "function_call", "call_id": "call_2", "name": "add", "arguments": "{}"}


def test_values_made_in_python_get_what_the_api_requires() -> None:
    """A picture in a message has a detail, an assistant's text annotations, and texts alone are one text."""
    picture, text = Image("https://example.org/a.png"), Text("hi")
    assert write_item(Message("user", (text, picture))) == {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "hi"},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        ],
    }
    assert write_item(Message("assistant", (text, Text("!")))) == {"role": "assistant", "content": "hi!"}
    assert write_item(Message("assistant", (text, Refusal("no")))) == {
        "role": "assistant",
        "content": [{"type": "output_text", "text": "hi", "annotations": []}, {"type": "refusal", "refusal": "no"}],
    }
    assert write_item(ToolOutput("c", (text, picture, File(file_id="f")))) == {
        "type": "function_call_output",
        "call_id": "c",
        "output": [
            {"type": "input_text", "text": "hi"},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
            {"type": "input_file", "file_id": "f"},
        ],
    }
    assert write_item(Reasoning(("so",))) == {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]}
    assert write_item(ToolCall("", "f")) == {"type": "function_call", "name": "f", "arguments": "{}"}


def test_a_picture_keeps_its_detail() -> None:
    """The detail that was asked for is sent."""
    part = Image("u", detail="high")
    assert write_part(part, "user") == {"type": "input_image", "image_url": "u", "detail": "high"}
    assert read_part(write_part(part, "user"), "user") == part


def test_arguments_too_long_for_the_api_are_bounded() -> None:
    """Arguments over the API's limit go back as a short JSON object that says how long they were."""
    whole = "x" * LONGEST_ARGUMENTS
    assert write_item(ToolCall("c", "f", whole))["arguments"] == whole
    sent = json.loads(write_item(ToolCall("c", "f", '"' * 1_900_000))["arguments"])
    assert sent["left_out"].startswith("these arguments had 1900000 characters")
    assert sent["began_with"] == '"' * 2_000


@pytest.mark.parametrize("output", ["y" * (LONGEST_OUTPUT + 1), "y" * (LONGEST_OUTPUT - 200) + "\ud800" * 100])
def test_outputs_too_long_for_the_api_are_bounded(output: Any) -> None:
    """A tool's output over the API's limit is cut, and says so, as text and as a part."""
    call_output = ToolOutput("c", output)
    (sent,) = write_items([call_output])
    assert len(sent["output"]) <= LONGEST_OUTPUT
    assert sent["output"].endswith(" characters more)")
    (parts,) = write_items([ToolOutput("c", (Text(output),))])
    assert parts["output"][0]["text"] == sent["output"]


def test_unpaired_surrogates_become_visible_on_the_wire() -> None:
    """No text, argument, key or unknown field keeps an unpaired surrogate on the wire; the values do."""
    call = ToolCall("c", "f", '{"a":"\udcff"}', extra='{"note":"\ud800"}')
    output = ToolOutput("c", (Text("a\udcff"),))
    opaque = Opaque("odd", '{"type":"odd","\\udcff":1}')
    assert write_items([call, output, opaque, Message("user", "fine")]) == [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":"<U+DCFF>"}', "note": "<U+D800>"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "a<U+DCFF>"}]},
        {"type": "odd", "<U+DCFF>": 1},
        {"role": "user", "content": "fine"},
    ]
    assert call.arguments == '{"a":"\udcff"}'


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (Opaque("odd", "[1]"), r"the data of Opaque\('odd'\) is not a JSON object: \[1\]"),
        (Opaque("odd", "{"), r"the data of Opaque\('odd'\) is not a JSON object: Expecting"),
        (Message("user", "hi", extra="nope"), "extra is not a JSON object"),
        (ToolCall("c", "f", kind="teleport_call"), "a call of kind 'teleport_call' has no form here"),
    ],
)
def test_a_value_that_holds_no_json_is_a_mistake(item: Any, said: Any) -> None:
    """Text that is not JSON where JSON belongs is the programmer's mistake, and is named."""
    with pytest.raises(DeclarationError, match=said):
        write_item(item)


def test_every_row_answers_for_the_type_of_its_output() -> None:
    """Kinds and the types of their outputs are distinct, and each is read as what it is."""
    types = [row.output_type for row in ROWS.values()]
    assert len({*types, *ROWS}) == 2 * len(ROWS)
    for kind, row in ROWS.items():
        assert read_item({"type": row.output_type, "call_id": "c", "output": "o"}) == ToolOutput("c", "o", kind)


def test_the_module_says_what_it_exports() -> None:
    """`__all__` names what is there."""
    assert all(hasattr(wire_items, name) for name in wire_items.__all__)

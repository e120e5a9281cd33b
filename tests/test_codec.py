"""Runs and events as text: what is written, what is read, and every way in which a file is refused."""

import json
import sys
from typing import Any

import attrs
import pytest
import run_schema
from jsonschema import Draft202012Validator

from fnagents import (
    Approved,
    AwaitingApproval,
    Checked,
    Checkup,
    CorruptFile,
    Decided,
    Delegate,
    Event,
    Failure,
    Finished,
    Handoff,
    InvalidJson,
    Listing,
    Message,
    ModelFailed,
    ModelResponse,
    ModelSettings,
    ModelTimedOut,
    NewerVersion,
    NotAFnagentsFile,
    Opaque,
    Output,
    Prepared,
    RateLimited,
    Reopened,
    Replied,
    Returned,
    Run,
    Sent,
    Success,
    Text,
    ToolCall,
    ToolDefinition,
    TurnsExhausted,
    Usage,
    Verdict,
    dump_event,
    dump_run,
    events,
    fold,
    load_event,
    load_run,
    start,
)
from fnagents import codec as codec_module
from fnagents.beginnings import Start, beginning
from fnagents.converting import ALONE, UNIONS, members
from fnagents.documents import Reader, Writer

ADD = ToolDefinition("add", '{"type":"function","name":"add"}')
PAY = ToolDefinition("pay", '{"type":"function","name":"pay"}')
TOLD = Sent("You add.", (ADD, PAY), ModelSettings(temperature=0.5, include=("a",)), "gpt", '{"type":"object"}')


def replied(turn: int, *items: Any, sent: Sent = TOLD, path: tuple[str, ...] = ()) -> Replied:
    return Replied(turn, Success(ModelResponse(items, Usage(1, 20, 3), f"resp_{turn}")), sent, path=path)


def history() -> tuple[Event, ...]:
    """Plain answers, a nested run with a question, a handoff, a failure and what came after it."""
    return (
        replied(0, ToolCall("a", "add"), ToolCall("a", "add"), Message("assistant", (Text("t"), Opaque("x", "{}")))),
        Returned("0.0", Success(Output("1", memory="m"))),
        Returned("0.1", Failure(InvalidJson("no"))),
        replied(1, ToolCall("b", "ask"), ToolCall("", "add"), ToolCall("c", "add")),
        Returned("1.0", Success(Delegate("expert", (Message("user", "?"),), 3, '{"q":1}'))),
        replied(0, ToolCall("d", "pay"), path=("1.0",)),
        Checked("0.0", Success(Checkup("{}", "abc", needed=True)), path=("1.0",)),
        Approved("0.0", "abc", always=True, path=("1.0",)),
        Returned("0.0", Success(Output("paid")), path=("1.0",)),
        Finished(1, Success("asked"), path=("1.0",)),
        Returned("1.1", Success(Output((Text("2"),), Usage(2)))),
        Returned("1.2", Success(Output("3"))),
        replied(2, ToolCall("e", "to_other")),
        Returned("2.0", Success(Handoff("other"))),
        Prepared(3, "Now.", (Listing(ADD, serial=True), Listing(PAY, gate=True)), (Listing(PAY),)),
        replied(3, Message("assistant", "Done."), sent=Sent("Now.", (ADD, PAY))),
        Decided(3),
        Finished(4, Failure(TurnsExhausted(4)), (Verdict("g", "fine"),)),
        Reopened(4, 9),
        Replied(4, Failure(RateLimited("busy", 2.5)), TOLD),
    )


def recorded() -> Run:
    return fold(start("root", "hi", max_turns=4, id="r1"), history()).unwrap()


# --- what is written -----------------------------------------------------------------------------------


def test_a_run_is_loaded_as_it_was() -> None:
    """What is compared and what is worked out: ids on the wire, sticky decisions."""
    run = recorded()
    loaded = load_run(dump_run(run)).unwrap()

    assert run == loaded
    assert run.ids == loaded.ids
    assert run.turns[1].calls[0].child.sticky == loaded.turns[1].calls[0].child.sticky != {}
    assert dump_run(run) == dump_run(loaded)


@pytest.mark.parametrize("count", range(len(history()) + 1))
def test_a_run_is_loaded_as_it_was_at_any_moment(count: int) -> None:
    """Saving may happen after every event."""
    run = fold(start("root", "hi"), history()[:count]).unwrap()

    assert Success(run) == load_run(dump_run(run).encode())


@pytest.mark.parametrize("event", [*history(), Prepared(1)], ids=lambda event: type(event).__name__)
def test_an_event_is_loaded_as_it_was(event: Event) -> None:
    """An event's document stands alone."""
    assert Success(event) == load_event(dump_event(event))


def test_the_form_of_a_document() -> None:
    """Header, definitions, start, events; the tag comes first; what equals its default is left out."""
    run = fold(start("a", "hi"), [replied(0, ToolCall("c", "add"), sent=Sent()), history()[1]]).unwrap()

    assert dump_run(run) == (
        '{"format":"fnagents.run","version":1,"definitions":{},'
        '"start":{"agent":"a","input":[{"$type":"Message","role":"user","content":"hi"}]},"events":['
        '{"$type":"Replied","turn":0,"outcome":{"$type":"Success","value":{"items":['
        '{"$type":"ToolCall","id":"c","name":"add"}],"usage":{"requests":1,"input_tokens":20,"output_tokens":3},'
        '"id":"resp_0"}}},'
        '{"$type":"Returned","place":"0.0","outcome":{"$type":"Success","value":'
        '{"$type":"Output","parts":"1","memory":"m"}}}]}'
    )


def test_definitions_are_written_once_and_loaded_as_one_object() -> None:
    """The file grows with what happened; what the model was told is shared again after loading."""
    answers = [replied(turn, ToolCall(f"c{turn}", "none")) for turn in range(3)]
    run = start("a", "hi")
    for turn, answer in enumerate(answers):
        run = fold(run, [answer, Returned(f"{turn}.0", Success(Output("x")))]).unwrap()
    text = dump_run(run)
    first, _, last = (turn.replied.sent for turn in load_run(text).unwrap().turns)

    assert text.count("You add.") == text.count('\\"name\\":\\"add\\"') == 1
    assert first == TOLD
    assert first is last


def test_instructions_of_an_opened_turn_stand_once() -> None:
    """`Prepared` and `Replied` of one turn refer to one text, and their definitions are one object."""
    run = recorded()
    turn = load_run(dump_run(run)).unwrap().turns[3]

    assert dump_run(run).count("Now.") == 1
    assert turn.prepared.instructions is turn.replied.sent.instructions
    assert turn.prepared.tools[0].definition is turn.replied.sent.tools[0]


def test_the_text_of_a_run_is_linear_in_its_turns() -> None:
    """Twice the turns, twice the text: nothing is written again."""
    sizes = [len(dump_run(long(turns))) for turns in (100, 200, 400)]

    assert sizes[2] - sizes[1] == pytest.approx(2 * (sizes[1] - sizes[0]), rel=0.02)


def long(turns: int) -> Run:
    steps: list[Event] = []
    for turn in range(turns):
        steps += [replied(turn, ToolCall(f"c{turn:04}", "add")), Returned(f"{turn}.0", Success(Output("1")))]
    return fold(start("a", "hi"), steps).unwrap()


@pytest.mark.parametrize(
    "text",
    [
        "\ud800",
        "a\udfff\ud800b",
        "\ud83d" + "\ude00",
        "\U0001f600\ud83d" + "\ude00",
        "\x00\u2028",
        '"Joined"',
        "\\ud800",
    ],
    ids=ascii,
)
def test_any_text_survives_as_utf_8(text: str) -> None:
    """Unpaired surrogates too, even two that look like a pair, in events and in definitions."""
    event = replied(0, Message("assistant", text), sent=Sent(text))

    assert Success(event) == load_event(dump_event(event).encode())


@pytest.mark.parametrize("seconds", [0.5, 3, float("inf"), float("-inf")])
def test_any_float_survives_as_json(seconds: float) -> None:
    """Infinity has no form in JSON, so a text stands for it."""
    event = Replied(0, Failure(ModelTimedOut(seconds)))

    assert Success(event) == load_event(dump_event(event))


@pytest.mark.parametrize(
    ("odd", "read"), [(float("nan"), float("inf")), (10**400, float("inf")), (-(10**400), float("-inf"))]
)
def test_what_no_field_holds_does_not_make_a_run_unsaveable(odd: float, read: float) -> None:
    """NaN and integers beyond all floats are written as an infinity, so that the file can be read."""
    loaded = load_event(dump_event(Replied(0, Failure(RateLimited("busy", odd)))))

    assert loaded == Success(Replied(0, Failure(RateLimited("busy", read))))


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (str(10**400), "expected a number that a float can be"),
        (str(-(10**400)), "expected a number that a float can be"),
        ('"nan"', "expected a number, found a string"),
        ('"NaN"', "expected a number, found a string"),
    ],
)
def test_a_number_that_would_not_come_back_is_refused(odd: str, why: str) -> None:
    """What is loaded can be written again, and equals itself."""
    text = dump_event(Replied(0, Failure(RateLimited("busy", 7.5))))
    assert text.count("7.5") == 1

    assert load_event(text.replace("7.5", odd)) == Failure(CorruptFile("$.event.outcome.error.retry_after", why))


@pytest.mark.parametrize("edge", [sys.float_info.max, -sys.float_info.max, int(sys.float_info.max), 2**1000])
def test_the_largest_numbers_come_back(edge: float) -> None:
    """The bound is that of floats, whole numbers included."""
    event = Replied(0, Failure(RateLimited("busy", edge)))

    assert load_event(dump_event(event)) == Success(event)


def test_an_error_about_a_paused_run_is_refused() -> None:
    """It never stands in a run; saving one is a programmer's mistake."""
    with pytest.raises(TypeError, match="save the run that it carries"):
        dump_event(Finished(0, Failure(AwaitingApproval(start("a", "hi")))))


def test_no_class_of_a_document_owns_the_tag_and_names_are_unique() -> None:
    """Else a field would be overwritten, or a name would mean two classes."""
    classes = {member for union in UNIONS for member in members(union)} | set(ALONE)

    assert len({one.__name__ for one in classes}) == len(classes)
    assert not any(field.name.startswith("$") for one in classes for field in attrs.fields(one))


def test_a_start_is_all_of_a_run_but_what_events_make() -> None:
    """A field added to `Run` is saved, or made by `step`."""
    of_run = {field.name for field in attrs.fields(Run)}

    assert of_run == {field.name for field in attrs.fields(Start)} | {"turns", "ends", "ids", "sticky"}


@pytest.mark.parametrize("held", [{"previous_response_id": "r"}, {"conversation_id": "c"}])
def test_what_the_server_holds_is_saved(held: dict[str, str]) -> None:
    """A run that goes on from a response or a conversation does so after loading."""
    run = start("a", "hi", max_turns=None, **held)

    assert Success(run) == load_run(dump_run(run))


# --- the schema of the format ----------------------------------------------------------------------------


def test_the_schema_file_is_up_to_date() -> None:
    """`python tests/run_schema.py` writes it."""
    Draft202012Validator.check_schema(run_schema.document_schema())

    assert run_schema.as_text() == run_schema.PATH.read_text(encoding="utf-8")


@pytest.mark.parametrize("count", range(len(history()) + 1))
def test_a_document_fits_the_schema(count: int) -> None:
    """Also with texts in pieces."""
    run = fold(start("root", "\ud83d" + "\ude00"), history()[:count]).unwrap()

    Draft202012Validator(run_schema.document_schema()).validate(json.loads(dump_run(run)))


# --- what is refused -----------------------------------------------------------------------------------


def document(**changes: Any) -> dict[str, Any]:
    return {**json.loads(dump_run(recorded())), **changes}


def with_event(event: Any, *, at: int = 0) -> dict[str, Any]:
    data = document()
    data["events"][at] = event
    return data


REPLIED = {"$type": "Replied", "turn": 0}
RESPONSE = {"$type": "Success", "value": {"items": []}}


def of_items(*items: Any) -> dict[str, Any]:
    return {**REPLIED, "outcome": {"$type": "Success", "value": {"items": list(items)}}}


CALL = {"$type": "ToolCall", "id": "c", "name": "f"}
#: what is wrong: the document, the place, a piece of the reason
CORRUPT = {
    "version is text": (document(version="1"), "$.version", "whole number"),
    "version is a boolean": (document(version=True), "$.version", "whole number"),
    "version 0": (document(version=0), "$.version", "whole number"),
    "unknown key": (document(more=1), "$", "unknown key 'more'"),
    "definitions are an array": (document(definitions=[]), "$.definitions", "expected an object"),
    "definition under a wrong digest": (document(definitions={"abc": "x"}), "$.definitions.abc", "digest"),
    "start is missing": ({k: v for k, v in document().items() if k != "start"}, "$", "'start' is missing"),
    "start is text": (document(start="x"), "$.start", "expected an object, found a string"),
    "start without agent": (document(start={"input": []}), "$.start.agent", "missing"),
    "start of a wrong input": (document(start={"agent": "a", "input": "hi"}), "$.start.input", "an array"),
    "events are an object": (document(events={}), "$.events", "expected an array"),
    "event is null": (with_event(None), "$.events[0]", "expected an object, found null"),
    "event without type": (with_event({"turn": 0}), "$.events[0]", "found nothing"),
    "event of unknown type": (with_event({"$type": "Exploded"}), "$.events[0]", "found 'Exploded'"),
    "type is an array": (with_event({"$type": ["Replied"]}, at=2), "$.events[2]", "found ['Replied']"),
    "effect for an event": (with_event({"$type": "Prepare", "agent": "a", "turn": 0}), "$.events[0]", "'Prepare'"),
    "unknown key of an event": (with_event({**REPLIED, "outcome": None, "x": 1}), "$.events[0]", "unknown key 'x'"),
    "text for a number": (with_event({**REPLIED, "turn": "0", "outcome": None}), "$.events[0].turn", "a string"),
    "boolean for a number": (with_event({**REPLIED, "turn": True, "outcome": None}), "$.events[0].turn", "true or"),
    "float for a number": (with_event({**REPLIED, "turn": 0.0, "outcome": None}), "$.events[0].turn", "a number"),
    "outcome is text": (with_event({**REPLIED, "outcome": "x"}), "$.events[0].outcome", "an object"),
    "outcome of unknown type": (with_event({**REPLIED, "outcome": {"$type": "X"}}), "$.events[0].outcome", "'X'"),
    "outcome with both": (
        with_event({**REPLIED, "outcome": {**RESPONSE, "error": 1}}),
        "$.events[0].outcome",
        "'value'",
    ),
    "response is an array": (
        with_event({**REPLIED, "outcome": {"$type": "Success", "value": []}}),
        "$.events[0].outcome.value",
        "an object, found an array",
    ),
    "item deep inside": (
        with_event(of_items(CALL, {**CALL, "name": 3})),
        "$.events[0].outcome.value.items[1].name",
        "expected a string, found a whole number",
    ),
    "unknown role": (
        with_event(of_items({"$type": "Message", "role": "king", "content": ""})),
        "$.events[0].outcome.value.items[0].role",
        "expected one of user, assistant, system, developer, found 'king'",
    ),
    "content is a number": (
        with_event(of_items({"$type": "Message", "role": "user", "content": 1})),
        "$.events[0].outcome.value.items[0].content",
        "expected an array",
    ),
    "error with text for seconds": (
        with_event({**REPLIED, "outcome": {"$type": "Failure", "error": {"$type": "ModelTimedOut", "seconds": "1"}}}),
        "$.events[0].outcome.error.seconds",
        "expected a number, found a string",
    ),
    "paused inside": (
        with_event(
            {"$type": "Finished", "turn": 0, "outcome": {"$type": "Failure", "error": {"$type": "AwaitingApproval"}}}
        ),
        "$.events[0].outcome.error",
        "'AwaitingApproval'",
    ),
    "unknown reference": (
        with_event({**REPLIED, "outcome": None, "sent": "ab"}),
        "$.events[0].sent",
        "no such definition",
    ),
    "reference is an object": (with_event({**REPLIED, "outcome": None, "sent": {}}), "$.events[0].sent", "no such"),
    "event for another turn": (
        with_event({**REPLIED, "turn": 7, "outcome": None}),
        "$.events[0]",
        "does not fit the run",
    ),
    "approval of other arguments": (
        with_event({**document()["events"][7], "digest": "forged"}, at=7),
        "$.events[7]",
        "other arguments",
    ),
    "answer twice": (
        document(events=[*document()["events"][:2], document()["events"][1]]),
        "$.events[2]",
        "already answered",
    ),
}


@pytest.mark.parametrize("what", CORRUPT)
def test_a_corrupt_file_is_refused_with_its_place(what: str) -> None:
    """One clear line says where and why."""
    data, where, reason = CORRUPT[what]
    error = load_run(json.dumps(data)).failure()

    assert isinstance(error, CorruptFile)
    assert where == error.where
    assert reason in error.reason
    assert error.problem == f"the file is corrupt at {where}: {error.reason}"


#: what is wrong with the definition: its data, the key that refers to it, a piece of the reason
DEFINITIONS = {
    "sent is text": ("x", {**REPLIED, "outcome": None}, "sent", "expected an object"),
    "sent of an unknown model": ({"model": 3}, {**REPLIED, "outcome": None}, "sent", "at $.model: expected a string"),
    "sent of unknown tools": ({"tools": "ab"}, {**REPLIED, "outcome": None}, "sent", "no such definition"),
    "instructions are a number": (3, {"$type": "Prepared", "turn": 0}, "instructions", "expected a string"),
    "tools are an object": ({}, {"$type": "Prepared", "turn": 0}, "tools", "expected an array"),
    "a tool is text": (["x"], {"$type": "Prepared", "turn": 0}, "handoffs", "at $[0]"),
}


@pytest.mark.parametrize("what", DEFINITIONS)
def test_a_corrupt_definition_is_refused_where_it_is_used(what: str) -> None:
    """Its digest is right, and it is not what its place asks for."""
    data, event, key, reason = DEFINITIONS[what]
    writer = Writer()
    name = writer._once("of the test", lambda _: data)
    text = json.dumps({**document(), "definitions": writer.definitions, "events": [{**event, key: name}]})
    error = load_run(text).failure()

    assert f"$.events[0].{key}" == error.where
    assert reason in error.reason


def test_a_definition_that_is_no_json_is_refused() -> None:
    """A reader that is given more than a parser gives is as strict."""
    with pytest.raises(ValueError, match="digest"):
        Reader({"abc": {1, 2}})


TOO_DEEP = '{"format":"fnagents.run","version":1,"definitions":{"a":' + "[" * 100_000 + "]" * 100_000 + "}}"
#: what it is: the text, a piece of the reason
FOREIGN = {
    "empty": ("", "Expecting value"),
    "prose": ("hello", "Expecting value"),
    "another format": ('{"format": "other"}', '"format" is not "fnagents.run"'),
    "an array": ("[]", '"format" is not'),
    "an event's document": (dump_event(Decided(0)), '"format" is not'),
    "not UTF-8": (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
    "UTF-16": (dump_run(recorded()).encode("utf-16"), "byte 0 is not UTF-8"),
    "a key twice": ('{"format": "fnagents.run", "format": "fnagents.run"}', "'format' is there twice"),
    "NaN": ('{"format": NaN}', "NaN is not a JSON number"),
    "overflow": ('{"format": 1e999}', "too large"),
    "an endless number": ('{"format": ' + "9" * 5_000 + "}", "4300"),
    "nested without end": (TOO_DEEP, "recursion"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_another_file_is_refused(what: str) -> None:
    """It is not ours, and why."""
    text, reason = FOREIGN[what]
    error = load_run(text).failure()

    assert isinstance(error, NotAFnagentsFile)
    assert reason in error.problem


@pytest.mark.parametrize("depth", [450, 600, 750, 2_000])
def test_pieces_nested_without_end_are_refused(depth: int) -> None:
    """Putting pieces together is bounded by the interpreter, too (by a limit of its own since 3.12)."""
    deep = '{"a":' * depth + '"Joined"' + "}" * depth
    text = '{"format":"fnagents.run","version":1,"start":{},"events":[],"definitions":' + deep + "}"

    assert isinstance(load_run(text), Failure)


def test_a_file_of_a_newer_version_is_refused_by_name() -> None:
    """The reader says which version it is and what it reads itself."""
    error = load_run(json.dumps(document(version=2))).failure()

    assert NewerVersion(2, 1) == error
    assert error.problem == "written by a newer fnagents: version 2, this one reads up to 1"


def test_an_older_document_is_brought_up_a_version_at_a_time() -> None:
    """Each step of the way is one function, kept for ever."""
    steps = {1: lambda data: data | {"b": 2}, 2: lambda data: data | {"c": 3}}

    assert codec_module.migrated({"a": 1}, 1, 3, steps) == {"a": 1, "b": 2, "c": 3}
    assert codec_module.migrated({"a": 1}, 3, 3, steps) == {"a": 1}


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is done with it."""
    monkeypatch.setattr(codec_module, "LARGEST", 2**20)

    assert "larger than 1 MiB" in load_run(b" " * (2**20 + 1)).failure().problem
    assert "larger than 1 MiB" in load_event(b" " * (2**20 + 1)).failure().problem


def test_a_reader_may_have_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was written can be read."""
    run, event = recorded(), Decided(3, "x")
    text, other = dump_run(run), dump_event(event)
    monkeypatch.setattr(codec_module, "LARGEST", 10)

    assert Success(run) == load_run(text, largest=len(text))
    assert Success(event) == load_event(other, largest=len(other))
    assert "larger than 0.5 MiB" in load_run(" " * 2**20, largest=2**19).failure().problem


@pytest.mark.parametrize("depth", [18, 150, 600])
def test_runs_that_are_nested_too_deep_are_refused(depth: int) -> None:
    """At the first that stands too deep, whatever the stack would bear."""
    document = json.loads(dump_run(start("a", "hi")))
    called = json.loads(dump_event(Replied(0, Success(ModelResponse((ToolCall("c", "t", "{}"),))))))
    planted = json.loads(dump_event(Returned("0.0", Success(Delegate("b", "go")))))
    document["definitions"] = called["definitions"]
    for level in range(depth):
        document["events"] += [{**one["event"], "path": ["0.0"] * level} for one in (called, planted)]
    failure = load_run(json.dumps(document)).failure()

    assert failure.where == "$.events[35]"
    assert "no run is planted deeper than 17" in failure.reason


def test_a_byte_order_mark_is_no_harm() -> None:
    """Some editors put one."""
    assert Success(recorded()) == load_run(b"\xef\xbb\xbf" + dump_run(recorded()).encode())


def test_an_indented_document_is_read() -> None:
    """It need not be written as `dump_run` does."""
    assert Success(recorded()) == load_run(json.dumps(document(), indent=2, sort_keys=True))


def test_a_corrupt_event_is_refused_with_its_place() -> None:
    """A document of one event has one place."""
    text = dump_event(Decided(3, "x")).replace('"x"', "[]")

    assert CorruptFile("$.event.output", "expected a string, found an array") == load_event(text).failure()


def test_words_of_a_hostile_file_are_bounded_and_visible() -> None:
    """No endless line, no line break, nothing that a terminal cannot show."""
    problem = load_run(json.dumps(document(**{"\ud800\n" + "x" * 9_000: 1}))).failure().problem

    assert len(problem) < 1_000
    assert len(problem.splitlines()) == 1
    problem.encode()


# --- what a run began with -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "limit"),
    [
        ([], 4),
        ([Finished(0, Failure(TurnsExhausted(0)))], 4),
        ([Finished(0, Failure(TurnsExhausted(0))), Reopened(0, 9)], 0),
        ([Finished(0, Failure(ModelFailed(ModelTimedOut(1)))), Reopened(0, 9)], None),
    ],
)
def test_the_first_limit_of_turns_is_found_again(ends: list[Event], limit: int | None) -> None:
    """Reopening sets another; the first one is that at which the run ended, or one that did not matter."""
    run = fold(start("a", "hi", max_turns=4), ends).unwrap()

    assert limit == beginning(run).max_turns
    assert Success(run) == fold(beginning(run).run, events(run))

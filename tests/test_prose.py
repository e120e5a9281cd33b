"""Every error as the sentence that a model or a person reads."""

from typing import get_args

import pytest

from fnagents.codec import NotAFnagentsFile
from fnagents.errors import (
    AwaitingApproval,
    BadRequest,
    BudgetExhausted,
    BudgetSpent,
    ConnectionFailed,
    ContextTooLong,
    FunctionRaised,
    GuardrailTripped,
    Incomplete,
    InvalidArguments,
    InvalidJson,
    InvalidOutput,
    MalformedResponse,
    ModelError,
    ModelFailed,
    ModelRefused,
    ModelTimedOut,
    NestedFailed,
    NestedTooDeep,
    NotFound,
    RateLimited,
    RunError,
    ServerFailed,
    ToolCancelled,
    ToolError,
    ToolFailed,
    ToolRaised,
    ToolRejected,
    ToolTimedOut,
    TurnsExhausted,
    Unauthorized,
    UnknownAgent,
    UnknownTool,
    UnrenderableOutput,
)
from fnagents.prose import LONGEST, explain, shortened, unfit
from fnagents.rendering import raised
from fnagents.runs import start

SENTENCES = [
    (UnknownTool("nope", ("add", "sub")), "There is no tool named 'nope'. The tools are: add, sub."),
    (UnknownTool("a b"), "There is no tool named 'a b'. There are no tools."),
    (
        InvalidJson("it is an array, not an object"),
        "The arguments are not a valid JSON object: it is an array, not an object. Send one JSON object.",
    ),
    (
        InvalidArguments(("$.x: 3 is not of type 'string'", "$.y: missing")),
        "Invalid arguments: $.x: 3 is not of type 'string'; $.y: missing. Correct them and call the tool again.",
    ),
    (ToolRaised("ValueError", "no such city"), "The tool failed: ValueError: no such city"),
    (ToolRaised("ValueError"), "The tool failed: ValueError"),
    (ToolTimedOut(1.5), "The tool timed out after 1.5 seconds."),
    (
        ToolTimedOut(2.0, running=True),
        "The tool timed out after 2 seconds. It could not be stopped and may still be running.",
    ),
    (ToolRejected(), "The tool call was not approved."),
    (ToolRejected("not on Sundays"), "not on Sundays"),
    (ToolRejected("no secrets", by="guardrail"), "no secrets"),
    (ToolCancelled(), "The tool call was interrupted. It may have had effects already."),
    (
        ToolCancelled("the process ended"),
        "The tool call was interrupted: the process ended. It may have had effects already.",
    ),
    (NestedFailed("no output"), "The agent that was to answer failed: no output"),
    (BudgetSpent("tool calls"), "The call was not run: the budget of tool calls is used up."),
    (UnrenderableOutput("it is bytes"), "The tool ran, but its output cannot be shown: it is bytes"),
    (RateLimited("slow down"), "The model's server is busy: slow down"),
    (RateLimited("slow down", 3.0), "The model's server is busy: slow down (retry after 3 s)"),
    (BadRequest("odd", 422), "The model's server refused the request (422): odd"),
    (Unauthorized("no key", 403), "The model's server refused the key (403): no key"),
    (NotFound("gpt-9"), "The model's server knows no such model or address: gpt-9"),
    (ServerFailed("oops", 503, 1.0), "The model's server failed (503): oops"),
    (ConnectionFailed("reset"), "The connection to the model's server failed: reset"),
    (ModelTimedOut(60), "The model did not answer within 60 seconds."),
    (MalformedResponse("no output"), "The model's answer could not be read: no output"),
    (ContextTooLong("128k"), "The conversation is too long for the model: 128k"),
    (
        Incomplete("max_output_tokens"),
        "The model's answer was cut short (max_output_tokens); none of its tool calls was run.",
    ),
    (ModelFailed(ModelTimedOut(1)), "The model did not answer within 1 seconds."),
    (TurnsExhausted(3), "No final output after 3 turns, the limit of this run."),
    (BudgetExhausted("tokens"), "The budget of tokens is used up."),
    (GuardrailTripped("homework"), "The guardrail 'homework' ended the run."),
    (GuardrailTripped("homework", "maths"), "The guardrail 'homework' ended the run: maths"),
    (GuardrailTripped("pii", place="1.0"), "The guardrail 'pii' ended the run at call 1.0."),
    (
        ToolFailed("1.0", ToolRaised("ValueError")),
        "The tool call 1.0 failed, which ends the run: The tool failed: ValueError",
    ),
    (
        InvalidOutput("$.x: missing"),
        "The final output is not of the expected type: $.x: missing. Answer again in that type.",
    ),
    (ModelRefused("I cannot."), "The model declined: I cannot."),
    (UnknownAgent("b", ("a",)), "There is no agent named 'b'. The agents are: a."),
    (UnknownAgent("b"), "There is no agent named 'b'. The agents are: none."),
    (NestedTooDeep(16), "Agents called each other more than 16 deep."),
    (FunctionRaised("instructions", "KeyError", "'name'"), "The agent's instructions raised KeyError: 'name'"),
    (FunctionRaised("tool source", "OSError"), "The agent's tool source raised OSError"),
    (AwaitingApproval(start("a", "hi")), "The run is paused: a tool call waits for approval."),
]


@pytest.mark.parametrize(("error", "sentence"), SENTENCES)
def test_the_sentence_of_an_error(error, sentence) -> None:
    """The table is the specification: replays compare these texts."""
    assert explain(error) == sentence


def test_the_table_has_every_error() -> None:
    """No error class is without a sentence."""
    unions = {*get_args(ToolError), *get_args(ModelError), *get_args(RunError)}
    assert {type(error) for error, _ in SENTENCES} == unions


@pytest.mark.parametrize("error", [ValueError(), TimeoutError(), AssertionError()])
def test_an_exception_without_a_message_still_says_its_class(error) -> None:
    """A blank message never makes a blank explanation, which a model would answer by trying blindly."""
    assert explain(raised(error)) == f"The tool failed: {type(error).__name__}"


def test_a_missing_key_reads_as_a_missing_key() -> None:
    """`KeyError('k')` keeps its class, without which a lone 'k' says nothing."""
    assert explain(raised(KeyError("k"))) == "The tool failed: KeyError: 'k'"


def test_a_memory_address_is_left_out() -> None:
    """Addresses differ in each process, so recorded and replayed texts would differ too."""
    error = ToolRaised("TypeError", "<Thing object at 0x7f0a1b> is not <Other at 0xFF>")
    assert explain(error) == "The tool failed: TypeError: <Thing object> is not <Other>"


@pytest.mark.parametrize("size", [LONGEST, LONGEST + 1, 12_345, 1_900_000])
def test_an_explanation_has_at_most_4000_characters(size) -> None:
    """However long the message is, it is cut, and what was left out is counted."""
    text = explain(ToolRejected("x" * size))
    assert len(text) <= LONGEST == 4_000
    kept = text.count("x")
    assert text == ("x" * size if size <= LONGEST else f"{'x' * kept} ... ({size - kept} characters more)")


def test_an_invented_name_of_any_length_is_shortened() -> None:
    """A name that a model made up is quoted in at most 200 characters, so the tools that exist stay readable."""
    text = explain(UnknownTool("n" * 5_000, ("add",)))
    assert text.endswith("The tools are: add.")
    assert len(text) < 260


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc", 40, "abc"),
        ("x" * 40, 40, "x" * 40),
        ("x" * 41, 40, "x" * 15 + " ... (26 characters more)"),
        ("x" * 1_000, 40, "x" * 13 + " ... (987 characters more)"),
    ],
)
def test_shortened_text_fits_its_limit(text, limit, expected) -> None:
    """Nothing is cut from what fits; what is cut still fits with the count of what is missing."""
    assert shortened(text, limit) == expected
    assert len(expected) <= limit


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (InvalidJson("it is an array"), "it is an array"),
        (InvalidArguments(("$.x: odd", "$.y: odd")), "$.x: odd; $.y: odd"),
    ],
)
def test_what_is_wrong_with_a_final_output(problem, text) -> None:
    """The same problems, but nobody is told to call a tool again."""
    assert unfit(problem) == text


def test_errors_that_word_themselves_are_explained_too() -> None:
    """Those of files and replays have a `problem`."""
    assert explain(NotAFnagentsFile("it is empty")) == NotAFnagentsFile("it is empty").problem

"""Errors as values: which unions they belong to, and what they carry."""

from typing import get_args

import pytest

from fnagents import errors
from fnagents.errors import (
    AwaitingApproval,
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    DeclarationError,
    FnagentsError,
    Incomplete,
    MalformedResponse,
    ModelError,
    ModelTimedOut,
    NotFound,
    RateLimited,
    RunError,
    ServerFailed,
    ToolError,
    ToolRejected,
    Unauthorized,
    UnexpectedEventError,
)
from fnagents.models import ModelResponse, Usage
from fnagents.runs import start


def test_no_error_belongs_to_two_unions() -> None:
    """What failed (a call, a model call, a run) is told by the class alone."""
    parts = [set(get_args(union)) for union in (ToolError, ModelError, RunError)]
    assert len(set.union(*parts)) == sum(len(part) for part in parts)


def test_every_error_class_is_exported() -> None:
    """The module's `__all__` names every class in it."""
    classes = {
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert classes - set(errors.__all__) == set()


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (RateLimited("busy"), True),
        (ServerFailed("down"), True),
        (ConnectionFailed("gone"), True),
        (ModelTimedOut(1.0), True),
        (MalformedResponse("odd"), True),
        (BadRequest("no"), False),
        (Unauthorized("no"), False),
        (NotFound("no"), False),
        (ContextTooLong("no"), False),
        (Incomplete("max_output_tokens"), False),
    ],
)
def test_a_model_error_says_whether_another_try_makes_sense(error, retryable) -> None:
    """Failures of the way and of the moment are worth another try, failures of the request are not."""
    assert error.retryable is retryable


@pytest.mark.parametrize("kind", [Incomplete, MalformedResponse])
def test_what_arrived_was_paid_for(kind) -> None:
    """An answer that was cut short or malformed says what it cost, as far as it is known."""
    assert kind("cut", ModelResponse((), Usage(1, 5, 7))).usage == Usage(1, 5, 7)
    assert kind("cut").usage is None


def test_errors_are_values() -> None:
    """They compare by content, print it, and can be keys."""
    assert ToolRejected("no") == ToolRejected("no", by="approval")
    assert repr(ToolRejected("no")) == "ToolRejected(reason='no', by='approval')"
    assert len({ToolRejected("no"), ToolRejected("no")}) == 1


def test_a_paused_run_is_not_printed_with_its_error() -> None:
    """`AwaitingApproval` carries the run, and its text does not."""
    assert repr(AwaitingApproval(start("a", "secret"))) == "AwaitingApproval()"


def test_exceptions_are_for_programmers_mistakes() -> None:
    """Each is a FnagentsError; a declaration that cannot work is a ValueError too."""
    assert issubclass(DeclarationError, FnagentsError)
    assert issubclass(DeclarationError, ValueError)
    assert issubclass(UnexpectedEventError, FnagentsError)

"""How cost grows with the length of a run: the exponents that must not give way.

An exponent of 1 is linear, 2 quadratic.  They are ratios of times in one process, so a slow machine does not
matter; a busy one does, which is why the limits are wider here than the goals: 1.15 for runs, 1.05 for files.
"""

import math
from collections.abc import Callable

import pytest
from workloads import AGENT, made, seconds

from fnagents import agents, dump_run, load_run, replay
from fnagents.planning import plan
from fnagents.wire.responses import encode_request


def exponent(cost: Callable[[int], float], small: int, large: int) -> float:
    return math.log(cost(large) / cost(small)) / math.log(large / small)


@pytest.mark.parametrize("calls", [1, 8])
def test_a_turn_does_not_cost_the_length_of_its_run(calls: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten times the turns, ten times the work."""
    found = exponent(lambda turns: seconds(lambda: made(turns, calls)), 50, 500)
    with capsys.disabled():
        print(f"\nrun, {calls} calls a turn: turns ** {found:.2f}")
    assert found < 1.3


@pytest.mark.parametrize("name", ["dump", "load", "replay"])
def test_files_grow_with_what_happened(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Saving, loading and replaying are linear in the turns."""

    def cost(turns: int) -> float:
        ended = made(turns, 4)
        text = dump_run(ended)
        work = {
            "dump": lambda: dump_run(ended),
            "load": lambda: load_run(text),
            "replay": lambda: replay(AGENT, ended),
        }
        return seconds(work[name])

    found = exponent(cost, 50, 500)
    with capsys.disabled():
        print(f"\n{name}: turns ** {found:.2f}")
    assert found < 1.3


def test_a_request_does_not_encode_old_turns_again() -> None:
    """The second encoding of a long conversation joins what is there: a tenth of the first at the most."""
    ended = made(500, 4)
    (effect,) = (one for one in plan(agents(AGENT), _unfinished(ended)) if hasattr(one, "request"))
    first = seconds(lambda: encode_request(effect.request, model_default="m", stream=False), times=1)
    again = seconds(lambda: encode_request(effect.request, model_default="m", stream=False))
    assert again < first / 5


def _unfinished(run):  # type: ignore[no-untyped-def]
    from attrs import evolve

    return evolve(run, ends=(), turns=run.turns[:-1])

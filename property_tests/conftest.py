"""Hypothesis profiles: `ci` is deterministic, `FAST=1` a glance, `HYPOTHESIS_PROFILE=search` looks anew.  And quiet."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "ci", deadline=None, derandomize=True, database=None, print_blob=True, max_examples=100, suppress_health_check=_SLOW
)
settings.register_profile("fast", settings.get_profile("ci"), max_examples=15)
settings.register_profile("search", settings.get_profile("ci"), derandomize=False, print_blob=True, max_examples=2_000)
_PROFILE = "fast" if os.environ.get("FAST") == "1" else os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(_PROFILE)


def pytest_report_header() -> str:
    """How to run the same examples again."""
    seed = (
        "derandomized: every run tries the same examples" if _PROFILE != "search" else "random: see --hypothesis-seed"
    )
    return f"hypothesis profile {_PROFILE}, {seed}"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Tools that raise on purpose are not worth a log line each."""
    loggers = [logging.getLogger("fnagents.tools"), logging.getLogger("fnagents.agents")]
    before = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.CRITICAL)
    yield
    for one, level in zip(loggers, before, strict=True):
        one.setLevel(level)

"""Every example in a docstring runs, and every public name has a docstring."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import fnagents
from fnagents.testing import no_network

MODULES = sorted(
    one.name for one in pkgutil.walk_packages(fnagents.__path__, "fnagents.") if not one.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["fnagents", *MODULES])
def test_docstring_examples_run(name: str) -> None:
    """What a docstring shows is what happens; offline."""
    with no_network():
        failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert failed == 0


def test_docstrings_have_examples_enough() -> None:
    """The sweep above is not empty: there are dozens of examples."""
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 40


@pytest.mark.parametrize("name", sorted(fnagents.__all__))
def test_public_names_are_described(name: str) -> None:
    """A public class or function says what it is."""
    value = getattr(fnagents, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)

"""Real functions by the hundred: each becomes a tool with a sound schema, or a declaration error says why not."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from fnagents.define import tool
from fnagents.errors import DeclarationError, InvalidArguments, InvalidJson
from fnagents.outcome import Success

MODULES = """
argparse ast asyncio base64 bisect calendar cmd codecs collections colorsys compileall concurrent.futures configparser
contextlib copy csv ctypes.util dataclasses datetime decimal difflib dis doctest email.header email.message
email.utils enum filecmp fileinput fnmatch fractions functools getopt gettext glob graphlib gzip hashlib heapq hmac
html html.parser http.client http.cookies imaplib importlib importlib.metadata importlib.resources inspect io
ipaddress json json.decoder json.encoder keyword linecache locale logging logging.handlers lzma mailbox math mimetypes
multiprocessing.pool netrc numbers operator optparse os os.path pathlib pdb pickle pickletools pkgutil platform
plistlib poplib posixpath pprint profile pstats py_compile pyclbr queue quopri random re reprlib rlcompleter runpy
sched secrets selectors shelve shlex shutil signal site smtplib socket socketserver sqlite3 ssl stat statistics string
stringprep struct subprocess symtable sysconfig tabnanny tarfile tempfile textwrap threading timeit token tokenize
tomllib trace traceback types typing unittest unittest.mock urllib.parse urllib.request urllib.robotparser uuid venv
warnings wave weakref webbrowser wsgiref.util xml.dom.minidom xml.etree.ElementTree xml.sax.saxutils xmlrpc.client
zipapp zipfile zoneinfo attr attr.validators attrs cattrs cattrs.converters cattrs.gen cattrs.strategies
docstring_parser hypothesis.strategies httpx jsonschema jsonschema.exceptions jsonschema.validators pydantic pytest
referencing returns.result returns.maybe returns.pipeline returns.pointfree typing_extensions
""".split()  # noqa: SIM905  # two hundred lines say no more


def functions(module: Any) -> Iterator[Any]:
    """The public functions of a module, and the public methods of its public classes, bound to something."""
    for name, value in sorted(vars(module).items()):
        if name.startswith("_"):
            continue
        if inspect.isroutine(value) and callable(value):
            yield value
        elif inspect.isclass(value) and value.__module__.startswith(module.__name__):
            for inner, method in sorted(vars(value).items()):
                if not inner.startswith("_") and inspect.isfunction(method):
                    yield method.__get__(object())


@pytest.mark.filterwarnings("ignore")
def test_real_functions_become_tools_or_say_why_not() -> None:
    """None crashes; hundreds have schemas, which are valid, and readers, which are total."""
    made, refused = 0, 0
    for name in MODULES:
        for function in functions(importlib.import_module(name)):
            try:
                one = tool(function, name="swept", strict=False)
            except DeclarationError as error:
                assert "swept" in str(error)  # noqa: PT017
                refused += 1
                continue
            made += 1
            jsonschema.Draft202012Validator.check_schema(one.parameters)
            assert set(one.parameters.get("required", [])) <= set(one.parameters["properties"])
            for text in ("{}", '{"x": 1}', "[", "null"):
                outcome = one.read(text)
                if isinstance(outcome, Success):
                    assert set(outcome.unwrap().values) == _parameters(function)
                else:
                    assert isinstance(outcome.failure(), InvalidArguments | InvalidJson)
    assert made > 1500
    assert refused > 50


def _parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters)

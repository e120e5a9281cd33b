"""The floors of the package, its forbidden imports, and the words that the core may not know."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fnagents

PACKAGE = Path(fnagents.__file__).parent

#: Lowest first. A module imports from those before it only; a folder stands for all modules in it.
FLOORS = [
    ["outcome", "errors", "prose", "jsontext", "items"],
    ["schemas", "models", "tools", "agent", "protocol", "wellformed", "runs"],
    ["define", "rendering", "transcript", "planning", "growing", "calls", "folding", "unfolding", "core", "decisions"],
    [
        "shapes",
        "converting",
        "pieces",
        "beginnings",
        "documents",
        "lines",
        "codec",
        "sealing",
        "wire",
        "replays",
        "matching",
    ],
    [
        "workers",
        "pipeline",
        "world",
        "asking",
        "perform",
        "driving",
        "running",
        "invoking",
        "reexecution",
        "http",
        "clients",
        "resilience",
        "caching",
        "linefiles",
        "wrap",
        "journals",
    ],
    ["testing", "cli", "__main__"],
]
ORDER = [name for floor in FLOORS for name in floor]
PURE = {name for floor in FLOORS[:4] for name in floor}
IMPURE = {"asyncio", "httpx", "time", "random", "os", "socket", "subprocess", "threading"}
FAMILIES = ("shell", "computer", "apply_patch", "mcp", "codex", "web_search")


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def top(path: Path) -> str:
    """The name that stands for a module in FLOORS."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Every module that this one imports at run time, wherever in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module


def test_every_module_has_a_floor() -> None:
    """A new module is put on a floor before anything else is done with it."""
    assert {top(path) for path in modules()} == set(ORDER)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path: Path) -> None:
    """A module imports from lower floors and, within its floor, from modules named before it."""
    mine = ORDER.index(top(path))
    for name in imports(path):
        if name == "fnagents" or name.startswith("fnagents."):
            other = name.split(".")[1] if "." in name else None
            assert other is not None, f"{path.name} imports the facade"
            inside = other == top(path)
            assert inside or ORDER.index(other) < mine, f"{path.name} imports {name}, which stands above it"


@pytest.mark.parametrize(
    "path", [path for path in modules() if top(path) in PURE], ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_the_pure_floors_touch_no_world(path: Path) -> None:
    """Floors 0 to 2 import no clock, no network, no randomness, no process and no thread."""
    assert {name.split(".")[0] for name in imports(path)} & IMPURE == set()


@pytest.mark.parametrize(
    "name", ["planning", "growing", "calls", "folding", "unfolding", "core", "runs", "protocol", "decisions"]
)
def test_the_core_names_no_tool_family(name: str) -> None:
    """What differs between families of tools is data; the core knows none of them."""
    source = (PACKAGE / f"{name}.py").read_text(encoding="utf-8").lower()
    assert [family for family in FAMILIES if family in source] == []


def test_no_module_has_the_name_of_an_exported_function() -> None:
    """The import system would put the module in the function's place."""
    assert {top(path) for path in modules()} & set(fnagents.__all__) == set()


def test_modules_and_functions_are_small_rooms() -> None:
    """About 250 lines are a full module, 25 a long function; the docstring of a function does not count."""
    long: list[str] = []
    for path in modules():
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[1] if len(node.body) > 1 and ast.get_docstring(node) else node.body[0]
                size = (node.end_lineno or 0) - first.lineno + 1
                if size > 30:
                    long.append(f"{path.name}: {node.name} has {size} lines")
    assert long == []


def test_importing_the_package_drags_in_nothing_heavy() -> None:
    """`import fnagents` loads no event loop, no HTTP and no validator, and at most 210 modules."""
    code = "import sys, fnagents; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"asyncio", "httpx", "jsonschema", "docstring_parser", "hypothesis"} & set(loaded) == set()
    assert len(loaded) <= 210


def test_every_exported_name_is_there() -> None:
    """`__all__` of the facade is sorted, whole, and each name can be had."""
    assert fnagents.__all__ == sorted(fnagents.__all__)
    assert {name: hasattr(fnagents, name) for name in fnagents.__all__} == dict.fromkeys(fnagents.__all__, True)
    assert dir(fnagents) == fnagents.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The lazy facade refuses what it does not have as any module does."""
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        _ = fnagents.nope


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_says_what_is_public(path: Path) -> None:
    """Each module has a docstring and a sorted `__all__` (packages that export nothing: a docstring)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    exported = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    if path.name != "__init__.py" or exported:
        assert exported
        assert exported[0] == sorted(exported[0])

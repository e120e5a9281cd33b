"""`tool`: from functions of every kind to tools, and the functions that cannot be one."""

import functools
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypedDict, Unpack

import pydantic
import pytest

from fnagents.define import derived_name, tool
from fnagents.errors import DeclarationError, InvalidArguments, InvalidJson
from fnagents.outcome import Failure, Success
from fnagents.tools import AgentContext, Tool, ToolContext

if TYPE_CHECKING:
    from fnagents.tools import ToolContext as Hidden


def call(made: Tool[..., Any, Any], arguments: str, context: Any = None) -> Any:
    """What the tool's function answers to these arguments."""
    assert made.function is not None
    return made.function(context, made.read(arguments).unwrap().given)


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def test_a_function_becomes_a_tool() -> None:
    """Name, description, both schemas and the call come from the function; the tool still is the function."""
    made = tool(add)
    assert (made.name, made.description) == ("add", "Add two numbers.")
    assert made.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first."},
            "b": {"type": "integer", "description": "The second.", "default": 1},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert made.definition == {
        "type": "function",
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {**made.parameters, "required": ["a", "b"]},
        "strict": True,
    }
    assert call(made, '{"a": 2}') == 3
    assert made(2, b=3) == 5


def test_arguments_in_three_forms() -> None:
    """Data has what was sent and the defaults that have JSON; values have every default."""
    nothing = object()

    def f(a: int, b: str = "x", c: Any = nothing) -> None: ...

    arguments = tool(f).read('{"a": 1.0}').unwrap()
    assert arguments.data == {"a": 1.0, "b": "x"}
    assert arguments.values == {"a": 1, "b": "x", "c": nothing}
    assert tool(f).read('{"a": 1, "b": "y", "c": 2}').unwrap().data == {"a": 1, "b": "y", "c": 2}


def test_options() -> None:
    """The options are those of `Tool`; `name` and `description` win over what is derived."""
    made = tool(
        name="plus", description="Sum.", strict=False, timeout=3, needs_approval=True, serial=True, namespace="math"
    )(add)
    assert (made.name, made.description, made.timeout, made.needs_approval) == ("plus", "Sum.", 3, True)
    assert (made.serial, made.namespace, made.definition["strict"]) == (True, "math", False)
    assert made.definition["parameters"] == made.parameters
    assert tool(add, description="").description == ""


def test_docstrings_can_be_switched_off_or_forced() -> None:
    """Without the docstring nothing of it shows; a style that is none is refused."""

    def f(a: Annotated[int, "annotated"]) -> None:
        """Do.

        Args:
            a: documented
        """

    assert tool(f).parameters["properties"]["a"]["description"] == "documented"
    bare = tool(f, use_docstring=False)
    assert (bare.description, bare.parameters["properties"]["a"]["description"]) == ("", "annotated")
    assert tool(f, docstring_style="sphinx").parameters["properties"]["a"]["description"] == "annotated"
    with pytest.raises(DeclarationError, match="docstring_style='rst' is none of google, numpy, sphinx"):
        tool(f, docstring_style="rst")  # type: ignore[call-overload]


class Options(TypedDict):
    unit: str


def kinds(a: int, b: int = 2, /, c: int = 3, *args: int, d: int, e: int = 5, **kwargs: int) -> Any:
    """Every kind of parameter."""
    return a, b, c, args, d, e, kwargs


def test_every_kind_of_parameter() -> None:
    """Positional-only ones, `*args` and `**kwargs` are properties under their own names."""
    made = tool(kinds, strict=False)
    schema = made.parameters
    assert list(schema["properties"]) == ["a", "b", "c", "args", "d", "e", "kwargs"]
    assert schema["required"] == ["a", "d"]
    assert schema["properties"]["args"] == {"type": "array", "items": {"type": "integer"}}
    assert call(made, '{"a": 1, "d": 4}') == (1, 2, 3, (), 4, 5, {})
    assert call(made, '{"a": 1, "d": 4, "args": [7, 8], "kwargs": {"x": 9, "a": 0}}') == (
        1,
        2,
        3,
        (7, 8),
        4,
        5,
        {"x": 9, "a": 0},
    )
    for clash in ("c", "d", "args", "kwargs"):
        outcome = made.read(json.dumps({"a": 1, "d": 4, "kwargs": {clash: 1}}))
        assert isinstance(outcome, Failure) == (clash in ("c", "d", "args", "kwargs"))


def test_open_keywords_cannot_be_strict() -> None:
    """`**kwargs: int` names the parameter and both ways out; `Unpack[TypedDict]` is closed and can."""
    with pytest.raises(DeclarationError, match=r"tool 'kinds': 'kwargs' cannot be strict.*strict=False.*closed"):
        tool(kinds)
    with pytest.raises(DeclarationError, match=r"tool 'f': 'options' cannot be strict"):

        @tool
        def f(options: dict[str, int]) -> None: ...

    @tool
    def g(**options: Unpack[Options]) -> str:
        return options["unit"]

    assert call(g, '{"options": {"unit": "C"}}') == "C"
    assert isinstance(g.read("{}"), Failure)


def test_star_arguments_of_fixed_types() -> None:
    """`*args: *tuple[int, str]` has its length; without annotation anything goes."""

    def f(*args: *tuple[int, str]) -> Any:
        return args

    def g(*args: *tuple[int, str]) -> Any:
        return args

    def h(*args, **kwargs):  # type: ignore[no-untyped-def]
        return args, kwargs

    for function in (f, g):
        assert call(tool(function), '{"args": [1, "a"]}') == (1, "a")
        assert isinstance(tool(function).read('{"args": [1]}'), Failure)
    assert call(tool(h, strict=False), '{"args": [null], "kwargs": {"x": []}}') == ((None,), {"x": []})


def test_parameters_without_annotation() -> None:
    """They take anything; a default of None makes a parameter nullable, and so it may be sent."""

    def f(a, b=3, c: int = None):  # type: ignore[no-untyped-def,assignment]  # noqa: RUF013
        return a, b, c

    made = tool(f)
    assert made.parameters["properties"] == {
        "a": {},
        "b": {"default": 3},
        "c": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
    }
    assert call(made, '{"a": [], "c": null}') == ([], 3, None)
    assert "default" not in made.definition["parameters"]["properties"]["c"]


class Odd:
    """A default whose equality is hostile."""

    def __eq__(self, other: object) -> NoReturn:
        raise AssertionError(other)

    __hash__ = None  # type: ignore[assignment]


def test_defaults_are_compared_by_identity() -> None:
    """A default with an odd `==` is a default like any other."""
    odd = Odd()

    def f(a: Any = odd) -> Any:
        return a

    assert call(tool(f), "{}") is odd
    assert tool(f).parameters["properties"]["a"] == {}


def test_pydantic_fields() -> None:
    """A `Field` as default or in `Annotated` gives default, factory, alias, description and bounds."""

    def f(
        a: int = pydantic.Field(..., ge=0, le=9, description="An a."),
        b: str = pydantic.Field("nm", pattern="^[a-z]+$"),
        c: list[int] = pydantic.Field(default_factory=list),  # noqa: B008
        d: Annotated[int, pydantic.Field(alias="D")] = 4,
        e: Annotated[list[str], pydantic.Field(default_factory=lambda: ["x"])] = ...,  # type: ignore[assignment]
    ) -> Any:
        return a, b, c, d, e

    del e_default(f)["e"]
    made = tool(f)
    properties = made.parameters["properties"]
    assert properties["a"] == {"type": "integer", "minimum": 0, "maximum": 9, "description": "An a."}
    assert properties["b"] == {"type": "string", "pattern": "^[a-z]+$", "default": "nm"}
    assert made.parameters["required"] == ["a"]
    first, second = call(made, '{"a": 1}'), call(made, '{"a": 1, "D": 5}')
    assert (first, second) == ((1, "nm", [], 4, ["x"]), (1, "nm", [], 5, ["x"]))
    assert first[2] is not second[2]
    assert isinstance(made.read('{"a": 10}'), Failure)
    assert isinstance(made.read('{"a": 1, "d": 5}'), Failure)


def e_default(function: Any) -> dict[str, Any]:
    """The function's signature without a default for `e`, as a dict to delete from."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(default=inspect.Parameter.empty, kind=inspect.Parameter.KEYWORD_ONLY)
        if parameter.name == "e"
        else parameter
        for parameter in signature.parameters.values()
    ]
    function.__signature__ = signature.replace(parameters=parameters)
    return {"e": None}


def test_aliases_must_differ() -> None:
    """Two parameters under one key cannot be told apart."""

    def f(a: Annotated[int, pydantic.Field(alias="b")], b: int) -> None: ...

    with pytest.raises(DeclarationError, match="two parameters have one alias"):
        tool(f)


# --- the context ------------------------------------------------------------------------------------------


def test_the_context_comes_first() -> None:
    """A first parameter annotated `ToolContext`, in whatever way, is given and not shown."""

    def plain(ctx: ToolContext, a: int) -> Any:
        return ctx, a

    def generic(ctx: ToolContext[int], a: int) -> Any:
        return ctx, a

    def annotated(ctx: Annotated[ToolContext[int], "the context"], a: int) -> Any:
        return ctx, a

    def text(ctx: "ToolContext[int]", a: "int") -> Any:
        return ctx, a

    def hidden(ctx: "Hidden[int]", a: int) -> Any:
        return ctx, a

    def positional(ctx: ToolContext, /, a: int, *args: int) -> Any:
        return ctx, a + sum(args)

    hidden.__annotations__["ctx"] = "tools.ToolContext[int]"
    for function in (plain, generic, annotated, text, hidden, positional):
        made: Any = tool(function)
        assert "ctx" not in made.parameters["properties"]
        assert call(made, '{"a": 1}', context="here") == ("here", 1)
        assert made("there", 2) == ("there", 2)


def test_the_context_anywhere_else() -> None:
    """It is a declaration error that names the parameter."""

    def second(a: int, ctx: ToolContext) -> None: ...
    def twice(ctx: ToolContext, again: ToolContext) -> None: ...
    def keyword(*, ctx: ToolContext) -> None: ...

    for function, name in ((second, "ctx"), (twice, "again"), (keyword, "ctx")):
        with pytest.raises(DeclarationError, match=f"parameter '{name}': the context goes first"):
            tool(function)


# --- what is called ---------------------------------------------------------------------------------------


class Account:
    """An account."""

    def __init__(self) -> None:
        self.balance = 10

    def withdraw(self, amount: int) -> int:
        """Withdraw money."""
        return self.balance - amount

    @classmethod
    def open(cls, owner: str) -> str:
        """Open one."""
        return f"{cls.__name__} of {owner}"

    @staticmethod
    def rate(years: int) -> int:
        """The rate."""
        return years

    @tool
    @staticmethod
    def fee(years: int) -> int:
        """The fee."""
        return years


class Search:
    """Search the shelves.

    Args:
        query: What.
    """

    def __call__(self, query: str, limit: int = 3) -> str:
        """Called.

        Args:
            limit: How many.
        """
        return f"{query}:{limit}"


class Wait:
    async def __call__(self, seconds: int) -> int:
        """Wait a while."""
        return seconds


async def fetch(url: str) -> str:
    """Fetch."""
    return url


def test_methods_and_objects() -> None:
    """Bound methods, class methods, static methods and objects with `__call__`."""
    assert call(tool(Account().withdraw), '{"amount": 3}') == 7
    assert call(tool(Account.open), '{"owner": "Ada"}') == "Account of Ada"
    assert call(tool(Account.rate), '{"years": 3}') == 3
    assert call(Account.fee, '{"years": 3}') == Account().fee(3) == 3
    search = tool(Search())
    assert (search.name, search.description) == ("Search", "Search the shelves.")
    assert {key: each["description"] for key, each in search.parameters["properties"].items()} == {
        "query": "What.", "limit": "How many."
    }  # fmt: skip
    assert call(search, '{"query": "x"}') == "x:3"
    assert tool(Wait()).description == "Wait a while."


def test_partials_and_lambdas() -> None:
    """They need a name; what a partial binds is not shown to the model."""
    secret = functools.partial(kinds, 1, e=0, d=4)
    made = tool(secret, name="secret", strict=False)
    assert list(made.parameters["properties"]) == ["b", "c", "args", "kwargs"]
    assert made.description == "Every kind of parameter."
    assert call(made, '{"c": 5}') == (1, 2, 5, (), 4, 0, {})
    same: Any = lambda a: a  # noqa: E731  # a lambda is what is tried
    assert call(tool(same, name="same"), '{"a": 1}') == 1
    for function, what in ((secret, "a partial"), (lambda: None, "a lambda")):
        with pytest.raises(DeclarationError, match=f"{what} has no name.*name="):
            tool(function)


def test_async_is_known() -> None:
    """Async functions, also behind a partial or in an object, are called on the loop."""
    assert tool(fetch).asynchronous
    assert tool(functools.partial(fetch), name="fetch").asynchronous
    assert tool(Wait()).asynchronous
    assert not tool(add).asynchronous
    assert not tool(Search()).asynchronous


def test_a_local_class_in_an_annotation_that_is_text() -> None:
    """Names in text are looked up in the closure, the module, and where the tool is declared."""

    class Local(TypedDict):
        n: int

    def f(x: "Local", y: "Account | None" = None) -> Any:
        return x

    f.__annotations__["y"] = "int | None"
    assert call(tool(f), '{"x": {"n": 1}}') == {"n": 1}

    def outer(kind: Any) -> Callable[..., Any]:
        def inner(x: "kind") -> Any:
            return x, kind

        return inner

    assert call(tool(outer(int)), '{"x": 1}') == (1, int)


def test_generic_functions_in_new_syntax() -> None:
    """A type parameter in an annotation that is text is found in the function's own list."""
    namespace: dict[str, Any] = {}
    source = "def f(x: 'T') -> 'T':\n    return x\n"
    exec(source, namespace)  # the syntax for type parameters is that of 3.12
    from typing import TypeVar

    namespace["f"].__type_params__ = (TypeVar("T", bound=int),)
    assert tool(namespace["f"]).parameters["properties"]["x"] == {"type": "integer"}


def test_a_name_that_is_not_bound_yet() -> None:
    """A closure cell without a value is no name; the declaration error says so."""

    def f(x: "later") -> Any:  # type: ignore[valid-type]
        return x, later

    with pytest.raises(DeclarationError, match="parameter 'x'.*NameError"):  # noqa: RUF043
        tool(f)
    later = int
    assert call(tool(f), '{"x": 1}') == (1, int)


# --- what is refused --------------------------------------------------------------------------------------


def test_names() -> None:
    """A name that is given is checked, a name that is derived is made to fit."""
    for bad in ("", "a b", "ä", "x" * 65):
        with pytest.raises(DeclarationError, match=r"1 to 64 characters"):
            tool(add, name=bad)

    def grö_ße(a: int) -> int:  # noqa: PLC2401
        return a

    assert tool(grö_ße).name == "gr___e"
    assert derived_name(type("X" * 70, (), {})()) == "X" * 64


def test_methods_in_a_class_body() -> None:
    """They are not bound to anything; the error shows how to bind them."""
    with pytest.raises(DeclarationError, match=r"tool\(obj.method\)"):

        class A:
            @tool
            def method(self, a: int) -> int:
                return a

    with pytest.raises(DeclarationError, match=r"tool\(obj.method\)"):
        tool(classmethod(add), name="x")  # type: ignore[call-overload,arg-type]

    def local(self: int) -> int:
        return self

    def free(self):  # type: ignore[no-untyped-def]
        return self

    assert call(tool(local), '{"self": 1}') == 1
    assert call(tool(free), '{"self": 1}') == 1
    assert tool(Account.rate).name == "rate"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Account, "a class is no function"),
        (3, "int cannot be called"),
        (tool(add), "is a tool already"),
        (functools.partial(dict.fromkeys), "no name"),
    ],
)
def test_what_is_no_function(given: Any, why: str) -> None:
    """A class, a value, a tool: each with its way out."""
    with pytest.raises(DeclarationError, match=why):
        tool(given)


def test_signatures_that_cannot_be_read() -> None:
    """A builtin without a signature, and types without JSON, name the tool."""
    with pytest.raises(DeclarationError, match=r"tool 'range': its signature cannot be read.*wrap it in a function"):
        tool(functools.partial(range), name="range")

    def f(handler: Callable[[], int], other: int) -> None: ...

    with pytest.raises(DeclarationError, match="tool 'f': parameter 'handler': .*has no JSON form"):  # noqa: RUF043
        tool(f)


# --- calls ------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_told_with_its_place() -> None:
    """Every problem is listed, and the function is not called."""
    made = tool(add)
    assert made.read('{"a": true, "c": 1}') == Failure(
        InvalidArguments(
            ("$.a: True is not of type 'integer'", "$: Additional properties are not allowed ('c' was unexpected)")
        )
    )
    assert isinstance(made.read("[1]").failure(), InvalidJson)
    assert made.read('{"a": 1234567890123456789}').unwrap().values["a"] == 1234567890123456789


class Even(int):
    def __new__(cls, value: int) -> "Even":  # noqa: PYI034
        if value % 2:
            raise ValueError(f"{value} is odd")
        return super().__new__(cls, value)


def test_what_a_class_refuses_is_told_by_parameter() -> None:
    """The schema accepts it, the constructor does not: its words, for each parameter."""

    def f(a: Even, b: Even, c: int = 0) -> None: ...

    assert tool(f).read('{"a": 1, "b": 3}') == Failure(
        InvalidArguments(("$.a: ValueError: 1 is odd", "$.b: ValueError: 3 is odd"))
    )
    turns = iter([False, True, True])

    class Fickle(str):
        __slots__ = ()

        def __new__(cls, value: str) -> "Fickle":  # noqa: PYI034
            if not next(turns):
                raise ValueError
            return super().__new__(cls, value)

    def g(a: Fickle) -> None: ...

    assert tool(g).read('{"a": ""}') == Failure(InvalidArguments(("$: it does not fit the function's parameters",)))


def test_making_and_calling_tools_needs_no_validator() -> None:
    """jsonschema is imported to explain a failure and for nothing else."""
    script = """
import sys
from fnagents.define import tool
@tool
def f(a: int, b: list[str] | None = None) -> int:
    '''F.'''
    return a
assert f.read('{"a": 1}').unwrap().values == {"a": 1, "b": None}
assert "jsonschema" not in sys.modules
f.read('{"a": "x"}')
assert "jsonschema" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_arguments_are_values() -> None:
    """What was read compares and prints, and its text is canonical."""
    arguments = tool(add).read('{"b": 1, "a": 2}').unwrap()
    assert arguments.text == '{"a":2,"b":1}'
    assert tool(add).read('{"a": 2, "b": 1}') == Success(arguments)
    assert isinstance(arguments.values, Mapping)


def optional_context(context: ToolContext | None) -> str:
    return ""


def agents_context(context: AgentContext) -> str:
    return ""


@pytest.mark.parametrize("function", [optional_context, agents_context])
def test_the_context_is_annotated_plainly(function) -> None:
    """What was meant as the context is not offered to the model."""
    with pytest.raises(DeclarationError, match=r"annotated as ToolContext or ToolContext\[...\] alone"):
        tool(function)

"""What is read from docstrings, in the three styles and as they are written in the field."""

from textwrap import dedent

import pytest

from fnagents.schemas.docstrings import Docstring, Style, read_docstring

READ: dict[str, tuple[str, Docstring]] = {
    "nothing": ("  \n ", Docstring()),
    "one line": ("Add.", Docstring("Add.")),
    "paragraphs": ("Add.\n\nTwo numbers.\n", Docstring("Add.\n\nTwo numbers.")),
    "google": (
        """
        Add.

        Args:
            a: First.
            b (int): Second,
                on two lines.

        Returns:
            c: nothing
        """,
        Docstring("Add.", {"a": "First.", "b": "Second,\non two lines."}),
    ),
    "google without blank lines": (
        """
        Add.
        Raises:
            ValueError: never.
        Args:
            a: First.
        Returns:
            the sum
        """,
        Docstring("Add.", {"a": "First."}),
    ),
    "google, header first": ("Args:\n    a: First.\n", Docstring("", {"a": "First."})),
    "google, many sections": (
        """
        Add.

        Keyword Args:
            a: One.
        Other Parameters:
            b: Two.
        Arguments:
            c: Three.
        keyword arguments:
            d: Four.
        Params:
            *e: Five.
            **f: Six.
        """,
        Docstring("Add.", dict(zip("abcdef", ["One.", "Two.", "Three.", "Four.", "Five.", "Six."], strict=True))),
    ),
    "google, colons, quotes and brackets": (
        """
        Add.

        Args:
            ref (str) : text, e.g. "3:5"
            kind (dict[str, tuple[int, int]], optional): a: b
            `x`: quoted
            deeper: it is
                note: not a parameter
        """,
        Docstring(
            "Add.",
            {"ref": 'text, e.g. "3:5"', "kind": "a: b", "x": "quoted", "deeper": "it is\nnote: not a parameter"},
        ),
    ),
    "google, prose after a section": (
        "Add.\n\nArgs:\n    a: First.\n\nAnd more prose.\n\nNote:\n    x: y\n",
        Docstring("Add.", {"a": "First."}),
    ),
    "google, a note before": (
        "Add.\n\nNote:\n    Careful.\n\nArgs:\n    a: First.",
        Docstring("Add.", {"a": "First."}),
    ),
    "google, an empty section": ("Add.\n\nArgs:\n\nReturns:\n    x", Docstring("Add.")),
    "google, no entry": ("Add.\n\nArgs:\n    nothing to see\n", Docstring("Add.")),
    "google, prose before the entries": (
        "Add.\n\nArgs:\n    These:\n    a: First.\n",
        Docstring("Add.", {"a": "First."}),
    ),
    "google, an indented header inside prose is a header": (
        "Add.\n\n  Args:\n      a: First.\n",
        Docstring("Add.", {"a": "First."}),
    ),
    "google, a header inside a section is text": (
        "Add.\n\nArgs:\n    a: First.\n        Example:\n            3\n    b: Second.",
        Docstring("Add.", {"a": "First.\nExample:\n3", "b": "Second."}),
    ),
    "numpy": (
        """
        Add.

        Parameters
        ----------
        a : int
            First,
            on two lines.
        b, c : str, optional
            Both.
        *rest
            The rest.

        Returns
        -------
        int
            The sum.

        Other Parameters
        ----------------
        d
            Last.

        Custom
        ------
        e : int
            Not a parameter.
        """,
        Docstring(
            "Add.", {"a": "First,\non two lines.", "b": "Both.", "c": "Both.", "rest": "The rest.", "d": "Last."}
        ),
    ),
    "numpy, raises first": (
        "Add.\nRaises\n------\nValueError\n    Never.\nParameters\n----------\na : int\n    First.\n",
        Docstring("Add.", {"a": "First."}),
    ),
    "sphinx": (
        """
        Add.

        More.

        :param a: First,
            on two lines.
        :param int b: Second, e.g. 3:5
        :type a: int
        :keyword c: Third.
        :param: nobody
        :raises ValueError: never
            : never
        :returns: the sum
        """,
        Docstring("Add.\n\nMore.", {"a": "First,\non two lines.", "b": "Second, e.g. 3:5", "c": "Third."}),
    ),
    "sphinx, returns alone": ("Add.\n:returns: the sum", Docstring("Add.")),
    "epydoc": ("Add.\n@param a: First.\n@return: x", Docstring("Add.", {"a": "First."})),
    "a role is no field": (
        "See :class:`int`.\n\nArgs:\n    a: First.",
        Docstring("See :class:`int`.", {"a": "First."}),
    ),
}


@pytest.mark.parametrize(("text", "said"), READ.values(), ids=READ)
def test_docstrings_are_read(text: str, said: Docstring) -> None:
    """The style is recognised, every section of parameters is read, and no section leaks into the description."""
    assert read_docstring(dedent(text)) == said


def test_none_says_nothing() -> None:
    """A missing docstring is an empty one."""
    assert read_docstring(None) == Docstring()


@pytest.mark.parametrize("style", ["google", "numpy", "sphinx"])
def test_a_style_can_be_forced(style: Style) -> None:
    """Text of one style, read as another, is description."""
    texts = {
        "google": "Add.\n\nArgs:\n    a: First.",
        "numpy": "Add.\n\nParameters\n----------\na\n    First.",
        "sphinx": "Add.\n\n:param a: First.",
    }
    for written, text in texts.items():
        assert ("a" in read_docstring(text, style).parameters) == (written == style)


def test_a_colon_below_the_only_sphinx_field() -> None:
    """What stands below a field is its text, whatever it begins with."""
    assert read_docstring(":param a: b\n:", "sphinx").parameters == {"a": "b\n:"}
    assert read_docstring(":param a: b\n    :c: d").parameters == {"a": "b\n:c: d"}

"""The arguments of the commands."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["UsageError", "parsed"]

_CODES = "exit codes: 0 well, 1 failed or different, 2 unusable input, 3 paused with questions, 130 interrupted"


class UsageError(Exception):
    """The arguments are no command; the message says so in one line."""


class _Parser(ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{' '.join(message.split())} (see {self.prog} --help)")


def parsed(given: Sequence[str]) -> Namespace:
    """The arguments; raises `UsageError`, or SystemExit when it has shown its help."""
    parser = _Parser(prog="fnagents", description="Run agents; show, replay and verify their runs.", epilog=_CODES)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _run(commands.add_parser("run", help="run an agent, or go on with a run", epilog=_CODES))
    show = commands.add_parser("show", help="show what is in a saved run")
    replay = commands.add_parser("replay", help="hold a saved run against today's agent, offline")
    replay.add_argument("agent", metavar="MODULE:AGENT")
    verify = commands.add_parser("verify", help="see whether a run is as it was sealed")
    seal = commands.add_parser("seal", help="write a copy of a saved run with a seal in it")
    for command in (show, replay, verify, seal):
        command.add_argument("file", metavar="FILE")
    for command in (verify, seal):
        command.add_argument("--key-file", metavar="F", help="the key is in this file")
    seal.add_argument("-o", "--output", metavar="NEW", required=True, help="the file to write; it may not be there yet")
    schema = commands.add_parser("schema", help="show a tool's schemas: by which calls are judged, and what is sent")
    schema.add_argument("tool", metavar="MODULE:TOOL")
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="one JSON document on stdout")
    return _of_run(parser, given) if given[:1] == ["run"] else parser.parse_args(given)


def _of_run(parser: _Parser, given: Sequence[str]) -> Namespace:
    """`argparse` takes what the user says only where it follows the agent at once; here it may stand anywhere."""
    end = list(given).index("--") if "--" in given else len(given)
    arguments, rest = parser.parse_known_args(given[:end])
    odd = [word for word in rest if word.startswith("-")]
    words = [*([] if arguments.input is None else [arguments.input]), *rest, *given[end + 1 :]]
    if odd or len(words) > 1:
        parser.error(f"unrecognized arguments: {' '.join(odd or words[1:])}")
    return Namespace(**{**vars(arguments), "input": words[0] if words else None})


def _run(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="MODULE:AGENT", help="an Agent, agents by name, or a function that gives them")
    parser.add_argument("input", nargs="?", help="what the user says")
    parser.add_argument("-o", "--output", metavar="FILE", help="the run's journal; the file may not be there yet")
    parser.add_argument("--resume", metavar="FILE", help="go on with a paused, failed or cut off run, in its journal")
    parser.add_argument("--model", metavar="NAME", help="the model, where the agent names none")
    parser.add_argument("--max-turns", type=_turns, metavar="N", help="the most model calls (10)")
    parser.add_argument("--client", metavar="MODULE:NAME", help="a model client, or a function that gives one")
    parser.add_argument("--context", metavar="MODULE:NAME", help="the context of tools, or a function that gives it")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="approve every call")
    answer.add_argument("--no", action="store_true", help="decline every call that needs approval")
    parser.add_argument(
        "--interrupted",
        choices=("rerun", "answer"),
        default="rerun",
        help="calls under way when the run was cut off: run them again, or tell the model (rerun)",
    )


def _turns(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is no count of turns")
    return int(text)

"""The entry of the command line: from arguments to an exit code, whatever happens without a traceback."""

from __future__ import annotations

import json
import logging
import sys
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import IO, TYPE_CHECKING, Any, cast

from fnagents.cli.parser import UsageError, parsed
from fnagents.cli.reports import INTERRUPTED, OK, UNUSABLE, Report, unusable
from fnagents.cli.sinks import Sink
from fnagents.cli.texts import fault, line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and print what it came to; gives the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    out, err = Sink(sys.stdout), Sink(sys.stderr)
    report = _report(given, err)
    # In ASCII, so that nothing in it steers a terminal either.
    out.write(f"{json.dumps(report.data)}\n" if report.data and _for_machines(given) else report.text)
    out.flush()
    if report.problem:
        err.write(f"fnagents: {report.problem}\n")
    if out.problem is not None:
        err.write(f"fnagents: the output cannot be written: {out.problem.strerror}\n")
    err.flush()
    return report.code if out.problem is None else UNUSABLE


def _for_machines(given: list[str]) -> bool:
    """Whether `--json` is among the options, be the command understood or not."""
    return "--json" in given[: given.index("--") if "--" in given else None]


def _report(given: list[str], err: Sink) -> Report:
    try:
        from rich.console import Console
    except ImportError:
        return unusable("the command line needs more packages: pip install 'fnagents[cli]'")
    console = Console(file=cast("IO[str]", err), markup=False, highlight=False, emoji=False)
    try:
        arguments = parsed(given)
        # What agents and tools print is not the result.
        with redirect_stdout(cast("IO[str]", err)), _logged(console):
            return _done(arguments, console)
    except UsageError as error:
        return unusable(line(str(error)))
    except SystemExit:
        return Report(OK)
    except KeyboardInterrupt:
        return Report(INTERRUPTED, {"error": "interrupted"}, problem="interrupted")
    except Exception as error:  # noqa: BLE001  # a traceback helps nobody who typed a command
        return unusable(fault(error))


def _done(arguments: Namespace, console: Console) -> Report:
    from fnagents.cli.reading import replay_run, seal_file, show_run, show_schemas, verify_file

    reading = {
        "show": show_run,
        "replay": replay_run,
        "verify": verify_file,
        "seal": seal_file,
        "schema": show_schemas,
    }
    if arguments.command in reading:
        return reading[arguments.command](arguments)
    from fnagents.cli.running import run_agent

    return run_agent(arguments, console, _terminal())


def _terminal() -> int | None:
    """Where a person can be asked: the standard input, if that is a terminal."""
    stream: Any = sys.stdin
    return stream.fileno() if stream is not None and stream.isatty() else None


# --- the log -------------------------------------------------------------------------------------------


class _Lines(logging.Handler):
    """Shows each record of the log as one line, without its traceback."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        from rich.text import Text

        error = record.exc_info[1] if record.exc_info else None
        why = "" if error is None else f": {fault(error)}"
        self.console.print(Text(f"{line(record.getMessage())}{why}", "dim"), soft_wrap=True)


@contextmanager
def _logged(console: Console) -> Generator[None, None, None]:
    """The log of the library and of the event loop on the console."""
    handler = _Lines(console)
    loggers = [logging.getLogger(name) for name in ("fnagents", "asyncio")]
    for one in loggers:
        one.addHandler(handler)
    try:
        yield
    finally:
        for one in loggers:
            one.removeHandler(handler)

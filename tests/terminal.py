"""The command line as people have it: in a process of its own, on a real pseudo-terminal or with plain pipes."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import fnagents

__all__ = ["command", "environment", "heard", "on_terminal"]

HERE = Path(__file__).parent
#: Makes the terminal the process's own, so that Ctrl-C is a signal, and becomes the command.
LOGIN = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"
COMMAND = [sys.executable, "-W", "error", "-m", "fnagents"]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without a key, where the package and the tests' modules are found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "COLUMNS"))}
    paths = f"{Path(fnagents.__file__).parent.parent}{os.pathsep}{HERE}"
    return {**kept, "PYTHONPATH": paths, "TERM": "xterm-256color", **more}


@contextmanager
def heard() -> Generator[None, None, None]:
    """Ctrl-C is heard, here and in processes begun here: shells have what runs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def command(cwd: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with nobody at a terminal."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def on_terminal(cwd: Path, arguments: Sequence[str], answers: Sequence[tuple[str, bytes]]) -> tuple[int, str]:
    """The command on a pseudo-terminal: its exit code, and all that was shown.

    Each answer is typed when what it answers has been shown since the last one.
    """
    main, end = pty.openpty()
    words = [sys.executable, "-c", LOGIN, *COMMAND, *arguments]
    process = subprocess.Popen(words, cwd=cwd, env=environment(), stdin=end, stdout=end, stderr=end)
    os.close(end)
    try:
        shown = _talked(main, list(answers))
        return process.wait(timeout=30), shown
    finally:
        process.kill()
        process.wait()
        os.close(main)


def _talked(main: int, answers: list[tuple[str, bytes]]) -> str:
    shown, seen, deadline = "", 0, time.monotonic() + 40
    while time.monotonic() < deadline:
        ready, _, _ = select.select([main], [], [], 0.2)
        if not ready:
            continue
        try:
            data = os.read(main, 65_536)
        except OSError:  # how Linux says that the other end was closed
            return shown
        if not data:
            return shown
        shown += data.decode(errors="replace")
        if answers and answers[0][0] in shown[seen:]:
            seen = len(shown)
            os.write(main, answers.pop(0)[1])
    raise AssertionError(f"the command did not end; it showed {shown!r}")

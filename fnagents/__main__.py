"""`python -m fnagents` is the command `fnagents`."""

import sys

from fnagents.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())

"""The commands: `verditer`, and `azurite` with its three siblings, which other tools start by these names.

The start takes a few tenths of a second. An interrupt meanwhile ends the process at once and without a traceback. Python's own
handler would raise KeyboardInterrupt, which is lost if it is raised in a destructor or a callback: the server would go on.
A server that was stopped has done its work; a command such as `verditer copy` has not, and says so with its status.
"""

import os
import signal
import sys

_is_command = len(sys.argv) > 1 and not sys.argv[1].startswith("-")
signal.signal(signal.SIGINT, lambda number, frame: os._exit(128 + number if _is_command else 0))  # before any other import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def command() -> "NoReturn":
    _run(None)


def blob() -> "NoReturn":
    _run("blob")


def queue() -> "NoReturn":
    _run("queue")


def table() -> "NoReturn":
    _run("table")


def _run(services: str | None) -> "NoReturn":
    from verditer import cli

    cli.command(services)

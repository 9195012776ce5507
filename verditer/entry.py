"""The commands: `verditer`, and `azurite` with its three siblings, which other tools start by these names.

The start takes a few tenths of a second. An interrupt meanwhile ends the process at once and without a traceback. Python's own
handler would raise KeyboardInterrupt, which is lost if it is raised in a destructor or a callback: the server would go on.
"""

import os
import signal

signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))  # before any other import, typing included

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

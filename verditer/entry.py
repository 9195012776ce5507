"""The commands: `verditer`, and `azurite` with its three siblings, which other tools start by these names.

Importing the server takes a few tenths of a second. An interrupt meanwhile ends the process without a traceback.
"""

import os
import signal
from typing import NoReturn


def command() -> NoReturn:
    _run(None)


def blob() -> NoReturn:
    _run("blob")


def queue() -> NoReturn:
    _run("queue")


def table() -> NoReturn:
    _run("table")


def _run(services: str | None) -> NoReturn:
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))
    from verditer import cli

    signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.command(services)

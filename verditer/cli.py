"""The command line: `verditer`. It reads the flags (`flags.py`), starts the server in one process or several, and turns signals
into a clean stop. The first word may be a command (`commands.py`). Its flags are Azurite's and more, so it can replace
`azurite`."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import secrets
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

import msgspec
import uvloop

from verditer.app import App, run, run_workers
from verditer.config import Config
from verditer.core.errors import StorageError
from verditer.core.limits import MIB
from verditer.flag_parser import COMMANDS, parser
from verditer.flags import config_from
from verditer.partition.sqlite.shared import SharedStore
from verditer.serving.logs import start_logging
from verditer.serving.sockets import ListenError
from verditer.serving.workers import WorkerLink
from verditer.start_message import start_message, warnings

logger = logging.getLogger("verditer")

INTERRUPTED = 128 + signal.SIGINT  # the status of a command that did not finish its work


class OutputError(Exception):
    """The start message cannot be printed: standard output is closed or full."""


def command(services: str | None = None) -> NoReturn:
    """The whole process. Once it has stopped serving it ignores signals: Python's own handlers would change its exit status."""
    try:
        status = main(None if services is None else ["--services", services, *sys.argv[1:]])
    except KeyboardInterrupt:
        status = 0
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the mask is that of this thread, and the interpreter restores default handlers
    sys.exit(status)


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in COMMANDS:
        return _run_command(words)
    flags = parser().parse_args(arguments)
    try:
        config = config_from(flags)
        start_logging(config.debug)
    except ValueError as error:
        return _complain(str(error))
    _keep_freed_memory()
    count = config.workers or _usual_workers(config)
    if count == 1:
        status = _exit_status(lambda: uvloop.run(_serve(config)))
    else:
        config = _with_token(config)
        status = _exit_status(lambda: run_workers(config, count, lambda link, store: _work(config, link, store)))
    _flush_output()
    return status


def _with_token(config: Config) -> Config:
    """All workers accept the same token of the admin port."""
    admin = msgspec.structs.replace(config.admin, token=config.admin.token or secrets.token_urlsafe(24))
    return msgspec.structs.replace(config, admin=admin)


def _run_command(words: list[str]) -> int:
    from verditer.commands import run_command  # the server does without it

    signal.signal(signal.SIGINT, signal.default_int_handler)  # an interrupted command ends in order
    return _exit_status(lambda: run_command(words), interrupted=INTERRUPTED)


def _work(config: Config, link: WorkerLink, store: SharedStore | None) -> int:
    status = _exit_status(lambda: uvloop.run(_serve_as_worker(config, link, store)))
    _flush_output()
    return status


def _exit_status(serve: Callable[[], int | None], *, interrupted: int = 0) -> int:
    """What keeps the process from serving is printed as one line. `interrupted`: the status when it was stopped before."""
    try:
        return serve() or 0
    except ListenError as error:
        choice = (
            f"--{error.name}Host chooses another address" if error.is_about_host else f"--{error.name}Port chooses another port"
        )
        return _complain(f"{error.strerror}; {choice}")
    except (OSError, ValueError, StorageError, OutputError) as error:
        return _complain(_sentence(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return interrupted


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename} cannot be used: {error.strerror.lower()}"
    return getattr(error, "reason", None) or getattr(error, "message", None) or str(error)


def _usual_workers(config: Config) -> int:
    return 1 if config.in_memory or config.database is not None or (os.cpu_count() or 1) < 2 else 2


def _keep_freed_memory() -> None:
    """Let glibc keep up to 64 MiB of freed memory: returning pages and faulting them in again costs an upload a sixth. Threads
    share it. With an arena for each thread, reading a large file over SMB took 30 MB above idle instead of 16."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(-1, 64 * MIB)  # M_TRIM_THRESHOLD
        libc.mallopt(-3, 32 * MIB)  # M_MMAP_THRESHOLD
        libc.mallopt(-8, 2)  # M_ARENA_MAX


async def _serve(config: Config) -> None:
    """In one process."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    await run(config, _started)


async def _serve_as_worker(config: Config, link: WorkerLink, store: SharedStore | None) -> None:
    """As one of several processes. They start one after another, so the last one prints the start message."""
    task = asyncio.current_task()
    assert task is not None
    link.on_stop(task.cancel)

    def started(app: App) -> None:
        if link.is_last and not link.worker.restarted:
            _started(app)
        else:
            _freeze_start_objects()
        link.report_ready()

    await run(config, started, link.worker, store)


def _started(app: App) -> None:
    try:
        print(start_message(app), flush=True)
    except OSError as error:
        raise OutputError(f"the start message cannot be printed: {error.strerror}") from None
    for warning in warnings(app):
        logger.warning("%s", warning)
    _freeze_start_objects()


def _freeze_start_objects() -> None:
    """Objects made during the start live until the end: the garbage collector need not look at them again, nor run as often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _flush_output() -> None:
    """The interpreter flushes standard output when it exits and complains if it cannot: what cannot be written is dropped."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _complain(text: str) -> int:
    with contextlib.suppress(OSError):
        print(f"verditer: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    command()

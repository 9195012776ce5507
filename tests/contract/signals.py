"""Signals to server processes that take effect before the call returns."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_STOPPED = ("T", "t", "Z", "X")  # a process that has ended does nothing either


def send_signal(process: int, number: int) -> None:
    """After SIGSTOP, wait until each thread has stopped: on a busy machine one may serve another request until then. A process
    that has ended gets no signal."""
    with suppress(ProcessLookupError):
        os.kill(process, number)
    while number == signal.SIGSTOP and not all(_is_stopped(thread) for thread in Path(f"/proc/{process}/task").glob("*")):
        time.sleep(0.001)


def _is_stopped(thread: Path) -> bool:
    with suppress(OSError):
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] in _STOPPED
    return True

"""The request log: one line for each request, as text or as JSON.

A line is written at once, so that the lines of several workers stand in order. When there are many, they are collected and
written a few times a second, because a write for each request costs too much.
"""

import asyncio
import json
import logging
import sys
from typing import TextIO

from verditer.core.dates import iso
from verditer.serving.request_summary import RequestSummary

logger = logging.getLogger("verditer")
FLUSH_SECONDS = 0.1
SINGLE_WRITES = 200  # within that time; one takes about a microsecond to a file or a pipe, and more to a terminal
PIPE_CHARACTERS = 4096  # Linux writes this much to a pipe atomically (PIPE_BUF), and a line is ASCII


class RequestLog:
    """`plain` is for people, `json` for programs. Both have the same fields."""

    def __init__(self, style: str, out: TextIO | None = None) -> None:
        self._format = {"plain": _plain, "json": _json}[style]
        self._out = out or sys.stdout
        self._lines: list[str] = []
        self._period_ends = 0.0  # by the clock of the event loop
        self._writes = 0  # in this period
        self._failed = False  # the output is closed or full: the server goes on without this log

    def record(self, request: RequestSummary) -> None:
        if self._failed:
            return
        self._lines.append(self._format(request))
        if len(self._lines) > 1:
            return  # the first of them has arranged for the writing
        loop = asyncio.get_running_loop()
        if pause := self._pause(loop.time()):
            loop.call_later(pause, self.flush)
        else:
            self.flush()

    def _pause(self, now: float) -> float:
        """How long a line waits for others, in seconds."""
        if now >= self._period_ends:
            self._period_ends, self._writes = now + FLUSH_SECONDS, 0
        self._writes += 1
        return 0.0 if self._writes <= SINGLE_WRITES else self._period_ends - now

    def flush(self) -> None:
        """Write the collected lines in blocks that a pipe takes atomically: the lines of several workers must not mix."""
        lines, self._lines = self._lines, []
        try:
            self._write_lines(lines)
        except OSError as error:
            self._failed = True
            logger.warning("the request log ends here, since it cannot be written: %s", error.strerror)

    def _write_lines(self, lines: list[str]) -> None:
        block = ""
        for line in lines:
            if block and len(block) + len(line) >= PIPE_CHARACTERS:
                self._write(block)
                block = ""
            block += line + "\n"
        if block:
            self._write(block)

    def _write(self, block: str) -> None:
        self._out.write(block)
        self._out.flush()


def _plain(request: RequestSummary) -> str:
    code = f" {request.error_code}" if request.error_code is not None else ""
    return (
        f"{iso(request.time)[:23]}Z {request.operation or request.method} {request.status}{code} {_one_line(request.path)} "
        f"in={request.bytes_in} out={request.bytes_out} {request.seconds * 1000:.1f}ms {request.request_id}"
    )


def _json(request: RequestSummary) -> str:
    fields = {
        "time": iso(request.time),
        "operation": request.operation or request.method,
        "status": request.status,
        "error": request.error_code,
        "method": request.method,
        "path": _one_line(request.path),
        "bytes_in": request.bytes_in,
        "bytes_out": request.bytes_out,
        "milliseconds": round(request.seconds * 1000, 2),
        "request_id": request.request_id,
        "client": request.client,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def _one_line(path: str) -> str:
    """With control characters escaped, which could otherwise forge a line."""
    return path if path.isprintable() else path.encode("unicode_escape").decode()

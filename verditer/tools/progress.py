"""ProgressLine of a long work: one line that is rewritten on a terminal, and a line now and then elsewhere."""

import sys
import time
from typing import TextIO

TERMINAL_SECONDS, LOG_SECONDS = 0.2, 10.0


class ProgressLine:
    def __init__(self, output: TextIO | None = None) -> None:
        self._output = output if output is not None else sys.stderr
        self._is_terminal = self._output.isatty()
        self._shown_at = float("-inf")

    def show(self, text: str, done: int, of: int | None = None) -> None:
        interval = TERMINAL_SECONDS if self._is_terminal else LOG_SECONDS
        now = time.monotonic()
        if now - self._shown_at < interval:
            return
        self._shown_at = now
        share = f" of {of} ({100 * done // max(of, 1)} %)" if of is not None else ""
        print(f"{text}: {done}{share}", end="\x1b[K\r" if self._is_terminal else "\n", file=self._output, flush=True)

    def say(self, text: str) -> None:
        """A line that stays."""
        print(text, file=self._output, flush=True)

    def finish(self) -> None:
        if self._is_terminal:
            print(end="\x1b[K", file=self._output, flush=True)

"""Response batching: small responses are written at once or, under load, several of them together.

A response wakes its client, and the client's next request wakes the server. Under load these wake-ups are much of the work.
Clients whose responses are written together are woken together, and so is the server (docs/decisions/response-batching.md).
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Protocol

# Between two clients that one poll of the event loop reports lies a system call. A longer gap means that the loop slept.
_SAME_POLL_SECONDS = 0.00003
_BUSY_CLIENTS = 2  # in a row, each without a gap after the one before
_MAX_BATCH = 16
_MAX_DELAY_SECONDS = 0.002  # and the time of the request that is running


class HeldResponse(Protocol):
    """A connection with a response that waits to be written."""

    def flush(self) -> None: ...


class ResponseBatcher:
    """One for each listening port."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._held: list[HeldResponse] = []
        self._held_since = 0.0  # of the first of them
        self._clients_in_a_row = 0
        self._last_was_batch = False  # several responses were written together the last time
        self._handled_at = 0.0

    def received(self, now: float) -> None:
        """Bytes of a client are going to be handled."""
        self._clients_in_a_row = self._clients_in_a_row + 1 if now - self._handled_at < _SAME_POLL_SECONDS else 0

    def handled(self) -> None:
        """Those bytes were handled."""
        self._handled_at = self._clock()

    @property
    def is_batching(self) -> bool:
        """Whether a response should wait for others."""
        return self._last_was_batch or self._clients_in_a_row >= _BUSY_CLIENTS

    def hold(self, response: HeldResponse) -> None:
        """It is flushed within this iteration of the event loop, or earlier when the batch is full or old."""
        now = self._clock()
        if not self._held:
            self._held_since = now
            asyncio.get_running_loop().call_soon(self._flush)
        self._held.append(response)
        if len(self._held) == _MAX_BATCH or now - self._held_since > _MAX_DELAY_SECONDS:
            self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, []
        if held:
            self._last_was_batch = len(held) > 1
            for response in held:
                response.flush()

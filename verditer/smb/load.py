"""How much of a client's work is running: what limits the memory that one connection can occupy."""

import itertools

from verditer.smb.limits import MAX_PENDING, MAX_PENDING_BYTES, MAX_RUNNING_BYTES, MIN_REQUEST_BYTES
from verditer.smb.status import SmbError, Status


class ChainLoad:
    """The part of one chain: the bytes of its frame, and those of the answers that it asks for."""

    __slots__ = ("async_ids", "frame_bytes", "running_bytes")

    def __init__(self, frame_bytes: int, answer_bytes: int) -> None:
        self.frame_bytes = max(frame_bytes, MIN_REQUEST_BYTES)
        self.running_bytes = self.frame_bytes + answer_bytes
        self.async_ids: list[int] = []


class Load:
    """Chains that are running, and requests whose answer comes later. These keep their frame, but no longer stop others."""

    def __init__(self) -> None:
        self._running_bytes = self._pending_bytes = 0
        self._pending: dict[int, int] = {}  # by async id
        self._async_ids = itertools.count(1)

    @property
    def is_too_much(self) -> bool:
        return self._running_bytes > MAX_RUNNING_BYTES

    def begin(self, chain: ChainLoad) -> None:
        self._running_bytes += chain.running_bytes

    def end(self, chain: ChainLoad) -> None:
        self._running_bytes -= chain.running_bytes
        for async_id in chain.async_ids:
            self._pending_bytes -= self._pending.pop(async_id)

    def begin_pending(self, chain: ChainLoad) -> int:
        """The async id of a request whose answer comes later."""
        if len(self._pending) >= MAX_PENDING or self._pending_bytes + chain.frame_bytes > MAX_PENDING_BYTES:
            raise SmbError(Status.INSUFFICIENT_RESOURCES)
        async_id = next(self._async_ids)
        self._pending[async_id] = chain.frame_bytes
        self._pending_bytes += chain.frame_bytes
        chain.async_ids.append(async_id)
        self._running_bytes -= chain.running_bytes
        chain.running_bytes = 0
        return async_id

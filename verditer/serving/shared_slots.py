"""Shared memory with one slot for each worker, which its owner replaces and the others read. It is made before the workers fork.

A slot has a checksum: a reader that reads while the owner writes finds that it does not match, and reads again.
"""

import mmap
import zlib
from collections.abc import Iterator


class SharedSlots:
    def __init__(self, workers: int, slot_bytes: int) -> None:
        self._slot_bytes = slot_bytes  # pages that are not used cost nothing
        self._slots = [mmap.mmap(-1, slot_bytes) for _ in range(workers)]

    def publish(self, worker: int, text: bytes) -> None:
        """A text that does not fit leaves the slot as it is."""
        if len(text) <= self._slot_bytes - 8:
            self._slots[worker][: len(text) + 8] = len(text).to_bytes(4, "little") + zlib.crc32(text).to_bytes(4, "little") + text

    def read(self, worker: int) -> bytes | None:
        """None when that worker has published nothing yet."""
        slot = self._slots[worker]
        for _ in range(100):
            length, check = int.from_bytes(slot[:4], "little"), int.from_bytes(slot[4:8], "little")
            if not length:
                return None
            text = slot[8 : 8 + length]
            if zlib.crc32(text) == check:
                return text
        return None

    def others(self, worker: int) -> Iterator[int]:
        return (number for number in range(len(self._slots)) if number != worker)

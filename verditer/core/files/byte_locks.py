"""Byte-range locks: which of them exclude each other, and which exclude reads and writes (MS-FSA 2.1.4.10, 2.1.5.8).

The owner of a lock is the handle that took it. Offsets and lengths are unsigned numbers of 64 bits; a lock may lie behind the end
of its file.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from verditer.core.errors import Code, StorageError

MAX_OFFSET = (1 << 64) - 1


class ByteRangeLock(Protocol):
    @property
    def start(self) -> int: ...

    @property
    def length(self) -> int: ...

    @property
    def exclusive(self) -> bool: ...


class HeldLock(ByteRangeLock, Protocol):
    @property
    def handle_id(self) -> int: ...

    @property
    def lock_id(self) -> int: ...


L = TypeVar("L", bound=HeldLock)


def check_byte_range(start: int, length: int) -> None:
    if length and start + length - 1 > MAX_OFFSET:
        raise StorageError(Code.InvalidByteRange)


def overlap(start: int, length: int, other_start: int, other_length: int) -> bool:
    """Whether two locks touch the same bytes. An empty range touches another only from strictly inside of it."""
    if not length:
        return other_start < start < other_start + other_length
    if not other_length:
        return start < other_start < start + length
    return start < other_start + other_length and other_start < start + length


def is_granted(start: int, length: int, exclusive: bool, handle_id: int, held: Iterable[HeldLock]) -> bool:
    """An exclusive lock excludes every overlapping lock, also one of the same handle. A shared lock excludes the exclusive locks
    of other handles."""
    return not any(
        (exclusive or (lock.exclusive and lock.handle_id != handle_id)) and overlap(start, length, lock.start, lock.length)
        for lock in held
    )


def check_read(start: int, length: int, handle_id: int, held: Iterable[HeldLock]) -> None:
    """Exclusive locks of other handles conflict."""
    for lock in held:
        if lock.exclusive and lock.handle_id != handle_id and _covers(lock, start, length):
            raise StorageError(Code.FileLockConflict)


def check_write(start: int, length: int, handle_id: int, held: Iterable[HeldLock]) -> None:
    """Locks of other handles conflict, and shared locks of any handle, also of the one that writes."""
    for lock in held:
        if not (lock.exclusive and lock.handle_id == handle_id) and _covers(lock, start, length):
            raise StorageError(Code.FileLockConflict)


def lock_to_release(start: int, length: int, handle_id: int, held: Iterable[L]) -> L:
    """The lock that an unlock of exactly this range ends: an exclusive one first, then the oldest."""
    matching = [lock for lock in held if (lock.handle_id, lock.start, lock.length) == (handle_id, start, length)]
    if not matching:
        raise StorageError(Code.ByteRangeNotLocked)
    return min(matching, key=lambda lock: (not lock.exclusive, lock.lock_id))


def _covers(lock: HeldLock, start: int, length: int) -> bool:
    return bool(length and lock.length) and overlap(lock.start, lock.length, start, length)

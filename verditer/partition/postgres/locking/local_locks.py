"""The locks that transactions of this process hold or wait for, so that its writes need not ask the database for what it has."""

from collections.abc import Iterable

from verditer.partition.postgres.locking.locks import Lock


class LocalLocks:
    """The same lock may be held by several writes: they share a transaction, or they share the lock."""

    def __init__(self) -> None:
        self._shared: dict[int, int] = {}  # key → number of holders
        self._exclusive: dict[int, int] = {}

    def conflict(self, locks: Iterable[Lock]) -> bool:
        return any(key in self._exclusive or (exclusive and key in self._shared) for key, exclusive in locks)

    def add(self, locks: Iterable[Lock]) -> None:
        for key, exclusive in locks:
            holders = self._exclusive if exclusive else self._shared
            holders[key] = holders.get(key, 0) + 1

    def remove(self, locks: Iterable[Lock]) -> None:
        for key, exclusive in locks:
            holders = self._exclusive if exclusive else self._shared
            if holders[key] == 1:
                del holders[key]
            else:
                holders[key] -= 1

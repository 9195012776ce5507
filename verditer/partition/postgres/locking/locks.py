"""How transactions of the PostgreSQL engine begin: isolation level, locks on scopes, and the time of the database.

**Why READ COMMITTED is enough for a write.** A write first locks its scopes: exclusively those it names, shared every scope above
them. Every transaction that could change what the body decides on has then ended or waits, and each later statement sees
everything that was committed before the locks were granted. (REPEATABLE READ would be wrong: its snapshot is older than the
locks.) Records outside the scopes may change between two statements; a body decides on records of its scopes and of the scopes
above them.

**Why two writes never deadlock on scopes.** Each write takes its locks in the order of their keys, each lock once, and all of
them before its body runs. A batch of writes takes only the locks that are free. See docs/decisions/postgres-locks.md.

What is locked is a matter of the store: `advisory_locks.py`, or `lock_rows.py` where the database has no advisory locks.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

from psycopg.pq.abc import PGresult

from verditer.core.dates import TICKS_PER_SECOND, UNIX_EPOCH
from verditer.core.records.record import key_of
from verditer.partition.engine import Scope
from verditer.partition.postgres.connection import Cursor, PostgresConnection
from verditer.partition.postgres.pipeline import PipelineCall

Begin = Callable[[PostgresConnection], Cursor]
"""Begins a transaction. Returns the cursor whose row is the time of the database; nothing has been waited for yet."""

Lock = tuple[int, bool]
"""The key of a lock, and whether it is exclusive."""

TIME = (
    f"SELECT (extract(epoch FROM clock_timestamp()) * {TICKS_PER_SECOND})::bigint + {UNIX_EPOCH}"
    " + (SELECT value FROM store WHERE name = 'clock_offset')"
).encode()
BEGIN_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BEGIN_WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED"


class Locking(Protocol):
    """One kind of locks. They end with the transaction that took them."""

    name: str

    def key(self, scope: Scope) -> int:
        """Writes of two scopes that happen to have the same key exclude each other without need, and nothing worse."""

    def wait_for(self, locks: Sequence[Lock]) -> Sequence[PipelineCall]:
        """Statements that take the locks, which are in the order of their keys, and wait where one is not free."""

    def take_free(self, locks: Sequence[Lock]) -> Sequence[PipelineCall]:
        """Statements that take those of the locks that are free, and never wait."""

    def taken(self, locks: Sequence[Lock], results: Sequence[PGresult]) -> set[int]:
        """The keys that the statements of `take_free` have locked."""

    def wait_in_thread(self, connection: PostgresConnection, locks: Sequence[Lock]) -> None:
        """As `wait_for`."""

    def is_taken(self, connection: PostgresConnection, lock: Lock) -> bool:
        """Take one lock if it is free, in the transaction that is open. For the self-test."""

    def exclude_migrations(self, connection: PostgresConnection) -> None:
        """No other process prepares the store until the transaction that is open has ended."""


def begin_read(connection: PostgresConnection) -> Cursor:
    """One snapshot and no locks."""
    connection.execute(BEGIN_READ)
    return connection.execute(TIME)


def begin_write(locking: Locking, locks: Sequence[Lock]) -> Begin:
    def begin(connection: PostgresConnection) -> Cursor:
        connection.execute(BEGIN_WRITE)
        locking.wait_in_thread(connection, locks)
        return connection.execute(TIME)

    return begin


def locks_of(locking: Locking, scopes: Sequence[Scope]) -> tuple[Lock, ...]:
    """The locks that a write takes, in order. A scope that is asked for and is also above another one is locked exclusively."""
    exclusive = {locking.key(scope) for scope in scopes}
    shared = {locking.key(scope[:depth]) for scope in scopes for depth in range(len(scope))} - exclusive
    return tuple(sorted([*((key, True) for key in exclusive), *((key, False) for key in shared)]))


def merged(writes: Iterable[Iterable[Lock]]) -> list[Lock]:
    """The locks of several writes that share a transaction, in order, each once."""
    modes: dict[int, bool] = {}
    for locks in writes:
        for key, exclusive in locks:
            modes[key] = exclusive or modes.get(key, False)
    return sorted(modes.items())


@lru_cache(4096)
def scope_hash(scope: Scope) -> int:
    """64 bits, signed."""
    return int.from_bytes(blake2b(key_of(*scope), digest_size=8).digest(), "big", signed=True)

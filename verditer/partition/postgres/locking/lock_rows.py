"""Locks on scopes as row locks, for databases that speak PostgreSQL's protocol and have no advisory locks.

The table `scope_lock` has a fixed number of rows that never change. A scope is one of them by its hash: two scopes may share a
row. Scopes of many others (accounts, containers, queues, tables, shares) have rows of their own, so that what is in them never
shares a row with what they are locked by.
"""

from collections.abc import Sequence

from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8

from verditer.partition.engine import Scope
from verditer.partition.postgres.connection import PostgresConnection
from verditer.partition.postgres.locking.locks import Lock, scope_hash
from verditer.partition.postgres.pipeline import PipelineCall
from verditer.partition.postgres.wire_values import int_array, int_of, int_value

TABLE = "scope_lock"
_ROWS = 1 << 14
_UPPER_ROWS = 1 << 12  # the first ones, for scopes down to this depth: account, service, container
_UPPER_DEPTH = 3
_MIGRATION_ROW = -1
_TEST_ROWS = 1 << 10  # behind it: no write takes them, so that a node can start while others write
_FIRST_ROW = _MIGRATION_ROW - _TEST_ROWS

_SELECT = f"SELECT slot FROM {TABLE} WHERE slot"
_MODES = {True: "FOR UPDATE", False: "FOR SHARE"}
_WAIT_FOR = {exclusive: f"{_SELECT} = $1 {mode}".encode() for exclusive, mode in _MODES.items()}
_WAIT_IN_THREAD = {exclusive: f"{_SELECT} = %b {mode}".encode() for exclusive, mode in _MODES.items()}
_TAKE_FREE = {exclusive: f"{_SELECT} = ANY($1::bigint[]) {mode} SKIP LOCKED".encode() for exclusive, mode in _MODES.items()}
_TRY = {exclusive: f"{_SELECT} = %s {mode} SKIP LOCKED".encode() for exclusive, mode in _MODES.items()}


class LockRows:
    name = "rows"

    def key(self, scope: Scope) -> int:
        number = scope_hash(scope)
        return number % _UPPER_ROWS if len(scope) <= _UPPER_DEPTH else _UPPER_ROWS + number % (_ROWS - _UPPER_ROWS)

    def wait_for(self, locks: Sequence[Lock]) -> Sequence[PipelineCall]:
        """One statement for each: no statement locks some rows exclusively and others not, and the order matters."""
        return [PipelineCall(_WAIT_FOR[exclusive], (int_value(key),)) for key, exclusive in locks]

    def take_free(self, locks: Sequence[Lock]) -> Sequence[PipelineCall]:
        """Nothing is waited for, so the order does not matter."""
        return [
            PipelineCall(statement, (int_array([key for key, mode in locks if mode is exclusive]),))
            for exclusive, statement in _TAKE_FREE.items()
        ]

    def taken(self, locks: Sequence[Lock], results: Sequence[PGresult]) -> set[int]:
        return {int_of(result.get_value(row, 0)) for result in results for row in range(result.ntuples)}

    def wait_in_thread(self, connection: PostgresConnection, locks: Sequence[Lock]) -> None:
        for key, exclusive in locks:
            connection.execute(_WAIT_IN_THREAD[exclusive], (Int8(key),))

    def is_taken(self, connection: PostgresConnection, lock: Lock) -> bool:
        key, exclusive = lock
        return connection.execute(_TRY[exclusive], (Int8(_FIRST_ROW + key % _TEST_ROWS),)).fetchone() is not None

    def exclude_migrations(self, connection: PostgresConnection) -> None:
        """Makes the table when the store is new."""
        connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} (slot BIGINT PRIMARY KEY)")
        if connection.execute(f"{_SELECT} = {_MIGRATION_ROW} FOR UPDATE").fetchone() is None:
            connection.execute(f"INSERT INTO {TABLE} SELECT generate_series({_FIRST_ROW}, {_ROWS - 1})")

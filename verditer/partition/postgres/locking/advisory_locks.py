"""Advisory locks on scopes: PostgreSQL keeps them in its memory, so they cost no row and no log."""

from collections.abc import Sequence

from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8

from verditer.partition.engine import Scope
from verditer.partition.postgres.connection import PostgresConnection
from verditer.partition.postgres.locking.locks import Lock, scope_hash
from verditer.partition.postgres.pipeline import PipelineCall
from verditer.partition.postgres.wire_values import bool_array, int_array

_MIGRATION_LOCK = (0x5645, 1)  # two-part keys never equal the one-part keys of scopes

# One statement for any number of locks, so that the server prepares only one. PostgreSQL processes the rows of `unnest` in order.
_WAIT = """
    SELECT CASE WHEN exclusive THEN pg_advisory_xact_lock(key) ELSE pg_advisory_xact_lock_shared(key) END
    FROM unnest({}::bigint[], {}::boolean[]) AS lock (key, exclusive)
"""
_WAIT_IN_THREAD = _WAIT.format("%b", "%b").encode()
_WAIT_FOR = _WAIT.format("$1", "$2").encode()
_TAKE_FREE = b"""
    SELECT CASE WHEN exclusive THEN pg_try_advisory_xact_lock(key) ELSE pg_try_advisory_xact_lock_shared(key) END
    FROM unnest($1::bigint[], $2::boolean[]) AS lock (key, exclusive)
"""
_TRY = {True: "SELECT pg_try_advisory_xact_lock(%s)", False: "SELECT pg_try_advisory_xact_lock_shared(%s)"}


class AdvisoryLocks:
    name = "advisory"

    def key(self, scope: Scope) -> int:
        return scope_hash(scope)

    def wait_for(self, locks: Sequence[Lock]) -> Sequence[PipelineCall]:
        return [PipelineCall(_WAIT_FOR, _arrays(locks))]

    def take_free(self, locks: Sequence[Lock]) -> Sequence[PipelineCall]:
        return [PipelineCall(_TAKE_FREE, _arrays(locks))]

    def taken(self, locks: Sequence[Lock], results: Sequence[PGresult]) -> set[int]:
        (result,) = results
        return {key for row, (key, _) in enumerate(locks) if result.get_value(row, 0) == b"\1"}

    def wait_in_thread(self, connection: PostgresConnection, locks: Sequence[Lock]) -> None:
        connection.execute(_WAIT_IN_THREAD, ([Int8(key) for key, _ in locks], [exclusive for _, exclusive in locks]))

    def is_taken(self, connection: PostgresConnection, lock: Lock) -> bool:
        key, exclusive = lock
        row = connection.execute(_TRY[exclusive].encode(), (Int8(key),)).fetchone()
        return row is not None and row[0] is True

    def exclude_migrations(self, connection: PostgresConnection) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", _MIGRATION_LOCK)


def _arrays(locks: Sequence[Lock]) -> tuple[bytes, bytes]:
    return int_array([key for key, _ in locks]), bool_array([exclusive for _, exclusive in locks])

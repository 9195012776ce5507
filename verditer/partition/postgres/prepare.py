"""Prepares a database for the engine: tables, schema, and which kind of locks the store has.

The kind is chosen when the store is made, and the table `scope_lock` is its mark: nodes with different kinds of locks would not
exclude each other. Processes that start together prepare the store one after another.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import psycopg
from psycopg import errors

from verditer.core.records.record import Record
from verditer.partition import migrations
from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.connection import PostgresConnection
from verditer.partition.postgres.locking.advisory_locks import AdvisoryLocks
from verditer.partition.postgres.locking.lock_rows import TABLE, LockRows
from verditer.partition.postgres.locking.locks import Locking
from verditer.partition.postgres.locking.self_test import check_locks, check_sessions

LOCKINGS: dict[str, type[Locking]] = {kind.name: kind for kind in (AdvisoryLocks, LockRows)}
ATTEMPTS = 5  # to make a store that several processes are making

_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"


def prepare(
    connect: Callable[[], AbstractContextManager[PostgresConnection]],
    connect_for_migration: Callable[[], AbstractContextManager[PostgresConnection]],
    records: Sequence[type[Record]],
    asked: str | None,
    makes_store: bool,
) -> Locking:
    """`asked` is the name of a kind of locks; None is that of the store. Raises EngineUnavailable."""
    try:
        with connect() as one, connect() as other:
            check_sessions(one, other)
        with connect_for_migration() as connection:
            if not makes_store and "store" not in _tables(connection):
                raise EngineUnavailable("the database holds no store")
            locking = _migrated(connection, records, asked)
        with connect() as one, connect() as other:
            check_locks(one, other, locking)
    except (errors.InsufficientPrivilege, errors.InvalidSchemaName) as error:
        raise EngineUnavailable(f"the user of the database may not do this: {error.diag.message_primary}") from error
    except psycopg.OperationalError as error:
        raise EngineUnavailable(str(error)) from error
    return locking


def _migrated(connection: PostgresConnection, records: Sequence[type[Record]], asked: str | None) -> Locking:
    for _ in range(ATTEMPTS - 1):
        try:
            return _migrate(connection, records, asked)
        except (_Overtaken, errors.UniqueViolation, errors.DuplicateTable):
            pass
    return _migrate(connection, records, asked)


class _Overtaken(EngineUnavailable):
    """Another process has made the store meanwhile, maybe with the other kind of locks."""


def _migrate(connection: PostgresConnection, records: Sequence[type[Record]], asked: str | None) -> Locking:
    with connection.transaction():
        before = _tables(connection)
        locking = _locking(before, asked)
        locking.exclude_migrations(connection)
        tables = _tables(connection)
        if ("store" in tables) != ("store" in before):
            raise _Overtaken("the store is being made")
        found = connection.execute(migrations.VERSION_QUERY.encode()).fetchone() if "store" in tables else None
        for statement in migrations.plan(found[0] if found else 0, tables, records, migrations.POSTGRES):
            connection.execute(statement.encode(), prepare=False)
    return locking


def _locking(tables: set[str], asked: str | None) -> Locking:
    stored = None
    if "store" in tables:
        stored = LockRows.name if TABLE in tables else AdvisoryLocks.name
    if stored is not None and asked not in (None, stored):
        raise EngineUnavailable(f"this store was made with {stored} locks: --postgres-locks {asked} needs an empty database")
    return LOCKINGS[stored or asked or AdvisoryLocks.name]()


def _tables(connection: PostgresConnection) -> set[str]:
    return {name for (name,) in connection.execute(_TABLES)}

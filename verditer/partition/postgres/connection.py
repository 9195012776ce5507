"""Connections of the PostgreSQL engine: how they are opened, and what their errors mean to the caller of a transaction."""

from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from verditer.core.errors import Code, StorageError
from verditer.partition.engine import EngineUnavailable

PostgresConnection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]

CONNECT_SECONDS = 3  # for each host of the connection string
_DEFAULTS: dict[str, str | int | None] = {
    "application_name": "verditer",
    "target_session_attrs": "read-write",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

# Every wait of a statement has a limit on the server, too. Every statement finds its rows by an index: a plan made while a table
# was empty must not read the whole table later, and a plan need not depend on the values.
_OPTIONS = (
    "-c lock_timeout={lock_ms} -c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000"
    " -c enable_seqscan=off -c plan_cache_mode=force_generic_plan -c jit=off"
)

# An acknowledged write is durable (contract G6), whatever the server's default; a stricter default stays.
synchronous_setting = (
    b"SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply'"
)


class TryAgain(Exception):
    """Nothing happened, and the same body may well succeed."""


def complete_conninfo(conninfo: str, lock_seconds: float) -> str:
    """The operator's connection string with the settings that this engine needs. The operator's own options come first."""
    given = conninfo_to_dict(conninfo)
    options = f"{given.pop('options', None) or ''} {_OPTIONS.format(lock_ms=int(lock_seconds * 1000))}".strip()
    return make_conninfo("", **{**_DEFAULTS, **given, "options": options})


def connect(conninfo: str, lock_seconds: float) -> PostgresConnection:
    """For a thread."""
    try:
        connection = psycopg.connect(complete_conninfo(conninfo, lock_seconds), autocommit=True, prepare_threshold=0)
        connection.prepared_max = None  # there are few statements: a dozen for each record class
    except psycopg.OperationalError as error:
        raise EngineUnavailable(str(error)) from error
    return connection


def set_durability(connection: PostgresConnection) -> None:
    connection.execute(synchronous_setting, prepare=False)


def meaning_of(error: psycopg.Error, *, closed: bool, committing: bool) -> Exception:
    """The exception for the caller of a transaction in which a statement failed."""
    if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
        return TryAgain()
    if closed:
        return unknown_outcome() if committing else TryAgain()
    if isinstance(error, errors.DiskFull):
        return StorageError(Code.InsufficientStorage)
    if isinstance(error, errors.ProgramLimitExceeded):  # an index takes keys of up to 2704 bytes
        return StorageError(Code.OutOfRangeInput, message="The name is too long for the database behind this server.")
    if isinstance(error, psycopg.OperationalError | errors.ReadOnlySqlTransaction):
        return EngineUnavailable(str(error))
    return error


def unknown_outcome() -> EngineUnavailable:
    return EngineUnavailable("the connection broke during a commit; its outcome is unknown")


def is_wrong_server(error: BaseException) -> bool:
    """A standby, or a primary that was demoted or is shutting down: the next connection looks for the new primary."""
    return isinstance(
        error, errors.ReadOnlySqlTransaction | errors.AdminShutdown | errors.CannotConnectNow | errors.CrashShutdown
    )


def leave_transaction(connection: PostgresConnection) -> None:
    """In whatever way a transaction ended, make its connection ready for the next one, or close it."""
    try:
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.rollback()
    except psycopg.Error:
        connection.close()

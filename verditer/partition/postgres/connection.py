"""Connections of the PostgreSQL engine: what their errors mean to the caller of a transaction."""

from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from verditer.core.errors import Code, StorageError
from verditer.partition.engine import EngineUnavailable

PostgresConnection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]


class TryAgain(Exception):
    """Nothing happened, and the same body may well succeed."""


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

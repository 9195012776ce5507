"""The stores that engines are tested on. A store outlives its engines: opening another engine on it is a restart, or one more
process."""

import itertools
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol

import psycopg

from tests.contract.postgres import PostgresServer
from verditer.core.clock import NODES
from verditer.core.dates import system_ticks
from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record
from verditer.partition import schema
from verditer.partition.engine import Engine, Scope
from verditer.partition.postgres.engine import PostgresEngine
from verditer.partition.postgres.locking.advisory_locks import AdvisoryLocks
from verditer.partition.postgres.locking.lock_rows import LockRows
from verditer.partition.postgres.locking.locks import Locking, begin_write, locks_of
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.partition.sqlite.shared import SharedStore


class Note(Record, frozen=True, kw_only=True, tag=1):
    TABLE = "test_note"
    KEY = ("space", "name")
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT)
    DOCUMENT = "data"

    data: bytes = b""
    space: int
    name: str
    value: int = 0


class Job(Record, frozen=True, kw_only=True, tag=1):
    TABLE = "test_job"
    KEY = ("queue", "id")
    RANK = ("queue", "due", "id")
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT)

    queue: str
    id: int
    due: int


RECORDS: tuple[type[Record], ...] = (*schema.RECORDS, Note, Job)


class Store(Protocol):
    """`kept`: what an engine wrote, the next one finds. `shared`: several engines may have it open at once."""

    kept: bool
    shared: bool

    def build(self, records: tuple[type[Record], ...] = RECORDS) -> Engine: ...

    def set_schema_version(self, version: int) -> None: ...


@asynccontextmanager
async def opened(store: Store, records: tuple[type[Record], ...] = RECORDS) -> AsyncIterator[Engine]:
    engine = store.build(records)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


class SqliteStore:
    shared = False

    def __init__(self, folder: Path | None) -> None:
        self.kept = folder is not None
        self._folder = folder
        self.clock_error = 0  # ticks by which the machine's clock is wrong
        self.fdatasync: Callable[[int], None] = os.fdatasync  # a test may replace it, for the engines of this store only

    def build(self, records: tuple[type[Record], ...] = RECORDS) -> Engine:
        return SqliteEngine(self._folder, source=self._time, records=records, fdatasync=self._sync)

    def _time(self) -> int:
        return system_ticks() + self.clock_error

    def _sync(self, file: int) -> None:
        self.fdatasync(file)

    def set_schema_version(self, version: int) -> None:
        self.execute(f"UPDATE store SET value = {version} WHERE name = 'schema'")

    def execute(self, *statements: str) -> None:
        assert self._folder is not None
        connection = sqlite3.connect(self._folder / "verditer.db")
        with connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    def insert(self, *records: Record) -> None:
        """As the engine's first version stored records."""
        assert self._folder is not None
        connection = sqlite3.connect(self._folder / "verditer.db")
        with connection:
            for record in records:
                connection.execute(f"INSERT INTO {record.TABLE} VALUES (?, ?)", schema.row_of(record))
        connection.close()


class WorkersStore(SqliteStore):
    """Each engine on it is a worker with a number of its own."""

    shared = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.together = SharedStore(folder)
        self._numbers = itertools.count()

    def build(self, records: tuple[type[Record], ...] = RECORDS) -> Engine:
        number = next(self._numbers) % NODES
        return SqliteEngine(
            self._folder, shared=self.together, worker=number, source=self._time, records=records, fdatasync=self._sync
        )


class PostgresStore:
    kept = True
    shared = True
    locking: Locking = AdvisoryLocks()

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.conninfo = server.make_database()

    def build(self, records: tuple[type[Record], ...] = RECORDS) -> Engine:
        return PostgresEngine(self.conninfo, records=records, locks=self.locking.name)

    def set_schema_version(self, version: int) -> None:
        self.execute("UPDATE store SET value = %s WHERE name = 'schema'", version)

    def execute(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(statement.encode(), values)

    @contextmanager
    def held(self, *scopes: Scope) -> Iterator[None]:
        """Another process is inside a write on these scopes."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            begin_write(self.locking, locks_of(self.locking, scopes))(connection)
            yield

    def break_connections(self) -> None:
        self.server.break_connections(self.conninfo)


class LockRowsStore(PostgresStore):
    locking = LockRows()

"""The stores that engines are tested on. A store outlives its engines: opening another engine on it is a restart, or one more
process."""

import itertools
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import psycopg

from tests.contract.postgres import PostgresServer
from verditer.core.clock import NODES
from verditer.core.dates import system_ticks
from verditer.core.records.record import Record
from verditer.partition import schema
from verditer.partition.engine import Engine
from verditer.partition.postgres import PostgresEngine
from verditer.partition.shared import SharedStore
from verditer.partition.sqlite import SqliteEngine


class Note(Record, frozen=True, kw_only=True, tag=1):
    TABLE = "test_note"
    KEY = ("space", "name")
    SIFTED = True

    data: bytes = b""  # the first field, where a sieve looks
    space: int
    name: str
    value: int = 0


class Job(Record, frozen=True, kw_only=True, tag=1):
    TABLE = "test_job"
    KEY = ("queue", "id")
    RANK = ("queue", "due", "id")

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

    def build(self, records: tuple[type[Record], ...] = RECORDS) -> Engine:
        return SqliteEngine(self._folder, source=self._time, records=records)

    def _time(self) -> int:
        return system_ticks() + self.clock_error

    def set_schema_version(self, version: int) -> None:
        self.execute(f"UPDATE store SET value = {version} WHERE name = 'schema'")

    def execute(self, *statements: str) -> None:
        assert self._folder is not None
        connection = sqlite3.connect(self._folder / "verditer.db")
        with connection:
            for statement in statements:
                connection.execute(statement)
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
        return SqliteEngine(self._folder, shared=self.together, worker=number, source=self._time, records=records)


class PostgresStore:
    kept = True
    shared = True

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.conninfo = server.make_database()

    def build(self, records: tuple[type[Record], ...] = RECORDS) -> Engine:
        return PostgresEngine(self.conninfo, records=records)

    def set_schema_version(self, version: int) -> None:
        self.execute("UPDATE store SET value = %s WHERE name = 'schema'", version)

    def execute(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(statement.encode(), values)

    def break_connections(self) -> None:
        self.server.break_connections(self.conninfo)

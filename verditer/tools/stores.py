"""The stores that the tools work on: records and extents, opened together by their addresses."""

import secrets
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from verditer.partition.engine import Engine, EngineUnavailable
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.partition.sqlite.shared import StoreInUse
from verditer.stream.extents import ExtentStore
from verditer.stream.local import LocalExtents
from verditer.stream.s3_location import S3Location

DATABASE = "verditer.db"


class StoreAddress(NamedTuple):
    """A folder with everything; or a database, with large bodies in S3 or in the folder."""

    folder: Path
    database: str | None = None
    extents: S3Location | None = None
    locks: str | None = None  # of a database that holds no store yet

    @property
    def shown(self) -> str:
        """Without a password. No two stores look alike: the state of an unfinished copy names its stores by this."""
        if self.database is None:
            return str(self.folder.absolute())
        from psycopg.conninfo import conninfo_to_dict  # an extra

        parts = conninfo_to_dict(self.database)
        host = f"{parts.get('host', 'localhost')}{':' if 'port' in parts else ''}{parts.get('port', '')}"
        return f"PostgreSQL ({parts.get('dbname', '')} at {host}), bytes in {self._extents_shown}"

    def shares_extents_with(self, other: "StoreAddress") -> bool:
        """Whether both keep their extents in the same place. No two stores may do that."""
        if self.extents is not None and other.extents is not None:
            return (self.extents.base_url, self.extents.prefix) == (other.extents.base_url, other.extents.prefix)
        return self.extents is other.extents and self.extents_folder.resolve() == other.extents_folder.resolve()

    @property
    def extents_folder(self) -> Path:
        return self.folder / "extents"

    @property
    def _extents_shown(self) -> str:
        if self.extents is None:
            return str(self.folder.absolute())
        return f"{self.extents} at {self.extents.endpoint or self.extents.region}"


class OpenStore:
    """`extent_id` is the id that the next extent gets, if it is to have a certain one."""

    def __init__(self, address: StoreAddress, *, makes_store: bool = True) -> None:
        self.address = address
        self.extent_id: str | None = None
        self.engine: Engine = _engine(address, makes_store=makes_store)
        self.extents: ExtentStore = _extents(address, self)

    def new_id(self) -> str:
        if self.extent_id is not None:
            return self.extent_id
        return f"{self.engine.now():016x}{secrets.token_hex(8)}"


def _engine(address: StoreAddress, *, makes_store: bool) -> Engine:
    if address.database is None:
        return SqliteEngine(address.folder)
    from verditer.partition.postgres.engine import PostgresEngine  # an extra: psycopg may not be installed

    return PostgresEngine(address.database, locks=address.locks, makes_store=makes_store)


def _extents(address: StoreAddress, store: OpenStore) -> ExtentStore:
    if address.extents is not None:
        from verditer.stream.s3 import S3Extents  # an extra: obstore may not be installed

        return S3Extents(address.extents, store.new_id)
    return LocalExtents(address.extents_folder, store.new_id)


@contextmanager
def naming_damage(address: StoreAddress) -> Iterator[None]:
    """An error of SQLite says what is wrong, as with a damaged page, and not where."""
    try:
        yield
    except sqlite3.Error as error:
        raise EngineUnavailable(f"the database of {address.shown} cannot be used: {error}") from None


@asynccontextmanager
async def opened(address: StoreAddress, *, makes_store: bool = True) -> AsyncIterator[OpenStore]:
    """Raises EngineUnavailable when a server has the folder open, or when the database is damaged. Without `makes_store`, opening
    an address without a store makes none."""
    if not makes_store:
        _require_store(address)
    with naming_damage(address):
        async with _opened(OpenStore(address, makes_store=makes_store)) as store:
            yield store


def _require_store(address: StoreAddress) -> None:
    """As far as folders show. Opening them would make them."""
    if address.database is None:
        if not (address.folder / DATABASE).exists():
            raise EngineUnavailable(f"{address.folder} holds no store")
    elif address.extents is None and not address.extents_folder.exists():
        raise EngineUnavailable(f"{address.folder} has no folder with extents")


@asynccontextmanager
async def _opened(store: OpenStore) -> AsyncIterator[OpenStore]:
    try:
        await store.engine.open()
    except StoreInUse as error:
        raise StoreInUse(f"{error.reason}: stop it, or name a folder that `verditer backup` makes while it serves") from None
    try:
        await store.extents.open()
        try:
            yield store
        finally:
            await store.extents.close()
    finally:
        await store.engine.close()

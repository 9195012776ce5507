"""A spool: the records of a store in one state, in a file, table by table and key by key, with the digest of each table.

A copy reads the whole source in one transaction into a spool, so that it is the state of one moment, and may be interrupted and
continued afterwards.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from verditer.core.records.activity import Horizon
from verditer.core.records.catalog import RECORDS
from verditer.core.records.record import EVERY_KEY, Record
from verditer.partition import schema
from verditer.partition.engine import EngineUnavailable, Transaction

# What belongs to running processes stays where they are: their announcements, and the handles of their clients.
KINDS = {kind.TABLE: kind for kind in RECORDS if kind is not Horizon and not kind.LIFECYCLE.volatile}


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    records: int
    digest: str


class SpoolIndex(msgspec.Struct, frozen=True, kw_only=True):
    tick: int
    tables: dict[str, TableEntry]

    @property
    def records(self) -> int:
        return sum(entry.records for entry in self.tables.values())


class Spool:
    """`index` is None until the spool is complete."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index = folder / "index.json"

    @property
    def index(self) -> SpoolIndex | None:
        try:
            return msgspec.json.decode(self._index.read_bytes(), type=SpoolIndex)
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        self._index.unlink()
        shutil.rmtree(self._folder)

    def fill(self, tx: Transaction) -> SpoolIndex:
        """A transaction body. It may run again: then it starts anew."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        tables = {table: self._write(tx, kind) for table, kind in KINDS.items()}
        index = SpoolIndex(tick=tx.now, tables=tables)
        part = self._index.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(index))
        part.replace(self._index)
        return index

    def _write(self, tx: Transaction, kind: type[Record]) -> TableEntry:
        digest = TableDigest()
        with (self._folder / f"{kind.TABLE}.records").open("wb") as writing:
            for record in self._scan(tx, kind):
                body = schema.encode(record)
                digest.add(body)
                writing.write(len(body).to_bytes(8, "big"))
                writing.write(body)
            writing.flush()
            os.fsync(writing.fileno())
        return digest.entry

    @staticmethod
    def _scan(tx: Transaction, kind: type[Record]) -> Iterator[Record]:
        try:
            yield from tx.scan(kind, EVERY_KEY)
        except msgspec.DecodeError as error:
            raise EngineUnavailable(
                f"table {kind.TABLE} of the source holds a record that cannot be read: {error}. Run `verditer check`"
            ) from None

    def records(self, table: str, skip: int = 0) -> Iterator[Any]:
        decode = schema.decoder(KINDS[table]).decode
        with (self._folder / f"{table}.records").open("rb") as reading:
            for number, body in enumerate(iter(lambda: reading.read(int.from_bytes(reading.read(8), "big")), b"")):
                if number >= skip:
                    yield decode(body)


class TableDigest:
    """Over the encoded records of a table, in the order of their keys."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=32)
        self._records = 0

    def add(self, body: bytes) -> None:
        self._digest.update(len(body).to_bytes(8, "big") + body)
        self._records += 1

    @property
    def entry(self) -> TableEntry:
        return TableEntry(records=self._records, digest=self._digest.hexdigest())

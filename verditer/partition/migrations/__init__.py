"""Migrations: from whatever a store holds to what this program expects. Pure: an engine brings what it found, runs what it gets.

A store's schema version is the number of the last step it has taken; an empty store has version 0. A step is added when a
former program must not open the store any more. A new record class alone is no step: its table appears at the next start.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from verditer.core.records.record import Record
from verditer.partition.engine import EngineUnavailable
from verditer.partition.migrations import s0001_store


class Dialect(NamedTuple):
    """The little in which engines differ."""

    bytes_type: str
    table_options: str = ""


POSTGRES = Dialect("BYTEA")
SQLITE = Dialect("BLOB", " WITHOUT ROWID")

# fmt: off
STEPS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, s0001_store.STATEMENTS),
)
# fmt: on

VERSION = STEPS[-1][0]
VERSION_QUERY = "SELECT value FROM store WHERE name = 'schema'"  # only where the table is: a store without it has version 0


def plan(version: int, tables: Collection[str], records: Sequence[type[Record]], dialect: Dialect) -> list[str]:
    """The statements that make a store of this version, with these tables, one of `VERSION` with a table for every record."""
    if version > VERSION:
        raise EngineUnavailable(f"the store has schema version {version}; this verditer knows up to {VERSION}")
    statements = [statement for number, step in STEPS if number > version for statement in step]
    if "counter" not in tables:
        columns = f"key {dialect.bytes_type} PRIMARY KEY, value BIGINT NOT NULL"
        statements.append(f"CREATE TABLE counter ({columns}){dialect.table_options}")
    for kind in records:
        if kind.TABLE not in tables:
            statements += _table(kind, dialect)
    if version < VERSION:
        statements.append(f"UPDATE store SET value = {VERSION} WHERE name = 'schema'")
    return statements


def _table(kind: type[Record], dialect: Dialect) -> list[str]:
    blob = dialect.bytes_type
    rank = f"rank {blob} NOT NULL, " if kind.RANK else ""
    statements = [f'CREATE TABLE "{kind.TABLE}" (key {blob} PRIMARY KEY, {rank}body {blob} NOT NULL){dialect.table_options}']
    if kind.RANK:
        statements.append(f'CREATE INDEX "{kind.TABLE}_rank" ON "{kind.TABLE}" (rank)')
    return statements

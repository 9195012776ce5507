"""Migrations: from whatever a store holds to what this program expects. Pure: an engine brings what it found, runs what it gets.

A store's schema version is the number of the last step it has taken; an empty store has version 0. A step is added when a
former program must not open the store any more. A new record class alone is no step: its table appears at the next start.
"""

from collections.abc import Callable, Collection, Sequence

from verditer.core.records.record import Record
from verditer.partition.engine import EngineUnavailable
from verditer.partition.migrations import s0001_store, s0002_documents, s0003_text
from verditer.partition.migrations.dialect import POSTGRES, SQLITE, Dialect, unsifted_index

Step = Callable[[Collection[str], Dialect], Sequence[str]]
"""What has to be done in a store that has these tables."""

__all__ = ["POSTGRES", "SQLITE", "VERSION_QUERY", "plan"]

# fmt: off
STEPS: tuple[tuple[int, Step], ...] = (
    (1, s0001_store.statements),
    (2, s0002_documents.statements),
    (3, s0003_text.statements),
)
# fmt: on

VERSION = STEPS[-1][0]
VERSION_QUERY = "SELECT value FROM store WHERE name = 'schema'"  # only where the table is: a store without it has version 0


def plan(version: int, tables: Collection[str], records: Sequence[type[Record]], dialect: Dialect) -> list[str]:
    """The statements that make a store of this version, with these tables, one of `VERSION` with a table for every record."""
    if version > VERSION:
        raise EngineUnavailable(f"the store has schema version {version}; this verditer knows up to {VERSION}")
    statements = [statement for number, step in STEPS if number > version for statement in step(tables, dialect)]
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
    if kind.SIFTED and dialect.unsifted:
        statements.append(unsifted_index(kind.TABLE, dialect))
    return statements

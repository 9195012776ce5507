"""Migrations bring a store to the schema that this program expects. They do no I/O: `plan` returns SQL for the engine to run.

A store's schema version is the number of the last step that was run on it; an empty store has version 0. A change needs a step if
an earlier program must not open the store any more. A new record class needs none: its table is created at the next start.
"""

from collections.abc import Callable, Collection, Sequence

from verditer.core.records.record import Record
from verditer.partition.engine import EngineUnavailable
from verditer.partition.migrations import (
    s0001_store,
    s0002_documents,
    s0003_text,
    s0004_names,
    s0005_message_counts,
    s0006_volatile_opens,
    s0007_rare_properties,
    s0008_file_contents,
)
from verditer.partition.migrations.dialect import POSTGRES, SQLITE, Dialect, large_index

MigrationStep = Callable[[Collection[str], Dialect], Sequence[str]]
"""The statements that one step needs in a store that has these tables."""

__all__ = ["POSTGRES", "SQLITE", "VERSION_QUERY", "plan"]

# fmt: off
STEPS: tuple[tuple[int, MigrationStep], ...] = (
    (1, s0001_store.statements),
    (2, s0002_documents.statements),
    (3, s0003_text.statements),
    (4, s0004_names.statements),
    (5, s0005_message_counts.statements),
    (6, s0006_volatile_opens.statements),
    (7, s0007_rare_properties.statements),
    (8, s0008_file_contents.statements),
)
# fmt: on

VERSION = STEPS[-1][0]
VERSION_QUERY = "SELECT value FROM store WHERE name = 'schema'"  # only where the table is: a store without it has version 0


def plan(version: int, tables: Collection[str], records: Sequence[type[Record]], dialect: Dialect) -> list[str]:
    """The statements that bring a store from this version and these tables to `VERSION`, with a table for every record class."""
    require_known(version)
    statements = [statement for number, step in STEPS if number > version for statement in step(tables, dialect)]
    for kind in records:
        if kind.TABLE not in tables:
            statements += _table(kind, dialect)
    if version < VERSION:
        statements.append(f"UPDATE store SET value = {VERSION} WHERE name = 'schema'")
    return statements


def require_known(version: int) -> None:
    if version > VERSION:
        raise EngineUnavailable(f"the store has schema version {version}; this verditer knows up to {VERSION}")


def _table(kind: type[Record], dialect: Dialect) -> list[str]:
    blob = dialect.bytes_type
    volatile = dialect.volatile if kind.LIFECYCLE.volatile else ""
    rank = f"rank {blob} NOT NULL, " if kind.RANK else ""
    statements = [
        f'CREATE {volatile}TABLE IF NOT EXISTS "{kind.TABLE}" (key {blob} PRIMARY KEY, {rank}body {blob} NOT NULL)'
        f"{dialect.table_options}"
    ]
    if kind.RANK:
        statements.append(f'CREATE INDEX "{kind.TABLE}_rank" ON "{kind.TABLE}" (rank)')
    if kind.DOCUMENT and dialect.is_too_large:
        statements.append(large_index(kind.TABLE, dialect))
    return statements

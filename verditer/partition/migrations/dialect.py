"""The few points in which the SQL of the two engines differs."""

from typing import NamedTuple


class Dialect(NamedTuple):
    bytes_type: str
    table_options: str = ""
    volatile: str = ""  # the word that makes a table of volatile records: it costs no log, and is empty after a crash
    is_too_large: str = ""  # an SQL expression: the record is too large for the engine's prefilter, if it has one


POSTGRES = Dialect("BYTEA", volatile="UNLOGGED ")
# GLOB reads nothing of a document from 64 KiB on. From 16 KiB on, a document made for the purpose keeps one GLOB busy for half a
# millisecond, during which SQLite does not check the time limit.
SQLITE = Dialect("BLOB", " WITHOUT ROWID", is_too_large="length(CAST(body AS BLOB)) > 16383")


def large_index(table: str, dialect: Dialect) -> str:
    """The index of the records that the prefilter lets pass unseen."""
    return f'CREATE INDEX "{table}_large" ON "{table}" (key) WHERE {dialect.is_too_large}'

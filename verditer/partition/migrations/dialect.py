"""The little in which the SQL of engines differs."""

from typing import NamedTuple


class Dialect(NamedTuple):
    bytes_type: str
    table_options: str = ""
    unsifted: str = ""  # the records that the engine's sieve, if it has one, cannot look into


POSTGRES = Dialect("BYTEA")
# From 64 KiB on GLOB does not see what is in a record; from 16 KiB on a look at one that is made for it takes half a millisecond,
# and SQLite does not look at the clock meanwhile.
SQLITE = Dialect("BLOB", " WITHOUT ROWID", unsifted="length(CAST(body AS BLOB)) > 16383")


def unsifted_index(table: str, dialect: Dialect) -> str:
    return f"CREATE INDEX {table}_unsifted ON {table} (key) WHERE {dialect.unsifted}"

"""The little in which the SQL of engines differs."""

from typing import NamedTuple


class Dialect(NamedTuple):
    bytes_type: str
    table_options: str = ""


POSTGRES = Dialect("BYTEA")
SQLITE = Dialect("BLOB", " WITHOUT ROWID")

"""Step 6: open handles and their locks are volatile records, with other fields than before. No program has stored any so far."""

from collections.abc import Collection, Sequence

from verditer.partition.migrations.dialect import POSTGRES, Dialect

_TABLES = ("file_open", "file_lock")


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    found: list[str] = []
    for table in _TABLES:
        if table in tables:
            found.append(f"DELETE FROM {table}")
            if dialect is POSTGRES:
                found.append(f"ALTER TABLE {table} SET UNLOGGED")
    return found

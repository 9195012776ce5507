"""Step 4: a table and an index get the names that the code uses. The records in them stay as they are."""

from collections.abc import Collection, Sequence

from verditer.partition.migrations.dialect import SQLITE, Dialect, large_index


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    found: list[str] = []
    if "forgotten" in tables:
        found.append("ALTER TABLE forgotten RENAME TO tombstone")
    if dialect is SQLITE and "entity" in tables:
        found += ["DROP INDEX entity_unsifted", large_index("entity", dialect)]
    return found

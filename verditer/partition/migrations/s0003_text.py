"""Step 3: the embedded engine stores entities as text, which its prefilter reads in place, without a copy. An index lists those
that are too large for the prefilter (`partition/sqlite/prefilter.py`). PostgreSQL has no prefilter.
"""

from collections.abc import Collection, Sequence

from verditer.partition.migrations.dialect import SQLITE, Dialect


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    if dialect is not SQLITE or "entity" not in tables:
        return ()
    return (
        "UPDATE entity SET body = CAST(body AS TEXT)",
        f"CREATE INDEX entity_unsifted ON entity (key) WHERE {dialect.is_too_large}",
    )

"""Step 3: entities are text to the embedded engine, whose sieve then looks at them where they are, without a copy; and an index
knows those that it cannot look into (`partition/sqlite_sieve.py`). Other engines have no sieve.
"""

from collections.abc import Collection, Sequence

from verditer.partition.migrations.dialect import Dialect, unsifted_index


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    if not dialect.unsifted or "entity" not in tables:
        return ()
    return ("UPDATE entity SET body = CAST(body AS TEXT)", unsifted_index("entity", dialect))

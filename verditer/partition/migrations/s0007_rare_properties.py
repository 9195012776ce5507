"""Step 7: blobs and containers have further fields. Rows are upgraded when they are read (`Record.ADDED`).

Earlier programs cannot read rows that this one writes; the number of the step keeps them from opening the store.
"""

from collections.abc import Collection, Sequence

from verditer.partition.migrations.dialect import Dialect


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    return ()

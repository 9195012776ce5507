"""Step 8: intervals in the first 4 MiB of a content have no index any more, and the live contents of files no view of their own.

The views that earlier programs have put stay until the contents are dropped. Those programs would not drop a content without one;
the number of the step keeps them from opening the store.
"""

from collections.abc import Collection, Sequence

from verditer.partition.migrations.dialect import SQLITE, Dialect

_FIRST_INDEXED = "0000000000400000"  # the second part of a key is the start of the interval: eight bytes, big-endian


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    if "small_piece" not in tables:
        return ()
    first = f"x'{_FIRST_INDEXED}'" if dialect is SQLITE else f"'\\x{_FIRST_INDEXED}'::bytea"
    return (f"DELETE FROM small_piece WHERE substr(key, 9) < {first}",)

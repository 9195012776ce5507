"""Step 1: the schema version and clock offset of a store, and the ticks that its processes have reserved (`core/clock.py`)."""

from collections.abc import Collection, Sequence

from verditer.core.clock import NODES
from verditer.partition.migrations.dialect import Dialect

_STATEMENTS = (
    "CREATE TABLE store (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    "INSERT INTO store (name, value) VALUES ('schema', 0), ('clock_offset', 0)",
    "CREATE TABLE node (number BIGINT PRIMARY KEY, reserved BIGINT NOT NULL)",
    f"INSERT INTO node (number, reserved) VALUES {', '.join([f'({number}, 0)' for number in range(NODES)])}",
)


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    return _STATEMENTS

"""Step 1: what a store knows about itself, and which ticks its processes have reserved (`partition/ticks.py`)."""

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

"""Step 1: what a store knows about itself, and which ticks its processes have reserved (`partition/ticks.py`)."""

from verditer.core.clock import NODES

STATEMENTS = (
    "CREATE TABLE store (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    "INSERT INTO store (name, value) VALUES ('schema', 0), ('clock_offset', 0)",
    "CREATE TABLE node (number BIGINT PRIMARY KEY, reserved BIGINT NOT NULL)",
    f"INSERT INTO node (number, reserved) VALUES {', '.join([f'({number}, 0)' for number in range(NODES)])}",
)

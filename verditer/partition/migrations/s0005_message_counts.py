"""Step 5: counts of messages were rows of a table of counters, and are records (`MessageCount` in `core/records/queue.py`).

The key of a counter begins with the queue's id, eight bytes, big-endian. In PostgreSQL a counter was several rows. The new body
is msgpack: an array of four with the tag 1, the id (CF: unsigned, 64 bits), lane 0 and the count (D3: signed, 64 bits).
"""

from collections.abc import Collection, Sequence

from verditer.partition.migrations.dialect import SQLITE, Dialect

_LANE = "0000000000000000"
_EVERY_BYTE = f"x'{bytes(range(256)).hex()}'"  # SQLite has no function that turns a number into bytes
_SQLITE_COUNT = " || ".join(f"substr({_EVERY_BYTE}, ((value >> {shift}) & 255) + 1, 1)" for shift in range(56, -1, -8))
_SQLITE = (
    f"INSERT INTO message_count SELECT CAST(key || x'{_LANE}' AS BLOB),"
    f" CAST(x'9401CF' || key || x'00D3' || {_SQLITE_COUNT} AS BLOB) FROM counter WHERE length(key) = 8"
)
_POSTGRES = (
    f"INSERT INTO message_count SELECT substring(key FOR 8) || '\\x{_LANE}'::bytea,"
    " '\\x9401cf'::bytea || substring(key FOR 8) || '\\x00d3'::bytea || int8send(sum(value)::bigint)"
    " FROM counter GROUP BY substring(key FOR 8)"
)


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    if "counter" not in tables:
        return ()
    columns = f"key {dialect.bytes_type} PRIMARY KEY, body {dialect.bytes_type} NOT NULL"
    return (
        f"CREATE TABLE message_count ({columns}){dialect.table_options}",
        _SQLITE if dialect is SQLITE else _POSTGRES,
        "DROP TABLE counter",
    )

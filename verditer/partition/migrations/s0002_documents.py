"""Step 2: the embedded engine's prefilter reads a record up to the first NUL, so no document below 64 KiB has a length that is a
multiple of 256 (`without_nul` in `partition/sqlite/prefilter.py`). PostgreSQL has no prefilter.

In such a record the third byte is C5, followed by the two bytes of the document's length, of which the second is 0.
"""

from collections.abc import Collection, Sequence

from verditer.partition.migrations.dialect import SQLITE, Dialect

_DIGITS = "hex(substr(body, 4, 1))"
_VALUE = "instr('123456789ABCDEF', substr({}, {}, 1))"  # of a hexadecimal digit; 0 is not found, and `instr` returns 0
_LENGTH = f"256 * (16 * {_VALUE.format(_DIGITS, 1)} + {_VALUE.format(_DIGITS, 2)})"


def statements(tables: Collection[str], dialect: Dialect) -> Sequence[str]:
    if dialect is not SQLITE or "entity" not in tables:
        return ()
    parts = ("substr(body, 1, 4)", "x'01'", f"substr(body, 6, {_LENGTH})", "' '", f"substr(body, 6 + {_LENGTH})")
    return (
        f"UPDATE entity SET body = CAST({' || '.join(parts)} AS BLOB)"
        " WHERE substr(body, 3, 1) = x'C5' AND substr(body, 5, 1) = x'00'",
    )

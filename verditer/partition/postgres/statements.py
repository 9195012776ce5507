"""The SQL of the PostgreSQL engine: the statements of one record class, in the form in which the server prepares them.

`BatchStatements` serve the event loop: they take arrays, so that one statement serves many transaction bodies, and libpq's
placeholders. `Statements` serve threads, which run one body at a time through psycopg.
"""

from functools import cache
from typing import NamedTuple

from verditer.core.records.record import Record


class BatchStatements(NamedTuple):
    get: bytes
    get_for_update: bytes
    scan: bytes
    scan_descending: bytes
    scan_by_rank: bytes
    claim: bytes
    put: bytes
    delete: bytes


class Statements(NamedTuple):
    get: bytes
    get_for_update: bytes
    get_many: bytes
    scan: bytes
    scan_descending: bytes
    scan_by_rank: bytes
    claim: bytes
    put: bytes
    put_many: bytes
    delete: bytes
    delete_span: bytes
    nth: bytes


@cache
def batch_statements_of(kind: type[Record]) -> BatchStatements:
    """Rows are (key, body), of scans by rank (rank, body). Rows to be locked are locked in the order of their keys."""
    table = f'"{kind.TABLE}"'
    columns = _columns(kind)
    arrays = ", ".join(f"${number}::bytea[]" for number, _ in enumerate(columns, 1))
    get = f"SELECT key, body FROM {table} WHERE key = ANY($1::bytea[])"
    scan = f"SELECT key, body FROM {table} WHERE key >= $1::bytea AND key < $2::bytea ORDER BY key"
    by_rank = f"SELECT rank, body FROM {table} WHERE rank >= $1::bytea AND rank < $2::bytea ORDER BY rank LIMIT $3::bigint"
    texts = {
        "get": get,
        "get_for_update": f"{get} ORDER BY key FOR UPDATE",
        "scan": f"{scan} LIMIT $3::bigint",
        "scan_descending": f"{scan} DESC LIMIT $3::bigint",
        "scan_by_rank": by_rank,
        "claim": f"{by_rank} FOR UPDATE SKIP LOCKED",
        "put": f"{_insert(table, columns)} SELECT * FROM unnest({arrays}) {_replace(columns)}",
        "delete": f"DELETE FROM {table} WHERE key = ANY($1::bytea[])",
    }
    return BatchStatements(**{name: text.encode() for name, text in texts.items()})


@cache
def statements_of(kind: type[Record]) -> Statements:
    table = f'"{kind.TABLE}"'
    columns = _columns(kind)
    insert, replace = _insert(table, columns), _replace(columns)
    values = ", ".join("%b" for _ in columns)
    arrays = ", ".join("%b::bytea[]" for _ in columns)
    get = f"SELECT body FROM {table} WHERE key = %b"
    scan = f"SELECT key, body FROM {table} WHERE key >= %b AND key < %b ORDER BY key"
    scan_by_rank = f"SELECT body FROM {table} WHERE rank >= %b AND rank < %b ORDER BY rank LIMIT %b"
    deleted = f"WITH deleted AS (DELETE FROM {table} WHERE key >= %b AND key < %b RETURNING 1)"
    texts = {
        "get": get,
        "get_for_update": f"{get} FOR UPDATE",
        "get_many": f"SELECT key, body FROM {table} WHERE key = ANY(%b::bytea[])",
        "scan": f"{scan} LIMIT %b",
        "scan_descending": f"{scan} DESC LIMIT %b",
        "scan_by_rank": scan_by_rank,
        "claim": f"{scan_by_rank} FOR UPDATE SKIP LOCKED",
        "put": f"{insert} VALUES ({values}) {replace}",
        "put_many": f"{insert} SELECT * FROM unnest({arrays}) {replace}",
        "delete": f"DELETE FROM {table} WHERE key = %b",
        "delete_span": f"{deleted} SELECT count(*) FROM deleted",
        "nth": f"SELECT key FROM {table} WHERE key >= %b AND key < %b ORDER BY key LIMIT 1 OFFSET %b",
    }
    return Statements(**{name: text.encode() for name, text in texts.items()})


def _columns(kind: type[Record]) -> tuple[str, ...]:
    return ("key", "rank", "body") if kind.RANK else ("key", "body")


def _insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)})"


def _replace(columns: tuple[str, ...]) -> str:
    return f"ON CONFLICT (key) DO UPDATE SET {', '.join(f'{column} = EXCLUDED.{column}' for column in columns[1:])}"

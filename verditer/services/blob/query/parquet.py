"""Parquet as rows. Its columns have types; a path leads into structs and lists."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from verditer.core.errors import Code, StorageError
from verditer.services.blob.query.records import AT, BLOCK_BYTES, ROWS_AT_ONCE
from verditer.services.blob.query.tokens import Name, Path, PathStep, invalid_query
from verditer.services.blob.query.values import BOOLEAN, NUMBER, OTHER, TEXT, TIMESTAMP, Expression, literal, quoted

_BUFFER_BYTES = 1 << 20  # of a column, read at once; otherwise a whole column of a row group is


class ParquetRows:
    def __init__(self, file: Any) -> None:
        try:
            self._source = pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER_BYTES)
        except (pa.ArrowException, OSError) as error:
            raise StorageError(Code.InvalidInput, message="The blob is not a Parquet file.") from error
        self._schema = pa.schema([(field.name, _plain(field.type)) for field in self._source.schema_arrow])
        self._used: set[int] = set()
        shown = [
            f"{_shown(_column(at), field.type)} AS {quoted(field.name or f'_{at + 1}')}" for at, field in enumerate(self._schema)
        ]
        self.star = ", ".join(shown)

    def resolve(self, path: Path, position: int) -> Expression:
        at = _field(self._schema, path[0])
        if at is None:
            raise invalid_query(position, "the blob has no such column.")
        self._used.add(at)
        sql, kind, name = _column(at), self._schema.field(at).type, self._schema.field(at).name
        for step in path[1:]:
            inner = _field(kind, step) if pa.types.is_struct(kind) else None
            if inner is not None:
                field = kind.field(inner)
                sql, kind, name = f"struct_extract({sql}, {literal(field.name)})", field.type, field.name
            elif isinstance(step, int) and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
                sql, kind = f"list_extract({sql}, {step + 1})", kind.value_type
            else:
                raise invalid_query(position, "the blob has no such column.")
        return Expression(_shown(sql, kind), _kind(kind), name)

    def reader(self, table: Path, *, whole: bool) -> Any:
        if table:
            raise invalid_query(0, "only a table of JSON has a path.")
        used = [at for at in range(len(self._schema)) if whole or at in self._used]
        columns = [pa.field(f"#{at}", self._schema.field(at).type) for at in used]
        schema = pa.schema([pa.field(AT, pa.int64()), *columns])
        return pa.RecordBatchReader.from_batches(schema, self._batches(used, schema))

    def _batches(self, used: list[int], schema: Any) -> Iterator[Any]:
        """The records of Parquet have no positions."""
        names = self._schema.names
        distinct = len(set(names)) == len(names)  # columns can be read by name
        wanted = [names[at] for at in used] if distinct else None
        for batch in self._source.iter_batches(self._rows_at_once(), columns=wanted, use_threads=False):
            found = batch.columns if distinct else [batch.columns[at] for at in used]
            columns = [one.cast(field.type, safe=False) for one, field in zip(found, list(schema)[1:], strict=True)]
            yield pa.record_batch([pa.array([0] * len(batch), pa.int64()), *columns], schema)

    def _rows_at_once(self) -> int:
        """So many that a batch has about a MiB, as far as the file shows."""
        metadata = self._source.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        row_bytes = max([group.total_byte_size // max(group.num_rows, 1) for group in groups], default=0)
        return min(ROWS_AT_ONCE, max(1, BLOCK_BYTES // max(row_bytes, 1)))


def _column(at: int) -> str:
    return quoted(f"#{at}")


def _plain(kind: Any) -> Any:
    """Points in time are UTC, without a zone. The engine has no half floats."""
    if pa.types.is_float16(kind):
        return pa.float32()
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def _shown(sql: str, kind: Any) -> str:
    """SQL of a value in a type that queries have. Bytes are written as Base64."""
    if _is_binary(kind):
        return f"to_base64({sql})"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return f"CAST({sql} AS VARCHAR)"
    return f"CAST({sql} AS TIMESTAMP)" if pa.types.is_date(kind) else sql


def _field(parent: Any, step: PathStep) -> int | None:
    """The number of a field of a schema or a struct."""
    if not isinstance(step, Name):
        return None
    names = [field.name for field in parent]
    if step.text in names:
        return names.index(step.text)
    lower = [name.lower() for name in names]
    return lower.index(step.text.lower()) if not step.is_quoted and step.text.lower() in lower else None


def _kind(kind: Any) -> str:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NUMBER
    if pa.types.is_boolean(kind):
        return BOOLEAN
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return TIMESTAMP
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_binary(kind)
    return TEXT if is_text or pa.types.is_time(kind) or pa.types.is_duration(kind) else OTHER


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))

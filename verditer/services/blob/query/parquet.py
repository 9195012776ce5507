"""Parquet as rows. Its columns have types; a path leads into structs and lists."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from verditer.core.errors import Code, StorageError
from verditer.services.blob.query.records import AT
from verditer.services.blob.query.tokens import Name, Path, Step, invalid_query
from verditer.services.blob.query.values import BOOLEAN, NUMBER, OTHER, TEXT, TIMESTAMP, Expression, literal, quoted

_BATCH_ROWS = 4096


class ParquetRows:
    def __init__(self, file: Any) -> None:
        try:
            self._source = pyarrow.parquet.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise StorageError(Code.InvalidInput, message="The blob is not a Parquet file.") from error
        self._schema = pa.schema([(field.name, _plain(field.type)) for field in self._source.schema_arrow])
        self.star = ", ".join(quoted(name) for name in self._schema.names)

    def resolve(self, path: Path, position: int) -> Expression:
        field = _field(self._schema, path[0])
        if field is None:
            raise invalid_query(position, "the blob has no such column.")
        sql, kind, shown = quoted(field.name), field.type, field.name
        for step in path[1:]:
            inner = _field(kind, step) if pa.types.is_struct(kind) else None
            if inner is not None:
                sql, kind, shown = f"struct_extract({sql}, {literal(inner.name)})", inner.type, inner.name
            elif isinstance(step, int) and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
                sql, kind = f"list_extract({sql}, {step + 1})", kind.value_type
            else:
                raise invalid_query(position, "the blob has no such column.")
        return Expression(f"CAST({sql} AS TIMESTAMP)" if pa.types.is_date(kind) else sql, _kind(kind), shown)

    def reader(self, table: Path, *, whole: bool) -> Any:
        if table:
            raise invalid_query(0, "only a table of JSON has a path.")
        return pa.RecordBatchReader.from_batches(self._schema.insert(0, pa.field(AT, pa.int64())), self._batches())

    def _batches(self) -> Iterator[Any]:
        """The records of Parquet have no positions."""
        for batch in self._source.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
            columns = [pa.array([0] * len(batch), pa.int64())]
            columns += [one.cast(field.type) for one, field in zip(batch.columns, self._schema, strict=True)]
            yield pa.record_batch(columns, self._schema.insert(0, pa.field(AT, pa.int64())))


def _plain(kind: Any) -> Any:
    """Points in time are UTC, without a zone."""
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def _field(parent: Any, step: Step) -> Any:
    """Of a schema or a struct."""
    if not isinstance(step, Name):
        return None
    fields = list(parent)
    exact = next((field for field in fields if field.name == step.text), None)
    if exact is not None or step.is_quoted:
        return exact
    return next((field for field in fields if field.name.lower() == step.text.lower()), None)


def _kind(kind: Any) -> str:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NUMBER
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return TEXT
    if pa.types.is_boolean(kind):
        return BOOLEAN
    return TIMESTAMP if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else OTHER

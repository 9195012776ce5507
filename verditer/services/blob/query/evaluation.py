"""Evaluates a query with DuckDB over the rows of a blob. Called in a thread; needs the extra `query`.

The engine has no access to files or to the network, one thread and a bounded memory. It sees only SQL that `sql.py` has written.
"""

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute

from verditer.core.errors import Code, StorageError
from verditer.services.blob.query.delimited import DelimitedRows, split_sizes
from verditer.services.blob.query.json_lines import JsonRows
from verditer.services.blob.query.output import OutputWriter
from verditer.services.blob.query.parquet import ParquetRows
from verditer.services.blob.query.records import MAX_FAULTS, QueryFault, Rows, invalid_conversion
from verditer.services.blob.query.request import QueryBlob
from verditer.services.blob.query.service import (
    BodyFile,
    QueryEnd,
    QueryError,
    QueryEvent,
    QueryProgress,
    RangeFile,
    ResultData,
)
from verditer.services.blob.query.sql import TABLE, Query, parse_query
from verditer.services.blob.query.tokens import Path, invalid_query
from verditer.services.blob.query.values import MACROS, Expression

ROWS_AT_ONCE = 8192
MAX_DESCRIPTION = 512  # characters of an error
MAX_DATA = 4 << 20  # bytes of the result in one record of the answer
_SETTINGS = (  # the last two end all access to files and to these settings
    "threads = 1",
    "memory_limit = '256MB'",
    "temp_directory = ''",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "python_enable_replacements = false",
    "enable_external_access = false",
    "lock_configuration = true",
)


def evaluate(request: QueryBlob, file: BodyFile | RangeFile, total: int, now: int) -> Iterator[QueryEvent | None]:
    """The first item is None: the query is valid for this blob. Later failures are events, because the answer has begun."""
    least = parse_query(request.expression, _any_column)[0].split_bytes
    if least is not None:
        yield from _splits(request, file, total, least)
        return
    faults: list[QueryFault] = []
    connection = duckdb.connect(":memory:")
    try:
        for statement in (*(f"SET {setting}" for setting in _SETTINGS), *MACROS):
            connection.execute(statement)
        try:
            rows = _rows(request, file, faults)
            query, table = parse_query(request.expression, rows.resolve, now, raw=request.output.json is not None)
            result = _Result(query, connection, rows, table)
            writer = OutputWriter(request.output, result.schema, result.is_raw, getattr(rows, "names", ()))
        except QueryFault as fault:  # in the first record
            yield None
            yield from _ended([_error(fault)], total)
            return
        yield None
        yield from _results(result, writer, file, total, faults)
    finally:
        connection.close()


def _any_column(_path: Path, _position: int) -> Expression:
    return Expression("NULL")


def _rows(request: QueryBlob, file: BodyFile | RangeFile, faults: list[QueryFault]) -> Rows:
    if request.input.parquet:
        return ParquetRows(file)
    if request.input.json is not None:
        return JsonRows(file, request.input.json, faults)
    assert request.input.delimited is not None
    return DelimitedRows(file, request.input.delimited, faults)


class _Result:
    """The batches of a result, without the columns that mark records with faults, and these faults."""

    def __init__(self, query: Query, connection: Any, rows: Rows, table: Path) -> None:
        self._query = query
        self._reader = _reader(connection, rows.reader(table, whole=query.columns is None), query.sql(rows.star))
        shown = len(self._reader.schema) - (2 if query.marks_faults else 0)
        self.schema = pa.schema([self._reader.schema.field(at) for at in range(shown)])
        self.is_raw = [column.is_raw for column in query.columns or ()]

    def batches(self, faults: list[QueryFault]) -> Iterator[Any]:
        if not self._query.marks_faults:
            yield from self._reader
            return
        left = self._query.limit
        for batch in self._reader:
            if left == 0:
                return
            kept = self._kept(batch, faults)
            kept = kept if left is None else kept.slice(0, left)
            left = None if left is None else left - len(kept)
            yield kept

    def _kept(self, batch: Any, faults: list[QueryFault]) -> Any:
        is_fault, positions = batch.columns[-2:]
        found = positions.filter(is_fault).to_pylist()
        faults += [invalid_conversion(position) for position in found[: MAX_FAULTS - len(faults)]]
        kept = batch if self._query.is_aggregate else batch.filter(pa.compute.invert(is_fault))
        return pa.record_batch(kept.columns[:-2], self.schema)


def _reader(connection: Any, rows: Any, sql: str) -> Any:
    """The result as a stream of batches."""
    try:
        connection.register(TABLE, rows)
        relation = connection.sql(sql)
        stream = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
        return stream(ROWS_AT_ONCE)
    except duckdb.Error as error:
        message = f"The query cannot be evaluated: {_first_line(error)}"
        raise StorageError(Code.ErrorProcessingQueryExpression, message=message) from None


def _results(
    result: _Result, writer: OutputWriter, file: BodyFile | RangeFile, total: int, faults: list[QueryFault]
) -> Iterator[QueryEvent]:
    yield QueryProgress(0, total)  # first: a client that meets an error as the first record fails (azure-storage-blob 12.31)
    try:
        yield from _pieces(writer.head())
        for batch in result.batches(faults):
            yield from _pieces(writer.batch(batch))
            yield from _told(faults)
            yield QueryProgress(min(file.position, total), total)
        yield from _pieces(writer.tail())
    except (duckdb.Error, pa.ArrowException, StorageError, OSError) as error:
        yield QueryError(fatal=True, name="QueryFailed", description=_first_line(error), position=file.position)
    yield from _told(faults)
    yield from _ended((), total)


def _ended(errors: "list[QueryError] | tuple[()]", total: int) -> Iterator[QueryEvent]:
    if errors:
        yield QueryProgress(0, total)
    yield from errors
    yield QueryProgress(total, total)
    yield QueryEnd(total)


def _splits(request: QueryBlob, file: BodyFile | RangeFile, total: int, least: int) -> Iterator[QueryEvent | None]:
    form = request.input.delimited
    if form is None:
        raise invalid_query(0, "only CSV can be split.")
    yield None
    yield QueryProgress(0, total)
    schema = pa.schema([("_1", pa.int64())])
    writer = OutputWriter(request.output, schema, (), ())
    yield from _pieces(writer.head())
    done = 0
    try:
        for size in split_sizes(file, form, least):
            done += size
            yield from _pieces(writer.batch(pa.record_batch([pa.array([size])], schema)))
        if total > done:
            yield from _pieces(writer.batch(pa.record_batch([pa.array([total - done])], schema)))
        yield from _pieces(writer.tail())
    except QueryFault as fault:
        yield _error(fault)
    yield from _ended((), total)


def _told(faults: list[QueryFault]) -> Iterator[QueryEvent]:
    while faults:
        yield _error(faults.pop(0))


def _error(fault: QueryFault) -> QueryError:
    return QueryError(fatal=fault.fatal, name=fault.name, description=fault.description, position=fault.position)


def _pieces(data: bytes) -> Iterator[QueryEvent]:
    for start in range(0, len(data), MAX_DATA):
        yield ResultData(data[start : start + MAX_DATA])


def _first_line(error: Exception) -> str:
    """What went wrong, without the SQL that the engine repeats."""
    return str(error).partition("\n")[0][:MAX_DESCRIPTION]

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

RESULT_BYTES = 16 << 20  # of the literals of a query, in what is computed at once
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
    """The batches of a result, without the columns that mark records with faults, and these faults.

    An aggregate reads all batches of the input in one evaluation. Otherwise each batch is evaluated by itself: the engine would
    collect thousands of rows of the result, however large they are. That costs 1 ms for each MiB of input.
    """

    def __init__(self, query: Query, connection: Any, rows: Rows, table: Path) -> None:
        self._query = query
        self._connection = connection
        self._rows = rows.reader(table, whole=query.columns is None)
        self._sql = query.sql(rows.star)
        self._rows_at_once = max(1, RESULT_BYTES // len(self._sql))  # a row of the result may repeat the literals of the query
        found = self._evaluated(self._rows.schema.empty_table()).schema
        self.schema = pa.schema([found.field(at) for at in range(len(found) - (2 if query.marks_faults else 0))])
        self.is_raw = [column.is_raw for column in query.columns or ()]

    def batches(self, faults: list[QueryFault]) -> Iterator[Any]:
        left = self._query.limit
        for rows in (self._rows,) if self._query.is_aggregate else self._pieces():
            if left == 0:
                return
            found = self._kept(self._evaluated(rows), faults)
            found = found if left is None else found.slice(0, left)
            left = None if left is None else left - len(found)
            yield found

    def _pieces(self) -> Iterator[Any]:
        for batch in self._rows:
            for start in range(0, len(batch), self._rows_at_once):
                yield pa.Table.from_batches([batch.slice(start, self._rows_at_once)])

    def _evaluated(self, rows: Any) -> Any:
        try:
            self._connection.register(TABLE, rows)
            return self._connection.sql(self._sql).to_arrow_table()
        except duckdb.Error as error:
            message = f"The query cannot be evaluated: {_first_line(error)}"
            raise StorageError(Code.ErrorProcessingQueryExpression, message=message) from None

    def _kept(self, found: Any, faults: list[QueryFault]) -> Any:
        batch = pa.record_batch([one.combine_chunks() for one in found.columns], found.schema)
        if not self._query.marks_faults:
            return batch
        is_fault, positions = batch.columns[-2:]
        faulty = positions.filter(is_fault).to_pylist()
        faults += [invalid_conversion(position) for position in faulty[: MAX_FAULTS - len(faults)]]
        kept = batch if self._query.is_aggregate else batch.filter(pa.compute.invert(is_fault))
        return pa.record_batch(kept.columns[:-2], self.schema)


def _results(
    result: _Result, writer: OutputWriter, file: BodyFile | RangeFile, total: int, faults: list[QueryFault]
) -> Iterator[QueryEvent]:
    try:
        yield from _pieces(writer.head())
        for batch in result.batches(faults):
            yield from _pieces(writer.batch(batch))
            yield from _told(faults)
            yield QueryProgress(min(file.position, total), total)
        yield from _pieces(writer.tail())
    except (pa.ArrowException, StorageError, OSError, OverflowError) as error:
        yield QueryError(fatal=True, name="QueryFailed", description=_first_line(error), position=file.position)
    yield from _told(faults)
    yield from _ended((), total)


def _ended(errors: "list[QueryError] | tuple[()]", total: int) -> Iterator[QueryEvent]:
    yield from errors
    yield QueryProgress(total, total)
    yield QueryEnd(total)


def _splits(request: QueryBlob, file: BodyFile | RangeFile, total: int, least: int) -> Iterator[QueryEvent | None]:
    form = request.input.delimited
    if form is None:
        raise invalid_query(0, "only CSV can be split.")
    yield None
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
    text = error.message if isinstance(error, StorageError) else str(error)
    return text.partition("\n")[0][:MAX_DESCRIPTION]

"""The bytes of a result: CSV, JSON lines or an Arrow stream."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute

from verditer.core.errors import Code, StorageError
from verditer.services.blob.query.delimited import dialect
from verditer.services.blob.query.records import RECORD
from verditer.services.blob.query.request import ArrowField, Delimited, Output

_ARROW_TYPES = {
    "int64": pa.int64(), "bool": pa.bool_(), "timestamp[ms]": pa.timestamp("ms"), "string": pa.string(), "double": pa.float64(),
}  # fmt: skip


class OutputWriter:
    """Turns batches into the bytes of the answer. `head` and `tail` surround them.

    `is_raw` says which columns are JSON. `names` are those of the fields of whole CSV records.
    """

    def __init__(self, output: Output, schema: Any, is_raw: Sequence[bool], names: Sequence[str]) -> None:
        self._output = output
        self._names = names
        self._is_list = schema.names == [RECORD] and pa.types.is_list(schema.field(0).type)
        self._is_record = schema.names == [RECORD] and not self._is_list
        self._is_raw = is_raw or [False] * len(schema.names)
        self._schema = _arrow_schema(output.arrow, schema, is_list=self._is_list) if output.arrow is not None else schema
        self._sink = io.BytesIO()
        self._arrow = pa.ipc.new_stream(self._sink, self._schema) if output.arrow is not None else None

    def head(self) -> bytes:
        form = self._output.delimited
        if form is None or not form.has_headers or self._is_record:
            return self._taken()
        return _csv([self._names if self._is_list else self._schema.names], form)

    def batch(self, batch: Any) -> bytes:
        if self._arrow is not None:
            columns = _fields_as_columns(batch, len(self._schema)) if self._is_list else batch.columns
            converted = [one.cast(field.type) for one, field in zip(columns, self._schema, strict=True)]
            self._arrow.write_batch(pa.record_batch(converted, self._schema))
            return self._taken()
        if self._output.delimited is not None:
            if self._is_list:
                return _csv(batch.column(0).to_pylist(), self._output.delimited)
            return _csv(zip(*[_texts(one) for one in batch.columns], strict=True), self._output.delimited)
        assert self._output.json is not None
        end = self._output.json.record_separator or "\n"
        return "".join([record + end for record in self._json(batch)]).encode()

    def _json(self, batch: Any) -> list[str]:
        if self._is_record:
            records: list[str] = batch.column(0).to_pylist()
            return records
        if self._is_list:
            return [_encoded(self._named(fields)) for fields in batch.column(0).to_pylist()]
        heads = [f"{_encoded(name)}:" for name in self._schema.names]
        columns = [
            [None if value is None else head + value for value in one.to_pylist()]
            if raw
            else [head + _encoded(value) for value in _values(one)]
            for one, head, raw in zip(batch.columns, heads, self._is_raw, strict=True)
        ]
        return [f"{{{','.join([one for one in row if one is not None])}}}" for row in zip(*columns, strict=True)]

    def _named(self, fields: list[str]) -> dict[str, str]:
        return {self._names[at] if at < len(self._names) else f"_{at + 1}": field for at, field in enumerate(fields)}

    def tail(self) -> bytes:
        if self._arrow is not None:
            self._arrow.close()
        return self._taken()

    def _taken(self) -> bytes:
        data = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return data


def _encoded(value: object) -> str:
    return _ENCODER.encode(value).decode()


_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _values(values: Any) -> Any:
    """Points in time as text: those of the engine reach beyond the years that Python has."""
    return _times(values) if pa.types.is_timestamp(values.type) else values.to_pylist()


def _times(values: Any) -> list[str | None]:
    texts = pa.compute.strftime(values, format="%Y-%m-%dT%H:%M:%S").to_pylist()
    return [None if text is None else f"{text.rstrip('0').rstrip('.') if '.' in text else text}Z" for text in texts]


def _texts(values: Any) -> list[str]:
    """CSV has no null: it is empty."""
    if pa.types.is_timestamp(values.type):
        return [value or "" for value in _times(values)]
    if pa.types.is_nested(values.type):
        return ["" if value is None else _encoded(value) for value in values.to_pylist()]
    return ["" if value is None else value for value in values.cast(pa.string()).to_pylist()]


def _csv(rows: Any, form: Delimited) -> bytes:
    text = io.StringIO(newline="")
    options = dialect(form) | {"escapechar": form.escape_char or ("\\" if not form.field_quote else None)}
    writer = csv.writer(text, **options, lineterminator=form.record_separator or "\n")
    writer.writerows(rows)
    return text.getvalue().encode()


def _fields_as_columns(batch: Any, count: int) -> list[Any]:
    records = batch.column(0).to_pylist()
    return [pa.array([fields[at] if at < len(fields) else None for fields in records], pa.string()) for at in range(count)]


def _arrow_schema(fields: tuple[ArrowField, ...], result: Any, *, is_list: bool) -> Any:
    names = [f"_{at + 1}" for at in range(len(fields))] if is_list else result.names
    if len(fields) != len(names):
        raise StorageError(Code.InvalidInput, message="The Arrow schema has another number of columns than the query.")
    types = [_ARROW_TYPES.get(one.type) or _decimal(one) for one in fields]
    return pa.schema([(one.name or name, kind) for one, name, kind in zip(fields, names, types, strict=True)])


def _decimal(field: ArrowField) -> Any:
    if field.type != "decimal" or not 1 <= (field.precision or 0) <= 38:
        raise StorageError(Code.InvalidInput, message=f"There is no Arrow type {field.type} in outputs of queries.")
    return pa.decimal128(field.precision, field.scale or 0)

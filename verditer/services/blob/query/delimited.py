"""CSV and its relatives as rows. Records may have different numbers of fields; one that lacks a field of the query is reported.

A record ends with a separator that is not in quotes. Only the columns that the query names become columns of the engine.
"""

import csv
from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Any, NamedTuple

import pyarrow as pa

from verditer.services.blob.query.records import (
    AT,
    MAX_COLUMNS,
    MAX_FAULTS,
    MAX_RECORD_BYTES,
    RECORD,
    QueryFault,
    Readable,
    TextBlocks,
    batch_of,
    length_of,
    too_large,
)
from verditer.services.blob.query.request import Delimited
from verditer.services.blob.query.tokens import Name, Path, invalid_query
from verditer.services.blob.query.values import TEXT, Expression, quoted

csv.field_size_limit(MAX_RECORD_BYTES)


class RecordBlock(NamedTuple):
    """Records that are not empty, and their positions in the blob."""

    positions: list[int]
    records: list[str]


class DelimitedRows:
    star = quoted(RECORD)

    def __init__(self, file: Readable, form: Delimited, faults: list[QueryFault]) -> None:
        self._form = form
        self._faults = faults
        self._blocks = blocks_of(file, form)
        self._used: dict[int, str] = {}
        self._whole = False
        first = next(self._blocks, RecordBlock([], []))
        fields = self._fields(first.positions[0], first.records[0]) if first.records else []
        self.names = fields if form.has_headers else []
        self._first = RecordBlock(first.positions[1:], first.records[1:]) if form.has_headers else first
        if len(fields) > MAX_COLUMNS:
            raise invalid_query(0, "the blob has too many columns.")
        self._exact = {name: index for index, name in reversed(list(enumerate(self.names)))}
        self._lower = {name.lower(): index for name, index in reversed(self._exact.items())}

    def resolve(self, path: Path, position: int) -> Expression:
        name = path[0]
        index = self._index(name) if isinstance(name, Name) and len(path) == 1 else None
        if index is None:
            raise invalid_query(position, "the blob has no such column.")
        column = self._used.setdefault(index, f"#{index}")
        assert isinstance(name, Name)
        shown = self.names[index] if index < len(self.names) else name.text
        return Expression(quoted(column), TEXT, shown)

    def _index(self, name: Name) -> int | None:
        found = self._exact.get(name.text)
        if found is None and not name.is_quoted:
            found = self._lower.get(name.text.lower())
        ordinal = name.text[1:]
        if found is None and name.text[0] == "_" and ordinal.isascii() and ordinal.isdigit() and len(ordinal) < 6:
            found = int(ordinal) - 1
        return found if found is not None and 0 <= found < MAX_COLUMNS else None

    def reader(self, table: Path, *, whole: bool) -> Any:
        self._whole = whole
        if table:
            raise invalid_query(0, "only a table of JSON has a path.")
        schema = pa.schema(
            [(AT, pa.int64()), (RECORD, pa.list_(pa.string())), *((column, pa.string()) for column in self._used.values())]
        )
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: Any) -> Iterator[Any]:
        try:
            for block in chain([self._first], self._blocks):
                positions, rows = self._complete(block.positions, self._parsed(block))
                columns: dict[str, list[Any]] = {AT: positions, RECORD: rows if self._whole else [None] * len(rows)}
                for index, column in self._used.items():
                    columns[column] = [fields[index] for fields in rows]
                yield batch_of(columns, schema)
        except QueryFault as fault:
            self._faults.append(fault)

    def _parsed(self, block: RecordBlock) -> list[list[str]]:
        """The fields of each record; none for a record that cannot be read, which is reported."""
        separator = self._form.column_separator
        if not self._has_quotes(block):
            return [record.split(separator) for record in block.records]
        rows = []
        for at, record in zip(block.positions, block.records, strict=True):
            try:
                rows.append(self._fields(at, record))
            except QueryFault as fault:
                self._report(fault)
                rows.append([])
        return rows

    def _complete(self, positions: list[int], rows: list[list[str]]) -> tuple[list[int], list[list[str]]]:
        """The records that have every field of the query."""
        least = max(self._used, default=0) + 1
        if not rows or min(map(len, rows)) >= least:
            return positions, rows
        kept = []
        for at, fields in zip(positions, rows, strict=True):
            if len(fields) >= least:
                kept.append((at, fields))
            elif fields:
                missing = min(index for index in self._used if index >= len(fields))
                self._report(
                    QueryFault("InvalidColumnOrdinal", f"Column ordinal {missing} does not exist in row.", at, fatal=False)
                )
        return [at for at, _ in kept], [fields for _, fields in kept]

    def _has_quotes(self, block: RecordBlock) -> bool:
        text = "".join(block.records)
        return any(character and character in text for character in (self._form.field_quote, self._form.escape_char))

    def _fields(self, at: int, record: str) -> list[str]:
        form = self._form
        if not any(character and character in record for character in (form.field_quote, form.escape_char)):
            return record.split(form.column_separator)
        try:
            return next(csv.reader((record,), **dialect(form)))
        except (csv.Error, StopIteration) as error:
            raise QueryFault("ParseError", f"A record cannot be read: {error}", at, fatal=False) from None

    def _report(self, fault: QueryFault) -> None:
        if len(self._faults) < MAX_FAULTS:
            self._faults.append(fault)


def dialect(form: Delimited) -> Any:
    return {
        "delimiter": form.column_separator,
        "quotechar": form.field_quote or None,
        "quoting": csv.QUOTE_MINIMAL if form.field_quote else csv.QUOTE_NONE,
        "escapechar": form.escape_char or None,
    }


def blocks_of(file: Readable, form: Delimited) -> Iterator[RecordBlock]:
    """`\\n` ends a record with or without `\\r` before it."""
    separator = "\n" if form.record_separator in ("", "\n", "\r\n") else form.record_separator
    end, at, rest = len(separator.encode()), 0, ""
    for text in chain(TextBlocks(file), [None]):
        joined = rest + (text or "")
        whole, rest = ([rest], "") if text is None else _pieces(joined, separator, form)
        lengths = map(len if joined.isascii() else length_of, whole)
        positions = list(accumulate((length + end for length in lengths), initial=at))
        at = positions.pop()
        records = [record.removesuffix("\r") for record in whole] if separator == "\n" and "\r" in joined else whole
        if not all(records):
            positions = [position for position, record in zip(positions, records, strict=True) if record]
            records = [record for record in records if record]
        if records:
            yield RecordBlock(positions, records)
        if len(rest) > MAX_RECORD_BYTES:
            raise too_large(at)


def _pieces(text: str, separator: str, form: Delimited) -> tuple[list[str], str]:
    """(whole records, the beginning of the next one)"""
    pieces = text.split(separator)
    *whole, rest = _joined(pieces, separator, form) if form.field_quote and form.field_quote in text else pieces
    return whole, rest


def _joined(pieces: list[str], separator: str, form: Delimited) -> list[str]:
    """The records in which no separator is in quotes."""
    quote, escape = form.field_quote, form.escape_char
    records: list[str] = []
    pending: list[str] = []
    for piece in pieces:
        quotes = piece.count(quote) - (piece.count(escape + quote) if escape else 0)
        if pending or quotes % 2:
            pending.append(piece)
            if quotes % 2 and len(pending) > 1:
                records.append(separator.join(pending))
                pending = []
        else:
            records.append(piece)
    return [*records, separator.join(pending)] if pending else records


def split_sizes(file: Readable, form: Delimited, least: int) -> Iterator[int]:
    """How many bytes each part has, but for the last one: at least so many, and whole records."""
    start = 0
    for block in blocks_of(file, form):
        for at in block.positions:
            if at - start >= least:
                yield at - start
                start = at

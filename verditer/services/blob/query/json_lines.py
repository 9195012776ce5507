"""Records of JSON as rows. A record is an object; what stands between records is white space or the separator.

The paths of a query become columns, each once as text and once as JSON: in JSON a value can be missing, which is not null.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from verditer.services.blob.query.records import (
    AT,
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    RECORD,
    ROWS_AT_ONCE,
    QueryFault,
    Readable,
    TextBlocks,
    batch_of,
    length_of,
    too_large,
)
from verditer.services.blob.query.request import JsonLines
from verditer.services.blob.query.tokens import Name, Path, invalid_query
from verditer.services.blob.query.values import TEXT, Expression, quoted

MAX_PATHS = 100  # each has a copy of what it leads to
_MISSING = object()
_EXPECTED = {
    "Expecting property name enclosed in double quotes": "'\"'",
    "Expecting ':' delimiter": "':'",
    "Expecting ',' delimiter": "','",
}


class JsonRows:
    star = quoted(RECORD)

    def __init__(self, file: Readable, form: JsonLines, faults: list[QueryFault]) -> None:
        self._file = file
        self._separator = form.record_separator or "\n"
        self._faults = faults
        self._used: dict[Path, int] = {}
        self._whole = False

    def resolve(self, path: Path, position: int) -> Expression:
        if len(self._used) >= MAX_PATHS and path not in self._used:
            raise invalid_query(position, f"a query has at most {MAX_PATHS} different paths.")
        number = self._used.setdefault(path, len(self._used))
        last = next((step.text for step in reversed(path) if isinstance(step, Name)), None)
        return Expression(quoted(f"#t{number}"), TEXT, last, raw=quoted(f"#r{number}"))

    def reader(self, table: Path, *, whole: bool) -> Any:
        self._whole = whole
        numbers = self._used.values()
        names = [RECORD, *(f"#t{number}" for number in numbers), *(f"#r{number}" for number in numbers)]
        schema = pa.schema([(AT, pa.int64()), *((name, pa.string()) for name in names)])
        return pa.RecordBatchReader.from_batches(schema, self._batches(table, schema))

    def _batches(self, table: Path, schema: Any) -> Iterator[Any]:
        columns: dict[str, list[Any]] = {field.name: [] for field in schema}
        try:
            length = 0
            for at, record, text in json_records(self._file, self._separator):
                for value in _elements(record, table):
                    self._add(columns, at, value, text if not table and value is record else None)
                length += len(text)
                if len(columns[AT]) >= ROWS_AT_ONCE or length >= BLOCK_BYTES:
                    yield batch_of(columns, schema)
                    columns, length = {field.name: [] for field in schema}, 0
        except QueryFault as fault:
            self._faults.append(fault)
        if columns[AT]:
            yield batch_of(columns, schema)

    def _add(self, columns: dict[str, list[Any]], at: int, record: Any, text: str | None) -> None:
        columns[AT].append(at)
        columns[RECORD].append(None if not self._whole else text or _json(record if isinstance(record, dict) else {"_1": record}))
        for path, number in self._used.items():
            value = _found(record, path)
            columns[f"#t{number}"].append(_text(value))
            columns[f"#r{number}"].append(None if value is _MISSING else _json(value))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _text(value: Any) -> str | None:
    if value is None or value is _MISSING:
        return None
    return value if isinstance(value, str) else _json(value)


def _found(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, Name):
            value = _member(value, step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return _MISSING
    return value


def _member(value: Any, name: Name) -> Any:
    if not isinstance(value, dict):
        return _MISSING
    found = value.get(name.text, _MISSING)
    if found is _MISSING and not name.is_quoted:
        lower = name.text.lower()
        return next((each for key, each in value.items() if key.lower() == lower), _MISSING)
    return found


def _elements(record: Any, table: Path) -> Iterator[Any]:
    """What the path of the table leads to in one record; `[*]` is every element."""
    if not table:
        yield record
    elif table[0] is None:
        for each in record if isinstance(record, list) else ():
            yield from _elements(each, table[1:])
    elif (found := _found(record, table[:1])) is not _MISSING:
        yield from _elements(found, table[1:])


# --- reading ------------------------------------------------------------------------------------------------------------------


def _refused(constant: str) -> Any:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refused)
_PARTIAL = 8  # characters: a literal, an escape or a number at the end of the text may go on


def json_records(file: Readable, separator: str) -> Iterator[tuple[int, Any, str]]:
    """(position, record, its text). The elements of an array are records of their own."""
    text = _JsonText(file)
    between = re.compile(rf"(?:\s|{re.escape(separator)})*")
    while True:
        found = between.match(text.text, text.start)
        assert found is not None
        text.advance(found.end())
        if text.start == len(text.text):
            if not text.more():
                return
            continue
        decoded = _decoded(text)
        if decoded is None:
            continue
        record, end = decoded
        if isinstance(record, list):
            for each in record:
                yield text.at, each, _json(each)
        else:
            yield text.at, record, text.text[text.start : end]
        text.advance(end)


class _JsonText:
    """A part of the blob, from `start` on not yet read. `at` is the position of `start` in the blob."""

    def __init__(self, file: Readable) -> None:
        self._blocks = iter(TextBlocks(file))
        self.text = ""
        self.start = 0
        self.at = 0

    def advance(self, end: int) -> None:
        self.at += length_of(self.text[self.start : end])
        self.start = end

    def more(self) -> bool:
        block = next(self._blocks, "")
        self.text, self.start = self.text[self.start :] + block, 0
        return bool(block)


def _decoded(text: _JsonText) -> tuple[Any, int] | None:
    """(record, its end), or None: the text has become longer."""
    if text.text[text.start] not in "{[":
        raise _unexpected(text, text.start, "'{', or '['")
    try:
        record, end = _DECODER.raw_decode(text.text, text.start)
        if _SURROGATE.search(text.text, text.start, end):
            record = _whole_characters(record)
    except json.JSONDecodeError as error:
        inside = error.pos - text.start
        may_go_on = error.msg.startswith("Unterminated") or error.pos >= len(text.text) - _PARTIAL
        if may_go_on and len(text.text) - text.start > MAX_RECORD_BYTES:
            raise too_large(text.at) from None
        if may_go_on and text.more():
            return None
        raise _unexpected(text, text.start + inside, _EXPECTED.get(error.msg)) from None
    except (ValueError, RecursionError):
        raise QueryFault("ParseError", "A record is not JSON.", text.at) from None
    if end - text.start > MAX_RECORD_BYTES:
        raise too_large(text.at)
    return record, end


_SURROGATE = re.compile(r"\\u[dD][89abAB]")  # an escape, which may be half of a pair
_HALF = re.compile("[\ud800-\udfff]")


def _whole_characters(value: Any) -> Any:
    """Half of a surrogate pair has no UTF-8; it becomes the replacement character."""
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole_characters(each) for each in value]
    if isinstance(value, dict):
        return {_whole_characters(name): _whole_characters(each) for name, each in value.items()}
    return value


def _unexpected(text: _JsonText, at: int, expected: str | None) -> QueryFault:
    """In the words of Azure."""
    if at >= len(text.text):
        return QueryFault("ParseError", "Unexpected end of the blob.", text.at)
    byte = text.at + length_of(text.text[text.start : at])
    expecting = f" Expecting tokens {expected}." if expected else ""
    return QueryFault("ParseError", f"Unexpected token '{text.text[at]}' at [byte: {byte}].{expecting}", text.at)

"""What the formats of queries have in common: text, records with their positions, and columns."""

import codecs
from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from verditer.services.blob.query.tokens import Path
from verditer.services.blob.query.values import Expression

BLOCK_BYTES = 1 << 20
MAX_RECORD_BYTES = 1 << 20  # a longer record is an error, as on Azure
MAX_COLUMNS = 10_000
MAX_FAULTS = 1000  # that wait to be reported
ROWS_AT_ONCE = 4096
AT = "#at"
RECORD = "#record"


class Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class QueryFault(Exception):
    """A record that cannot be read. `position` is where it begins in the blob."""

    def __init__(self, name: str, description: str, position: int, *, fatal: bool = True) -> None:
        super().__init__(description)
        self.name = name
        self.description = description
        self.position = position
        self.fatal = fatal


def invalid_conversion(position: int) -> QueryFault:
    return QueryFault("InvalidTypeConversion", "Invalid type conversion.", position, fatal=False)


class Rows(Protocol):
    """The rows of an input. `resolve` is called for every column of the query before `reader` is."""

    star: str  # SQL of `*`

    def resolve(self, path: Path, position: int) -> Expression: ...

    def reader(self, table: Path, *, whole: bool) -> Any:
        """The rows as a stream of Arrow batches. `table` is the path of the table in JSON; `whole`: the query is for `*`."""


class TextBlocks:
    """A blob as text, a block at a time."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()

    def __iter__(self) -> Iterator[str]:
        while data := self._file.read(BLOCK_BYTES):
            if text := self._decode(data, final=False):
                yield text
        if text := self._decode(b"", final=True):
            yield text

    def _decode(self, data: bytes, *, final: bool) -> str:
        try:
            return self._decoder.decode(data, final)
        except UnicodeDecodeError:
            raise QueryFault("ParseError", "The blob is not UTF-8.", 0) from None


def too_large(position: int) -> QueryFault:
    return QueryFault("RecordTooLarge", f"A record has more than {MAX_RECORD_BYTES} bytes.", position)


def length_of(text: str) -> int:
    """In bytes."""
    return len(text) if text.isascii() else len(text.encode())


def batch_of(columns: dict[str, list[Any]], schema: Any) -> Any:
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema)

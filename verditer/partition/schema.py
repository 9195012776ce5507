"""The schema that all engines share: one table for each record class, and the encoding of a record as a row.

A table has a key and a body. Tables of records with a rank have an indexed rank as well. Besides these, the
tables `store` and `node` hold the store's version, clock and reserved ticks (`migrations/s0001_store.py`).
"""

from functools import cache
from typing import Generic, Protocol, TypeVar

import msgspec

from verditer.core.records import catalog
from verditer.core.records.record import Record

R = TypeVar("R", bound=Record)
R_co = TypeVar("R_co", bound=Record, covariant=True)

RECORDS: tuple[type[Record], ...] = catalog.RECORDS

encode = msgspec.msgpack.Encoder().encode


def row_of(record: Record) -> tuple[bytes, ...]:
    """The columns of its row, in their order."""
    if not record.RANK:
        return record.key(), encode(record)
    return record.key(), record.rank(), encode(record)


class RowDecoder(Protocol[R_co]):
    def decode(self, row: bytes, /) -> R_co: ...


@cache
def decoder(kind: type[R]) -> RowDecoder[R]:
    return msgspec.msgpack.Decoder(kind) if not kind.ADDED else _UpgradingDecoder(kind)


class _UpgradingDecoder(Generic[R]):
    """Also decodes rows with the tag before, which have no fields of `ADDED`."""

    def __init__(self, kind: type[R]) -> None:
        self._kind = kind
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def decode(self, row: bytes, /) -> R:
        try:
            return self._decode(row)
        except msgspec.ValidationError:
            tag, *values = msgspec.msgpack.decode(row)
            if tag != self._kind.__struct_config__.tag - 1:  # type: ignore[operator]  # the tags of records are numbers
                raise
            stored = iter(values)
            fields = {
                field.encode_name: msgspec.to_builtins(field.default) if field.name in self._kind.ADDED else next(stored)
                for field in msgspec.structs.fields(self._kind)
            }
            upgraded = [self._kind.__struct_config__.tag, *fields.values()]
            return msgspec.convert(upgraded, self._kind, builtin_types=(bytes,))

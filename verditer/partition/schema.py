"""Record → table: which tables a store has, and how a record becomes bytes. Shared by every engine.

A table has a key and a body; tables whose records have a rank have that too, indexed. That is the whole schema.
"""

from functools import cache
from typing import TypeVar

import msgspec

from verditer.core.records.account import ServiceProperties
from verditer.core.records.activity import Horizon
from verditer.core.records.blob import Blob, Block, Snapshot, StagedBlob
from verditer.core.records.container import Container, Forgotten
from verditer.core.records.content import BlockRun, Garbage, Inline, Layout
from verditer.core.records.record import Record

R = TypeVar("R", bound=Record)

RECORDS: tuple[type[Record], ...] = (
    ServiceProperties,
    Container,
    Forgotten,
    Blob,
    Snapshot,
    StagedBlob,
    Block,
    Inline,
    Layout,
    BlockRun,
    Garbage,
    Horizon,
)

encode = msgspec.msgpack.Encoder().encode


@cache
def decoder(kind: type[R]) -> msgspec.msgpack.Decoder[R]:
    return msgspec.msgpack.Decoder(kind)

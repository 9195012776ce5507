"""Record → table: which tables a store has, and how a record becomes bytes. Shared by every engine.

A table has a key and a body; tables whose records have a rank have that too, indexed. Beside them is one table of counters.
That is the whole schema.
"""

from functools import cache
from typing import TypeVar

import msgspec

from verditer.core.records.account import ServiceProperties
from verditer.core.records.activity import Horizon
from verditer.core.records.blob import (
    Blob,
    BlobVersion,
    Block,
    DeletedBlob,
    DeletedSnapshot,
    DeletedVersion,
    Snapshot,
    StagedBlob,
)
from verditer.core.records.container import Container, DeletedContainer, Forgotten
from verditer.core.records.content import (
    BlockRun,
    ClosedView,
    ExtentUse,
    FormerPiece,
    Garbage,
    Inline,
    Layout,
    Piece,
    SharedContent,
    SharedGarbage,
    SmallPiece,
    View,
)
from verditer.core.records.copy import PendingCopy
from verditer.core.records.queue import Message, Queue
from verditer.core.records.record import Record
from verditer.core.records.secret import Secret
from verditer.core.records.settings import AccountSettings
from verditer.core.records.table import Entity, Table
from verditer.core.records.tags import TagEntry

R = TypeVar("R", bound=Record)

RECORDS: tuple[type[Record], ...] = (
    ServiceProperties,
    AccountSettings,
    Container,
    DeletedContainer,
    Forgotten,
    Blob,
    Snapshot,
    BlobVersion,
    DeletedBlob,
    DeletedSnapshot,
    DeletedVersion,
    StagedBlob,
    Block,
    Inline,
    Layout,
    BlockRun,
    Piece,
    FormerPiece,
    SmallPiece,
    View,
    ClosedView,
    ExtentUse,
    Garbage,
    SharedGarbage,
    SharedContent,
    PendingCopy,
    TagEntry,
    Horizon,
    Secret,
    Queue,
    Message,
    Table,
    Entity,
)

encode = msgspec.msgpack.Encoder().encode


def row_of(record: Record) -> tuple[bytes, ...]:
    """Its columns, in their order."""
    if not record.RANK:
        return record.key(), encode(record)
    return record.key(), record.rank(), encode(record)


@cache
def decoder(kind: type[R]) -> msgspec.msgpack.Decoder[R]:
    return msgspec.msgpack.Decoder(kind)

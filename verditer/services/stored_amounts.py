"""How much an account holds, for the overview of the explorer. Blobs and entities are counted one by one, up to a limit."""

from itertools import islice

import msgspec

from verditer.core.records.blob import Blob
from verditer.core.records.container import Container
from verditer.core.records.file import Share
from verditer.core.records.queue import Queue
from verditer.core.records.record import span_of
from verditer.core.records.table import Entity, Table
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.usage import usage_of
from verditer.services.queue.counting import message_count

MAX_COUNTED = 10_000  # blobs, and entities: reading more takes longer than a tenth of a second
MAX_NAMED = 1000  # containers, queues, tables and shares


class StoredAmounts(msgspec.Struct, kw_only=True):
    """`at_least`: there is more than was counted."""

    containers: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    queues: int = 0
    messages: int = 0
    tables: int = 0
    entities: int = 0
    shares: int = 0
    share_bytes: int = 0
    at_least: bool = False


async def stored_amounts(ctx: Context, account: str) -> StoredAmounts:
    return await ctx.engine.read((account,), lambda tx: _count(tx, account), long=True)


def _count(tx: Transaction, account: str) -> StoredAmounts:
    span = span_of(account)
    containers = list(tx.scan(Container, span, limit=MAX_NAMED))
    queues = list(tx.scan(Queue, span, limit=MAX_NAMED))
    tables = list(tx.scan(Table, span, limit=MAX_NAMED))
    shares = list(tx.scan(Share, span, limit=MAX_NAMED))
    sizes: list[int] = []
    for container in containers:
        sizes += [blob.size for blob in islice(tx.scan(Blob, span_of(container.id)), MAX_COUNTED - len(sizes))]
    entities = 0
    for table in tables:
        entities += sum(1 for _ in islice(tx.scan(Entity, span_of(table.id)), MAX_COUNTED - entities))
    named = max(len(containers), len(queues), len(tables), len(shares))
    return StoredAmounts(
        containers=len(containers),
        blobs=len(sizes),
        blob_bytes=sum(sizes),
        queues=len(queues),
        messages=sum(message_count(tx, queue.id) for queue in queues),
        tables=len(tables),
        entities=entities,
        shares=len(shares),
        share_bytes=sum(usage_of(tx, share.id) for share in shares),
        at_least=max(len(sizes), entities) >= MAX_COUNTED or named >= MAX_NAMED,
    )

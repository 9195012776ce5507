"""Receiving a body and committing the record that names its bytes: the steps that all writers of bytes share.

The bytes are durable before the record is put (invariant 1). They are deleted at once when the transaction is refused.
"""

from collections.abc import Callable
from typing import TypeVar

from verditer.core.errors import StorageError
from verditer.core.records.content import Slice
from verditer.partition.engine import EngineUnavailable, Scope, Transaction
from verditer.services.activity import ActiveOperation
from verditer.services.content.layout import put_inline, put_layout
from verditer.services.context import Context
from verditer.stream.digest import Checksums
from verditer.stream.intake import Received, Source, receive

T = TypeVar("T")


async def receive_body(ctx: Context, body: Source, limit: int, expected: Checksums) -> Received:
    return await receive(body, ctx.extents, limit=limit, inline_limit=ctx.inline_limit, expected=expected)


async def store_bytes(ctx: Context, data: bytes | memoryview) -> Received:
    """Bytes that are in memory already, and whose digests nobody asks for."""
    if len(data) <= ctx.inline_limit:
        return Received(size=len(data), md5=b"", crc64=b"", inline=bytes(data))
    writer = ctx.extents.new()
    try:
        await writer.write([bytes(data)])  # of bytes no copy is made
        await writer.commit()
    except BaseException:
        await writer.abort()
        raise
    return Received(size=len(data), md5=b"", crc64=b"", extent=writer.id)


async def write_received(
    ctx: Context, scope: Scope, work: ActiveOperation, received: Received, commit: Callable[[Transaction], T]
) -> T:
    """Commit. When the transaction is refused, the extent is deleted; when its outcome is unknown, the collector decides."""
    if received.extent is None:
        return await ctx.engine.write([scope], commit)
    try:
        return await work.write(ctx.engine, scope, commit)
    except StorageError as error:
        if not isinstance(error, EngineUnavailable):
            await ctx.extents.delete(received.extent)
        raise


def put_received(tx: Transaction, content_id: int, received: Received) -> None:
    """Make the received bytes the content of an id."""
    if received.inline is not None:
        put_inline(tx, content_id, received.inline)
    else:
        assert received.extent is not None
        put_layout(tx, content_id, [Slice(received.extent, 0, received.size)])

"""Append blobs: blocks are appended at the end, one at a time; a sealed blob accepts no more.

Offset and block count are determined inside the transaction that appends, so concurrent writers never get the same offset (races
A1, A2). A client that repeats a request after a lost answer states the expected offset (`append_position`) and gets an error when
the block was appended before (race A3).
"""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import Alteration
from verditer.core.limits import APPEND_BLOCK_BYTES, MAX_APPENDED_BLOCKS, limit_for
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.container import Container
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.current import require_state
from verditer.services.blob.encryption import check_key
from verditer.services.blob.kinds.block import NewBlobProperties
from verditer.services.blob.kinds.empty import create_empty_blob
from verditer.services.blob.kinds.write_range import RangeRequest, write_range
from verditer.services.blob.protection import check_alterable
from verditer.services.content.intervals import append_interval
from verditer.services.context import Context
from verditer.stream.intake import Received, Source

replace = msgspec.structs.replace


class AppendBlock(RangeRequest, frozen=True, kw_only=True):
    append_position: int | None = None
    max_size: int | None = None


class SealBlob(msgspec.Struct, frozen=True, kw_only=True):
    append_position: int | None = None


async def create_append_blob(ctx: Context, target: BlobName, request: NewBlobProperties, guard: Guard) -> Written:
    return await create_empty_blob(ctx, target, request, guard, BlobType.APPEND, block_count=0)


async def append_block(ctx: Context, target: BlobName, request: AppendBlock, guard: Guard, body: Source) -> Written:
    if not body.ended:
        await ctx.engine.read(target.scope, lambda tx: _check(tx, target, request, guard, body.length or 0))

    def apply(tx: Transaction, received: Received) -> tuple[Blob, Blob]:
        if not received.size:
            raise StorageError(Code.InvalidHeaderValue, field="content_length", value=0)  # sent in chunks: known only now
        blob = _check(tx, target, request, guard, received.size)
        appended = replace(
            blob,
            etag=tx.tick(blob.etag),
            lease=guard.lease_after(blob, tx.now),
            size=blob.size + received.size,
            block_count=(blob.block_count or 0) + 1,
            intervals=append_interval(tx, blob, received),
        )
        return blob, appended

    return await write_range(ctx, target, request, body, limit_for(request.version, APPEND_BLOCK_BYTES), apply)


async def seal_blob(ctx: Context, target: BlobName, request: SealBlob, guard: Guard) -> Written:
    """Sealing a sealed blob succeeds and changes nothing."""

    def commit(tx: Transaction) -> Written:
        container, blob = _require_append_blob(tx, target)
        guard.check(blob, tx.now)
        check_alterable(container, blob, Alteration.CHANGE, tx.now)
        _check_position(blob, request.append_position)
        if not blob.sealed:
            blob = replace(blob, sealed=True, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now))
            tx.put(blob)
        return Written(etag=blob.etag)

    return await ctx.engine.write([target.scope], commit)


def _check(tx: Transaction, target: BlobName, request: AppendBlock, guard: Guard, size: int) -> Blob:
    container, blob = _require_append_blob(tx, target)
    guard.check(blob, tx.now)
    check_alterable(container, blob, Alteration.APPEND, tx.now)
    check_key(blob, request)
    if blob.sealed:
        raise StorageError(Code.BlobIsSealed)
    _check_position(blob, request.append_position)
    if request.max_size is not None and blob.size + size > request.max_size:
        raise StorageError(Code.MaxBlobSizeConditionNotMet)
    if (blob.block_count or 0) >= MAX_APPENDED_BLOCKS:
        message = f"The committed block count cannot exceed the maximum limit of {MAX_APPENDED_BLOCKS:,} blocks."
        raise StorageError(Code.BlockCountExceedsLimit, message=message)
    return blob


def _require_append_blob(tx: Transaction, target: BlobName) -> tuple[Container, Blob]:
    container, blob = require_state(tx, target)
    if blob.blob_type is not BlobType.APPEND:
        raise StorageError(Code.InvalidBlobType)
    return container, blob


def _check_position(blob: Blob, position: int | None) -> None:
    if position is not None and position != blob.size:
        raise StorageError(Code.AppendPositionConditionNotMet)

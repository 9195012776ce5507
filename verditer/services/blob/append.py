"""Append blobs: bytes go behind the end, one block at a time, and a sealed blob takes no more.

Offset and count are known only inside the transaction that appends, so of any number of writers each gets a place of its own
and no two the same (race A1, A2). A writer that repeats itself after a lost answer says where it meant to write (`appendpos`)
and is told that something is there already (race A3).
"""

import msgspec

from verditer.core.errors import Code, StorageError, invalid_header
from verditer.core.guard import Guard
from verditer.core.limits import APPEND_BLOCK_BYTES, MAX_APPENDED_BLOCKS, limit_for
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.block import BlobHeaders
from verditer.services.blob.create import create_blob
from verditer.services.blob.current import require_blob
from verditer.services.blob.pieces import append_piece
from verditer.services.blob.receiving import write_part
from verditer.services.context import Context
from verditer.stream.intake import Received, Source

replace = msgspec.structs.replace


class AppendBlock(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    content_md5: bytes | None = None
    content_crc64: bytes | None = None
    append_position: int | None = None
    max_size: int | None = None


class SealBlob(msgspec.Struct, frozen=True, kw_only=True):
    append_position: int | None = None


async def create_append_blob(ctx: Context, target: BlobName, request: BlobHeaders, guard: Guard) -> Written:
    return await create_blob(ctx, target, request, guard, BlobType.APPEND, block_count=0)


async def append_block(ctx: Context, target: BlobName, request: AppendBlock, guard: Guard, body: Source) -> Written:
    if not body.ended:
        await ctx.engine.read(target.scope, lambda tx: _check(tx, target, request, guard, body.length or 0))

    def place(tx: Transaction, received: Received) -> tuple[Blob, Blob]:
        if not received.size:
            raise invalid_header("Content-Length", "0")  # in chunks, so that only now it is known
        blob = _check(tx, target, request, guard, received.size)
        appended = replace(
            blob,
            etag=tx.tick(blob.etag),
            lease=guard.lease_after(blob, tx.now),
            size=blob.size + received.size,
            block_count=(blob.block_count or 0) + 1,
            pieces=append_piece(tx, blob, received),
        )
        return blob, appended

    return await write_part(ctx, target, request, body, limit_for(request.version, APPEND_BLOCK_BYTES), place)


async def seal_blob(ctx: Context, target: BlobName, request: SealBlob, guard: Guard) -> Written:
    """Sealing a sealed blob is fine and changes nothing."""

    def commit(tx: Transaction) -> Written:
        blob = _require_append_blob(tx, target)
        guard.check(blob, tx.now)
        _check_position(blob, request.append_position)
        if not blob.sealed:
            blob = replace(blob, sealed=True, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now))
            tx.put(blob)
        return Written(etag=blob.etag)

    return await ctx.engine.write(target.scope, commit)


def _check(tx: Transaction, target: BlobName, request: AppendBlock, guard: Guard, size: int) -> Blob:
    blob = _require_append_blob(tx, target)
    guard.check(blob, tx.now)
    if blob.sealed:
        raise StorageError(Code.BlobIsSealed)
    _check_position(blob, request.append_position)
    if request.max_size is not None and blob.size + size > request.max_size:
        raise StorageError(Code.MaxBlobSizeConditionNotMet)
    if (blob.block_count or 0) >= MAX_APPENDED_BLOCKS:
        message = f"The committed block count cannot exceed the maximum limit of {MAX_APPENDED_BLOCKS:,} blocks."
        raise StorageError(Code.BlockCountExceedsLimit, message=message)
    return blob


def _require_append_blob(tx: Transaction, target: BlobName) -> Blob:
    blob = require_blob(tx, target)
    if blob.blob_type is not BlobType.APPEND:
        raise StorageError(Code.InvalidBlobType)
    return blob


def _check_position(blob: Blob, position: int | None) -> None:
    if position is not None and position != blob.size:
        raise StorageError(Code.AppendPositionConditionNotMet)

"""Put Blob for the types that start empty: append and page blobs."""

from typing import Any

import msgspec

from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import BlobType
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.blobs import discard_staged
from verditer.services.blob.block import BlobHeaders, block_blob
from verditer.services.blob.content import drop_content
from verditer.services.blob.current import check_replaceable, current_blob
from verditer.services.blob.pieces import new_pieces
from verditer.services.blob.tags import index_tags
from verditer.services.context import Context


async def create_blob(
    ctx: Context, target: BlobName, request: BlobHeaders, guard: Guard, blob_type: BlobType, size: int = 0, **fields: Any
) -> Written:
    """Create or replace a blob with one that has no bytes of its own yet; `fields` are what its type adds to the record."""
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        container, previous = current_blob(tx, target)
        check_replaceable(tx, previous, blob_type)
        guard.check(previous, tx.now)
        tick = tx.tick(previous.etag if previous is not None else 0)
        if previous is not None:
            drop_content(tx, previous)
        discard_staged(tx, container.id, target.blob)
        blob = block_blob(container.id, target.blob, request, tick, size=size, inline=False, md5=request.blob_content_md5)
        pieces = new_pieces(tx, tick, target.scope)
        lease = guard.lease_after(previous, tx.now)
        index_tags(tx, previous, blob)
        tx.put(msgspec.structs.replace(blob, blob_type=blob_type, pieces=pieces, lease=lease, **fields))
        return Written(etag=tick)

    return await ctx.engine.write(target.scope, commit)

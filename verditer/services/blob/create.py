"""Put Blob for the types that start empty: append and page blobs."""

from typing import Any

import msgspec

from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import BlobType
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.blobs import discard_staged
from verditer.services.blob.block import BlobHeaders, block_blob
from verditer.services.blob.current import current_blob
from verditer.services.blob.history import check_replaceable, new_version, retire_replaced
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
        check_replaceable(tx, container, target, previous, blob_type)
        guard.check(previous, tx.now)
        check_online(previous, tx.now)
        tick = tx.tick(previous.etag if previous is not None else 0)
        if previous is not None:
            retire_replaced(tx, target, container.keeping, previous, tick)
        discard_staged(tx, container.id, target.blob)
        blob = block_blob(container.id, target.blob, request, tick, size=size, inline=False, md5=request.blob_content_md5)
        pieces = new_pieces(tx, tick, target.scope)
        lease = guard.lease_after(previous, tx.now)
        index_tags(tx, previous, blob)
        version_id = new_version(container.keeping, tick)
        tx.put(msgspec.structs.replace(blob, blob_type=blob_type, pieces=pieces, lease=lease, version_id=version_id, **fields))
        return Written(etag=tick, version_id=version_id)

    return await ctx.engine.write(target.scope, commit)

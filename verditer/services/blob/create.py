"""Put Blob for the types that start empty: append and page blobs."""

from typing import Any

import msgspec

from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.block import BlobHeaders, block_blob
from verditer.services.blob.pieces import new_pieces
from verditer.services.blob.placing import put_in_place
from verditer.services.context import Context


async def create_blob(
    ctx: Context, target: BlobName, request: BlobHeaders, guard: Guard, blob_type: BlobType, size: int = 0, **fields: Any
) -> Written:
    """Create or replace a blob with one that has no bytes of its own yet; `fields` are what its type adds to the record."""
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        def make(container_id: int, tick: int) -> Blob:
            blob = block_blob(container_id, target.blob, request, tick, size=size, inline=False, md5=request.blob_content_md5)
            return msgspec.structs.replace(blob, blob_type=blob_type, pieces=new_pieces(tx, tick, target.scope), **fields)

        blob = put_in_place(tx, target, guard, blob_type, make)
        return Written(etag=blob.etag, version_id=blob.version_id)

    return await ctx.engine.write(target.scope, commit)

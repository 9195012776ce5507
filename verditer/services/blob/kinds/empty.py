"""Put Blob for the types that start empty: append and page blobs."""

from typing import Any

import msgspec

from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.encryption import shown_encryption
from verditer.services.blob.kinds.block import NewBlobProperties, block_blob
from verditer.services.blob.new_blob import put_new_blob
from verditer.services.content.intervals import new_interval_map
from verditer.services.context import Context


async def create_empty_blob(
    ctx: Context, target: BlobName, request: NewBlobProperties, guard: Guard, blob_type: BlobType, size: int = 0, **fields: Any
) -> Written:
    """Create or replace a blob with an empty one. `fields` are those that only records of its type have."""
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        def build(container_id: int, tick: int) -> Blob:
            blob = block_blob(container_id, target.blob, request, tick, size=size, inline=False, md5=request.blob_content_md5)
            return msgspec.structs.replace(
                blob, blob_type=blob_type, intervals=new_interval_map(tx, tick, target.scope), **fields
            )

        blob = put_new_blob(tx, target, guard, blob_type, build, request=request)
        return Written(etag=blob.etag, version_id=blob.version_id, encryption=shown_encryption(blob))

    return await ctx.engine.write([target.scope], commit)

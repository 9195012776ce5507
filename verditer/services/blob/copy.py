"""Copy Blob and Copy Blob From URL. From a blob of this server both are done at once; from elsewhere Copy Blob becomes work of
`jobs/copy.py`, told by its status, and Copy Blob From URL waits for the bytes.

Copied are content, block list, HTTP headers, sequence number and block count; metadata unless the request brings its own. Not
copied are leases, snapshots, uncommitted blocks, the tier, and tags unless asked for.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.lease import state_of
from verditer.core.limits import MAX_METADATA, MAX_SYNC_COPY
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.copy import CopyState, CopyStatus
from verditer.core.tiers import ARCHIVE, BLOCK_TIERS, DURATIONS, STANDARD, Rehydration, check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Copied
from verditer.services.blob.blobs import discard_staged
from verditer.services.blob.block import put_received, receive_body, write_received
from verditer.services.blob.current import current_blob
from verditer.services.blob.history import check_replaceable, moved_to, new_version, retire_replaced
from verditer.services.blob.pending import start_copy
from verditer.services.blob.sharing import attach, take
from verditer.services.blob.sources import CopySource, LocalSource, RemoteSource, SourceBody, opened, unverified_by
from verditer.services.blob.tags import index_tags
from verditer.services.context import Context
from verditer.services.settings import settings_of
from verditer.stream.digest import Checksums, Digest, verify

replace = msgspec.structs.replace


class CopyBlob(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}
    tags: dict[str, str] | None = None
    tier: str | None = None
    rehydrate_priority: str | None = None
    seal: bool = False


class CopyBlobFromUrl(CopyBlob, frozen=True, kw_only=True):
    source_md5: bytes | None = None
    copy_tags: bool = False


async def copy_blob(ctx: Context, target: BlobName, request: CopyBlob, guard: Guard, source: CopySource) -> Copied:
    """Asynchronous: the answer says whether the copy is done or pending."""
    check_request(target, request)
    if isinstance(source, RemoteSource):
        return await start_copy(ctx, target, source, lambda blob: _described(blob, request), guard, _check_target)
    try:
        return await _copy_local(ctx, target, request, guard, source, _check_target, request.tags)
    except StorageError as error:
        # Measured on Azure: a missing source in the same account is plainly not found.
        raise error if source.same_account or error.code not in _SOURCE_CODES else unverified_by(error) from None


async def copy_blob_from_url(
    ctx: Context, target: BlobName, request: CopyBlobFromUrl, guard: Guard, source: CopySource
) -> Copied:
    """Synchronous: the answer comes when the copy is done."""
    check_request(target, request)
    check_tags(request.tags, request.copy_tags, source)
    if isinstance(source, RemoteSource):
        return await _copy_remote(ctx, target, request, guard, source)
    return await _copy_local(
        ctx, target, request, guard, source, check_type, request.tags, limit=MAX_SYNC_COPY, md5=request.source_md5
    )


TargetCheck = Callable[[Transaction, BlobName, Blob | None, BlobType], None]


async def _copy_local(
    ctx: Context,
    target: BlobName,
    request: CopyBlob,
    guard: Guard,
    source: LocalSource,
    check: TargetCheck,
    tags: dict[str, str] | None,
    *,
    limit: int | None = None,
    md5: bytes | None = None,
) -> Copied:
    copy_id = ctx.new_guid()

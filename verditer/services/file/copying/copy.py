"""Copy File. Copies of a file or blob of this server are complete when they are answered: they share the extents of the source.
From another server, a pending copy is left to `jobs/copy.py`.

A copy has the content and the content properties of its source, and its metadata unless the request has some. What it takes of
the SMB or POSIX properties is up to the request (`services/file/properties.py`).
"""

from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA
from verditer.core.names import FilePath, check_metadata
from verditer.core.records.content import IntervalMap
from verditer.core.records.copy import CopyState, CopyStatus
from verditer.core.records.file import Share
from verditer.partition.engine import Transaction
from verditer.services.blob.copying.capture import capture_source
from verditer.services.content.sharing import CapturedContent, attach_intervals
from verditer.services.context import Context
from verditer.services.copying.sources import BlobSource, CopySource, FileSource, RemoteSource
from verditer.services.file import opens
from verditer.services.file.answers import FileCopied
from verditer.services.file.copying.capture import capture_file
from verditer.services.file.copying.pending import start_copy
from verditer.services.file.copying.put_copy import CopyFile, Described, put_copied_file
from verditer.services.file.files import content_scope


async def copy_file(ctx: Context, target: FilePath, request: CopyFile, guard: Guard, source: CopySource) -> FileCopied:
    check_metadata(request.metadata, MAX_METADATA)
    copy_id = ctx.new_guid()
    if isinstance(source, RemoteSource):
        return await start_copy(ctx, target, request, guard, source, copy_id)
    with ctx.activity.begin(ctx.now()) as work:
        described, content = await _capture(ctx, source)
        size = described.found.size
        state = CopyState(id=copy_id, source=source.shown, status=CopyStatus.SUCCESS, copied=size, total=size)

        def attached(tx: Transaction, share: Share, tick: int) -> IntervalMap:
            return attach_intervals(tx, content, tick, content_scope(share), group=share.id, epoch=share.epoch)

        def commit(tx: Transaction) -> FileCopied:
            entry = put_copied_file(tx, target, request, guard, described, state, attached)
            return FileCopied(etag=entry.etag, copy_id=copy_id, copy_status=CopyStatus.SUCCESS)

        return await opens.write_during(ctx, target.scope, work, commit)


async def _capture(ctx: Context, source: BlobSource | FileSource) -> tuple[Described, CapturedContent]:
    if isinstance(source, BlobSource):
        blob = await capture_source(ctx, source)
        return Described(found=blob.blob), blob.content
    file = await capture_file(ctx, source)
    return Described(found=file.entry, descriptor=file.descriptor), file.content

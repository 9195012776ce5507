"""Captures a blob of this server as the source of a copy: its record and its content, in one state (`content/sharing.py`)."""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.records.blob import Blob
from verditer.core.tiers import ARCHIVE, BLOCK_TIERS, check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.current import require_blob
from verditer.services.blob.encryption import check_unencrypted
from verditer.services.content.sharing import CapturedContent, capture, is_shareable, mark_shared
from verditer.services.context import Context
from verditer.services.copying.sources import BlobSource, unverified_by


class CapturedBlob(msgspec.Struct, frozen=True, kw_only=True):
    blob: Blob
    content: CapturedContent


async def capture_source(ctx: Context, source: BlobSource, tier: str | None = None, *, plain: bool = False) -> CapturedBlob:
    """Capture the source of a copy to a tier. With `plain` its errors are raised unchanged, otherwise as errors of a source."""

    def check(blob: Blob, now: int) -> None:
        if blob.copy_pending:
            raise StorageError(Code.PendingCopyOperation)
        check_unencrypted(blob)
        if not (source.same_account and tier in BLOCK_TIERS and tier != ARCHIVE):
            check_online(blob, now)  # a copy to an online tier is a way to rehydrate

    try:
        return await capture_blob(ctx, source, check)
    except StorageError as error:
        raise (error if plain else unverified_by(error, source.guard.rule)) from None


async def capture_blob(ctx: Context, source: BlobSource, check: Callable[[Blob, int], None]) -> CapturedBlob:
    """The caller is an active operation (`services/activity.py`) and attaches the content before it ends.

    `check` is called with the blob and the time."""

    def checked(tx: Transaction) -> Blob:
        blob = require_blob(tx, source.name, source.snapshot, source.version_id)
        source.guard.check(blob, tx.now)
        check(blob, tx.now)
        return blob

    def look(tx: Transaction) -> CapturedBlob | None:
        blob = checked(tx)
        return CapturedBlob(blob=blob, content=capture(tx, blob)) if is_shareable(tx, blob) else None

    def mark(tx: Transaction) -> CapturedBlob:
        blob = checked(tx)
        if mark_shared(tx, blob):
            blob = msgspec.structs.replace(blob, shared=True)
            tx.put(blob)
        return CapturedBlob(blob=blob, content=capture(tx, blob))

    captured = await ctx.engine.read(source.name.scope, look, long=True)
    return captured if captured is not None else await ctx.engine.write([source.name.scope], mark)

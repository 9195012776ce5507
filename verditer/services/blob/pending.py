"""Copies from elsewhere while they are under way: started by Copy Blob, fetched by `jobs/copy.py`, ended by success, failure or
Abort Copy Blob.

While a copy is pending its blob is empty (a page blob: zeros), and the guard refuses whoever would write it. The bytes gather
under a content of their own, chunk by chunk, each committed together with the progress, so that another process may go on where
one was killed. With the last chunk the blob gets that content.
"""

from collections.abc import Callable

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.container import Container
from verditer.core.records.content import Layout, Slice
from verditer.core.records.copy import CopyState, CopyStatus, PendingCopy
from verditer.core.records.record import Span
from verditer.partition.engine import Transaction
from verditer.services.activity import Work
from verditer.services.blob.answers import Copied
from verditer.services.blob.content import drop_content, put_inline
from verditer.services.blob.current import require_blob
from verditer.services.blob.pieces import new_pieces, write_piece
from verditer.services.blob.placing import put_in_place
from verditer.services.blob.receiving import write_received
from verditer.services.blob.sources import RemoteSource, opened, unverified
from verditer.services.context import Context
from verditer.stream.intake import Received

replace = msgspec.structs.replace

CLAIM = seconds(20)  # how long a process that says nothing keeps a copy to itself
REST = seconds(300)  # how long a copy into a deleted container is let alone
_ALL = Span(b"", b"\xff" * 64)


class AbortCopy(msgspec.Struct, frozen=True, kw_only=True):
    copy_id: str
    action: str


async def start_copy(
    ctx: Context,
    target: BlobName,
    source: RemoteSource,
    guard: Guard,
    copy_id: str,
    describe: Callable[[Blob, int], Blob],
) -> Copied:
    """The source is asked once, for its headers; `describe` makes the target's record of them."""
    async with opened(ctx, source) as body:
        total, found, etag = body.length, body.blob, body.etag
    if total is None:
        raise unverified(411, Code.MissingContentLengthHeader.wire, "The source does not say how long it is.")
    blob_type, in_pieces = found.blob_type, found.blob_type is not BlobType.BLOCK

    def commit(tx: Transaction) -> Copied:
        def make(container_id: int, tick: int) -> Blob:
            return replace(
                describe(found, tick),
                container_id=container_id,
                content_id=tick,
                size=total if blob_type is BlobType.PAGE else 0,
                inline=not in_pieces,
                pieces=new_pieces(tx, tick, target.scope) if in_pieces else None,
                copy=CopyState(id=copy_id, source=source.shown, status=CopyStatus.PENDING, copied=0, total=total),
            )

        blob = put_in_place(tx, target, guard, blob_type, make, same_type=True, infinite_lease=True)
        content_id = tx.tick(blob.etag)
        tx.put(
            PendingCopy(
                container_id=blob.container_id,
                name=target.blob,
                account=target.account,
                container=target.container,
                copy_id=copy_id,
                url=source.url,
                headers=source.headers,
                etag=etag,
                started=tx.now,
                total=total,
                content_id=content_id,
                pieces=new_pieces(tx, content_id, target.scope) if in_pieces else None,
            )
        )
        return Copied(etag=blob.etag, version_id=blob.version_id, copy_id=copy_id, copy_status=CopyStatus.PENDING)

    copied = await ctx.engine.write(target.scope, commit)
    ctx.copy_started.set()
    return copied


async def abort_copy(ctx: Context, target: BlobName, request: AbortCopy, guard: Guard) -> None:
    """The blob stays, empty, with its metadata."""

    def commit(tx: Transaction) -> None:
        blob = require_blob(tx, target)
        guard.check(blob, tx.now)
        if blob.copy is None or not blob.copy_pending:
            raise StorageError(Code.NoPendingCopyOperation)
        if blob.copy.id != request.copy_id:
            raise StorageError(Code.CopyIdMismatch)
        pending = tx.get(PendingCopy, blob.container_id, blob.name)
        if pending is not None:
            _forget(tx, pending)
        _give_up(tx, blob, CopyStatus.ABORTED)

    await ctx.engine.write(target.scope, commit)


# --- what the job does ------------------------------------------------------------------------------------------------------


async def unclaimed_copies(ctx: Context, limit: int) -> list[PendingCopy]:
    def look(tx: Transaction) -> list[PendingCopy]:
        waiting = (pending for pending in tx.scan(PendingCopy, _ALL) if pending.claimed_until <= tx.now)
        return [pending for _, pending in zip(range(limit), waiting, strict=False)]

    return await ctx.engine.scan(("jobs",), look)


async def claim_copy(ctx: Context, pending: PendingCopy, owner: str) -> PendingCopy | None:
    """Take a copy over, or keep it. None: it has ended, or somebody else has it."""

    def commit(tx: Transaction) -> PendingCopy | None:
        current = tx.get(PendingCopy, pending.container_id, pending.name)
        if current is None or current.copy_id != pending.copy_id:
            return None
        if current.claimed_by != owner and current.claimed_until > tx.now:
            return None
        if not _is_wanted(tx, current):
            _forget(tx, current)
            return None
        if _blob_of(tx, current) is None:
            tx.put(replace(current, claimed_by="", claimed_until=tx.now + REST))
            return None
        claimed = replace(current, claimed_by=owner, claimed_until=tx.now + CLAIM)
        tx.put(claimed)
        return claimed

    return await ctx.engine.write(name_of(pending).scope, commit)


async def add_chunk(ctx: Context, work: Work, pending: PendingCopy, received: Received, *, zeros: bool) -> PendingCopy | None:
    """What has come, behind what had come before; with the last chunk the copy is done. None: it is no longer ours."""

    def commit(tx: Transaction) -> PendingCopy | None:
        found = _ours(tx, pending)
        if found is None:
            raise StorageError(Code.NoPendingCopyOperation)
        current, blob = found
        current = _with_bytes(tx, current, received, zeros=zeros)
        assert blob.copy is not None
        if current.copied == current.total:
            _complete(tx, blob, current)
            return None
        tx.put(current)
        tx.put(replace(blob, copy=replace(blob.copy, copied=current.copied)))
        return current

    try:
        return await write_received(ctx, name_of(pending), work, received, commit)
    except StorageError as error:
        if error.code is Code.NoPendingCopyOperation:
            return None
        raise


async def fail_copy(ctx: Context, pending: PendingCopy, description: str) -> None:
    def commit(tx: Transaction) -> None:
        found = _ours(tx, pending)
        if found is not None:
            _forget(tx, found[0])
            _give_up(tx, found[1], CopyStatus.FAILED, description)

    await ctx.engine.write(name_of(pending).scope, commit)


def name_of(pending: PendingCopy) -> BlobName:
    return BlobName(pending.account, pending.container, pending.name)


def _ours(tx: Transaction, pending: PendingCopy) -> tuple[PendingCopy, Blob] | None:
    """The copy and its blob, while this process may go on with it."""
    current = tx.get(PendingCopy, pending.container_id, pending.name)
    if current is None or (current.copy_id, current.claimed_by) != (pending.copy_id, pending.claimed_by):
        return None
    blob = _blob_of(tx, current)
    return (current, blob) if blob is not None and current.copied == pending.copied else None


def _blob_of(tx: Transaction, pending: PendingCopy) -> Blob | None:
    """None: its container was deleted, and may be restored."""
    container = tx.get(Container, pending.account, pending.container)
    if container is None or container.id != pending.container_id:
        return None
    return tx.get(Blob, pending.container_id, pending.name) if _is_wanted(tx, pending) else None


def _is_wanted(tx: Transaction, pending: PendingCopy) -> bool:
    blob = tx.get(Blob, pending.container_id, pending.name)
    return blob is not None and blob.copy is not None and blob.copy.id == pending.copy_id


def _with_bytes(tx: Transaction, pending: PendingCopy, received: Received, *, zeros: bool) -> PendingCopy:
    copied = pending.copied + received.size
    if pending.pieces is not None:
        pieces = pending.pieces if zeros else write_piece(tx, _content(pending), pending.copied, received)
        return replace(pending, copied=copied, pieces=pieces)
    if received.inline is not None:
        put_inline(tx, pending.content_id, received.inline)
        return replace(pending, copied=copied, inline=True)
    assert received.extent is not None
    row = Slice(received.extent, 0, received.size)
    tx.put(Layout(content_id=pending.content_id, start=pending.copied, slices=(row,)))
    return replace(pending, copied=copied)


def _content(pending: PendingCopy) -> Blob:
    """The content that gathers, as if it were a blob's already."""
    return Blob(
        container_id=pending.container_id,
        name=pending.name,
        etag=pending.started,
        created=pending.started,
        blob_type=BlobType.BLOCK,
        size=pending.copied,
        content_id=pending.content_id,
        inline=pending.inline,
        pieces=pending.pieces,
    )


def _complete(tx: Transaction, blob: Blob, pending: PendingCopy) -> None:
    assert blob.copy is not None
    drop_content(tx, blob)
    tick = tx.tick(blob.etag)
    done = replace(blob.copy, status=CopyStatus.SUCCESS, copied=pending.total, completed=tick)
    tx.put(
        replace(
            blob,
            etag=tick,
            size=pending.total,
            content_id=pending.content_id,
            inline=pending.inline,
            pieces=pending.pieces,
            copy=done,
        )
    )
    tx.delete(PendingCopy, pending.container_id, pending.name)


def _give_up(tx: Transaction, blob: Blob, status: CopyStatus, description: str | None = None) -> None:
    assert blob.copy is not None
    tick = tx.tick(blob.etag)
    ended = replace(blob.copy, status=status, completed=tick, description=description)
    tx.put(replace(blob, etag=tick, size=0, copy=ended))


def _forget(tx: Transaction, pending: PendingCopy) -> None:
    drop_content(tx, _content(pending))
    tx.delete(PendingCopy, pending.container_id, pending.name)

"""Pending copies from other servers: started by Copy Blob or Copy File, continued by `jobs/copy.py`, ended by success, failure or
Abort Copy.

While a copy is pending, its target is empty or zeros, and the guard refuses writes to it. The bytes are collected under a
separate content id. Each chunk is committed together with the progress, so another process can continue after a crash. With the
last chunk the target receives that content. What differs between blobs and files is in their `TargetKind`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import Code, ErrorClass, StorageError
from verditer.core.records.blob import Blob
from verditer.core.records.content import Layout, Slice
from verditer.core.records.copy import CopyFailure, CopyState, CopyStatus, PendingCopy
from verditer.core.records.file import FileEntry
from verditer.core.records.record import EVERY_KEY
from verditer.partition.engine import Scope, Transaction
from verditer.services.activity import ActiveOperation
from verditer.services.content.content import ContentState
from verditer.services.content.intervals import write_interval
from verditer.services.content.layout import drop_content, put_inline
from verditer.services.content.receiving import write_received
from verditer.services.context import Context
from verditer.services.copying.sources import RemoteSource, opened, unverified_by
from verditer.services.outbound import SourceFailed
from verditer.stream.intake import Received

replace = msgspec.structs.replace

CLAIM = seconds(20)  # how long a claim lasts that is not renewed
RETRY_DELETED = seconds(300)  # when a copy into a deleted container or share is examined again

P = TypeVar("P", bound=PendingCopy)
T = TypeVar("T", Blob, FileEntry)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TargetKind(Generic[P, T]):
    """Blobs or files, as targets of pending copies."""

    record: type[P]
    scope: Callable[[P], Scope]  # the lock under which the copy and its target change
    find: Callable[[Transaction, P], T | None]  # the target, even one whose container or share is deleted
    is_reachable: Callable[[Transaction, P], bool]  # False: the container or share is deleted. It may be restored
    put: Callable[[Transaction, P, T, T], None]  # (…, before, after): replace a state of the target
    with_content: Callable[[Transaction, P, T, ContentState], T]  # the target with the content that has arrived


class AbortCopy(msgspec.Struct, frozen=True, kw_only=True):
    copy_id: str
    action: str


class InspectedSource(msgspec.Struct, frozen=True, kw_only=True):
    """What a source said of itself when a copy of it began."""

    total: int
    found: Blob
    etag: str | None


async def inspect_source(ctx: Context, source: RemoteSource) -> InspectedSource:
    """The source is opened once, for its properties."""
    async with opened(ctx, source) as body:
        total, found, etag = body.length, body.blob, body.etag
    if total is None:
        raise unverified_by(StorageError(Code.MissingContentLengthHeader, message="The source does not say how long it is."))
    return InspectedSource(total=total, found=found, etag=etag)


def pending_state(copy_id: str, source: RemoteSource, total: int) -> CopyState:
    return CopyState(id=copy_id, source=source.shown, status=CopyStatus.PENDING, copied=0, total=total)


def end_aborted(tx: Transaction, kind: TargetKind[P, T], target: T, pending: P | None, copy_id: str) -> None:
    """The target remains, empty, with its metadata. `pending` is the copy into it."""
    if target.copy is None or not target.copy_pending:
        raise StorageError(Code.NoPendingCopyOperation)
    if target.copy.id != copy_id:
        raise StorageError(Code.CopyIdMismatch)
    assert pending is not None, "a target in the state pending has a pending copy"
    _forget(tx, pending)
    _give_up(tx, kind, pending, target, CopyStatus.ABORTED)


# --- called by the job ------------------------------------------------------------------------------------------------------


async def unclaimed_copies(ctx: Context, kinds: Sequence[TargetKind[Any, Any]], limit: int) -> list[PendingCopy]:
    def look(tx: Transaction) -> list[PendingCopy]:
        found = (pending for kind in kinds for pending in tx.scan(kind.record, EVERY_KEY))
        waiting = (pending for pending in found if pending.claimed_until <= tx.now)
        return [pending for _, pending in zip(range(limit), waiting, strict=False)]

    return await ctx.engine.read(("jobs",), look, long=True)


async def claim_copy(ctx: Context, kind: TargetKind[P, T], pending: P, owner: str) -> P | None:
    """Claim a copy, or renew the claim. None: the copy has ended, or another process has claimed it."""

    def commit(tx: Transaction) -> P | None:
        current = tx.get(kind.record, *pending.key_parts())
        if current is None or current.copy_id != pending.copy_id:
            return None
        if current.claimed_by != owner and current.claimed_until > tx.now:
            return None
        if _wanted(tx, kind, current) is None:
            _forget(tx, current)
            return None
        if not kind.is_reachable(tx, current):
            tx.put(replace(current, claimed_by="", claimed_until=tx.now + RETRY_DELETED))
            return None
        claimed = replace(current, claimed_by=owner, claimed_until=tx.now + CLAIM)
        tx.put(claimed)
        return claimed

    return await ctx.engine.write([kind.scope(pending)], commit)


async def add_chunk(
    ctx: Context, kind: TargetKind[P, T], work: ActiveOperation, pending: P, received: Received, *, zeros: bool
) -> P | None:
    """Append a chunk to what was copied before; the last chunk completes the copy. None: this process must stop copying."""

    def commit(tx: Transaction) -> P | None:
        found = _ours(tx, kind, pending)
        if found is None:
            raise StorageError(Code.NoPendingCopyOperation)
        current, target = found
        current = _with_bytes(tx, current, received, zeros=zeros)
        assert target.copy is not None
        if current.copied == current.total:
            _complete(tx, kind, current, target)
            return None
        tx.put(current)
        kind.put(tx, current, target, replace(target, copy=replace(target.copy, copied=current.copied)))
        return current

    try:
        return await write_received(ctx, kind.scope(pending), work, received, commit)
    except StorageError as error:
        if error.code is Code.NoPendingCopyOperation:
            return None
        raise


async def fail_copy(ctx: Context, kind: TargetKind[P, T], pending: P, failure: SourceFailed) -> None:
    def commit(tx: Transaction) -> None:
        found = _ours(tx, kind, pending)
        if found is not None:
            current, target = found
            _forget(tx, current)
            _give_up(tx, kind, current, target, CopyStatus.FAILED, failure)

    await ctx.engine.write([kind.scope(pending)], commit)


def _ours(tx: Transaction, kind: TargetKind[P, T], pending: P) -> tuple[P, T] | None:
    """The copy and its target, if this process still has the claim."""
    current = tx.get(kind.record, *pending.key_parts())
    if current is None or (current.copy_id, current.claimed_by) != (pending.copy_id, pending.claimed_by):
        return None
    target = _wanted(tx, kind, current) if kind.is_reachable(tx, current) else None
    return (current, target) if target is not None and current.copied == pending.copied else None


def _wanted(tx: Transaction, kind: TargetKind[P, T], pending: P) -> T | None:
    """The target, if the copy is still the one that it waits for."""
    target = kind.find(tx, pending)
    return target if target is not None and target.copy is not None and target.copy.id == pending.copy_id else None


def _with_bytes(tx: Transaction, pending: P, received: Received, *, zeros: bool) -> P:
    copied = pending.copied + received.size
    if pending.intervals is not None:
        intervals = pending.intervals if zeros else write_interval(tx, _content(pending), pending.copied, received)
        return replace(pending, copied=copied, intervals=intervals)
    if received.inline is not None:
        put_inline(tx, pending.content_id, received.inline)
        return replace(pending, copied=copied, inline=True)
    assert received.extent is not None
    row = Slice(received.extent, 0, received.size)
    tx.put(Layout(content_id=pending.content_id, start=pending.copied, slices=(row,)))
    return replace(pending, copied=copied)


def _content(pending: PendingCopy) -> ContentState:
    """The content that the copy has received so far."""
    return ContentState(content_id=pending.content_id, size=pending.copied, inline=pending.inline, intervals=pending.intervals)


def _complete(tx: Transaction, kind: TargetKind[P, T], pending: P, target: T) -> None:
    assert target.copy is not None
    drop_content(tx, target)
    tick = tx.tick(target.etag)
    done = replace(target.copy, status=CopyStatus.SUCCESS, copied=pending.total, completed=tick)
    filled = kind.with_content(tx, pending, target, _content(pending))
    kind.put(tx, pending, target, replace(filled, etag=tick, copy=done))
    tx.delete(type(pending), *pending.key_parts())


def _give_up(
    tx: Transaction, kind: TargetKind[P, T], pending: P, target: T, status: CopyStatus, failure: SourceFailed | None = None
) -> None:
    assert target.copy is not None
    tick = tx.tick(target.etag)
    ended = replace(target.copy, status=status, completed=tick)
    if failure is not None:
        ended = replace(ended, description=f"Copy failed when reading the source. {failure.message}", failure=_stored(failure))
    kind.put(tx, pending, target, replace(target, etag=tick, size=0, copy=ended))


def _stored(failure: SourceFailed) -> CopyFailure:
    """A source that changed has one code, whatever code the source itself answered."""
    status = failure.status.name if isinstance(failure.status, ErrorClass) else failure.status
    code = "PreconditionFailed" if failure.status is ErrorClass.PRECONDITION_FAILED else failure.code
    return CopyFailure(status=status, code=code)


def _forget(tx: Transaction, pending: PendingCopy) -> None:
    drop_content(tx, _content(pending))
    tx.delete(type(pending), *pending.key_parts())

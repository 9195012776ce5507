"""Shares: create, properties, metadata, access policies, statistics, delete, restore, list. `snapshots.py` has the snapshots."""

import heapq
from collections.abc import Callable, Iterator

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.files.attributes import FileAttributes
from verditer.core.guard import Guard
from verditer.core.lease import state_of
from verditer.core.limits import DEFAULT_QUOTA_GIB, MAX_METADATA, MAX_QUOTA_GIB
from verditer.core.names import AccountName, ShareName, check_metadata, check_queue_name
from verditer.core.records.container import AccessPolicy
from verditer.core.records.file import NFS, DeletedShare, FileEntry, Posix, Share, ShareSnapshot
from verditer.core.records.record import key_of, span_of, span_of_prefix, text_bytes
from verditer.core.records.tree import ROOT
from verditer.partition.engine import Transaction
from verditer.services.access import check_policies
from verditer.services.context import Context
from verditer.services.file.answers import ShareDeleted, SharePage, ShareState, ShareStatistics
from verditer.services.file.current import require_share
from verditer.services.file.permissions import root_permission
from verditer.services.file.properties import DIRECTORY_MODE
from verditer.services.file.usage import new_usage, usage_of
from verditer.services.markers import decode_marker, first_page
from verditer.services.removal import remove
from verditer.services.settings import settings_of

replace = msgspec.structs.replace
ShareChange = Callable[[Transaction, Share], Share]
_LAST = (1 << 64) - 1  # where the share itself stands in a listing: behind its snapshots


class ShareProperties(msgspec.Struct, frozen=True, kw_only=True):
    """What Create Share and Set Share Properties take. None leaves a property as it is."""

    quota_gib: int | None = None
    access_tier: str | None = None
    root_squash: str | None = None
    snapshot_directory: bool | None = None
    directory_lease: bool | None = None
    provisioned_iops: int | None = None
    provisioned_bandwidth_mibps: int | None = None
    paid_bursting: bool | None = None
    paid_bursting_iops: int | None = None
    paid_bursting_bandwidth_mibps: int | None = None


class CreateShare(ShareProperties, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}
    protocols: str = "SMB"


class GetShare(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None


class SetShareMetadata(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


class SetShareAcl(msgspec.Struct, frozen=True, kw_only=True):
    policies: tuple[AccessPolicy, ...] = ()


class DeleteShare(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    delete_snapshots: str | None = None  # "include" or "include-leased"


class RestoreShare(msgspec.Struct, frozen=True, kw_only=True):
    deleted_name: str
    deleted_version: int


class ListShares(msgspec.Struct, frozen=True, kw_only=True):
    prefix: str = ""
    marker: str = ""
    max_results: int = 5000
    include: frozenset[str] = frozenset()


async def create_share(ctx: Context, target: ShareName, request: CreateShare) -> ShareState:
    check_queue_name(target.share)
    check_metadata(request.metadata, MAX_METADATA)
    _check_properties(request, request.protocols)

    def commit(tx: Transaction) -> ShareState:
        if tx.get(Share, target.account, target.share) is not None:
            raise StorageError(Code.ShareAlreadyExists)
        tick = tx.tick()
        share = Share(
            account=target.account,
            name=target.share,
            id=tick,
            etag=tick,
            quota_gib=DEFAULT_QUOTA_GIB,
            access_tier_changed=tick,
            metadata=request.metadata,
            protocols=request.protocols,
        )
        share = _with_properties(share, request, tick)
        tx.put(share)
        tx.put(_root(tx, share, tick))
        tx.put(*new_usage(share.id))
        return ShareState(share=share, now=tx.now)

    return await ctx.engine.write([target.scope], commit)


def _root(tx: Transaction, share: Share, tick: int) -> FileEntry:
    """The root directory of a new share."""
    is_nfs = share.protocols == NFS
    return FileEntry(
        tree_id=share.id,
        parent_id=ROOT,
        folded="",
        name="",
        node_id=ROOT,
        is_directory=True,
        epoch=0,
        etag=tick,
        created=tick,
        written=tick,
        changed=tick,
        attributes=0 if is_nfs else int(FileAttributes.DIRECTORY),
        permission_key=None if is_nfs else root_permission(tx, share.id),
        posix=Posix(mode=DIRECTORY_MODE) if is_nfs else None,
    )


async def get_share(ctx: Context, target: ShareName, request: GetShare, guard: Guard) -> ShareState:
    """Properties, metadata and access policies are all in the one record."""

    def read(tx: Transaction) -> ShareState:
        share = require_share(tx, target, request.snapshot)
        guard.check(share, tx.now)
        return ShareState(share=share, now=tx.now)

    return await ctx.engine.read(target.scope, read)


async def get_share_acl(ctx: Context, target: ShareName, guard: Guard) -> ShareState:
    return await get_share(ctx, target, GetShare(), guard)


async def get_share_statistics(ctx: Context, target: ShareName, guard: Guard) -> ShareStatistics:
    def read(tx: Transaction) -> ShareStatistics:
        share = require_share(tx, target)
        guard.check(share, tx.now)
        return ShareStatistics(share=share, usage_bytes=usage_of(tx, share.id))

    return await ctx.engine.read(target.scope, read)


async def set_share_properties(ctx: Context, target: ShareName, request: ShareProperties, guard: Guard) -> ShareState:
    def change(tx: Transaction, share: Share) -> Share:
        _check_properties(request, share.protocols)
        return _with_properties(share, request, tx.now)

    return await _update(ctx, target, guard, change)


async def set_share_metadata(ctx: Context, target: ShareName, request: SetShareMetadata, guard: Guard) -> ShareState:
    check_metadata(request.metadata, MAX_METADATA)
    return await _update(ctx, target, guard, lambda _, share: replace(share, metadata=request.metadata))


async def set_share_acl(ctx: Context, target: ShareName, request: SetShareAcl, guard: Guard) -> ShareState:
    check_policies(request.policies)
    return await _update(ctx, target, guard, lambda _, share: replace(share, policies=request.policies))


async def _update(ctx: Context, target: ShareName, guard: Guard, change: ShareChange) -> ShareState:
    def commit(tx: Transaction) -> ShareState:
        share = require_share(tx, target)
        guard.check(share, tx.now)
        updated = replace(change(tx, share), etag=tx.tick(share.etag))
        tx.put(updated)
        return ShareState(share=updated, now=tx.now)

    return await ctx.engine.write([target.scope], commit)


async def delete_share(ctx: Context, target: ShareName, request: DeleteShare, guard: Guard) -> ShareDeleted:
    """Remove a snapshot, or the share with its snapshots. What the share held is removed by the collector, or stays for the
    retention of soft delete, where only Restore Share finds it."""

    def commit(tx: Transaction) -> ShareDeleted:
        share = require_share(tx, target, request.snapshot)
        guard.check(share, tx.now)
        if isinstance(share, ShareSnapshot):
            remove(tx, share)
            return ShareDeleted(usage_bytes=None)
        _check_snapshots(tx, share, request.delete_snapshots)
        deleted = ShareDeleted(usage_bytes=usage_of(tx, share.id))
        retention = seconds(settings_of(tx, target.account).share_soft_delete_days * 86400)
        if not retention:
            remove(tx, share)
        else:
            tx.delete(Share, target.account, target.share)
            fields = msgspec.structs.asdict(share) | {"lease": None}
            tx.put(DeletedShare(**fields, version=tx.tick(share.etag), expires=tx.now + retention))
        return deleted

    return await ctx.engine.write([target.scope], commit)


def _check_snapshots(tx: Transaction, share: Share, delete_snapshots: str | None) -> None:
    """A share with snapshots is deleted only when the request says so; a leased snapshot needs the stronger word."""
    for snapshot in tx.scan(ShareSnapshot, span_of(share.id)):
        if delete_snapshots is None:
            raise StorageError(Code.ShareHasSnapshots)
        if delete_snapshots == "include" and state_of(snapshot.lease, tx.now).is_locked:
            raise StorageError(Code.ShareLeaseIdMissing)


async def restore_share(ctx: Context, target: ShareName, request: RestoreShare) -> ShareState:
    if request.deleted_name != target.share:
        raise StorageError(Code.InvalidHeaderValue, field="deleted_share_name", value=request.deleted_name)

    def commit(tx: Transaction) -> ShareState:
        deleted = tx.get(DeletedShare, target.account, target.share, request.deleted_version)
        if deleted is None or deleted.expires <= tx.now:
            raise StorageError(Code.ShareNotFound)
        if tx.get(Share, target.account, target.share) is not None:
            raise StorageError(Code.ShareAlreadyExists)
        share = Share(**{name: getattr(deleted, name) for name in Share.__struct_fields__})
        tx.put(share)
        tx.delete(DeletedShare, deleted.account, deleted.name, deleted.version)
        return ShareState(share=share, now=tx.now)

    return await ctx.engine.write([target.scope], commit)


async def list_shares(ctx: Context, target: AccountName, request: ListShares) -> SharePage:
    start = decode_marker(request.marker) if request.marker else b""

    def read(tx: Transaction) -> SharePage:
        page, marker = first_page(_shares(tx, target.account, request, start), request.max_results, _position)
        return SharePage(shares=page, next_marker=marker, now=tx.now)

    return await ctx.engine.read(target.scope, read, long=True)


def _shares(tx: Transaction, account: str, request: ListShares, start: bytes) -> Iterator[Share]:
    """By name; of one name the deleted shares first, in the order of their deletion, then snapshots, then the share."""
    span = span_of_prefix(account, prefix=request.prefix)
    if start:
        span = span.starting(key_of(account) + start[:-10])
    found: Iterator[Share] = iter(tx.scan(Share, span))
    if "snapshots" in request.include:
        found = _with_snapshots(tx, found)
    if "deleted" in request.include:
        deleted = (share for share in tx.scan(DeletedShare, span) if share.expires > tx.now)
        found = heapq.merge(found, deleted, key=_position)
    return (share for share in found if _position(share) >= start)


def _with_snapshots(tx: Transaction, shares: Iterator[Share]) -> Iterator[Share]:
    for share in shares:
        yield from tx.scan(ShareSnapshot, span_of(share.id))
        yield share


def _position(share: Share) -> bytes:
    """Where a share stands in a listing: name, then kind and tick, nine bytes in all."""
    if isinstance(share, DeletedShare):
        kind, tick = 0, share.version
    elif isinstance(share, ShareSnapshot):
        kind, tick = 1, share.snapshot
    else:
        kind, tick = 2, 0
    return text_bytes(share.name) + b"\0" + bytes([kind]) + tick.to_bytes(8, "big")


def _check_properties(request: ShareProperties, protocols: str) -> None:
    if request.quota_gib is not None and not 1 <= request.quota_gib <= MAX_QUOTA_GIB:
        raise StorageError(Code.InvalidHeaderValue, field="quota_gib", value=str(request.quota_gib))
    if protocols != NFS and request.root_squash is not None:
        raise StorageError(Code.InvalidHeaderValue, field="root_squash", value=request.root_squash)


def _with_properties(share: Share, request: ShareProperties, now: int) -> Share:
    given = {
        name: value
        for name in ("quota_gib", "access_tier", "root_squash", "snapshot_directory", "directory_lease")
        if (value := getattr(request, name)) is not None
    }
    if request.access_tier is not None and request.access_tier != share.access_tier:
        given["access_tier_changed"] = now
    figures = {
        "iops": request.provisioned_iops,
        "bandwidth_mibps": request.provisioned_bandwidth_mibps,
        "paid_bursting": request.paid_bursting,
        "paid_bursting_iops": request.paid_bursting_iops,
        "paid_bursting_bandwidth_mibps": request.paid_bursting_bandwidth_mibps,
    }
    provisioning = replace(share.provisioning, **{name: value for name, value in figures.items() if value is not None})
    return replace(share, provisioning=provisioning, **given)

"""What all blob types have in common: properties, metadata, snapshot, delete."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import Alteration
from verditer.core.limits import MAX_METADATA
from verditer.core.names import BlobName, check_metadata
from verditer.core.records.blob import Blob, BlobVersion, Block, Snapshot, StagedBlob
from verditer.core.records.container import Container, HistoryPolicy
from verditer.core.records.record import span_of
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlobState, Removed, Written
from verditer.services.blob.current import current_and_staged, require_blob, require_container, require_current, require_state
from verditer.services.blob.encryption import EncryptionRequest, check_key, opened, sealed, shown_encryption
from verditer.services.blob.history import delete_snapshot_state, delete_version_state, keep_version, retire_deleted
from verditer.services.blob.protection import check_alterable
from verditer.services.blob.tags import index_tags
from verditer.services.content.layout import snapshot_content
from verditer.services.context import Context
from verditer.services.removal import remove

replace = msgspec.structs.replace


class GetBlobProperties(EncryptionRequest, frozen=True, kw_only=True):
    snapshot: int | None = None
    version_id: int | None = None


class SetBlobProperties(EncryptionRequest, frozen=True, kw_only=True):
    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    blob_content_md5: bytes | None = None


CONTENT_PROPERTIES = tuple(
    name for name in SetBlobProperties.__struct_fields__ if name not in EncryptionRequest.__struct_fields__
)


class SetBlobMetadata(EncryptionRequest, frozen=True, kw_only=True):
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


class SnapshotBlob(EncryptionRequest, frozen=True, kw_only=True):
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


class DeleteBlob(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    delete_snapshots: str | None = None  # "include" or "only"


class DeleteVersion(msgspec.Struct, frozen=True, kw_only=True):
    version_id: int


async def get_properties(ctx: Context, target: BlobName, request: GetBlobProperties, guard: Guard) -> BlobState:
    def look(tx: Transaction) -> BlobState:
        container, blob = require_state(tx, target, request.snapshot, request.version_id)
        guard.check(blob, tx.now)
        check_key(blob, request)
        return BlobState(blob=opened(blob, request), settings=container.blob_settings, now=tx.now)

    return await ctx.engine.read(target.scope, look)


async def set_properties(ctx: Context, target: BlobName, request: SetBlobProperties, guard: Guard) -> Written:
    """The content properties are set together: those that the request omits are cleared. This creates no version."""

    def commit(tx: Transaction) -> Written:
        _, blob = _writable(tx, target, guard)
        updated = replace(with_content_properties(blob, request), etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now))
        tx.put(updated)
        return Written(etag=updated.etag, sequence_number=updated.sequence_number)

    return await ctx.engine.write([target.scope], commit)


def with_content_properties(blob: Blob, request: SetBlobProperties) -> Blob:
    return replace(
        blob,
        content_type=request.content_type or "application/octet-stream",
        content_encoding=request.content_encoding,
        content_language=request.content_language,
        content_disposition=request.content_disposition,
        cache_control=request.cache_control,
        content_md5=request.blob_content_md5,
        copy=None,  # the blob is no longer what was copied
    )


async def set_metadata(ctx: Context, target: BlobName, request: SetBlobMetadata, guard: Guard) -> Written:
    """With versioning, the previous state is kept as a version."""
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        container, blob = _writable(tx, target, guard)
        check_key(blob, request)
        tick = tx.tick(blob.etag)
        current = keep_version(tx, container.history_policy, blob, tick)
        updated = replace(current, metadata=request.metadata, etag=tick, lease=guard.lease_after(blob, tx.now))
        updated = sealed(updated, request)
        tx.put(updated)
        return Written(etag=tick, version_id=updated.version_id, encryption=shown_encryption(updated))

    return await ctx.engine.write([target.scope], commit)


def _writable(tx: Transaction, target: BlobName, guard: Guard) -> tuple[Container, Blob]:
    container, blob = require_current(tx, target)
    guard.check(blob, tx.now)
    check_online(blob, tx.now)
    check_alterable(container, blob, Alteration.CHANGE, tx.now)
    return container, blob


async def snapshot_blob(ctx: Context, target: BlobName, request: SnapshotBlob, guard: Guard) -> Written:
    """A snapshot is a record of its own. Without new metadata it keeps the blob's ETag and Last-Modified.

    With versioning the blob also begins a new version, and still keeps its ETag. Without versioning a version stays current: a
    snapshot does not change the blob, and a state without version id may only follow a change (`BlobVersion` ids are unique).
    """
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        container, blob = require_current(tx, target)
        guard.check(blob, tx.now)
        check_online(blob, tx.now)
        check_key(blob, request)
        tick = tx.tick(blob.etag)
        live, frozen = snapshot_content(tx, blob, tick)
        rare = replace(blob.rare, policy=None, legal_hold=False, expires=None) if blob.rare is not None else None
        fields = msgspec.structs.asdict(blob) | frozen.fields()
        fields |= {"lease": None, "version_id": None, "snapshot": tick, "rare": rare}
        if request.metadata:
            fields |= {"metadata": request.metadata, "etag": tick}
        snapshot = Snapshot(**fields)
        if request.metadata:
            snapshot = sealed(snapshot, request)
        tx.put(snapshot)
        current = replace(blob, **live.fields())
        if container.history_policy.versioning:
            current = keep_version(tx, container.history_policy, current, tx.tick(tick))
        if current != blob:
            tx.put(current)
        return Written(etag=snapshot.etag, snapshot=tick, version_id=current.version_id)

    return await ctx.engine.write([target.scope], commit)


async def delete_blob(ctx: Context, target: BlobName, request: DeleteBlob, guard: Guard) -> Removed:
    if request.snapshot is not None and request.delete_snapshots is not None:
        reason = "{delete_snapshots} does not go with a snapshot."
        raise StorageError(Code.InvalidQueryParameterValue, field="snapshot", value="", reason=reason)

    def commit(tx: Transaction) -> Removed:
        if request.snapshot is not None:
            return _delete_snapshot(tx, target, request.snapshot, guard)
        if _delete_uncommitted(tx, target, guard):
            return Removed(permanent=True)
        return _delete_base(tx, target, request.delete_snapshots, guard)

    return await ctx.engine.write([target.scope], commit)


async def delete_version(ctx: Context, target: BlobName, request: DeleteVersion, guard: Guard) -> Removed:
    """Delete a previous version. The current version is the blob itself and is deleted by Delete Blob."""

    def commit(tx: Transaction) -> Removed:
        version = require_blob(tx, target, version_id=request.version_id)
        if not isinstance(version, BlobVersion):
            raise StorageError(Code.OperationNotAllowedOnRootBlob)
        guard.check(version, tx.now)
        container = require_container(tx, target)
        check_alterable(container, version, Alteration.DELETE, tx.now)
        return Removed(permanent=delete_version_state(tx, target, container.history_policy, version))

    return await ctx.engine.write([target.scope], commit)


def _delete_snapshot(tx: Transaction, target: BlobName, snapshot: int, guard: Guard) -> Removed:
    blob = require_blob(tx, target, snapshot)
    assert isinstance(blob, Snapshot)
    guard.check(blob, tx.now)
    container = require_container(tx, target)
    check_alterable(container, blob, Alteration.DELETE, tx.now)
    return Removed(permanent=delete_snapshot_state(tx, target, container.history_policy, blob))


def _delete_uncommitted(tx: Transaction, target: BlobName, guard: Guard) -> bool:
    """A blob that has only uncommitted blocks can be deleted as well (since 2013-08-15)."""
    _, blob, staged = current_and_staged(tx, target)
    if blob is not None or staged is None:
        return False
    guard.check(None, tx.now)
    drop_staged(tx, staged)
    return True


def _delete_base(tx: Transaction, target: BlobName, delete_snapshots: str | None, guard: Guard) -> Removed:
    container, blob = require_current(tx, target)
    guard.check(blob, tx.now)
    span = span_of(blob.container_id, blob.name)
    if delete_snapshots is None and next(tx.scan(Snapshot, span, limit=1), None) is not None:
        raise StorageError(Code.SnapshotsPresent)
    history_policy = container.history_policy
    snapshots = list(tx.scan(Snapshot, span))
    for state in snapshots if delete_snapshots == "only" else [*snapshots, blob]:
        check_alterable(container, state, Alteration.DELETE, tx.now)
    gone = [delete_snapshot_state(tx, target, history_policy, snapshot) for snapshot in snapshots]
    if delete_snapshots != "only":
        gone.append(_remove_blob(tx, target, history_policy, blob))
    return Removed(permanent=all(gone))


def _remove_blob(tx: Transaction, target: BlobName, history_policy: HistoryPolicy, blob: Blob) -> bool:
    """Returns True when nothing of the blob is kept."""
    gone = retire_deleted(tx, target, history_policy, blob)
    index_tags(tx, blob, None)
    discard_staged(tx, blob.container_id, blob.name)
    tx.delete(Blob, blob.container_id, blob.name)
    return gone


def discard_staged(tx: Transaction, container_id: int, name: str, reused: frozenset[str] = frozenset()) -> None:
    """Drop all uncommitted blocks of a blob. Extents in `reused` belong to the committed blob from now on and are kept."""
    staged = tx.get(StagedBlob, container_id, name)
    if staged is not None:
        drop_staged(tx, staged, reused)


def drop_staged(tx: Transaction, staged: StagedBlob, reused: frozenset[str] = frozenset()) -> None:
    for block in list(tx.scan(Block, span_of(staged.container_id, staged.name))):
        if block.extent in reused:
            tx.delete(Block, *block.key_parts())
        else:
            remove(tx, block)
    tx.delete(StagedBlob, staged.container_id, staged.name)

"""Immutability policies, legal holds and incremental copies: which requests may change a blob, and the operations on policies.

Every operation that replaces, changes or deletes a blob calls `check_alterable` inside its transaction. The rules are in
`core/immutability.py`. Policies and holds change neither ETag nor Last-Modified.
"""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import (
    Alteration,
    ContainerProtection,
    ImmutabilityPolicy,
    changed_policy,
    check_alteration,
    check_policy_removal,
)
from verditer.core.names import BlobName
from verditer.core.records.blob import NO_RARE_PROPERTIES, Blob, BlobVersion, Snapshot
from verditer.core.records.container import Container
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.blob.current import require_state
from verditer.services.context import Context

replace = msgspec.structs.replace
MAX_RETENTION_DAYS = 146_000  # about 400 years, as on Azure
MAX_LEGAL_HOLDS = 10  # tags on a container, as on Azure


class SetImmutabilityPolicy(msgspec.Struct, frozen=True, kw_only=True):
    immutable_until: int
    immutable_mode: str = "unlocked"
    snapshot: int | None = None
    version_id: int | None = None


class DeleteImmutabilityPolicy(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    version_id: int | None = None


class SetLegalHold(msgspec.Struct, frozen=True, kw_only=True):
    legal_hold: bool
    snapshot: int | None = None
    version_id: int | None = None


class PolicySet(msgspec.Struct, frozen=True, kw_only=True):
    policy: ImmutabilityPolicy


class HoldSet(msgspec.Struct, frozen=True, kw_only=True):
    legal_hold: bool


def check_alterable(container: Container, blob: Blob | None, alteration: Alteration, now: int) -> None:
    """Raise StorageError when the blob is protected. Most containers and blobs have nothing that could protect them."""
    if blob is None or (container.protection is None and blob.rare is None):
        return
    if blob.rare is not None and blob.rare.incremental is not None and type(blob) is Blob and alteration is not Alteration.DELETE:
        raise StorageError(Code.OperationNotAllowedOnIncrementalCopyBlob)
    stays = type(blob) is Blob and (container.history_policy.versioning or blob.version_id is not None)
    check_alteration(container.protection, blob, alteration, now, stays_as_version=stays)


def check_deletable(tx: Transaction, container: Container) -> None:
    """Delete Container: a container with a legal hold stays, and one with a policy or with version level immutability as long as
    it has blobs. Microsoft's page: Immutable storage for blobs, "Container protection"."""
    protection = container.protection
    if protection is None:
        return
    if protection.legal_holds:
        raise StorageError(Code.ContainerHasLegalHold)
    kinds = (Blob, BlobVersion, Snapshot)
    if any(next(tx.scan(kind, span_of(container.id), limit=1), None) is not None for kind in kinds):
        raise StorageError(_why_not_deletable(protection))


def _why_not_deletable(protection: ContainerProtection) -> Code:
    if protection.locked:
        return Code.ContainerImmutabilityPolicyLocked
    return Code.ContainerImmutableStorageWithVersioningEnabled if protection.version_level else Code.ContainerImmutableDueToPolicy


def protected(container: Container, blob: Blob, policy: ImmutabilityPolicy | None, now: int, *, legal_hold: bool | None) -> Blob:
    """A new blob with the policy and the hold that its request asks for."""
    if policy is None and legal_hold is None:
        return blob
    _check_version_level(container)
    rare = blob.rare or NO_RARE_PROPERTIES
    if policy is not None:
        rare = replace(rare, policy=changed_policy(None, policy, now))
    return replace(blob, rare=replace(rare, legal_hold=bool(legal_hold)))


def policy_of(until: int | None, mode: str | None) -> ImmutabilityPolicy | None:
    """The policy that the headers of a request describe."""
    if until is None:
        if mode is not None:
            raise StorageError(Code.MissingRequiredHeader, field="immutable_until")
        return None
    return ImmutabilityPolicy(until=until, locked=mode == "locked")


async def set_policy(ctx: Context, target: BlobName, request: SetImmutabilityPolicy, guard: Guard) -> PolicySet:
    wanted = ImmutabilityPolicy(until=request.immutable_until, locked=request.immutable_mode == "locked")

    def commit(tx: Transaction) -> PolicySet:
        blob = _protectable(tx, target, guard, request.snapshot, request.version_id)
        policy = changed_policy(blob.policy, wanted, tx.now)
        tx.put(replace(blob, rare=replace(blob.rare or NO_RARE_PROPERTIES, policy=policy)))
        return PolicySet(policy=policy)

    return await ctx.engine.write([target.scope], commit)


async def delete_policy(ctx: Context, target: BlobName, request: DeleteImmutabilityPolicy, guard: Guard) -> None:
    def commit(tx: Transaction) -> None:
        blob = _protectable(tx, target, guard, request.snapshot, request.version_id)
        check_policy_removal(blob.policy)
        if blob.rare is not None:
            tx.put(replace(blob, rare=replace(blob.rare, policy=None)))

    await ctx.engine.write([target.scope], commit)


async def set_legal_hold(ctx: Context, target: BlobName, request: SetLegalHold, guard: Guard) -> HoldSet:
    def commit(tx: Transaction) -> HoldSet:
        blob = _protectable(tx, target, guard, request.snapshot, request.version_id)
        tx.put(replace(blob, rare=replace(blob.rare or NO_RARE_PROPERTIES, legal_hold=request.legal_hold)))
        return HoldSet(legal_hold=request.legal_hold)

    return await ctx.engine.write([target.scope], commit)


def _protectable(tx: Transaction, target: BlobName, guard: Guard, snapshot: int | None, version_id: int | None) -> Blob:
    container, blob = require_state(tx, target, snapshot, version_id)
    guard.check(blob, tx.now)
    _check_version_level(container)
    return blob


def _check_version_level(container: Container) -> None:
    if container.protection is None or not container.protection.version_level:
        raise StorageError(Code.BlobOperationNotSupported)


class ProtectContainer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the control plane of Azure sets for a container. None leaves a value unchanged."""

    version_level_immutability: bool | None = None
    immutability_days: int | None = None
    locked: bool | None = None
    allow_protected_append_writes: bool | None = None
    legal_holds: tuple[str, ...] | None = None


def protection_after(current: ContainerProtection, request: ProtectContainer) -> ContainerProtection:
    """A locked policy can be extended and nothing else; version level immutability stays once it is enabled."""
    days = request.immutability_days if request.immutability_days is not None else current.retention_days
    locked = request.locked if request.locked is not None else current.locked
    if not 0 <= days <= MAX_RETENTION_DAYS or (locked and not days):
        raise StorageError(Code.InvalidInput)
    if current.locked and (days < current.retention_days or not locked):
        raise StorageError(Code.ContainerImmutableDueToPolicy)
    if current.version_level and request.version_level_immutability is False:
        raise StorageError(Code.ContainerImmutableDueToPolicy)
    appends = request.allow_protected_append_writes
    return ContainerProtection(
        version_level=current.version_level or bool(request.version_level_immutability),
        retention_days=days,
        locked=locked,
        allows_append=current.allows_append if appends is None else appends,
        legal_holds=current.legal_holds if request.legal_holds is None else request.legal_holds[:MAX_LEGAL_HOLDS],
    )


def protection_as_set(protection: ContainerProtection) -> ProtectContainer:
    """The same in the words of the request that sets it."""
    return ProtectContainer(
        version_level_immutability=protection.version_level,
        immutability_days=protection.retention_days,
        locked=protection.locked,
        allow_protected_append_writes=protection.allows_append,
        legal_holds=protection.legal_holds,
    )

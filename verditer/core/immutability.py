"""Immutable blobs: policies and legal holds of versions and of containers, and which changes they refuse.

A policy protects until a moment, and the caller passes the present one. A locked policy can only be extended. Microsoft's pages:
Immutable storage for blobs; Set Blob Immutability Policy; Set Blob Legal Hold.
"""

from enum import Enum
from typing import Protocol

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError

DAY = seconds(86400)


class ImmutabilityPolicy(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Of one version of a blob: it cannot be changed or deleted until this moment."""

    until: int
    locked: bool = False

    @property
    def mode(self) -> str:
        return "locked" if self.locked else "unlocked"


class ContainerProtection(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What the control plane of Azure sets for a container. Each of its blobs is protected for `retention_days` after it was
    made, and all of them while there is a legal hold."""

    version_level: bool = False  # policies and legal holds of single versions are allowed
    retention_days: int = 0  # 0: no policy
    locked: bool = False
    allows_append: bool = False  # protected append blobs can grow
    legal_holds: tuple[str, ...] = ()  # tags

    @property
    def has_policy(self) -> bool:
        return self.retention_days > 0


class Alteration(Enum):
    """How a request would change a blob."""

    REPLACE = "replace it with a new blob"
    CHANGE = "change it in place"
    APPEND = "append to it"
    DELETE = "delete it"


class Protectable(Protocol):
    @property
    def created(self) -> int: ...

    @property
    def policy(self) -> ImmutabilityPolicy | None: ...

    @property
    def legal_hold(self) -> bool: ...


def check_alteration(
    protection: ContainerProtection | None, blob: Protectable, alteration: Alteration, now: int, *, stays_as_version: bool
) -> None:
    """Raise StorageError for a change that a policy or a legal hold refuses. `stays_as_version`: the present state becomes a
    previous version, which keeps its own protection, so a policy of the version refuses nothing."""
    if protection is not None:
        if protection.legal_holds:
            raise StorageError(Code.BlobImmutableDueToLegalHold)
        grows = alteration is Alteration.APPEND and protection.allows_append
        if protection.has_policy and now < blob.created + protection.retention_days * DAY and not grows:
            raise StorageError(Code.BlobImmutableDueToPolicy)
    if stays_as_version and alteration in (Alteration.REPLACE, Alteration.DELETE):
        return
    if blob.legal_hold:
        raise StorageError(Code.BlobImmutableDueToLegalHold)
    if blob.policy is not None and now < blob.policy.until:
        raise StorageError(Code.BlobImmutableDueToPolicy)


def changed_policy(current: ImmutabilityPolicy | None, wanted: ImmutabilityPolicy, now: int) -> ImmutabilityPolicy:
    """Set Blob Immutability Policy. A locked policy stays locked and may only end later."""
    if wanted.until <= now:
        raise StorageError(Code.InvalidHeaderValue, field="immutable_until", value="")
    if current is not None and current.locked and (not wanted.locked or wanted.until < current.until):
        raise StorageError(Code.BlobImmutableDueToPolicy)
    return wanted


def check_policy_removal(current: ImmutabilityPolicy | None) -> None:
    """Delete Blob Immutability Policy: a locked policy stays, even after it has ended."""
    if current is not None and current.locked:
        raise StorageError(Code.BlobImmutableDueToPolicy)

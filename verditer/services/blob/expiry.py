"""Blobs that expire (Set Blob Expiry), and the other lasting properties that a request may give a new blob.

Blobs expire in accounts with a hierarchical namespace only, as on Azure. From its time on no request finds the blob
(`current.py`), and the collector removes it (`BlobExpiry`).
"""

from typing import NamedTuple

import msgspec

from verditer.core.dates import MAX_TICKS, TICKS_PER_SECOND
from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import Alteration, ImmutabilityPolicy
from verditer.core.names import BlobName
from verditer.core.records.blob import NO_RARE_PROPERTIES, Blob, BlobExpiry
from verditer.core.records.container import Container
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.current import require_container, require_current
from verditer.services.blob.encryption import EncryptionRequest
from verditer.services.blob.protection import check_alterable, policy_of, protected
from verditer.services.context import Context
from verditer.services.removal import remove

replace = msgspec.structs.replace
TICKS_PER_MILLISECOND = TICKS_PER_SECOND // 1000
NEVER, SINCE_CREATION, FROM_NOW, ABSOLUTE = "neverexpire", "relativetocreation", "relativetonow", "absolute"
OPTIONS = frozenset({NEVER, SINCE_CREATION, FROM_NOW, ABSOLUTE})


class SetExpiry(msgspec.Struct, frozen=True, kw_only=True):
    """The relative options count milliseconds, the absolute one names a moment."""

    expiry_option: str
    expiry_milliseconds: int | None = None
    expiry_date: int | None = None


class LastingRequest(EncryptionRequest, frozen=True, kw_only=True):
    """What a request that makes a blob may say about how long it stays."""

    immutable_until: int | None = None
    immutable_mode: str | None = None
    legal_hold: bool | None = None
    expiry_option: str | None = None
    expiry_milliseconds: int | None = None
    expiry_date: int | None = None

    @property
    def lasting(self) -> "LastingProperties | None":
        """None for most requests."""
        given = (self.immutable_until, self.immutable_mode, self.legal_hold, self.expiry_option)
        if given == _NOTHING_LASTING:
            return None
        expiry = None
        if self.expiry_option is not None:
            expiry = SetExpiry(
                expiry_option=self.expiry_option, expiry_milliseconds=self.expiry_milliseconds, expiry_date=self.expiry_date
            )
        return LastingProperties(policy_of(self.immutable_until, self.immutable_mode), self.legal_hold, expiry)


_NOTHING_LASTING = (None, None, None, None)


class LastingProperties(NamedTuple):
    """The policy, hold and expiry of a new blob."""

    policy: ImmutabilityPolicy | None = None
    legal_hold: bool | None = None
    expiry: SetExpiry | None = None

    def applied(self, tx: Transaction, container: Container, target: BlobName, blob: Blob) -> Blob:
        """The blob with these properties. `blob` is about to be put."""
        blob = protected(container, blob, self.policy, tx.now, legal_hold=self.legal_hold)
        return blob if self.expiry is None else _expiring(tx, container, target, blob, self.expiry)


async def set_expiry(ctx: Context, target: BlobName, request: SetExpiry, guard: Guard) -> Written:
    def commit(tx: Transaction) -> Written:
        _check_hierarchical(require_container(tx, target))  # also where the blob is missing
        container, blob = require_current(tx, target)
        guard.check(blob, tx.now)
        check_alterable(container, blob, Alteration.CHANGE, tx.now)
        changed = _expiring(tx, container, target, blob, request)
        changed = replace(changed, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now))
        tx.put(changed)
        return Written(etag=changed.etag)

    return await ctx.engine.write([target.scope], commit)


def _check_hierarchical(container: Container) -> None:
    if not container.blob_settings.hierarchical:
        raise StorageError(Code.HierarchicalNamespaceNotEnabled)


def _expiring(tx: Transaction, container: Container, target: BlobName, blob: Blob, request: SetExpiry) -> Blob:
    _check_hierarchical(container)
    expires = _moment(blob, request, tx.now)
    if expires is None:
        tx.delete(BlobExpiry, container.id, target.blob)
    else:
        tx.put(BlobExpiry(container_id=container.id, name=target.blob, expires=expires, scope=target.scope))
    return replace(blob, rare=replace(blob.rare or NO_RARE_PROPERTIES, expires=expires))


def _moment(blob: Blob, request: SetExpiry, now: int) -> int | None:
    option = request.expiry_option
    if option == NEVER:
        return None
    if option == ABSOLUTE:
        moment = request.expiry_date
    elif request.expiry_milliseconds is None:
        moment = None
    else:
        since = blob.created if option == SINCE_CREATION else now
        moment = since + request.expiry_milliseconds * TICKS_PER_MILLISECOND
    if moment is None:
        raise StorageError(Code.MissingRequiredHeader, field="expiry_date")
    if not now < moment <= MAX_TICKS:  # it would be gone at once, or has no date
        raise StorageError(Code.InvalidHeaderValue, field="expiry_date", value="")
    return moment


def drop_expired(tx: Transaction, container: Container, target: BlobName) -> None:
    """Remove the blob of this name if it has expired, so that another one can be put."""
    if container.blob_settings.hierarchical:
        blob = tx.get(Blob, container.id, target.blob)
        if blob is not None and blob.is_expired(tx.now):
            remove(tx, blob)

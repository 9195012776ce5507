"""The guard: whether a request may read or change the record it names.

An operation's row names a `GuardRule`; the front end makes a `Guard` of the rule and the request; the service calls `check` on
the current record, early and again inside the transaction that writes (contract G5). The order of the checks is measured on
Azure: the right to overwrite, the lease, the conditions.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import msgspec

from verditer.core import conditions as cond
from verditer.core.conditions import ConditionRule, Conditions, Guarded
from verditer.core.errors import Code, StorageError
from verditer.core.lease import Lease, LeaseState, state_of


class LeaseRule(Enum):
    IF_LEASED = "a leased object requires its lease id (W)"
    IF_GIVEN = "a lease id that is sent has to match (R)"
    NOT_USED = "leases do not matter here"


class SentLeaseId(Enum):
    """How the lease id of the request compares with the one that the record stores."""

    HOLDER = "the stored id"
    OTHER = "another id"
    NOTHING = "no id"


class LeaseRefusal(Enum):
    MISSING = "leased, and no id was sent"
    MISMATCH = "leased by another id"
    ABSENT = "an id was sent, and there is no lease"
    LOST = "the id was sent of a lease that has ended"


IF_LEASED, IF_GIVEN, NOT_USED = LeaseRule
HOLDER, OTHER, NOTHING = SentLeaseId
MISSING, MISMATCH, ABSENT, LOST = LeaseRefusal
OK = None

# Lease Blob and Lease Container, "Outcomes of use attempts on blobs / containers by lease state".
# fmt: off
_USES: dict[tuple[LeaseRule, SentLeaseId], tuple[LeaseRefusal | None, ...]] = {
    #                       AVAILABLE LEASED    BREAKING  BROKEN  EXPIRED
    (IF_LEASED, HOLDER):  ( ABSENT,   OK,       OK,       LOST,   LOST   ),
    (IF_LEASED, OTHER):   ( ABSENT,   MISMATCH, MISMATCH, ABSENT, ABSENT ),
    (IF_LEASED, NOTHING): ( OK,       MISSING,  MISSING,  OK,     OK     ),
    (IF_GIVEN,  HOLDER):  ( ABSENT,   OK,       OK,       LOST,   LOST   ),
    (IF_GIVEN,  OTHER):   ( ABSENT,   MISMATCH, MISMATCH, ABSENT, ABSENT ),
    (IF_GIVEN,  NOTHING): ( OK,       OK,       OK,       OK,     OK     ),
}

USES: dict[tuple[LeaseRule, SentLeaseId, LeaseState], LeaseRefusal | None] = {
    (rule, sent, state): refusal
    for (rule, sent), refusals in _USES.items()
    for state, refusal in zip(LeaseState, refusals, strict=True)
}

_CODES = {
    ("blob",      MISSING):  Code.LeaseIdMissing,
    ("blob",      MISMATCH): Code.LeaseIdMismatchWithBlobOperation,
    ("blob",      ABSENT):   Code.LeaseNotPresentWithBlobOperation,
    ("blob",      LOST):     Code.LeaseLost,
    ("container", MISSING):  Code.ContainerLeaseIdMissing,
    ("container", MISMATCH): Code.LeaseIdMismatchWithContainerOperation,
    ("container", ABSENT):   Code.LeaseNotPresentWithContainerOperation,
    ("container", LOST):     Code.ContainerLeaseLost,
    ("file",      MISSING):  Code.FileLeaseIdMissing,
    ("file",      MISMATCH): Code.LeaseIdMismatchWithFileOperation,
    ("file",      ABSENT):   Code.LeaseNotPresentWithFileOperation,
    ("file",      LOST):     Code.LeaseNotPresentWithFileOperation,
    ("share",     MISSING):  Code.ShareLeaseIdMissing,
    ("share",     MISMATCH): Code.ShareLeaseIdMismatch,
    ("share",     ABSENT):   Code.ShareLeaseNotPresent,
    ("share",     LOST):     Code.ShareLeaseNotPresent,
}
# fmt: on


@dataclass(frozen=True, slots=True)
class GuardRule:
    """How an operation treats conditions and leases: one row of the table at the end of this module."""

    conditions: ConditionRule
    lease: LeaseRule
    noun: Literal["blob", "container", "file", "share"] = "blob"
    conditions_on: Literal["resource", "blob", "source"] = "resource"  # whose state the conditions are about
    refused_while_copying: bool = False  # refused while a copy into the blob is pending
    tier_conditions: bool = False  # also takes conditions on the age of the access tier


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    rule: GuardRule
    conditions: Conditions = cond.NONE
    lease_id: str | None = None
    create_only: bool = False  # the caller may create but not overwrite: a SAS with `c` alone

    def check(self, current: Guarded | None, now: int) -> None:
        """Raise StorageError when the request is not allowed. Where the object has to exist, the caller checks that first."""
        if self.create_only and current is not None:
            raise StorageError(Code.UnauthorizedBlobOverwrite)
        if self.rule.refused_while_copying and current is not None and current.copy_pending:
            raise StorageError(Code.PendingCopyOperation)
        lease = current.lease if current is not None else None
        if lease is not None or self.lease_id is not None:
            self._check_lease(lease, now)
        if self.conditions is not cond.NONE:
            holds_lease = self.lease_id is not None and self.rule.lease is not NOT_USED  # a wrong id was refused above
            cond.check(self.rule.conditions, self.conditions, current, holds_lease=holds_lease)

    def lease_after(self, current: Guarded | None, now: int) -> Lease | None:
        """The lease of the record that replaces `current`: a write drops the ended lease of a blob, not that of a container."""
        if current is None or current.lease is None:
            return None
        return current.lease if state_of(current.lease, now).is_locked or self.rule.noun in ("container", "share") else None

    def _check_lease(self, lease: Lease | None, now: int) -> None:
        if self.rule.lease is NOT_USED:
            return
        refusal = USES[self.rule.lease, self._sent(lease), state_of(lease, now)]
        if refusal is not None:
            raise StorageError(_CODES[self.rule.noun, refusal])

    def _sent(self, lease: Lease | None) -> SentLeaseId:
        if self.lease_id is None:
            return NOTHING
        return HOLDER if lease is not None and lease.id == self.lease_id else OTHER


# fmt: off
def _changing(conditions: ConditionRule, lease: LeaseRule, **more: Any) -> GuardRule:
    return GuardRule(conditions, lease, refused_while_copying=True, **more)


NONE               = GuardRule(ConditionRule.NOT_USED,           NOT_USED)
READ               = GuardRule(ConditionRule.READ,               IF_GIVEN)
CREATE             = _changing(ConditionRule.CREATE,             IF_LEASED)
UPDATE             = _changing(ConditionRule.UPDATE,             IF_LEASED)
DELETE             = _changing(ConditionRule.DELETE,             IF_LEASED, tier_conditions=True)
LEASE_ONLY         = _changing(ConditionRule.NOT_USED,           IF_LEASED)  # Put Block
LEASE              = _changing(ConditionRule.UPDATE,             NOT_USED)   # Lease Blob: lease.apply checks the id
SNAPSHOT           = _changing(ConditionRule.UPDATE,             IF_GIVEN)
SEAL               = _changing(ConditionRule.SEAL,               IF_LEASED)
COPY               = _changing(ConditionRule.COPY_TARGET,        IF_LEASED)
INCREMENTAL_COPY   = _changing(ConditionRule.INCREMENTAL,        NOT_USED)
COPY_SOURCE        = GuardRule(ConditionRule.COPY_SOURCE,        NOT_USED,  conditions_on="source")
SYNC_COPY_SOURCE   = GuardRule(ConditionRule.SYNC_COPY_SOURCE,   NOT_USED,  conditions_on="source")  # Copy Blob From URL
BLOB_SOURCE        = GuardRule(ConditionRule.BLOB_SOURCE,        NOT_USED,  conditions_on="source")  # Put Blob From URL
PART_SOURCE        = GuardRule(ConditionRule.PART_SOURCE,        NOT_USED,  conditions_on="source")  # the other ones "From URL"
ABORT_COPY         = GuardRule(ConditionRule.NOT_USED,           IF_LEASED)
TAGS_READ          = GuardRule(ConditionRule.UPDATE,             IF_GIVEN,  conditions_on="blob")
TAGS_WRITE         = _changing(ConditionRule.UPDATE,             IF_LEASED, conditions_on="blob")
IMMUTABILITY       = _changing(ConditionRule.UNMODIFIED_SINCE,   NOT_USED)
UNGUARDED_CHANGE   = _changing(ConditionRule.NOT_USED,           NOT_USED)
SET_TIER           = _changing(ConditionRule.TAGS_ONLY,          IF_GIVEN)
BLOCK_LIST_READ    = GuardRule(ConditionRule.TAGS_ONLY,          IF_GIVEN)
CONTAINER_READ     = GuardRule(ConditionRule.NOT_USED,           IF_GIVEN,  "container")
CONTAINER_WRITE    = GuardRule(ConditionRule.CONTAINER,          IF_GIVEN,  "container")
CONTAINER_METADATA = GuardRule(ConditionRule.CONTAINER_METADATA, IF_GIVEN,  "container")
CONTAINER_DELETE   = GuardRule(ConditionRule.CONTAINER,          IF_LEASED, "container")
CONTAINER_LEASE    = GuardRule(ConditionRule.CONTAINER,          NOT_USED,  "container")
FILE_READ          = GuardRule(ConditionRule.NOT_USED,           IF_GIVEN,  "file")
FILE_WRITE         = _changing(ConditionRule.NOT_USED,           IF_LEASED, noun="file")
FILE_ABORT_COPY    = GuardRule(ConditionRule.NOT_USED,           IF_LEASED, "file")
SHARE_READ         = GuardRule(ConditionRule.NOT_USED,           IF_GIVEN,  "share")
SHARE_WRITE        = GuardRule(ConditionRule.NOT_USED,           IF_LEASED, "share")
# fmt: on
NO_GUARD = Guard(rule=NONE)

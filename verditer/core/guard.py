"""The guard: whether a request may touch the record it is about to touch.

An operation's row names a `GuardRule`; the request fills it into a `Guard`; the service calls `check` on the current record,
early and again inside the transaction that writes (contract G5). The order is measured on Azure: the right to overwrite, the
lease, the conditions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import msgspec

from verditer.core import conditions as cond
from verditer.core.conditions import Conditions, Guarded, Kind
from verditer.core.errors import Code, StorageError
from verditer.core.lease import Lease, State, parse_lease_id, state_of


class LeaseRule(Enum):
    IF_LEASED = "a leased object asks for its lease id (W)"
    IF_GIVEN = "a lease id, when sent, has to match (R)"
    NOT_USED = "leases do not matter here"


class Sent(Enum):
    """The lease id of the request against the one the record remembers."""

    HOLDER = "the remembered id"
    OTHER = "another id"
    NOTHING = "no id"


class Refusal(Enum):
    MISSING = "leased, and no id was sent"
    MISMATCH = "leased by another id"
    ABSENT = "an id was sent, and there is no lease"
    LOST = "the id was sent of a lease that has ended"


IF_LEASED, IF_GIVEN, NOT_USED = LeaseRule
HOLDER, OTHER, NOTHING = Sent
MISSING, MISMATCH, ABSENT, LOST = Refusal
OK = None

# Lease Blob and Lease Container, "Outcomes of use attempts on blobs / containers by lease state".
# fmt: off
_USES: dict[tuple[LeaseRule, Sent], tuple[Refusal | None, ...]] = {
    #                       AVAILABLE LEASED    BREAKING  BROKEN  EXPIRED
    (IF_LEASED, HOLDER):  ( ABSENT,   OK,       OK,       LOST,   LOST   ),
    (IF_LEASED, OTHER):   ( ABSENT,   MISMATCH, MISMATCH, ABSENT, ABSENT ),
    (IF_LEASED, NOTHING): ( OK,       MISSING,  MISSING,  OK,     OK     ),
    (IF_GIVEN,  HOLDER):  ( ABSENT,   OK,       OK,       LOST,   LOST   ),
    (IF_GIVEN,  OTHER):   ( ABSENT,   MISMATCH, MISMATCH, ABSENT, ABSENT ),
    (IF_GIVEN,  NOTHING): ( OK,       OK,       OK,       OK,     OK     ),
}

USES: dict[tuple[LeaseRule, Sent, State], Refusal | None] = {
    (rule, sent, state): refusal
    for (rule, sent), refusals in _USES.items()
    for state, refusal in zip(State, refusals, strict=True)
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
}
# fmt: on


@dataclass(frozen=True, slots=True)
class GuardRule:
    conditions: Kind
    lease: LeaseRule
    noun: Literal["blob", "container"] = "blob"
    prefix: str = ""  # how the conditional headers are spelled: x-ms-blob-if-match, x-ms-source-if-match
    waits: bool = False  # refused while a copy into the blob is pending

    def guard(self, headers: Mapping[str, str], *, create_only: bool = False) -> "Guard":
        """This rule with what the request says, in lower-case headers; malformed or illegal headers are refused here."""
        if self is NONE and not create_only:
            return NO_GUARD  # what queues and tables have
        conditions = cond.NONE
        if self.conditions is not Kind.NOT_USED:
            conditions = cond.parse(headers, self.prefix, self.conditions.looks_at)
            if conditions is not cond.NONE:
                conditions = cond.legal(self.conditions, conditions)
        lease_id = parse_lease_id(headers) if self.lease is not NOT_USED else None
        return Guard(rule=self, conditions=conditions, lease_id=lease_id, create_only=create_only)


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    rule: GuardRule
    conditions: Conditions = cond.NONE
    lease_id: str | None = None
    create_only: bool = False  # the caller may create and not overwrite: a SAS with `c` alone

    def check(self, current: Guarded | None, now: int) -> None:
        """Raise StorageError, or let pass; never change anything. Where the object has to exist, the caller says 404 first."""
        if self.create_only and current is not None:
            raise StorageError(Code.UnauthorizedBlobOverwrite)
        if self.rule.waits and current is not None and current.copy_pending:
            raise StorageError(Code.PendingCopyOperation)
        lease = current.lease if current is not None else None
        if lease is not None or self.lease_id is not None:
            self._check_lease(lease, now)
        if self.conditions is not cond.NONE:
            holder = self.lease_id is not None and self.rule.lease is not NOT_USED  # it matched, or we were refused above
            cond.check(self.rule.conditions, self.conditions, current, holder=holder)

    def lease_after(self, current: Guarded | None, now: int) -> Lease | None:
        """The lease of the record that replaces `current`: a write forgets the ended lease of a blob, not of a container."""
        if current is None or current.lease is None:
            return None
        locked = state_of(current.lease, now).status == "locked"
        return current.lease if locked or self.rule.noun == "container" else None

    def _check_lease(self, lease: Lease | None, now: int) -> None:
        if self.rule.lease is NOT_USED:
            return
        refusal = USES[self.rule.lease, self._sent(lease), state_of(lease, now)]
        if refusal is not None:
            raise StorageError(_CODES[self.rule.noun, refusal])

    def _sent(self, lease: Lease | None) -> Sent:
        if self.lease_id is None:
            return NOTHING
        return HOLDER if lease is not None and lease.id == self.lease_id else OTHER


# fmt: off
NONE               = GuardRule(Kind.NOT_USED,           NOT_USED)
READ               = GuardRule(Kind.READ,               IF_GIVEN)
CREATE             = GuardRule(Kind.CREATE,             IF_LEASED, waits=True)
UPDATE             = GuardRule(Kind.UPDATE,             IF_LEASED, waits=True)
LEASE_ONLY         = GuardRule(Kind.NOT_USED,           IF_LEASED, waits=True)  # Put Block
LEASE              = GuardRule(Kind.UPDATE,             NOT_USED,  waits=True)  # Lease Blob: its id is lease.apply's business
SNAPSHOT           = GuardRule(Kind.UPDATE,             IF_GIVEN,  waits=True)
SEAL               = GuardRule(Kind.SEAL,               IF_LEASED, waits=True)
COPY               = GuardRule(Kind.COPY_TARGET,        IF_LEASED, waits=True)
COPY_SOURCE        = GuardRule(Kind.COPY_SOURCE,        NOT_USED,  prefix="x-ms-source-")
PART_SOURCE        = GuardRule(Kind.PART_SOURCE,        NOT_USED,  prefix="x-ms-source-")  # parts, Copy Blob From URL
ABORT_COPY         = GuardRule(Kind.NOT_USED,           IF_LEASED)
TAGS_READ          = GuardRule(Kind.UPDATE,             IF_GIVEN,  prefix="x-ms-blob-")
TAGS_WRITE         = GuardRule(Kind.UPDATE,             IF_LEASED, prefix="x-ms-blob-", waits=True)
SET_TIER           = GuardRule(Kind.TAGS_ONLY,          IF_GIVEN,  waits=True)
BLOCK_LIST_READ    = GuardRule(Kind.TAGS_ONLY,          IF_GIVEN)
CONTAINER_READ     = GuardRule(Kind.NOT_USED,           IF_GIVEN,  "container")
CONTAINER_WRITE    = GuardRule(Kind.CONTAINER,          IF_GIVEN,  "container")
CONTAINER_METADATA = GuardRule(Kind.CONTAINER_METADATA, IF_GIVEN,  "container")
CONTAINER_DELETE   = GuardRule(Kind.CONTAINER,          IF_LEASED, "container")
CONTAINER_LEASE    = GuardRule(Kind.CONTAINER,          NOT_USED,  "container")
# fmt: on
NO_GUARD = Guard(rule=NONE)

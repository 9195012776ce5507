"""What Azure's reference says of a blob operation under conditions and leases, written down a second time and simply.

Nothing here is shared with the server. A condition is met, unmet or `*`; a lease is in one of five states and the request brings
the holder's id, another one, or none. Each function gives the refusal, or None where the request may pass.
"""

from dataclasses import dataclass
from typing import Literal

Truth = Literal["met", "unmet", "star"]
Family = Literal["read", "create", "update", "tags only", "none"]
Refusal = tuple[int, str]

UNMET: Refusal = (412, "ConditionNotMet")
NOT_MODIFIED: Refusal = (304, "ConditionNotMet")
EXISTS: Refusal = (409, "BlobAlreadyExists")
UNSATISFIABLE: Refusal = (400, "UnsatisfiableCondition")
TOO_MANY: Refusal = (400, "MultipleConditionHeadersNotSupported")
NO_BLOB: Refusal = (404, "BlobNotFound")


@dataclass(frozen=True)
class Asked:
    """The conditions a request carries; None where it does not."""

    if_match: Truth | None = None
    if_none_match: Truth | None = None
    if_modified_since: Truth | None = None
    if_unmodified_since: Truth | None = None
    if_tags: Truth | None = None


def illegal(family: Family, asked: Asked) -> Refusal | None:
    """What is wrong with the headers whatever the blob is: told before leases and records are looked at."""
    if family == "read":
        return UNSATISFIABLE if asked.if_none_match == "star" else None
    if family in ("create", "update"):
        sent = [
            value is not None
            for value in (asked.if_match, asked.if_unmodified_since, asked.if_none_match, asked.if_modified_since)
        ]
        lone_or_pair = sum(sent) <= 1 or sent in ([True, True, False, False], [False, False, True, True])
        return None if lone_or_pair else TOO_MANY
    return None


def unmet(family: Family, asked: Asked, *, holder: bool = False) -> Refusal | None:
    """Conditions against a blob that exists; `holder`: the request carries the id of the lease that holds."""
    tags = UNMET if asked.if_tags == "unmet" and family != "none" else None
    if family == "read":
        return _unmet_read(asked) or tags
    if family == "create" and asked.if_none_match == "star" and not holder:
        return EXISTS
    if family in ("create", "update"):
        decides = asked.if_none_match or asked.if_match or asked.if_modified_since or asked.if_unmodified_since
        return UNMET if decides == "unmet" else tags
    return tags


def _unmet_read(asked: Asked) -> Refusal | None:
    if "unmet" in (asked.if_match, asked.if_unmodified_since):
        return UNMET
    freshness = [value for value in (asked.if_none_match, asked.if_modified_since) if value is not None]
    return NOT_MODIFIED if freshness and "met" not in freshness else None


def missing(family: Family, asked: Asked, *, needs_blob: bool, lease_id: bool) -> Refusal | None:
    """The same where no blob exists."""
    if needs_blob:
        return NO_BLOB
    if lease_id:
        return 412, "LeaseNotPresentWithBlobOperation"
    return UNMET if family == "create" and (asked.if_match or asked.if_tags) else None


State = Literal["available", "leased", "breaking", "broken", "expired"]
Sent = Literal["holder", "other", "nothing"]
LeaseColumn = Literal["W", "R", "-"]


def leased(column: LeaseColumn, state: State, sent: Sent) -> Refusal | None:
    if column == "-":
        return None
    locked = state in ("leased", "breaking")
    if sent == "nothing":
        return (412, "LeaseIdMissing") if locked and column == "W" else None
    if locked:
        return None if sent == "holder" else (412, "LeaseIdMismatchWithBlobOperation")
    remembered = sent == "holder" and state in ("broken", "expired")
    return (412, "LeaseLost") if remembered else (412, "LeaseNotPresentWithBlobOperation")

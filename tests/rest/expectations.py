"""What Azure's reference says about an operation with conditions and leases, in a second, simple implementation.

Nothing here is shared with the server. A condition is met, unmet or `*`; a lease is in one of five states and the request has the
current id, another one, or none. Each function returns the expected error, or None if the request must succeed.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

Truth = Literal["met", "unmet", "star"]
Refusal = tuple[int, str]

UNMET: Refusal = (412, "ConditionNotMet")
TARGET_UNMET: Refusal = (412, "TargetConditionNotMet")
SOURCE_UNMET: Refusal = (412, "SourceConditionNotMet")
UNVERIFIED: Refusal = (412, "CannotVerifyCopySource")
UNVERIFIED_NOT_MODIFIED: Refusal = (304, "CannotVerifyCopySource")
NOT_MODIFIED: Refusal = (304, "ConditionNotMet")
PENDING: Refusal = (409, "PendingCopyOperation")
OVERWRITTEN: Refusal = (409, "BlobOverwritten")
EXISTS: Refusal = (409, "BlobAlreadyExists")
UNSATISFIABLE: Refusal = (400, "UnsatisfiableCondition")
TOO_MANY: Refusal = (400, "MultipleConditionHeadersNotSupported")


@dataclass(frozen=True)
class Asked:
    """The conditions of a request; None where it has none."""

    if_match: Truth | None = None
    if_none_match: Truth | None = None
    if_modified_since: Truth | None = None
    if_unmodified_since: Truth | None = None
    if_tags: Truth | None = None


ETAGS, DATES, TAGS = ("if_match", "if_none_match"), ("if_modified_since", "if_unmodified_since"), ("if_tags",)
Family = Literal[
    "read",
    "create",
    "update",
    "delete",
    "untagged",
    "copy",
    "source",
    "untagged source",
    "blob source",
    "part source",
    "tags only",
    "dates",
    "since",
    "until",
    "none",
]
# Family → the conditions it evaluates; the others are ignored (reference 1.2 to 1.6, column "conditions").
HEEDS: dict[Family, tuple[str, ...]] = {
    "read": ETAGS + DATES + TAGS,
    "create": ETAGS + DATES + TAGS,
    "update": ETAGS + DATES + TAGS,
    "delete": ETAGS + DATES + TAGS,
    "untagged": ETAGS + DATES,  # Append Blob Seal
    "copy": ETAGS + DATES + TAGS,
    "source": ETAGS + DATES + TAGS,
    "untagged source": ETAGS + DATES,
    "blob source": ETAGS + DATES + TAGS,  # Put Blob From URL
    "part source": ETAGS + DATES,  # the other operations "From URL"
    "tags only": TAGS,
    "dates": DATES,
    "since": ("if_modified_since",),
    "until": ("if_unmodified_since",),  # Set Blob Immutability Policy
    "none": (),
}
CREATING = ("create", "copy")
FAILURES: dict[Family, Refusal] = {
    "copy": TARGET_UNMET,
    "source": SOURCE_UNMET,
    "untagged source": SOURCE_UNMET,
    "blob source": UNVERIFIED,
    "part source": UNVERIFIED,
}
PASSED_ON = ("blob source", "part source")  # these operations pass on the status of reading the source (recordings of Azure)


def heeded(family: Family, asked: Asked) -> Asked:
    return replace(asked, **{name: None for name in ETAGS + DATES + TAGS if name not in HEEDS[family]})


def illegal(family: Family, asked: Asked) -> Refusal | None:
    """Errors of the headers themselves, reported before leases and records are checked (reference 2.3)."""
    asked = heeded(family, asked)
    if family == "read":
        return UNSATISFIABLE if asked.if_none_match == "star" else None
    sent = [
        value is not None for value in (asked.if_match, asked.if_unmodified_since, asked.if_none_match, asked.if_modified_since)
    ]
    lone_or_pair = sum(sent) <= 1 or sent in ([True, True, False, False], [False, False, True, True])
    return None if lone_or_pair else TOO_MANY


def unmet(family: Family, asked: Asked, *, holder: bool = False) -> Refusal | None:
    """Conditions on an existing object; `holder`: the request has the id of the current lease."""
    asked, failure = heeded(family, asked), FAILURES.get(family, UNMET)
    # Of a copy's conditions, those on tags have the plain error (recordings of Azure).
    tags = (failure if family in PASSED_ON else UNMET) if asked.if_tags == "unmet" else None
    if family == "read":
        return _unmet_read(asked) or tags
    if asked.if_none_match == "star":
        if family in CREATING:
            return tags if holder else EXISTS
        return tags if family == "delete" else failure
    decides = asked.if_none_match or asked.if_match or asked.if_modified_since or asked.if_unmodified_since
    if decides == "unmet" and family in PASSED_ON and (asked.if_none_match or asked.if_modified_since):
        return UNVERIFIED_NOT_MODIFIED
    return failure if decides == "unmet" else tags


def _unmet_read(asked: Asked) -> Refusal | None:
    """Reference 2.2."""
    if "unmet" in (asked.if_match, asked.if_unmodified_since):
        return UNMET
    freshness = [value for value in (asked.if_none_match, asked.if_modified_since) if value is not None]
    return NOT_MODIFIED if freshness and "met" not in freshness else None


Absent = Literal["404", "created", "ignored"]


def missing(absent: Absent, noun: "Noun", family: Family, asked: Asked, *, lease_id: bool) -> Refusal | None:
    """The same for a missing object (reference 2.4)."""
    if absent == "ignored":
        return None
    if absent == "404":
        return 404, "BlobNotFound" if noun == "Blob" else "ContainerNotFound"
    if lease_id:
        return 412, "LeaseNotPresentWithBlobOperation"
    asked = heeded(family, asked)
    return FAILURES.get(family, UNMET) if asked.if_match or asked.if_tags else None


Noun = Literal["Blob", "Container"]
State = Literal["available", "leased", "breaking", "broken", "expired"]
STATES: tuple[State, ...] = get_args(State)
Sent = Literal["holder", "other", "nothing"]
LeaseColumn = Literal["W", "R", "-"]


def leased(column: LeaseColumn, state: State, sent: Sent, noun: Noun = "Blob") -> Refusal | None:
    """Reference 3.4."""
    if column == "-":
        return None
    locked = state in ("leased", "breaking")
    if sent == "nothing":
        return (412, "LeaseIdMissing") if locked and column == "W" else None
    if locked:
        return None if sent == "holder" else (412, f"LeaseIdMismatchWith{noun}Operation")
    remembered = sent == "holder" and state in ("broken", "expired")
    return (412, "LeaseLost") if remembered else (412, f"LeaseNotPresentWith{noun}Operation")

"""What Azure's reference says of an operation under conditions and leases, written down a second time and simply.

Nothing here is shared with the server. A condition is met, unmet or `*`; a lease is in one of five states and the request brings
the holder's id, another one, or none. Each function gives the refusal, or None where the request may pass.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

Truth = Literal["met", "unmet", "star"]
Refusal = tuple[int, str]

UNMET: Refusal = (412, "ConditionNotMet")
TARGET_UNMET: Refusal = (412, "TargetConditionNotMet")
SOURCE_UNMET: Refusal = (412, "SourceConditionNotMet")
NOT_MODIFIED: Refusal = (304, "ConditionNotMet")
PENDING: Refusal = (409, "PendingCopyOperation")
OVERWRITTEN: Refusal = (409, "BlobOverwritten")
EXISTS: Refusal = (409, "BlobAlreadyExists")
UNSATISFIABLE: Refusal = (400, "UnsatisfiableCondition")
TOO_MANY: Refusal = (400, "MultipleConditionHeadersNotSupported")


@dataclass(frozen=True)
class Asked:
    """The conditions a request carries; None where it does not."""

    if_match: Truth | None = None
    if_none_match: Truth | None = None
    if_modified_since: Truth | None = None
    if_unmodified_since: Truth | None = None
    if_tags: Truth | None = None


ETAGS, DATES, TAGS = ("if_match", "if_none_match"), ("if_modified_since", "if_unmodified_since"), ("if_tags",)
Family = Literal[
    "read", "create", "update", "untagged", "copy", "source", "untagged source", "tags only", "dates", "since", "none"
]
# Family → the conditions it heeds; the others are as good as not sent (reference 1.2 to 1.6, column "conditions").
HEEDS: dict[Family, tuple[str, ...]] = {
    "read": ETAGS + DATES + TAGS,
    "create": ETAGS + DATES + TAGS,
    "update": ETAGS + DATES + TAGS,
    "untagged": ETAGS + DATES,  # Append Blob Seal
    "copy": ETAGS + DATES + TAGS,
    "source": ETAGS + DATES + TAGS,
    "untagged source": ETAGS + DATES,
    "tags only": TAGS,
    "dates": DATES,
    "since": ("if_modified_since",),
    "none": (),
}
CREATING = ("create", "copy")
FAILURES: dict[Family, Refusal] = {"copy": TARGET_UNMET, "source": SOURCE_UNMET, "untagged source": SOURCE_UNMET}


def heeded(family: Family, asked: Asked) -> Asked:
    return replace(asked, **{name: None for name in ETAGS + DATES + TAGS if name not in HEEDS[family]})


def illegal(family: Family, asked: Asked) -> Refusal | None:
    """What is wrong with the headers whatever they meet: told before leases and records are looked at (reference 2.3)."""
    asked = heeded(family, asked)
    if family == "read":
        return UNSATISFIABLE if asked.if_none_match == "star" else None
    sent = [
        value is not None for value in (asked.if_match, asked.if_unmodified_since, asked.if_none_match, asked.if_modified_since)
    ]
    lone_or_pair = sum(sent) <= 1 or sent in ([True, True, False, False], [False, False, True, True])
    return None if lone_or_pair else TOO_MANY


def unmet(family: Family, asked: Asked, *, holder: bool = False) -> Refusal | None:
    """Conditions against what exists; `holder`: the request carries the id of the lease that holds."""
    asked, failure = heeded(family, asked), FAILURES.get(family, UNMET)
    tags = failure if asked.if_tags == "unmet" else None
    if family == "read":
        return _unmet_read(asked) or tags
    if asked.if_none_match == "star":
        if family in CREATING and not holder:
            return EXISTS
        return failure if "source" in family else tags
    decides = asked.if_none_match or asked.if_match or asked.if_modified_since or asked.if_unmodified_since
    return failure if decides == "unmet" else tags


def _unmet_read(asked: Asked) -> Refusal | None:
    """Reference 2.2."""
    if "unmet" in (asked.if_match, asked.if_unmodified_since):
        return UNMET
    freshness = [value for value in (asked.if_none_match, asked.if_modified_since) if value is not None]
    return NOT_MODIFIED if freshness and "met" not in freshness else None


Absent = Literal["404", "created", "ignored"]


def missing(absent: Absent, noun: "Noun", family: Family, asked: Asked, *, lease_id: bool) -> Refusal | None:
    """The same where nothing is (reference 2.4)."""
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

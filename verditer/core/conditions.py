"""Conditions on a request: the If-Match family and tag conditions, and how each family of operations treats them.

`check` compares the conditions with the current record inside the transaction that writes (contract G5). `guard.py` calls it
after the lease check. Every version gets the behaviour of 2013-08-15 and later; older versions combined the conditions of reads
the way writes do. Microsoft's page: Specifying conditional headers for Blob service operations.
"""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Any, Protocol

import msgspec

from verditer.core.dates import truncate
from verditer.core.errors import Code, CurrentVersion, StorageError
from verditer.core.etag import Etag
from verditer.core.lease import Lease
from verditer.core.tags import TagCondition


class Guarded(Protocol):
    """The part of a blob's or a container's record that conditions and leases depend on."""

    @property
    def etag(self) -> Etag:
        """Also Last-Modified: the whole second of this tick."""

    @property
    def lease(self) -> Lease | None: ...

    @property
    def tags(self) -> Mapping[str, str] | None: ...

    @property
    def copy_pending(self) -> bool:
        """A copy into this blob has not finished."""


class EtagCondition(msgspec.Struct, frozen=True):
    """The values that one condition lists. `*` and ETags that this server never issues are None: they equal no version."""

    etags: tuple[Etag | None, ...]
    any: bool = False  # `*` is in the list

    def matches(self, etag: Etag) -> bool:
        return self.any or etag in self.etags


ANY = EtagCondition((None,), any=True)


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """Dates are ticks. A field is None where the request has no such condition."""

    if_match: EtagCondition | None = None
    if_none_match: EtagCondition | None = None
    if_modified_since: int | None = None
    if_unmodified_since: int | None = None
    if_tags: TagCondition | None = None


NONE = Conditions()  # compared by identity: a request without conditions costs one comparison

IM, INM, IMS, IUS, TAGS = Conditions.__struct_fields__

UNMET = Code.ConditionNotMet
SOURCE = Code.SourceConditionNotMet
TARGET = Code.TargetConditionNotMet
EXISTS = Code.BlobAlreadyExists


@unique
class ConditionRule(Enum):
    """One row per family of operations.

    applicable   the conditions that the operation evaluates; it ignores the others
    combinable   any combination is legal, with lists of ETags (reads); a write takes one condition or one of two pairs
    unmet        the error when a condition is not met; conditions on tags have one error for all copies
    unchanged    the error when If-None-Match or If-Modified-Since is not met
    exists       the error when the request says `If-None-Match: *` and the resource exists; None ignores the condition, as
                 Azure does for Delete Blob (docs/decisions/disagreeing-sources.md)
    """

    # fmt: off
    #                     applicable                 combinable unmet   unchanged         exists
    READ               = (IM, INM, IMS, IUS, TAGS),  True,      UNMET,  Code.NotModified, Code.UnsatisfiableCondition
    CREATE             = (IM, INM, IMS, IUS, TAGS),  False,     UNMET,  UNMET,            EXISTS
    UPDATE             = (IM, INM, IMS, IUS, TAGS),  False,     UNMET,  UNMET,            UNMET
    DELETE             = (IM, INM, IMS, IUS, TAGS),  False,     UNMET,  UNMET,            None
    SEAL               = (IM, INM, IMS, IUS),        False,     UNMET,  UNMET,            UNMET
    COPY_TARGET        = (IM, INM, IMS, IUS, TAGS),  False,     TARGET, TARGET,           EXISTS
    INCREMENTAL        = (IM, INM, IMS, IUS, TAGS),  False,     TARGET, UNMET,            EXISTS
    COPY_SOURCE        = (IM, INM, IMS, IUS, TAGS),  False,     SOURCE, SOURCE,           SOURCE
    SYNC_COPY_SOURCE   = (IM, INM, IMS, IUS),        False,     SOURCE, SOURCE,           SOURCE
    BLOB_SOURCE        = (IM, INM, IMS, IUS, TAGS),  False,     UNMET,  Code.NotModified, UNMET
    PART_SOURCE        = (IM, INM, IMS, IUS),        False,     UNMET,  Code.NotModified, UNMET
    CONTAINER          = (IMS, IUS),                 False,     UNMET,  UNMET,            None
    CONTAINER_METADATA = (IMS,),                     False,     UNMET,  UNMET,            None
    UNMODIFIED_SINCE   = (IUS,),                     False,     UNMET,  UNMET,            None
    TAGS_ONLY          = (TAGS,),                    False,     UNMET,  UNMET,            None
    NOT_USED           = (),                         False,     UNMET,  UNMET,            None
    # fmt: on

    def __init__(self, applicable: tuple[str, ...], combinable: bool, unmet: Code, unchanged: Code, exists: Code | None) -> None:
        self.applicable = applicable
        self.combinable = combinable
        self.unmet = unmet
        self.unchanged = unchanged
        self.exists = exists


# The conditions that a write may carry together → the one that decides. A tag condition may accompany any of them.
_DECIDES = {
    frozenset({IM}): IM,
    frozenset({INM}): INM,
    frozenset({IMS}): IMS,
    frozenset({IUS}): IUS,
    frozenset({INM, IMS}): INM,
    frozenset({IM, IUS}): IM,
}


def check(rule: ConditionRule, conditions: Conditions, current: Guarded | None, *, holds_lease: bool = False) -> None:
    """Raise StorageError when the conditions are not met. `current` is None when the resource does not exist.

    `holds_lease`: the request carries the id of the active lease. Put Blob with `If-None-Match: *` then overwrites (measured on
    Azure).
    """
    if conditions is NONE:
        return
    conditions = legal(rule, conditions)
    error = _missing(rule, conditions) if current is None else _existing(rule, conditions, current, holds_lease)
    if error is Code.NotModified and current is not None:
        raise StorageError(error, details=CurrentVersion(current.etag))
    if error is not None:
        raise StorageError(error)


def legal(rule: ConditionRule, conditions: Conditions) -> Conditions:
    """The conditions that decide. A combination that the rule does not allow is refused here, before any record is read."""
    asked: dict[str, Any] = {name: value for name in rule.applicable if (value := getattr(conditions, name)) is not None}
    if not rule.combinable:
        asked = _deciding(asked)
    elif INM in asked and asked[INM].any:
        raise StorageError(Code.UnsatisfiableCondition)
    return Conditions(**asked) if asked else NONE


def _deciding(asked: dict[str, Any]) -> dict[str, Any]:
    names = frozenset(asked) - {TAGS}
    if not names:
        return asked
    decides = _DECIDES.get(names)
    if decides is None or any(len(asked[name].etags) > 1 for name in (IM, INM) if name in asked):
        raise StorageError(Code.MultipleConditionHeadersNotSupported)
    return {name: asked[name] for name in (decides, TAGS) if name in asked}


def _missing(rule: ConditionRule, conditions: Conditions) -> Code | None:
    """A resource that does not exist has no ETag and no tags to match, differs from every ETag, and has no date to compare."""
    return rule.unmet if conditions.if_match is not None or conditions.if_tags is not None else None


def _existing(rule: ConditionRule, conditions: Conditions, current: Guarded, holds_lease: bool) -> Code | None:
    """Match ∧ Unmodified ∧ (None-Match ∨ Modified) ∧ Tags; for a write `legal` has left at most one of the first four."""
    etag, modified = current.etag, truncate(current.etag)
    match, none_match = conditions.if_match, conditions.if_none_match
    since, until = conditions.if_modified_since, conditions.if_unmodified_since
    if match is not None and not match.matches(etag):
        return rule.unmet
    if until is not None and modified > until:
        return rule.unmet if rule is not ConditionRule.INCREMENTAL else UNMET  # seen on Azure
    if none_match is not None and none_match.any:
        if rule.exists is not None and not (rule.exists is EXISTS and holds_lease):
            return rule.exists
    elif not _changed(etag, modified, none_match, since):
        return rule.unchanged
    if conditions.if_tags is not None and not conditions.if_tags.holds(current.tags or {}):
        return UNMET
    return None


def _changed(etag: Etag, modified: int, none_match: EtagCondition | None, since: int | None) -> bool:
    """One of the two conditions that is met is enough; when both are absent, the resource counts as changed."""
    if none_match is None and since is None:
        return True
    return (none_match is not None and not none_match.matches(etag)) or (since is not None and modified > since)

"""What Delete Blob may ask besides If-Match and its family: since when the blob has been in its access tier.

A guard as `guard.py` makes them, with one more question behind the others. A tier that was never set counts from the creation of
the blob, so that whoever deletes what has rested for a month does not delete what came yesterday.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from verditer.core.conditions import Guarded, Kind, parse_date
from verditer.core.dates import truncate
from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard, GuardRule, LeaseRule
from verditer.core.records.blob import Blob
from verditer.core.tiers import state_of

SINCE = "x-ms-access-tier-if-modified-since"
UNTIL = "x-ms-access-tier-if-unmodified-since"


@dataclass(frozen=True)
class DeleteRule(GuardRule):
    def guard(self, headers: Mapping[str, str], *, create_only: bool = False) -> Guard:
        guard = GuardRule.guard(self, headers, create_only=create_only)
        since, until = (parse_date(name, headers[name]) if name in headers else None for name in (SINCE, UNTIL))
        if since is None and until is None:
            return guard
        if since is not None and until is not None:
            raise StorageError(Code.MultipleConditionHeadersNotSupported)
        return TierGuard(
            rule=self, conditions=guard.conditions, lease_id=guard.lease_id, create_only=create_only, since=since, until=until
        )


class TierGuard(Guard, frozen=True, kw_only=True):
    since: int | None
    until: int | None

    def check(self, current: Guarded | None, now: int) -> None:
        Guard.check(self, current, now)
        if not isinstance(current, Blob):
            return  # uncommitted blocks are in no tier
        changed = truncate(state_of(current, now).changed or current.created)
        if (self.since is not None and changed <= self.since) or (self.until is not None and changed > self.until):
            raise StorageError(Code.ConditionNotMet)


DELETE = DeleteRule(Kind.UPDATE, LeaseRule.IF_LEASED, waits=True)

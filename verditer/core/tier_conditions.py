"""The further conditions of Delete Blob: since when the blob has been in its access tier.

A tier that was never set counts from the creation of the blob, so a client that deletes blobs whose tier is older than a month
does not delete a blob that was created yesterday.
"""

from verditer.core.conditions import Guarded
from verditer.core.dates import truncate
from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.records.blob import Blob
from verditer.core.tiers import state_of


class TierGuard(Guard, frozen=True, kw_only=True):
    """A guard that also compares the date of the last change of tier, in ticks."""

    tier_since: int | None
    tier_until: int | None

    def check(self, current: Guarded | None, now: int) -> None:
        Guard.check(self, current, now)
        if not isinstance(current, Blob):
            return  # uncommitted blocks are in no tier
        changed = truncate(state_of(current, now).changed or current.created)
        since, until = self.tier_since, self.tier_until
        if (since is not None and changed <= since) or (until is not None and changed > until):
            raise StorageError(Code.ConditionNotMet)

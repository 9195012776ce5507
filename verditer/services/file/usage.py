"""How many bytes the files of a share have, and the quota that bounds them.

The sizes of files count, written or not, as Azure counts them. Snapshots do not count. The sum is kept in a few records, which
are made with the share. All writes of a process change the same one, so that processes seldom wait for each other, and a
transaction of many writes locks only one: two that each locked several would wait for each other. On PostgreSQL the files of
several nodes that grow in the same moment may exceed the quota, as none of their transactions sees the others.
"""

import os
import random
from collections.abc import Callable
from itertools import repeat
from operator import attrgetter

from verditer.core.errors import Code, StorageError
from verditer.core.records.file import Share, ShareUsage
from verditer.partition.engine import Transaction

LANES = 8
GIB = 1 << 30
_size: Callable[[ShareUsage], int] = attrgetter("size_bytes")
_first_lane = random.getrandbits(32)


def _lane() -> int:
    """Processes have different lanes: those of one parent by their ids, those of other machines by chance."""
    return (os.getpid() + _first_lane) % LANES


def new_usage(share_id: int) -> list[ShareUsage]:
    return [ShareUsage(share_id=share_id, lane=lane, size_bytes=0) for lane in range(LANES)]


def usage_of(tx: Transaction, share_id: int) -> int:
    lanes = map(tx.get, repeat(ShareUsage), repeat(share_id), range(LANES))
    return sum(map(_size, filter(None, lanes)))


def add_usage(tx: Transaction, share_id: int, change: int) -> None:
    """A file has grown or shrunk by so many bytes. To be called last in a transaction, as others may wait for the same record."""
    if change:
        lane = _lane()
        usage = tx.get(ShareUsage, share_id, lane, for_update=True)
        assert usage is not None, "every share has its lanes"
        tx.put(ShareUsage(share_id=share_id, lane=lane, size_bytes=usage.size_bytes + change))


def check_quota(tx: Transaction, share: Share, growth: int) -> None:
    """Refuse what would make the files of a share larger than its quota. Empty files are always allowed."""
    if growth > 0 and usage_of(tx, share.id) + growth > share.quota_gib * GIB:
        raise StorageError(Code.ShareSizeLimitReached)

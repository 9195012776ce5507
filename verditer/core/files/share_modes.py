"""Share modes and byte-range locks: which open handles conflict with an open or with a REST request.

An open handle has an access (what it may do) and a share mode (what it lets others do). Two opens conflict when one's access is
not within the other's share mode. A REST request counts as an open that lasts for one transaction (contract F2). Microsoft's
page: Managing file locks in Azure Files.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, IntFlag
from typing import NamedTuple, Protocol

from verditer.core.errors import Code, StorageError
from verditer.core.files.byte_locks import ByteRangeLock
from verditer.core.files.oplocks import OplockEffect


class FileAccess(IntFlag):
    """Access and share modes, reduced to what decides about conflicts."""

    NONE = 0
    READ = 1
    WRITE = 2
    DELETE = 4


NONE, READ, WRITE, DELETE = FileAccess(0), FileAccess.READ, FileAccess.WRITE, FileAccess.DELETE
ALL = READ | WRITE | DELETE
_CHANGES = int(WRITE | DELETE)  # arithmetic of flags is slow


class OpenHandle(Protocol):
    @property
    def access(self) -> int: ...

    @property
    def share_mode(self) -> int: ...

    @property
    def delete_pending(self) -> bool: ...


class LockRule(Enum):
    IGNORED = "byte-range locks do not matter"
    OVERLAPPING = "an exclusive lock on one of the bytes conflicts"
    ANY = "any lock anywhere in the file conflicts"


class RestAccess(NamedTuple):
    """What a REST operation counts as, and what it means to oplocks. `alone`: no handle at all may be open."""

    access: FileAccess
    oplocks: OplockEffect
    locks: LockRule = LockRule.IGNORED
    shares: FileAccess = ALL
    alone: bool = False


# fmt: off
#                              access          oplocks               locks
LOOK              = RestAccess(NONE,           OplockEffect.READS)                          # Get File Properties and Metadata
READ_DATA         = RestAccess(READ,           OplockEffect.READS,   LockRule.OVERLAPPING)     # Get File
LIST_RANGES       = RestAccess(READ,           OplockEffect.READS)
WRITE_RANGE       = RestAccess(WRITE,          OplockEffect.WRITES,  LockRule.ANY)             # Put Range, both kinds
SET_PROPERTIES    = RestAccess(WRITE,          OplockEffect.WRITES)
RESIZE            = RestAccess(WRITE,          OplockEffect.WRITES,  LockRule.ANY)             # Set File Properties with a length
SET_METADATA      = RestAccess(WRITE,          OplockEffect.WRITES)
OVERWRITE         = RestAccess(WRITE | DELETE, OplockEffect.WRITES,  LockRule.ANY)             # Create and Copy File over a file
REMOVE            = RestAccess(DELETE,         OplockEffect.CLOSES,  alone=True)               # Delete File, Delete Directory
RENAME            = RestAccess(DELETE,         OplockEffect.CLOSES)
ACQUIRE_LEASE     = RestAccess(WRITE | DELETE, OplockEffect.CLOSES,  shares=READ)
CHANGE_LEASE      = RestAccess(NONE,           OplockEffect.NOTHING)                           # Lease File, all other actions
# fmt: on


def check_rest_access(
    wanted: RestAccess,
    opens: Iterable[OpenHandle],
    locks: Iterable[ByteRangeLock] = (),
    *,
    start: int = 0,
    end: int = 0,
) -> None:
    """Refuse a REST operation that an open handle or a lock forbids. `start` and `end` are the bytes it reads."""
    handles = list(opens)
    if any(handle.delete_pending for handle in handles):
        raise StorageError(Code.SMBDeletePending)
    if is_shut_out(wanted, handles):
        raise StorageError(Code.SharingViolation)
    if wanted.locks is LockRule.IGNORED:
        return
    for lock in locks:
        if wanted.locks is LockRule.ANY or (lock.exclusive and lock.start < end and start < lock.start + lock.length):
            raise StorageError(Code.FileLockConflict)


def is_shut_out(wanted: RestAccess, handles: Sequence[OpenHandle]) -> bool:
    """Whether the share mode of a handle forbids a REST operation, or the mere existence of one does."""
    if handles and wanted.alone:
        return True
    return any(handle.access and conflicts(wanted.access, wanted.shares, handle) for handle in handles)


def conflicts(access: int, share_mode: int, other: OpenHandle) -> bool:
    """Whether an open with this access and share mode cannot exist beside another one."""
    return bool(access & ~other.share_mode or other.access & ~share_mode)


def check_open(access: int, share_mode: int, opens: Iterable[OpenHandle], *, is_kept: bool) -> None:
    """Refuse an SMB open that another open forbids. `is_kept`: a REST lease or a pending copy forbids all changes."""
    if is_kept and access & _CHANGES:
        raise StorageError(Code.SharingViolation)
    if access and any(handle.access and conflicts(access, share_mode, handle) for handle in opens):
        raise StorageError(Code.SharingViolation)

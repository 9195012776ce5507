"""What callers ask of handles, and what they get back. `smb` turns its own structures into these."""

from enum import Enum, IntEnum

import msgspec

from verditer.core.files.oplocks import OplockLevel
from verditer.core.records.file import FileEntry
from verditer.services.file.handles.handle import Handle


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a handle, as List Handles shows it. `address` is host:port."""

    session_id: int
    address: str
    name: str = ""


class CreateDisposition(Enum):
    """What an open does when the entry exists, and when it does not. The values are those of MS-SMB2 2.2.13."""

    SUPERSEDE = 0
    OPEN = 1
    CREATE = 2
    OPEN_IF = 3
    OVERWRITE = 4
    OVERWRITE_IF = 5


class CreateAction(IntEnum):
    """What an open did. The values are those of MS-SMB2 2.2.14."""

    SUPERSEDED = 0
    OPENED = 1
    CREATED = 2
    OVERWRITTEN = 3


class OpenEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How an entry is to be opened.

    `access` is the wanted access mask, with generic bits and MAXIMUM_ALLOWED already mapped. Of `optional_access` the client gets
    what the entry allows, without an error. `attributes` are Win32 bits for a new or overwritten entry. `descriptor` is the
    security descriptor of a new entry; without it the entry inherits one. `allocation_bytes`: the client is going to write so
    much into a new or overwritten file, and there has to be room for it.
    `snapshot` is the name of a share snapshot (`share_snapshots`). `is_transient`: the handle is closed in the same compound and
    its access has neither read, write nor delete, so no record of it is stored. `share_id`: the share that the client has
    connected to. Another one may have its name by now.
    """

    access: int
    share_mode: int  # 1 read, 2 write, 4 delete
    disposition: CreateDisposition
    optional_access: int = 0
    wants_directory: bool = False
    wants_file: bool = False
    delete_on_close: bool = False
    attributes: int = 0
    descriptor: bytes | None = None
    allocation_bytes: int = 0
    oplock: OplockLevel = OplockLevel.NONE
    snapshot: int | None = None
    is_transient: bool = False
    share_id: int | None = None


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    handle: Handle
    action: CreateAction
    entry: FileEntry
    oplock: OplockLevel


class HandleState(msgspec.Struct, frozen=True, kw_only=True):
    """The entry behind a handle."""

    entry: FileEntry
    delete_pending: bool
    now: int


def allocation_of(entry: FileEntry, reserved_bytes: int) -> int:
    """The size, or what a handle has reserved, rounded up to the allocation unit that SMB clients are told."""
    return -(-max(entry.size, reserved_bytes) // ALLOCATION_UNIT) * ALLOCATION_UNIT


ALLOCATION_UNIT = 4096


class LockRequest(msgspec.Struct, frozen=True):
    """A byte range to lock. Offset and length are any unsigned numbers of 64 bits."""

    start: int
    length: int
    exclusive: bool


class ByteRange(msgspec.Struct, frozen=True):
    start: int
    length: int


class Chunk(msgspec.Struct, frozen=True):
    """A part of a server-side copy."""

    source_start: int
    target_start: int
    length: int


class FreezableTime(Enum):
    """A time of an entry that operations through one handle may be told to leave alone."""

    ACCESSED = "accessed"
    WRITTEN = "written"
    CHANGED = "changed"


class BasicChange(msgspec.Struct, frozen=True, kw_only=True):
    """New times and attributes; None leaves one as it is. Times are ticks (`core/files/times.py` converts a FILETIME).

    `freezes` (FILETIME -1): later operations through this handle leave these times alone. `thaws` (-2) ends that. Setting a
    time freezes it, too, as on Windows.
    """

    created: int | None = None
    accessed: int | None = None
    written: int | None = None
    changed: int | None = None
    attributes: int | None = None  # Win32 bits
    freezes: frozenset[FreezableTime] = frozenset()
    thaws: frozenset[FreezableTime] = frozenset()


class SpaceOfShare(msgspec.Struct, frozen=True, kw_only=True):
    total_bytes: int
    free_bytes: int

"""The answer of CHANGE_NOTIFY (MS-FSCC 2.7.1): a list of changes, each with an action and a name below the watched directory."""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from verditer.smb.wire.fields import utf16

DELETE_PENDING = 0  # never sent: the watched directory itself is going to be deleted
ADDED, REMOVED, MODIFIED, RENAMED_OLD_NAME, RENAMED_NEW_NAME = 1, 2, 3, 4, 5

_CHANGE = struct.Struct("<III")


class NamedChange(NamedTuple):
    action: int
    name: str


def build_changes(changes: Iterable[NamedChange], max_bytes: int) -> bytes | None:
    """None: the changes do not fit, and the client has to list the directory. Changes begin at multiples of four bytes."""
    data = bytearray()
    last_at = 0
    for change in changes:
        name = utf16(change.name)
        start = -(-len(data) // 4) * 4
        if start + _CHANGE.size + len(name) > max_bytes:
            return None
        if data:
            struct.pack_into("<I", data, last_at, start - last_at)
            data += bytes(start - len(data))
        last_at = start
        data += _CHANGE.pack(0, change.action, len(name)) + name
    return bytes(data)

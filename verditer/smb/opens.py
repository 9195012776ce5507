"""What a client has open: files, directories and pipes, by the file id that the server gave it."""

import itertools
import secrets
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verditer.services.file.handles.handle import Handle
    from verditer.smb.handlers.directory import DirectoryScan
    from verditer.smb.handlers.listening import ChangeQueue
    from verditer.smb.pipes.pipe import Pipe
    from verditer.smb.sessions import TreeConnection

_FILE_ID = struct.Struct("<QQ")
_next_volatile = itertools.count(secrets.randbits(62))  # never twice in one process
FILE_ID_BYTES = 16


def new_file_id(persistent: int) -> bytes:
    """The persistent half is the handle id that REST shows."""
    return _FILE_ID.pack(persistent & 0xFFFFFFFFFFFFFFFF, next(_next_volatile) & 0x7FFFFFFFFFFFFFFF)


@dataclass(eq=False, slots=True, kw_only=True)
class Open:
    """An open of a session: a file, a directory or a pipe.

    `waits` are the requests that wait for something on this open: each is called with no argument when the open ends."""

    file_id: bytes
    tree: "TreeConnection"
    waits: set[Callable[[], None]] = field(default_factory=set)
    is_closing: bool = False

    def end_waits(self) -> None:
        """Requests that wait on this open are answered now, each with the status that it gave to `Call.wait`."""
        self.is_closing = True
        for end in list(self.waits):
            end()


@dataclass(eq=False, slots=True, kw_only=True)
class OpenFile(Open):
    """`scan` is the listing of a directory that the client has begun, `notify` the requests that wait for changes in it.
    `position` and `mode` are kept because clients set and read them; nothing depends on them."""

    handle: "Handle"
    scan: "DirectoryScan | None" = None
    notify: "ChangeQueue | None" = None
    position: int = 0
    mode: int = 0


@dataclass(eq=False, slots=True, kw_only=True)
class OpenPipe(Open):
    pipe: "Pipe"


class OpenTable:
    """The opens of one session."""

    def __init__(self) -> None:
        self._opens: dict[bytes, Open] = {}

    def __len__(self) -> int:
        return len(self._opens)

    def add(self, opened: Open) -> None:
        self._opens[opened.file_id] = opened

    def find(self, file_id: bytes) -> Open | None:
        return self._opens.get(file_id)

    def remove(self, opened: Open) -> None:
        """The file id is unknown from now on, and requests that wait on the open end."""
        self._opens.pop(opened.file_id, None)
        opened.end_waits()

    def take(self, tree: "TreeConnection | None" = None) -> list[Open]:
        """Remove and return all opens, or those of one tree."""
        taken = [opened for opened in self._opens.values() if tree is None or opened.tree is tree]
        for opened in taken:
            self.remove(opened)
        return taken

    def all(self) -> Iterable[Open]:
        return list(self._opens.values())

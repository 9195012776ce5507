"""A share as an SMB client sees it: a connection of smbprotocol, and short forms of what tests do with open files."""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from smbprotocol.connection import Connection, Dialects
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.open import Open
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from tests.rest.running import Running

ALL_ACCESS, MAXIMUM_ALLOWED = 0x1F01FF, 0x2000000
READ_DATA, WRITE_DATA, APPEND_DATA, READ_ATTRIBUTES, WRITE_ATTRIBUTES, DELETE = 0x1, 0x2, 0x4, 0x80, 0x100, 0x10000
SHARE_NONE, SHARE_READ, SHARE_WRITE, SHARE_DELETE, SHARE_ALL = 0, 1, 2, 4, 7
SUPERSEDE, OPEN, CREATE, OPEN_IF, OVERWRITE, OVERWRITE_IF = range(6)
DIRECTORY_FILE, NON_DIRECTORY_FILE, DELETE_ON_CLOSE = 0x1, 0x40, 0x1000
_IMPERSONATION = 2


class Mounted:
    """One connection, one session, one tree."""

    def __init__(
        self,
        server: Running,
        share: str,
        *,
        dialect: Dialects | None = None,
        encrypted: bool = False,
        port: int | None = None,
    ) -> None:
        self.connection = Connection(uuid.uuid4(), "127.0.0.1", port or server.app.servers["smb"].port)
        self.connection.connect(dialect=dialect, timeout=20)
        self.session = Session(self.connection, server.account, server.key, require_encryption=encrypted)
        self.session.connect()
        self.tree = TreeConnect(self.session, rf"\\127.0.0.1\{share}")
        self.tree.connect()

    def close(self) -> None:
        """End the connection without closing what is open."""
        self.connection.disconnect(close=False)

    def open(
        self,
        name: str,
        access: int = ALL_ACCESS,
        share: int = SHARE_ALL,
        disposition: int = OPEN,
        options: int = 0,
        attributes: int = 0,
        oplock: int = 0,
        contexts: Any = None,
    ) -> Open:
        opened = Open(self.tree, name)
        opened.create(
            _IMPERSONATION, access, attributes, share, disposition, options, create_contexts=contexts, oplock_level=oplock
        )
        return opened

    def make(self, name: str, data: bytes = b"", **how: Any) -> Open:
        """Create a file with some content, and leave it open."""
        opened = self.open(name, disposition=CREATE, options=NON_DIRECTORY_FILE, **how)
        if data:
            opened.write(data)
        return opened

    def put(self, name: str, data: bytes = b"") -> None:
        self.make(name, data).close()

    def make_directory(self, name: str) -> None:
        self.open(name, disposition=CREATE, options=DIRECTORY_FILE).close()

    def get(self, name: str) -> bytes:
        opened = self.open(name, READ_DATA | READ_ATTRIBUTES)
        try:
            return bytes(opened.read(0, opened.end_of_file)) if opened.end_of_file else b""
        finally:
            opened.close()


@contextlib.contextmanager
def refused(status: int) -> Iterator[None]:
    """What is done inside fails with this NTSTATUS."""
    with pytest.raises(SMBResponseException) as error:
        yield
    assert hex(error.value.status) == hex(status)

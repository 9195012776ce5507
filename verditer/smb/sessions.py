"""Sessions and trees: a session is a login on a connection, a tree is a share that a session has connected to."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from verditer.core.names import ShareName
from verditer.smb.opens import OpenTable
from verditer.smb.status import Status
from verditer.smb.wire.header import CommandNumber, Flags, Header

if TYPE_CHECKING:
    from verditer.smb.auth.acceptor import LoginAcceptor
    from verditer.smb.connection import SmbConnection
    from verditer.smb.crypto.sealing import Sealing
    from verditer.smb.crypto.signing import Signing


class SessionState(Enum):
    IN_PROGRESS = auto()  # the login has begun
    VALID = auto()


@dataclass(eq=False, slots=True, kw_only=True)
class TreeConnection:
    """`share` is None for IPC$. `name` is the share as the log shows it."""

    tree_id: int
    session: "Session"
    name: str
    share: ShareName | None
    share_id: int = 0
    requires_encryption: bool = False
    is_connected: bool = True

    @property
    def is_pipe(self) -> bool:
        return self.share is None


@dataclass(eq=False, slots=True, kw_only=True)
class Session:
    """A login. `account` is the name of the storage account; it and the keys are set when the login has succeeded."""

    session_id: int
    connection: "SmbConnection"
    state: SessionState = SessionState.IN_PROGRESS
    account: str = ""
    client_name: str = ""  # the name of the client's computer, as the client says
    acceptor: "LoginAcceptor | None" = None  # of a login that is running
    preauth_hash: bytes = b""  # of the messages of the login, with 3.1.1
    signing: "Signing | None" = None
    sealing: "Sealing | None" = None
    requires_encryption: bool = False
    is_anonymous: bool = False  # it has logged in again anonymously: what is open stays, nothing new can be opened
    is_sealing: bool = False  # the client encrypts its requests
    trees: dict[int, TreeConnection] = field(default_factory=dict)
    opens: OpenTable = field(default_factory=OpenTable)
    last_tree_id: int = 0

    def signs(self, header: Header, status: int) -> "Signing | None":
        """What the answer to a request is signed with, when it is not encrypted. The last answer of a login always is."""
        if header.flags & Flags.SIGNED or (header.command == CommandNumber.SESSION_SETUP and status == Status.SUCCESS):
            return self.signing
        return None

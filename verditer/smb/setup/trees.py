"""TREE_CONNECT and TREE_DISCONNECT: a session connects to the shares of its account, and to IPC$."""

from verditer.core.errors import Code, StorageError
from verditer.core.guard import NO_GUARD
from verditer.core.names import ShareName
from verditer.core.records.file import Share
from verditer.services.file.shares import GetShare, get_share
from verditer.services.settings import get_settings
from verditer.smb.call import Call, Reply
from verditer.smb.ending import close_opens
from verditer.smb.limits import MAX_TREES
from verditer.smb.sessions import Session, TreeConnection
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.session import DISK, EMPTY, PIPE, SHARE_ENCRYPT_DATA, build_tree_connect, parse_tree_connect

FULL_ACCESS = 0x001F01FF
IPC = "IPC$"
_SMB = "SMB"  # a protocol of shares
_MAX_PATH = 1024


async def tree_connect(call: Call) -> Reply:
    name = _share_name(parse_tree_connect(call.message))
    call.path = name
    session = call.session
    share = None if name == IPC else await _find(call, name)
    is_encrypted = share is not None and await _requires_encryption(call, name)
    if session.connection.sessions.get(session.session_id) is not session:
        raise SmbError(Status.USER_SESSION_DELETED)
    if len(session.trees) >= MAX_TREES:
        raise SmbError(Status.INSUFFICIENT_RESOURCES)
    call.tree = call.chain.tree = _connected(session, name, share)
    call.tree.requires_encryption = is_encrypted
    flags = SHARE_ENCRYPT_DATA if is_encrypted else 0
    return Reply(build_tree_connect(PIPE if share is None else DISK, flags, FULL_ACCESS))


def _share_name(path: str) -> str:
    """The name of the server does not matter: clients write what they like. Shares have names in lower case."""
    parts = path.split("\\")
    if len(path) > _MAX_PATH or len(parts) != 4 or parts[:2] != ["", ""] or not parts[3]:
        raise SmbError(Status.BAD_NETWORK_NAME)
    return IPC if parts[3].upper() == IPC else parts[3].lower()


async def _find(call: Call, name: str) -> Share:
    try:
        found = await get_share(call.ctx, ShareName(call.session.account, name), GetShare(), NO_GUARD)
    except StorageError as error:
        if error.code is Code.ShareNotFound:
            raise SmbError(Status.BAD_NETWORK_NAME) from None
        raise
    if _SMB not in found.share.protocols.upper():
        raise SmbError(Status.BAD_NETWORK_NAME)
    return found.share


async def _requires_encryption(call: Call, name: str) -> bool:
    """A client that has negotiated no cipher cannot use such a share (MS-SMB2 3.3.5.7)."""
    settings = await get_settings(call.ctx, call.session.account)
    if name not in settings.smb_encrypted_shares:
        return False
    if call.session.sealing is None:
        raise SmbError(Status.ACCESS_DENIED)
    return True


def _connected(session: Session, name: str, share: Share | None) -> TreeConnection:
    session.last_tree_id += 1
    tree = TreeConnection(
        tree_id=session.last_tree_id,
        session=session,
        name=name,
        share=None if share is None else ShareName(session.account, name),
        share_id=0 if share is None else share.id,
    )
    session.trees[tree.tree_id] = tree
    return tree


async def tree_disconnect(call: Call) -> Reply:
    call.tree.is_connected = False
    del call.session.trees[call.tree.tree_id]
    await close_opens(call.ctx, call.session.opens.take(call.tree))
    return Reply(EMPTY)

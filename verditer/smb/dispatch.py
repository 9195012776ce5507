"""The gate that every request passes, in the order of MS-SMB2 3.3.5.2: signature, session, tree, open, size; then its handler."""

import logging
from typing import TYPE_CHECKING

from verditer.core.errors import StorageError
from verditer.smb.call import Call, Needs, Reply
from verditer.smb.ending import close_opens
from verditer.smb.opens import FILE_ID_BYTES, Open
from verditer.smb.sessions import SessionState
from verditer.smb.status import SmbError, Status, status_of
from verditer.smb.wire.header import HEADER_BYTES, CommandNumber, build_error
from verditer.smb.wire.negotiate import SmbDialect

if TYPE_CHECKING:
    from verditer.smb.commands import Command

logger = logging.getLogger("verditer")
_CREDIT_BYTES = 65536


class ConnectionBroken(Exception):
    """The client has done what ends its connection without an answer."""


async def answer(call: Call) -> Reply:
    """The answer to one request: whatever happens, there is one, unless the connection ends."""
    try:
        return await _admitted(call)
    except SmbError as error:
        return Reply(build_error(error.data), error.status)
    except StorageError as error:
        return Reply(build_error(), status_of(error))
    except ConnectionBroken as reason:
        logger.debug("SMB client %s: %s", call.connection.address, reason)
        call.connection.abort()
        return Reply(build_error(), Status.INVALID_PARAMETER)
    except Exception:
        logger.exception("an SMB request failed: command %d, %s", call.header.command, call.path)
        return Reply(build_error(), Status.INTERNAL_ERROR)


async def _admitted(call: Call) -> Reply:
    row = call.connection.commands.get(call.header.command)
    if row is None:
        raise SmbError(Status.INVALID_PARAMETER)
    _check_relation(call)
    needs = row.needs
    _find_session(call, needs >= Needs.SESSION)
    if needs >= Needs.TREE:
        _find_tree(call)
    message = call.message
    size = row.request_size & ~1
    if len(message) < HEADER_BYTES + size or message[64] | message[65] << 8 != row.request_size:
        raise SmbError(Status.INVALID_PARAMETER)
    if row.number in (CommandNumber.TREE_CONNECT, CommandNumber.CREATE) and call.session.is_anonymous:
        raise SmbError(Status.ACCESS_DENIED)
    if needs == Needs.HANDLE:
        call.open = call.chain.open = find_open(call, row.file_id_at)
    if row.payload is not None:
        _check_payload(call, row.payload(message))
    handler = row.handler
    if needs >= Needs.TREE and call.tree.is_pipe:
        if row.pipe_handler is None:
            raise SmbError(Status.INVALID_DEVICE_REQUEST)
        handler = row.pipe_handler
    if row.number != CommandNumber.CREATE:
        return await handler(call)
    return await _create(call, row)


def _check_relation(call: Call) -> None:
    """A related request follows one that has found its session. The first of a chain follows none."""
    if call.header.is_related and call.chain.session is None:
        raise SmbError(Status.INVALID_PARAMETER)


def _find_session(call: Call, is_needed: bool) -> None:
    chain, header = call.chain, call.header
    session = chain.session if header.is_related else call.connection.sessions.get(header.session_id)
    if session is None or session.state is not SessionState.VALID or session.signing is None:
        if is_needed:
            raise SmbError(Status.USER_SESSION_DELETED)
        return
    if chain.sealed is not None:
        if chain.sealed is not session:
            raise ConnectionBroken("a request is encrypted with the key of another session")
    elif header.is_signed:
        if not session.signing.verify(call.message, header.message_id):
            call.session = session
            raise SmbError(Status.ACCESS_DENIED)
    elif is_needed:
        if header.command == CommandNumber.TREE_CONNECT and call.connection.dialect == SmbDialect.SMB_3_1_1:
            raise ConnectionBroken("TREE_CONNECT is neither signed nor encrypted")  # MS-SMB2 3.3.5.7
        call.session = session
        raise SmbError(Status.ACCESS_DENIED)
    if is_needed and session.requires_encryption and chain.sealed is None:
        call.session = session
        raise SmbError(Status.ACCESS_DENIED)
    call.session = chain.session = session


def _find_tree(call: Call) -> None:
    chain, header = call.chain, call.header
    tree = chain.tree if header.is_related else call.session.trees.get(header.tree_id)
    if tree is None or not tree.is_connected:
        raise SmbError(Status.NETWORK_NAME_DELETED)
    if tree.requires_encryption and chain.sealed is None:
        raise SmbError(Status.ACCESS_DENIED)
    call.tree = chain.tree = tree


def find_open(call: Call, at: int) -> Open:
    """A related request uses the open of the request before it, whatever file id it has."""
    chain = call.chain
    if call.header.is_related:
        if chain.failure is not None:
            raise SmbError(chain.failure)
        if chain.open is not None:
            if chain.open.is_closing:
                raise SmbError(Status.FILE_CLOSED)
            return chain.open
    opened = call.session.opens.find(bytes(call.message[at : at + FILE_ID_BYTES]))
    if opened is None or opened.tree is not call.tree:
        raise SmbError(Status.FILE_CLOSED)
    return opened


def _check_payload(call: Call, payload: int) -> None:
    """What a request moves is limited, and has to be paid for with credits (MS-SMB2 3.3.5.2.5).

    A client may have more room for a listing than was negotiated: it gets a listing that is within the limit.
    """
    if payload > call.connection.max_io_bytes and call.header.command != CommandNumber.QUERY_DIRECTORY:
        raise SmbError(Status.INVALID_PARAMETER)
    if call.connection.has_large_mtu and payload > (call.header.credit_charge or 1) * _CREDIT_BYTES:
        raise SmbError(Status.INVALID_PARAMETER)


async def _create(call: Call, row: "Command") -> Reply:
    """A tree may be disconnected while an open is made in it: then the open must not stay. A failure is that of what follows."""
    chain, tree = call.chain, call.tree
    chain.open = chain.failure = None
    handler = row.pipe_handler if tree.is_pipe and row.pipe_handler is not None else row.handler
    try:
        reply = await handler(call)
    except SmbError as error:
        chain.failure = error.status
        raise
    except StorageError as error:
        chain.failure = status_of(error)
        raise
    if not tree.is_connected:
        await close_opens(call.ctx, call.session.opens.take(tree))
        raise SmbError(Status.NETWORK_NAME_DELETED)
    return reply

"""CANCEL (MS-SMB2 3.3.5.16): ends a request that waits. It has no answer, costs no credit, and names a request by its message id
or by the async id of its interim answer."""

from typing import TYPE_CHECKING

from verditer.smb.sessions import Session
from verditer.smb.status import Status
from verditer.smb.wire.header import CommandNumber, Flags, Header

if TYPE_CHECKING:
    from verditer.smb.call import Call
    from verditer.smb.connection import SmbConnection


def is_cancel(connection: "SmbConnection", header: Header, message: memoryview, sealed: Session | None) -> bool:
    """Perform it if it is one. It has to be signed or encrypted like every other request; otherwise nothing happens."""
    if header.command != CommandNumber.CANCEL:
        return False
    session = connection.sessions.get(header.session_id)
    if session is None or session.signing is None:
        return True
    if sealed is not None or (header.is_signed and session.signing.verify(message, header.message_id, is_cancel=True)):
        _cancel(connection, header)
    return True


def _cancel(connection: "SmbConnection", header: Header) -> None:
    for call in list(connection.waiting.values()):
        if _is_meant(call, header):
            call.end(Status.CANCELLED)
            return
    for chain in connection.chains.values():  # the request may have begun and not wait yet
        chain.cancel_later(header)


def _is_meant(call: "Call", header: Header) -> bool:
    if call.session.session_id != header.session_id:
        return False
    if header.flags & Flags.ASYNC:
        return call.async_id == header.async_id
    return call.header.message_id == header.message_id

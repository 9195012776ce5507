"""Binding: a client asks to use a session on a second connection. That is refused, as multichannel is not offered.

The answer says what Windows says and is signed with the key of the session. Another worker may serve the session: the record of
the session has what is needed here, encrypted with a secret that the workers of one server share.
"""

import os

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from verditer.services.file.handles.processes.sessions import find_session
from verditer.smb.call import Call
from verditer.smb.crypto.signing import Signing
from verditer.smb.sessions import Session
from verditer.smb.setup.negotiate import Negotiated
from verditer.smb.status import Status
from verditer.smb.wire.negotiate import SigningAlgorithm, SmbDialect

_NONCE_BYTES = 12


class SessionDetails(msgspec.Struct, frozen=True, array_like=True):
    """What a refusal depends on, and the key that signs it."""

    dialect: int
    cipher: int
    signing: int
    signing_key: bytes


def seal_details(secret: bytes, session_id: int, negotiated: Negotiated, signing_key: bytes) -> bytes:
    details = SessionDetails(negotiated.dialect, negotiated.cipher, negotiated.signing, signing_key)
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(secret).encrypt(nonce, msgspec.msgpack.encode(details), session_id.to_bytes(8, "big"))


def unseal_details(secret: bytes, session_id: int, sealed: bytes) -> SessionDetails | None:
    """None: another server has sealed them."""
    try:
        plain = AESGCM(secret).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], session_id.to_bytes(8, "big"))
    except InvalidTag:
        return None
    return msgspec.msgpack.decode(plain, type=SessionDetails)


async def refusal_to_bind(call: Call) -> Status:
    header, here = call.header, call.connection.negotiated
    found = await find_session(call.ctx, header.session_id)
    there = unseal_details(call.ctx.handles.secret, header.session_id, found.details) if found is not None else None
    if there is None or here is None:
        return Status.USER_SESSION_DELETED
    signing = Signing(there.signing, there.signing_key)
    if not header.is_signed or not signing.verify(call.message, header.message_id):
        return Status.ACCESS_DENIED
    call.session = Session(session_id=header.session_id, connection=call.connection, signing=signing)
    if (here.signing == SigningAlgorithm.AES_GMAC) is not (there.signing == SigningAlgorithm.AES_GMAC):
        return Status.NOT_SUPPORTED if here.signing == SigningAlgorithm.AES_GMAC else Status.REQUEST_OUT_OF_SEQUENCE
    if here.dialect < SmbDialect.SMB_3_0:
        return Status.REQUEST_NOT_ACCEPTED
    if (here.dialect, here.cipher) != (there.dialect, there.cipher):
        return Status.INVALID_PARAMETER
    return Status.REQUEST_NOT_ACCEPTED

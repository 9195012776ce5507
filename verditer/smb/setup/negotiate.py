"""NEGOTIATE: the dialect, the algorithms for integrity, signatures and encryption, and the sizes of a connection."""

import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple

from verditer.core.files.times import to_filetime
from verditer.smb.auth.spnego import first_offer
from verditer.smb.call import Call, Reply
from verditer.smb.dispatch import ConnectionBroken
from verditer.smb.limits import MAX_IO_BYTES, MAX_IO_BYTES_2_0_2
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.header import HEADER_BYTES, MAGIC, NO_SIGNATURE, Flags, Header, build_header
from verditer.smb.wire.negotiate import (
    SHA_512,
    Cipher,
    ContextType,
    NegotiateAnswer,
    NegotiateRequest,
    SigningAlgorithm,
    SmbDialect,
    build_negotiate,
    choice_context,
    hash_algorithms_of,
    numbers_of,
    parse_negotiate,
    parse_smb1_negotiate,
    preauth_context,
)

if TYPE_CHECKING:
    from verditer.smb.connection import SmbConnection

SIGNING_ENABLED_AND_REQUIRED = 0x3
LARGE_MTU, ENCRYPTION = 0x4, 0x40
_DIALECTS = (SmbDialect.SMB_3_1_1, SmbDialect.SMB_3_0_2, SmbDialect.SMB_3_0, SmbDialect.SMB_2_1, SmbDialect.SMB_2_0_2)
_CIPHERS = frozenset(Cipher)
# Measured for 64 KiB: GMAC 24 µs, HMAC-SHA256 69 µs, CMAC 118 µs.
_SIGNING_PREFERENCE = (SigningAlgorithm.AES_GMAC, SigningAlgorithm.AES_CMAC, SigningAlgorithm.HMAC_SHA256)
_SALT_BYTES = 32


class Negotiated(NamedTuple):
    """What FSCTL_VALIDATE_NEGOTIATE_INFO compares, and what a login needs. `cipher` 0: no encryption."""

    request: NegotiateRequest
    dialect: int
    capabilities: int
    signing: int
    cipher: int


async def negotiate(call: Call) -> Reply:
    connection = call.connection
    if connection.negotiated is not None:
        raise ConnectionBroken("a second NEGOTIATE")
    request = parse_negotiate(call.message)
    negotiated, contexts = _choose(request)
    connection.negotiated = negotiated
    connection.dialect = negotiated.dialect
    connection.has_large_mtu = bool(negotiated.capabilities & LARGE_MTU)
    connection.max_io_bytes = MAX_IO_BYTES if connection.has_large_mtu else MAX_IO_BYTES_2_0_2
    if negotiated.dialect == SmbDialect.SMB_3_1_1:
        connection.preauth_hash = hashlib.sha512(connection.preauth_hash + call.message).digest()
    return Reply(_answer(connection, negotiated.dialect, negotiated.capabilities, contexts))


def _choose(request: NegotiateRequest) -> tuple[Negotiated, tuple[tuple[int, bytes], ...]]:
    dialect = next((dialect for dialect in _DIALECTS if dialect in request.dialects), None)
    if dialect is None:
        raise SmbError(Status.NOT_SUPPORTED)
    if dialect == SmbDialect.SMB_3_1_1:
        return _choose_3_1_1(request)
    capabilities = LARGE_MTU if dialect >= SmbDialect.SMB_2_1 else 0
    cipher, signing = 0, SigningAlgorithm.HMAC_SHA256
    if dialect >= SmbDialect.SMB_3_0:
        signing = SigningAlgorithm.AES_CMAC
        if request.capabilities & ENCRYPTION:
            capabilities |= ENCRYPTION
            cipher = Cipher.AES_128_CCM
    return Negotiated(request, dialect, capabilities, signing, cipher), ()


def _choose_3_1_1(request: NegotiateRequest) -> tuple[Negotiated, tuple[tuple[int, bytes], ...]]:
    found = request.contexts
    if ContextType.PREAUTH not in found:
        raise SmbError(Status.INVALID_PARAMETER)
    if SHA_512 not in hash_algorithms_of(found[ContextType.PREAUTH]):
        raise SmbError(Status.SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP)
    contexts = [preauth_context(os.urandom(_SALT_BYTES))]
    cipher, signing = 0, int(SigningAlgorithm.AES_CMAC)
    if ContextType.ENCRYPTION in found:
        cipher = next((offered for offered in numbers_of(found[ContextType.ENCRYPTION]) if offered in _CIPHERS), 0)
        contexts.append(choice_context(ContextType.ENCRYPTION, cipher))
    if ContextType.SIGNING in found:
        offered = numbers_of(found[ContextType.SIGNING])
        signing = next((ours for ours in _SIGNING_PREFERENCE if ours in offered), signing)
        contexts.append(choice_context(ContextType.SIGNING, signing))
    return Negotiated(request, SmbDialect.SMB_3_1_1, LARGE_MTU, signing, cipher), tuple(contexts)


def _answer(connection: "SmbConnection", dialect: int, capabilities: int, contexts: tuple[tuple[int, bytes], ...]) -> bytes:
    return build_negotiate(
        NegotiateAnswer(
            security_mode=SIGNING_ENABLED_AND_REQUIRED,
            dialect=dialect,
            server_guid=connection.server.guid,
            capabilities=capabilities,
            max_bytes=MAX_IO_BYTES if capabilities & LARGE_MTU else MAX_IO_BYTES_2_0_2,
            system_time=to_filetime(connection.ctx.now()),
            token=first_offer(),
            contexts=contexts,
        )
    )


def answer_smb1(connection: "SmbConnection", message: memoryview) -> None:
    """An SMB1 client that can also speak SMB2 is told so, and begins again. SMB1 itself is not served."""
    dialects = parse_smb1_negotiate(message)
    if connection.negotiated is not None or dialects is None or not connection.credits.use(0, 1):
        connection.abort()
        return
    if b"SMB 2.???" in dialects:
        body = _answer(connection, SmbDialect.WILDCARD, LARGE_MTU, ())
    elif b"SMB 2.002" in dialects:
        body = _answer(connection, SmbDialect.SMB_2_0_2, 0, ())
        request = NegotiateRequest((SmbDialect.SMB_2_0_2,), 0, 0, bytes(16), {})
        connection.negotiated = Negotiated(request, SmbDialect.SMB_2_0_2, 0, SigningAlgorithm.HMAC_SHA256, 0)
        connection.dialect = SmbDialect.SMB_2_0_2
    else:
        connection.abort()
        return
    first = Header(MAGIC, HEADER_BYTES, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, NO_SIGNATURE)
    granted = connection.credits.grant(1)
    header = build_header(
        first, status=Status.SUCCESS, credits_granted=granted, flags=Flags.RESPONSE, next_command=0, tree_id=0, session_id=0
    )
    connection.send([header, body], None)

"""SESSION_SETUP and LOGOFF: logins with the name and a key of a storage account."""

import asyncio
import hashlib
import logging
import secrets
from functools import partial
from typing import TYPE_CHECKING

from verditer.core.files.times import to_filetime
from verditer.core.names import AccountName
from verditer.services.file.handles.processes.sessions import end_former_session, record_session
from verditer.services.properties import get_service_properties
from verditer.smb.auth.acceptor import Login, LoginAcceptor, LoginError, LoginStep
from verditer.smb.call import Call, Reply
from verditer.smb.crypto.keys import derive_keys
from verditer.smb.crypto.sealing import CIPHERS, Sealing
from verditer.smb.crypto.signing import Signing
from verditer.smb.dispatch import ConnectionBroken
from verditer.smb.ending import end_session, end_session_soon
from verditer.smb.limits import MAX_LOGINS, MAX_SESSIONS
from verditer.smb.sessions import Session, SessionState
from verditer.smb.setup.binding import refusal_to_bind, seal_details
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.negotiate import Cipher, SmbDialect
from verditer.smb.wire.session import BINDING, EMPTY, ENCRYPT_DATA, build_session_setup, parse_session_setup

if TYPE_CHECKING:
    from verditer.smb.connection import SmbConnection
    from verditer.smb.setup.negotiate import Negotiated

logger = logging.getLogger("verditer")


async def session_setup(call: Call) -> Reply:
    """One step of a login. The first makes a session, the last makes it valid or forgets it."""
    if call.connection.negotiated is None:
        raise ConnectionBroken("SESSION_SETUP before NEGOTIATE")
    request = parse_session_setup(call.message)
    if request.flags & BINDING:
        raise SmbError(await refusal_to_bind(call))
    session = _session_of(call)
    call.session = call.chain.session = session
    if session.state is SessionState.IN_PROGRESS and call.connection.dialect == SmbDialect.SMB_3_1_1:
        session.preauth_hash = hashlib.sha512(session.preauth_hash + call.message).digest()
    step = await _step(call, session, bytes(request.token))
    if step.login is None:
        return Reply(build_session_setup(0, step.token), Status.MORE_PROCESSING_REQUIRED)
    if session.state is SessionState.VALID:
        return await _logged_in_again(call, session, step.login, step.token)
    await _admit(call.connection, session, step.login)
    await _end_previous(call.connection, session, request.previous_session_id)
    return Reply(build_session_setup(ENCRYPT_DATA if session.requires_encryption else 0, step.token))


def _session_of(call: Call) -> Session:
    """The session that the request goes on with, or a new one."""
    connection, session_id = call.connection, call.header.session_id
    if session_id:
        session = connection.sessions.get(session_id)
        if session is None:
            raise SmbError(Status.USER_SESSION_DELETED)
        return session
    running = sum(session.state is SessionState.IN_PROGRESS for session in connection.sessions.values())
    if len(connection.sessions) >= MAX_SESSIONS or running >= MAX_LOGINS:
        raise SmbError(Status.INSUFFICIENT_RESOURCES)
    session = Session(session_id=_new_id(connection), connection=connection, preauth_hash=connection.preauth_hash)
    connection.sessions[session.session_id] = session
    return session


def _new_id(connection: "SmbConnection") -> int:
    """An id that no session of this connection has; a login whose id another connection's session has fails. It has 32 bits, as
    with other servers: some clients keep no more."""
    while True:
        number = secrets.randbits(31) | 1 << 31
        if number not in connection.sessions:
            return number


async def _step(call: Call, session: Session, token: bytes) -> LoginStep:
    connection = call.connection
    if session.acceptor is None:
        again = session.state is SessionState.VALID
        now = to_filetime(call.ctx.now())
        session.acceptor = LoginAcceptor(call.ctx.accounts, connection.server.name, now, admits_nobody=again)
    try:
        step = session.acceptor.step(token)
    except LoginError as error:
        session.acceptor = None
        logger.debug("SMB client %s: the login failed: %s", connection.address, error)
        await end_session(session)
        await asyncio.sleep(connection.server.failures.failed(connection.host))
        raise SmbError(Status.INVALID_PARAMETER if error.is_malformed else Status.LOGON_FAILURE) from None
    if step.login is not None:
        session.acceptor = None
        connection.server.failures.succeeded(connection.host)
    return step


async def _admit(connection: "SmbConnection", session: Session, login: Login) -> None:
    """The login is right. The settings of the File service may still forbid it, as on Azure."""
    negotiated = connection.negotiated
    assert negotiated is not None
    properties = await get_service_properties(connection.ctx, AccountName(login.account, "file"))
    required = connection.server.requires_encryption or bool(properties.protocol_settings.smb_encryption_required)
    if required and not negotiated.cipher:
        await end_session(session)
        raise SmbError(Status.ACCESS_DENIED)
    session.account, session.client_name = login.account, login.client_name
    session.requires_encryption = required
    signing_key = _give_keys(session, login.session_key, negotiated)
    details = seal_details(connection.ctx.handles.secret, session.session_id, negotiated, signing_key)
    end = partial(end_session_soon, session)
    if not await record_session(connection.ctx, session.session_id, session.account, details, end):
        await end_session(session)
        raise SmbError(Status.INSUFFICIENT_RESOURCES)
    session.state = SessionState.VALID


def _give_keys(session: Session, session_key: bytes, negotiated: "Negotiated") -> bytes:
    """Returns the key that signs."""
    cipher = negotiated.cipher
    key_bytes = CIPHERS[Cipher(cipher)].key_bytes if cipher else 16
    keys = derive_keys(session_key, negotiated.dialect, session.preauth_hash, key_bytes)
    session.signing = Signing(negotiated.signing, keys.signing)
    if cipher:
        session.sealing = Sealing(cipher, session.session_id, keys.client_to_server, keys.server_to_client)
    return keys.signing


async def _logged_in_again(call: Call, session: Session, login: Login, token: bytes) -> Reply:
    """A session may log in again, as the same account or anonymously. Its keys stay."""
    session.is_anonymous = not login.account
    if login.account not in (session.account, ""):
        await end_session(session)
        raise SmbError(Status.ACCESS_DENIED)
    return Reply(build_session_setup(ENCRYPT_DATA if session.requires_encryption else 0, token))


async def _end_previous(connection: "SmbConnection", session: Session, previous_id: int) -> None:
    """A client that lost its connection names its former session, whose opens would stand in its way."""
    if previous_id and previous_id != session.session_id:
        await end_former_session(connection.ctx, session.account, previous_id)


async def logoff(call: Call) -> Reply:
    await end_session(call.session)
    return Reply(EMPTY)


async def echo(call: Call) -> Reply:
    return Reply(EMPTY)

"""One login: tokens of the client come in, answers go out, until the client is known or refused."""

import base64
import hmac
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from verditer.services.account import Account
from verditer.smb.auth import ntlm, spnego
from verditer.smb.auth.ntlm import NtlmError
from verditer.smb.auth.spnego import TokenError

MAX_TOKEN_BYTES = 16 * 1024
MAX_KEPT_BYTES = 1024  # of a message that is kept until the login ends: an honest one has some 40 bytes, and 80 of mechanisms


class LoginError(Exception):
    """The login has failed. The text is for the log only."""

    is_malformed = False


class MalformedLogin(LoginError):
    """The client has sent a message that cannot be read."""

    is_malformed = True


class Login(NamedTuple):
    """A login that has succeeded."""

    account: str
    session_key: bytes
    client_name: str


class LoginStep(NamedTuple):
    """The answer to one token. `login` is given with the last."""

    token: bytes
    login: Login | None = None


class LoginAcceptor:
    """`admits_nobody`: a login without a user is accepted, as that of the account "". It is for sessions that log in again."""

    def __init__(self, accounts: Mapping[str, Account], server_name: str, filetime: int, *, admits_nobody: bool = False) -> None:
        self._accounts = accounts
        self._admits_nobody = admits_nobody
        self._server_name = server_name
        self._filetime = filetime
        self._nonce = os.urandom(8)
        self._negotiate = b""
        self._challenge = b""
        self._mechanisms = b""
        self._is_raw = False  # NTLM without SPNEGO around it
        self._needs_mic = False

    def step(self, token: bytes) -> LoginStep:
        if len(token) > MAX_TOKEN_BYTES:
            raise LoginError("the token is too long")
        try:
            if token.startswith(ntlm.SIGNATURE):
                self._is_raw = True
                return self._ntlm(token, b"")
            return self._spnego(spnego.parse_token(token))
        except ntlm.MalformedResponse as error:
            raise MalformedLogin(str(error)) from None
        except (TokenError, NtlmError) as error:
            raise LoginError(str(error)) from None

    def _spnego(self, token: spnego.ClientToken) -> LoginStep:
        if token.mechanisms:
            if not token.offers_ntlm:
                raise LoginError("NTLM is not offered")
            if len(token.mechanisms) > MAX_KEPT_BYTES:
                raise LoginError("the list of mechanisms is too long")
            self._mechanisms = token.mechanisms
            if not token.prefers_ntlm or not token.token:
                self._needs_mic = not token.prefers_ntlm
                return LoginStep(spnego.answer(spnego.ACCEPT_INCOMPLETE, names_mechanism=True))
        return self._ntlm(token.token, token.mic)

    def _ntlm(self, message: bytes, mic: bytes) -> LoginStep:
        kind = ntlm.message_type(message)
        if kind == ntlm.NEGOTIATE and not self._challenge:
            return self._challenged(message)
        if kind == ntlm.AUTHENTICATE and self._challenge:
            return self._authenticated(message, mic)
        raise LoginError("an NTLM message comes out of order")

    def _challenged(self, negotiate: bytes) -> LoginStep:
        if len(negotiate) > MAX_KEPT_BYTES:
            raise LoginError("the first message is too long")
        self._negotiate = negotiate
        self._challenge = ntlm.build_challenge(negotiate, self._nonce, self._server_name, self._filetime)
        if self._is_raw:
            return LoginStep(self._challenge)
        return LoginStep(spnego.answer(spnego.ACCEPT_INCOMPLETE, token=self._challenge, names_mechanism=True))

    def _authenticated(self, message: bytes, mic: bytes) -> LoginStep:
        if self._admits_nobody and ntlm.is_anonymous(message):
            public_key, flags = ntlm.anonymous_session_key(message)
            return LoginStep(self._last_token(flags, public_key, mic), Login("", public_key, ""))
        response = ntlm.parse_authenticate(message)
        account = self._account(response.user)
        hashes = [_nt_hash(key) for key in account.keys] if account is not None else [bytes(16)]
        session_key = ntlm.session_key_of(response, self._nonce, hashes)
        if account is None or session_key is None:
            raise LoginError(f"unknown account or wrong key: {response.user!r}")
        if not ntlm.has_valid_mic(response, session_key, self._negotiate, self._challenge):
            raise LoginError("the messages of the login were changed on their way")
        login = Login(account.name, session_key, response.workstation)
        return LoginStep(self._last_token(response.flags, session_key, mic), login)

    def _account(self, user: str) -> Account | None:
        """The case of the name does not matter."""
        folded = user.lower()
        return next((account for account in self._accounts.values() if account.name.lower() == folded), None)

    def _last_token(self, flags: int, session_key: bytes, mic: bytes) -> bytes:
        """With the MIC of the list of mechanisms, when the client sent its own."""
        if self._is_raw:
            return b""
        if not mic:
            if self._needs_mic:
                raise LoginError("the list of mechanisms is not protected")
            return spnego.answer(spnego.ACCEPT_COMPLETED)
        from_client, from_server = ntlm.message_signatures(session_key, flags, self._mechanisms)
        if not hmac.compare_digest(mic, from_client):
            raise LoginError("the list of mechanisms was changed on its way")
        return spnego.answer(spnego.ACCEPT_COMPLETED, mic=from_server)


@lru_cache(maxsize=1024)
def _nt_hash(key: bytes) -> bytes:
    """The password of an account is the text of its key."""
    return ntlm.nt_hash(base64.b64encode(key).decode())

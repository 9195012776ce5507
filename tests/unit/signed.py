"""Shared by the tests of authentication: an account with two keys, a fixed time, and requests as the front end passes them."""

import asyncio
import base64
import hashlib
import hmac

from verditer.core.dates import parse_iso
from verditer.core.errors import StorageError
from verditer.core.grant import ContainerAccess, Grant
from verditer.rest.address import parse_address
from verditer.rest.auth import authenticate
from verditer.rest.http.message import Request
from verditer.rest.services import SERVICES
from verditer.services.account import Account

ROWS = {row.name: row for row in SERVICES}
KEY_1 = base64.b64encode(b"the first key of this account, 1").decode()
KEY_2 = base64.b64encode(b"the second key of this account 2").decode()
ACCOUNT = Account(name="acct", keys=(base64.b64decode(KEY_1), base64.b64decode(KEY_2)))
NOW = parse_iso("2026-03-04T05:06:07Z") or 0
NOW_TEXT = "Wed, 04 Mar 2026 05:06:07 GMT"
PATH_STYLE = "127.0.0.1:10000"
HOST_STYLE = "acct.blob.example.org"


class NoBody:
    length: int | None = 0
    ended: bool = True

    async def read(self) -> bytes:
        return b""

    async def read_all(self, limit: int) -> bytes:
        return b""


def signature(text: str, key: str = KEY_1) -> str:
    """Computed independently of the code under test."""
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


def grant_for(
    target: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    host: str = PATH_STYLE,
    service: str = "blob",
    now: int = NOW,
    peer: str = "127.0.0.1",
    secure: bool = False,
    access: ContainerAccess | None = None,
    asked: list[str] | None = None,
) -> Grant:
    """Authenticate; `asked` collects the containers whose access policies were read."""

    async def container_access(account: str, container: str) -> ContainerAccess | None:
        if asked is not None:
            asked.append(container)
        return access

    lower = {name.lower(): value for name, value in (headers or {}).items()}
    request = Request(method=method, target=target, headers=lower, raw_headers=[], body=NoBody(), peer=peer, secure=secure)
    return asyncio.run(
        authenticate(request, parse_address(target, host, accounts=()), ROWS[service], ACCOUNT, now, container_access)
    )


def refusal_of(target: str, **circumstances: object) -> tuple[str, str]:
    """The code and detail of the error; fails if the request is granted."""
    try:
        grant_for(target, **circumstances)  # type: ignore[arg-type]
    except StorageError as error:
        text = f"{error.message} {error.reason} {error.details}"
        for key in (KEY_1, KEY_2):
            assert key not in text
        return error.code.azure_code, error.reason
    raise AssertionError("the request was granted")

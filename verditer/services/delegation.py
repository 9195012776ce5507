"""User delegation keys, with which the bearer of a token signs a SAS instead of with the account key.

Keys are not stored. The value of a key is derived from a secret of the store and from all fields that identify the key, so every
process of the store can derive it again from the fields of a SAS (`key_value`).
"""

import hmac
import secrets

import msgspec

from verditer.core.dates import iso, seconds, truncate
from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.core.names import AccountName
from verditer.services.context import Context
from verditer.services.secret import stored_secret

MAX_AHEAD = seconds(7 * 86400)  # Get User Delegation Key: both times lie within seven days of the current time
_SECRET = "user delegation"


class GetUserDelegationKey(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    expiry: int
    start: int | None = None
    delegated_tid: str = ""


class DelegationKey(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """All fields that a key is derived from. `delegated_tid` is the tenant of the one user that a SAS may be limited to."""

    account: str
    oid: str
    tid: str
    start: int
    expiry: int
    service: str
    version: str
    delegated_tid: str


class UserDelegationKey(msgspec.Struct, frozen=True, kw_only=True):
    key: DelegationKey
    value: bytes


async def get_user_delegation_key(
    ctx: Context, target: AccountName, request: GetUserDelegationKey, grant: Grant
) -> UserDelegationKey:
    assert grant.user is not None  # the row requires a bearer token
    now = ctx.now()
    start = truncate(now if request.start is None else request.start)
    expiry = truncate(request.expiry)
    if abs(start - now) > MAX_AHEAD:
        raise _refused("start", start)
    if not max(start, now) < expiry <= now + MAX_AHEAD:
        raise _refused("expiry", expiry)
    key = DelegationKey(
        account=target.account,
        oid=grant.user.oid,
        tid=grant.user.tid,
        start=start,
        expiry=expiry,
        service=target.service[:1],
        version=request.version,
        delegated_tid=request.delegated_tid,
    )
    return UserDelegationKey(key=key, value=await key_value(ctx, key))


async def key_value(ctx: Context, key: DelegationKey) -> bytes:
    return hmac.digest(await stored_secret(ctx, _SECRET, lambda: secrets.token_bytes(32)), msgspec.msgpack.encode(key), "sha256")


def _refused(field: str, value: int) -> StorageError:
    return StorageError(Code.InvalidXmlNodeValue, field=field, value=iso(value))

"""User delegation keys: what the bearer of a token signs a SAS with, instead of the account key.

No key is stored. Its value is derived from a secret of the store and from everything that names the key, so every process of
the store can derive it again from what a SAS says (`key_value`), and nobody else can.
"""

import hmac
import secrets

import msgspec

from verditer.core.dates import iso, seconds, truncate
from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.core.names import AccountName
from verditer.core.records.secret import Secret
from verditer.partition.engine import Transaction
from verditer.services.context import Context

MAX_AHEAD = seconds(7 * 86400)  # Get User Delegation Key: both times lie within seven days of the current time
_NAME = "user delegation"
_SCOPE = ("secrets",)


class GetUserDelegationKey(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    expiry: int
    start: int | None = None
    delegated_tid: str = ""


class DelegationKey(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Everything a key is derived from. `delegated_tid` is the tenant of the one user a SAS may be limited to."""

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
    assert grant.user is not None  # the row asks for a bearer token
    now = ctx.now()
    start = truncate(now if request.start is None else request.start)
    expiry = truncate(request.expiry)
    if abs(start - now) > MAX_AHEAD:
        raise _refused("Start", start)
    if not max(start, now) < expiry <= now + MAX_AHEAD:
        raise _refused("Expiry", expiry)
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
    return hmac.digest(await _secret(ctx), msgspec.msgpack.encode(key), "sha256")


async def _secret(ctx: Context) -> bytes:
    """Read each time: a secret that is replaced makes all former keys worthless at once."""
    stored = await ctx.engine.read(_SCOPE, lambda tx: tx.get(Secret, _NAME))
    if stored is not None:
        return stored.value
    made = Secret(name=_NAME, value=secrets.token_bytes(32))

    def commit(tx: Transaction) -> bytes:
        """Of two that come first at the same time, both use what the earlier one put."""
        stored = tx.get(Secret, _NAME)
        if stored is None:
            tx.put(made)
        return (stored or made).value

    return await ctx.engine.write(_SCOPE, commit)


def _refused(name: str, value: int) -> StorageError:
    return StorageError(Code.InvalidXmlNodeValue, details={"XmlNodeName": name, "XmlNodeValue": iso(value)})

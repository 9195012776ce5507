"""Who is calling: a request becomes a `Grant`, or a refusal. What the grant is good for, `core.grant.admit` decides.

`shared_key`, `sas`, `delegation`, `oauth` and `anonymous` are the schemes; nothing here reads a record: the pipeline brings
the account and, when a scheme asks for it, what the container says (`container_access`) or a delegation key (`key_value`).
"""

from dataclasses import replace
from enum import Enum
from typing import Literal

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.rest.address import Address
from verditer.rest.auth import anonymous, delegation, oauth, sas, shared_key
from verditer.rest.auth.signature import authentication_failed
from verditer.rest.auth.target import holder_of
from verditer.rest.message import Request
from verditer.services.account import Account

Service = Literal["blob", "queue", "table", "file"]


class Credentials(Enum):
    SHARED_KEY = "Shared Key or Shared Key Lite"
    SAS = "shared access signature"
    DELEGATION_SAS = "user delegation SAS"
    BEARER = "bearer token"
    ANONYMOUS = "none"


async def authenticate(
    request: Request,
    address: Address,
    service: Service,
    account: Account,
    now: int,
    container_access: anonymous.Access,
    trust: oauth.Trust | None = None,
    key_value: delegation.KeyValue | None = None,
) -> Grant:
    """`container_access` is awaited for anonymous callers and for a SAS that names a stored access policy, never else."""
    scheme = scheme_of(request, address)
    if scheme is Credentials.SAS:
        token = sas.token_of(address, service, account)
        if token.policy:
            token = sas.with_policy(token, await container_access(account.name, holder_of(address, service)))
        sas.check_circumstances(token, request, service, now)
        return token.grant
    if scheme is Credentials.SHARED_KEY:
        return shared_key.authenticate(request, address, service, account, now)
    if scheme is Credentials.BEARER:
        return await oauth.authenticate(request, address, service, account, now, trust)
    if scheme is Credentials.DELEGATION_SAS:
        return await delegation.authenticate(request, address, service, account, now, trust, key_value)
    grant = await anonymous.authenticate(request, address, service, container_access)
    return grant if trust is None else replace(grant, challenge=trust.challenge)


def scheme_of(request: Request, address: Address) -> Credentials:
    authorization = request.headers.get("authorization")
    if authorization is None:
        if "sig" not in address.query:
            return Credentials.ANONYMOUS
        return Credentials.DELEGATION_SAS if "skoid" in address.query else Credentials.SAS
    scheme = authorization.partition(" ")[0].lower()
    if "sig" in address.query:
        if scheme == "bearer" and "skoid" in address.query and "sduoid" in address.query:
            return Credentials.DELEGATION_SAS  # good for one user only, who has to say so
        raise authentication_failed("A request carries an Authorization header or a shared access signature, not both.")
    if scheme in ("sharedkey", "sharedkeylite"):
        return Credentials.SHARED_KEY
    if scheme == "bearer":
        return Credentials.BEARER
    raise StorageError(Code.InvalidAuthenticationInfo)

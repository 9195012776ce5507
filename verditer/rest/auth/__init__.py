"""Who is calling: a request becomes a `Grant`, or an error. `core.grant.admit` decides what the grant allows.

The schemes are `shared_key`, `sas`, `delegation`, `oauth` and `anonymous`. Nothing here reads a record: the pipeline passes the
account and two functions, which read what a container says about its callers (`read_access`) and a delegation key (`key_value`).
"""

from dataclasses import replace
from enum import Enum

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.rest.address import Address
from verditer.rest.auth import anonymous, delegation, oauth, sas, shared_key
from verditer.rest.auth.signature import authentication_failed
from verditer.rest.http.message import Request
from verditer.rest.service import Service
from verditer.services.account import Account


class CredentialKind(Enum):
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
    read_access: anonymous.ReadAccess,
    trust: oauth.Trust | None = None,
    key_value: delegation.KeyValue | None = None,
) -> Grant:
    """`read_access` is awaited only for anonymous callers and for a SAS that names a stored access policy."""
    scheme = scheme_of(request, address)
    if scheme is CredentialKind.SAS:
        token = sas.token_of(address, service, account)
        if token.policy:
            token = sas.with_policy(token, await read_access(account.name, service.policies.holder(address)))
        sas.check_circumstances(token, request, service, now)
        return token.grant
    if scheme is CredentialKind.SHARED_KEY:
        return shared_key.authenticate(request, address, service, account, now)
    if scheme is CredentialKind.BEARER:
        return await oauth.authenticate(request, address, service, account, now, trust)
    if scheme is CredentialKind.DELEGATION_SAS:
        return await delegation.authenticate(request, address, service, account, now, trust, key_value)
    grant = await anonymous.authenticate(request, address, service, read_access)
    return grant if trust is None else replace(grant, authorization_uri=trust.authorization_uri)


def scheme_of(request: Request, address: Address) -> CredentialKind:
    authorization = request.headers.get("authorization")
    if authorization is None:
        if "sig" not in address.query:
            return CredentialKind.ANONYMOUS
        return CredentialKind.DELEGATION_SAS if "skoid" in address.query else CredentialKind.SAS
    scheme = authorization.partition(" ")[0].lower()
    if "sig" in address.query:
        if scheme == "bearer" and "skoid" in address.query and "sduoid" in address.query:
            return CredentialKind.DELEGATION_SAS  # it is for one user, whose bearer token comes with it
        raise authentication_failed("A request carries an Authorization header or a shared access signature, not both.")
    if scheme in ("sharedkey", "sharedkeylite"):
        return CredentialKind.SHARED_KEY
    if scheme == "bearer":
        return CredentialKind.BEARER
    raise StorageError(Code.InvalidAuthenticationInfo)

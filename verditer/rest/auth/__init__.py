"""Who is calling: a request becomes a `Grant`, or a refusal. What the grant is good for, `core.grant.admit` decides.

`shared_key`, `sas` and `anonymous` are the schemes; nothing here reads a record: the pipeline brings the account and,
when a scheme asks for it, what the container says (`container_access`).
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Literal

from verditer.core.errors import Code, StorageError
from verditer.core.grant import ContainerAccess, Grant
from verditer.rest.address import Address
from verditer.rest.auth import anonymous, sas, shared_key
from verditer.rest.auth.signature import authentication_failed
from verditer.rest.message import Request
from verditer.services.account import Account

Service = Literal["blob", "queue", "table", "file"]


class Credentials(Enum):
    SHARED_KEY = "Shared Key or Shared Key Lite"
    SAS = "shared access signature"
    ANONYMOUS = "none"


async def authenticate(
    request: Request,
    address: Address,
    service: Service,
    account: Account,
    now: int,
    container_access: Callable[[str], Awaitable[ContainerAccess | None]],
) -> Grant:
    """`container_access` is awaited for anonymous callers and for a SAS that names a stored access policy, never else."""
    scheme = scheme_of(request, address)
    if scheme is Credentials.SAS:
        return await sas.authenticate(request, address, service, account, now, container_access)
    if scheme is Credentials.SHARED_KEY:
        return shared_key.authenticate(request, address, service, account, now)
    return await anonymous.authenticate(request, address, service, container_access)


def scheme_of(request: Request, address: Address) -> Credentials:
    authorization = request.headers.get("authorization")
    if authorization is None:
        return Credentials.SAS if "sig" in address.query else Credentials.ANONYMOUS
    if "sig" in address.query:
        raise authentication_failed("A request carries an Authorization header or a shared access signature, not both.")
    scheme = authorization.partition(" ")[0].lower()
    if scheme in ("sharedkey", "sharedkeylite"):
        return Credentials.SHARED_KEY
    if scheme == "bearer":
        raise authentication_failed("Bearer tokens are not accepted by this server yet.")
    raise StorageError(Code.InvalidAuthenticationInfo)

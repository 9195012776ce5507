"""Callers without credentials: they reach what the public access level of a container opens, which `admit` decides."""

from collections.abc import Awaitable, Callable

from verditer.core.grant import ContainerAccess, Grant, Scheme
from verditer.rest.address import Address
from verditer.rest.auth.signature import stated_version
from verditer.rest.http.message import Request
from verditer.rest.service import Service

ReadAccess = Callable[[str, str], Awaitable[ContainerAccess | None]]
"""(account, container, queue or table) → what it says about its callers."""


async def authenticate(request: Request, address: Address, service: Service, read_access: ReadAccess) -> Grant:
    container = service.policies.holder(address) if service.anonymous else ""
    access = await read_access(address.account, container) if container else None
    reach = (access.public_access or "") if access is not None else ""
    return Grant(scheme=Scheme.ANONYMOUS, reach=reach, version=stated_version(request, address))

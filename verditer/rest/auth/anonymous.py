"""Callers without credentials: they reach what the container's public access level opens, which `admit` then decides."""

from collections.abc import Awaitable, Callable

from verditer.core.grant import ContainerAccess, Grant, Scheme
from verditer.rest.address import Address
from verditer.rest.auth.target import target_of
from verditer.rest.message import Request

Access = Callable[[str, str], Awaitable[ContainerAccess | None]]
"""What a container, queue or table of an account says about its callers."""


async def authenticate(
    request: Request,
    address: Address,
    service: str,
    container_access: Access,
) -> Grant:
    container, _ = target_of(address)
    access = await container_access(address.account, container) if container and service == "blob" else None
    version = request.headers.get("x-ms-version") or request.outer_version or address.query.get("api-version", "")
    return Grant(scheme=Scheme.ANONYMOUS, reach=(access.public_access or "") if access else "", version=version)

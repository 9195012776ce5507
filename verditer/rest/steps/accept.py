"""Locate and accept: which account and path a request names, and by the rules of which version it is served."""

import logging
import re
from collections.abc import Coroutine
from typing import Any

from verditer.core.caches import bounded_cache
from verditer.core.dates import iso, seconds
from verditer.core.errors import Code, StorageError
from verditer.core.names import AccountName
from verditer.rest.address import Address, address_in_account, parse_address, requested_version
from verditer.rest.service import Service
from verditer.rest.stages import LATEST_VERSION, Accepted, AddressedRequest, IncomingRequest
from verditer.rest.wire_errors import UnknownVersion, invalid_header
from verditer.services.context import Context
from verditer.services.properties import get_service_properties

logger = logging.getLogger("verditer")

_MAX_LOGGED_VERSIONS = 100
_YEAR = seconds(365 * 86400)


class Acceptance:
    def __init__(self, ctx: Context, service: Service, *, product_style: bool) -> None:
        self._ctx = ctx
        self._service = service
        self._product_style = product_style
        self._logged_versions: set[str] = set()

    def locate(self, received: IncomingRequest) -> AddressedRequest:
        request, batch = received.request, received.batch
        host, accounts = request.headers.get("host", ""), self._ctx.accounts
        address = parse_address(request.target, host, accounts=accounts, product_style=self._product_style)
        if batch is not None and address.account not in accounts:  # the part relies on the URL of the batch
            address = address_in_account(request.target, batch.account)
        return AddressedRequest(request=request, request_id=received.request_id, batch=batch, address=address)

    def accept(self, located: AddressedRequest) -> Accepted | Coroutine[Any, Any, Accepted]:
        """Check the account and choose the version."""
        address, batch = located.address, located.batch
        if address.account not in self._ctx.accounts:
            raise no_account(address)
        if batch is not None and batch.account != address.account:
            raise StorageError(Code.InvalidUri, message="A batch is for one account.")
        version = batch.version if batch is not None else self._checked_version(located)
        return self._with_default_version(located) if version is None else _accepted(located, version)

    async def _with_default_version(self, located: AddressedRequest) -> Accepted:
        properties = await get_service_properties(self._ctx, AccountName(located.address.account, self._service.name))
        return _accepted(located, properties.default_service_version or self._service.default_version)

    def _checked_version(self, located: AddressedRequest) -> str | None:
        """The version that the request names, any date until a year from now; None where it names none."""
        version = requested_version(located.request, located.address)
        if version is None:
            return None
        if not _is_version(version):
            raise invalid_header("x-ms-version", version)
        if version > LATEST_VERSION:
            if version > iso(self._ctx.now() + _YEAR):
                raise UnknownVersion(version)
            self._log_newer_version(version)
        return version

    def _log_newer_version(self, version: str) -> None:
        if version not in self._logged_versions and len(self._logged_versions) < _MAX_LOGGED_VERSIONS:
            self._logged_versions.add(version)
            logger.info("a client uses x-ms-version %s, newer than %s: served as %s", version, LATEST_VERSION, LATEST_VERSION)


def _accepted(located: AddressedRequest, version: str) -> Accepted:
    return Accepted(
        request=located.request, request_id=located.request_id, batch=located.batch, address=located.address, version=version
    )


def no_account(address: Address) -> StorageError:
    """The message names the account and how it was found, which Azure's does not: here the reason is usually a host name."""
    where = "in the path" if address.path_style else "in the host name; --disableProductStyleUrl looks in the path only"
    message = f"The specified account does not exist: {address.account[:64]!r}, named {where}."
    return StorageError(Code.ResourceNotFound, message=message)


@bounded_cache(64, 16)
def _is_version(text: str) -> bool:
    return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None

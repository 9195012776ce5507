"""The headers that every answer has, and those that cross-origin rules add to it."""

from verditer import __version__
from verditer.core.dates import rfc1123
from verditer.core.errors import StorageError
from verditer.core.names import AccountName
from verditer.rest.headers import cors
from verditer.rest.http.message import Response
from verditer.rest.service import Service
from verditer.rest.stages import LATEST_VERSION, Accepted, AddressedRequest, IncomingRequest
from verditer.services.context import Context
from verditer.services.properties import get_service_properties

_MAX_CLIENT_ID = 1024  # characters


class CommonHeaders:
    def __init__(self, ctx: Context, service: Service) -> None:
        self._ctx = ctx
        self._service = service
        self._server = ("Server", f"Verditer-{service.name.capitalize()}/{__version__}")

    def add(self, stage: IncomingRequest, response: Response, now: int) -> None:
        headers = response.headers
        headers += [self._server, ("x-ms-request-id", stage.request_id), ("Date", rfc1123(now))]
        if response.names_version:
            headers.append(("x-ms-version", stage.version if isinstance(stage, Accepted) else _version_of_refusal(stage)))
        client_id = stage.request.headers.get("x-ms-client-request-id")
        if client_id is not None and len(client_id) <= _MAX_CLIENT_ID and client_id.isascii() and client_id.isprintable():
            headers.append(("x-ms-client-request-id", client_id))

    async def add_cors(self, stage: IncomingRequest, response: Response) -> None:
        """For a request with an Origin."""
        request = stage.request
        if not isinstance(stage, AddressedRequest) or request.method == "OPTIONS":
            return
        try:
            properties = await get_service_properties(self._ctx, AccountName(stage.address.account, self._service.name))
        except StorageError:
            return  # the store does not answer, and the response says so
        names = [name for name, _ in response.headers]
        response.headers += cors.response_headers(properties.cors, request.method, request.headers.get("origin"), names)

    async def preflight(self, accepted: Accepted) -> Response:
        """Answer OPTIONS."""
        properties = await get_service_properties(self._ctx, AccountName(accepted.address.account, self._service.name))
        headers = accepted.request.headers
        allowed = cors.preflight(
            properties.cors,
            headers.get("origin"),
            headers.get("access-control-request-method"),
            headers.get("access-control-request-headers"),
        )
        return Response(status=200, headers=allowed)


def _version_of_refusal(stage: IncomingRequest) -> str:
    """Of a request that was refused before its version was accepted."""
    return stage.batch.version if stage.batch is not None else LATEST_VERSION

"""The JSON API of the explorer, for what Azure's REST API does not have: the accounts of this server, their amounts, connection
strings and signatures, and the concurrency view of an object. `docs/explorer.md` describes every request."""

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated
from urllib.parse import quote

import msgspec

from verditer import __version__
from verditer.core.dates import iso, seconds
from verditer.core.errors import Code, StorageError
from verditer.rest.auth.make_sas import NewSas, make_sas
from verditer.rest.http.message import Request, Response
from verditer.rest.services import SERVICES
from verditer.services.account import Account
from verditer.services.context import Context
from verditer.services.inspection import inspect
from verditer.services.settings import get_settings
from verditer.services.stored_amounts import stored_amounts
from verditer.web.answers import document_of, json_answer
from verditer.web.shown import show_inspection

_MAX_SECONDS = 10 * 366 * 86400
QueryParameters = Mapping[str, str]
_Call = Callable[["Api", Request, QueryParameters], Awaitable[Response]]


class WantedSas(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signature for one resource, or for the whole account when there is no `path`."""

    service: str
    account: str
    path: str = ""
    permissions: str = "r"
    seconds: Annotated[float, msgspec.Meta(ge=1, le=_MAX_SECONDS)] = 3600


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the pages have to know about the server."""

    store: str
    workers: int
    read_only: bool
    test_control: bool
    endpoints: dict[str, str]  # by service: http://host:port


class Api:
    def __init__(self, ctx: Context, facts: Callable[[], ServerFacts]) -> None:
        self._ctx = ctx
        self._facts = facts

    def find(self, method: str, path: str) -> _Call | None:
        return CALLS.get((method, path))

    async def overview(self, request: Request, query: QueryParameters) -> Response:
        facts = self._facts()
        return json_answer(
            200,
            {
                "version": __version__,
                "time": iso(self._ctx.now()),
                "store": facts.store,
                "workers": facts.workers,
                "readOnly": facts.read_only,
                "testControl": facts.test_control,
                "accounts": list(self._ctx.accounts),
                "endpoints": facts.endpoints,
            },
        )

    async def amounts(self, request: Request, query: QueryParameters) -> Response:
        account = self._account(query)
        return json_answer(200, msgspec.to_builtins(await stored_amounts(self._ctx, account.name)))

    async def settings(self, request: Request, query: QueryParameters) -> Response:
        account = self._account(query)
        return json_answer(200, msgspec.to_builtins(await get_settings(self._ctx, account.name)))

    async def connection_string(self, request: Request, query: QueryParameters) -> Response:
        account = self._account(query)
        endpoints = self._facts().endpoints
        scheme = next(iter(endpoints.values())).partition(":")[0]
        named = "".join(f"{name.capitalize()}Endpoint={url}/{account.name};" for name, url in endpoints.items())
        key = base64.b64encode(account.keys[0]).decode()
        text = f"DefaultEndpointsProtocol={scheme};AccountName={account.name};AccountKey={key};{named}"
        return json_answer(200, {"connectionString": text})

    async def sas(self, request: Request, query: QueryParameters) -> Response:
        wanted = await document_of(request, WantedSas)
        account = self._account({"account": wanted.account})
        service = next((each for each in SERVICES if each.name == wanted.service), None)
        if service is None or service.name not in self._facts().endpoints:
            raise StorageError(Code.InvalidInput)
        expires = self._ctx.now() + seconds(wanted.seconds)
        token = make_sas(service, account, NewSas(permissions=wanted.permissions, expires=expires, path=wanted.path))
        base = f"{self._facts().endpoints[wanted.service]}/{account.name}"
        url = f"{base}/{quote(wanted.path)}?{token}" if wanted.path else f"{base}/?{token}"
        return json_answer(200, {"sas": token, "url": url, "expires": iso(expires)})

    async def inspect(self, request: Request, query: QueryParameters) -> Response:
        account = self._account(query)
        found = await inspect(self._ctx, query.get("service", ""), account.name, query.get("path", ""))
        return json_answer(200, show_inspection(found))

    def _account(self, query: QueryParameters) -> Account:
        account = self._ctx.accounts.get(query.get("account", ""))
        if account is None:
            raise StorageError(Code.ResourceNotFound, message="There is no such account.")
        return account


# fmt: off
CALLS: dict[tuple[str, str], _Call] = {
    ("GET",  "/api/overview"):          Api.overview,
    ("GET",  "/api/amounts"):           Api.amounts,
    ("GET",  "/api/settings"):          Api.settings,
    ("GET",  "/api/connection-string"): Api.connection_string,
    ("POST", "/api/sas"):               Api.sas,
    ("GET",  "/api/inspect"):           Api.inspect,
}
# fmt: on

"""The steps of every request, in one list. The pipeline reads rows and contains no operation's name.

`handle` is what the server calls: it runs the steps, turns refusals into answers, stamps the common headers and tells the
observer (log, metrics) how it went. It never raises.
"""

import asyncio
import itertools
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Literal

from verditer import __version__
from verditer.core.caches import Kept, remember
from verditer.core.dates import rfc1123
from verditer.core.errors import Code, StorageError, invalid_header, invalid_query
from verditer.core.grant import Grant, admit
from verditer.core.guard import GuardRule
from verditer.core.names import AccountName, BlobName, ContainerName, EntityName, MessageName, QueueName, TableName
from verditer.rest import cors
from verditer.rest.address import Address, parse_address
from verditer.rest.auth import authenticate
from verditer.rest.auth.oauth import Trust
from verditer.rest.decode import decode_request
from verditer.rest.encode import encode_response
from verditer.rest.errors import xml_error
from verditer.rest.exchange import LATEST_VERSION, Exchange
from verditer.rest.message import ClientGone, Request, Response
from verditer.rest.operation import Level, Op
from verditer.rest.router import Router
from verditer.rest.sources import copy_source
from verditer.services.access import access_of
from verditer.services.blob.sources import CopySource
from verditer.services.context import Context
from verditer.services.delegation import key_value
from verditer.services.properties import get_service_properties

logger = logging.getLogger("verditer")
Target = AccountName | ContainerName | BlobName | QueueName | MessageName | TableName | EntityName
Observer = Callable[[Exchange, Response, float], None]


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service as the front end sees it: its table, and how a path becomes the target of a row."""

    name: Literal["blob", "queue", "table", "file"]
    operations: Sequence[Op]
    locate: Callable[[Address], tuple[Level, Target]]
    error: Callable[[StorageError, Exchange, int], Response] = xml_error
    verb: Callable[[Request], str] = attrgetter("method")  # what a request means: Table tunnels verbs through POST
    wrong_verb: Code = Code.UnsupportedHttpVerb


class _Place:
    """What the line of a request names, and who was let in there last: the same grant is let in again."""

    __slots__ = ("address", "create_only", "grant", "op", "target", "version")

    def __init__(self, address: Address, version: str, op: Op, target: Target) -> None:
        self.address = address
        self.version = version
        self.op = op
        self.target = target
        self.grant: Grant | None = None
        self.create_only = False


Line = tuple[str, str, str, str | None, str | None]
"""What of a request mostly decides where it goes: verb, target, host, version, and the verb that is meant if it is another."""

_ONE_OF_MANY = frozenset({Level.BLOB, Level.ENTITY, Level.MESSAGE, Level.PATH})
_MOST_PLACES, _LONGEST_PLACE = 1024, 1024


@remember(64, 16)
def _is_version(text: str) -> bool:
    return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None


def _request_ids() -> Iterator[str]:
    """GUIDs without end: one part is random, the other counts. They are no secrets, and every request needs one."""
    digits = f"{random.getrandbits(72):018x}"
    first = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:]}"
    for number in itertools.count(random.getrandbits(47)):
        yield f"{first}-{number:012x}"


async def _within_time(asked: str, call: Coroutine[Any, Any, Any]) -> Any:
    """`timeout=n`: the caller gives up after n seconds. What was sent to be committed by then may still come to pass."""
    if re.fullmatch(r"[0-9]{1,9}", asked) is None or int(asked) < 1:
        call.close()
        raise invalid_query("timeout", asked)
    try:
        await asyncio.sleep(0)  # a time limit needs a task, which a request becomes where it waits for no future
        async with asyncio.timeout(int(asked)):
            return await call
    except TimeoutError:
        raise StorageError(Code.OperationTimedOut) from None


class Pipeline:
    def __init__(
        self, ctx: Context, service: Service, *, observer: Observer, product_style: bool = True, trust: Trust | None = None
    ) -> None:
        self._ctx = ctx
        self._trust = trust
        self._now = ctx.engine.now
        self._access = partial(access_of, ctx, service.name)
        self._key_value = partial(key_value, ctx)
        self._service = service
        self._router = Router(service.operations, wrong_verb=service.wrong_verb)
        self._observer = observer
        self._product_style = product_style
        self._server = f"Verditer-{service.name.capitalize()}/{__version__}"
        self._newer_versions: set[str] = set()
        self._request_ids = _request_ids()
        self._places = Kept[Line, _Place](_MOST_PLACES)

    def handle(self, request: Request) -> Awaitable[Response]:
        return self._answer(Exchange(request=request, request_id=next(self._request_ids), started=time.perf_counter()))

    async def _answer(self, exchange: Exchange) -> Response:
        try:
            response = await self._run(exchange)
        except StorageError as error:
            response = self._refused(exchange, error)
        except ClientGone:
            self._observer(exchange, Response(status=499, headers=[]), time.perf_counter() - exchange.started)
            raise  # the connection knows best what to tell whoever may still listen
        except Exception:
            logger.exception("request %s failed unexpectedly", exchange.request_id)
            response = self._refused(exchange, StorageError(Code.InternalError))
        self._stamp(exchange, response)
        if "origin" in exchange.request.headers:
            await self._add_cors(exchange, response)
        self._observer(exchange, response, time.perf_counter() - exchange.started)
        return response

    async def _run(self, exchange: Exchange) -> Response:
        """Where, which version, which row, who, may they, what exactly — and then do it."""
        request, sent = exchange.request, exchange.request.headers.get
        line = request.method, request.target, sent("host", ""), sent("x-ms-version"), sent("x-http-method")
        place = self._places.get(line) if exchange.outer is None else None
        if place is None:
            address, version = await self._addressed(exchange)
            if request.method == "OPTIONS":
                return await self._preflight(exchange, address)
            place = self._placed(exchange, address)
            if version is not None and exchange.outer is None and self._is_kept(place, line):
                self._places.keep(line, place)
        address, op = place.address, place.op
        exchange.address, exchange.version, exchange.op = address, place.version, op
        grant = exchange.grant = await self._authenticated(exchange, address)
        if grant is not place.grant:
            place.grant, place.create_only = grant, admit(op.allow, grant)
        exchange.create_only = place.create_only
        self._check_secondary(op, address)
        call = self._call(exchange, op, place.target)
        result = await (call if "timeout" not in address.query else _within_time(address.query["timeout"], call))
        return encode_response(exchange, op, result)

    async def _addressed(self, exchange: Exchange) -> tuple[Address, str | None]:
        """Where; and in which version, if the request itself says so."""
        request = exchange.request
        address = exchange.address = parse_address(
            request.target, request.headers.get("host", ""), product_style=self._product_style
        )
        if address.account not in self._ctx.accounts:
            raise StorageError(Code.ResourceNotFound, message="The specified account does not exist.")
        version = self._version(exchange, address)
        exchange.version = version or await self._default_version(address)
        self._check_outer(exchange, address)
        return address, version

    def _placed(self, exchange: Exchange, address: Address) -> _Place:
        """Which row, about what."""
        level, target = self._service.locate(address)
        op = exchange.op = self._router.find(exchange.request, address, level, self._service.verb(exchange.request))
        return _Place(address, exchange.version, op, target)

    def _is_kept(self, place: _Place, line: Line) -> bool:
        """Many requests go there: a table that is inserted into, a queue, a listing. And their line alone says so."""
        op = place.op
        short = sum(map(len, filter(None, line))) <= _LONGEST_PLACE
        return short and op.route.level not in _ONE_OF_MANY and self._router.is_alone(op)

    def _version(self, exchange: Exchange, address: Address) -> str | None:
        """Any date is served. None where the request names none."""
        if exchange.outer is not None:
            return exchange.outer.version
        query = address.query
        version = exchange.request.headers.get("x-ms-version") or query.get("api-version") or query.get("sv")
        if version is None:
            return None
        if not _is_version(version):
            raise invalid_header("x-ms-version", version)
        if version > LATEST_VERSION and version not in self._newer_versions and len(self._newer_versions) < 100:
            self._newer_versions.add(version)
            logger.info("a client speaks x-ms-version %s, newer than %s: served as %s", version, LATEST_VERSION, LATEST_VERSION)
        return version

    async def _default_version(self, address: Address) -> str:
        """For a request that names none: the account's default, or else the newest behaviour."""
        properties = await get_service_properties(self._ctx, AccountName(address.account, self._service.name))
        return properties.default_service_version or LATEST_VERSION

    def _authenticated(self, exchange: Exchange, address: Address) -> Awaitable[Grant]:
        account = self._ctx.accounts[address.account]
        return authenticate(
            exchange.request, address, self._service.name, account, self._now(), self._access, self._trust, self._key_value
        )

    def _check_secondary(self, op: Op, address: Address) -> None:
        """The secondary endpoint is for reading, and the only one that tells statistics. Of a batch its parts decide."""
        if address.secondary and op.writes and op.route.level is not Level.BATCH:
            raise StorageError(Code.InsufficientAccountPermissions)
        if op.route.comp == "stats" and op.route.level is Level.SERVICE and not address.secondary:
            raise invalid_query("comp", "stats")

    async def _call(self, exchange: Exchange, op: Op, target: Target) -> Any:
        guard = op.guard.guard(exchange.request.headers, create_only=exchange.create_only)
        if op.accepts is not None:
            exchange.form = op.accepts(exchange)
        request = await decode_request(exchange, op)
        given: dict[str, Any] = {"request": request, "guard": guard, "body": exchange.request.body, "grant": exchange.grant}
        if "exchange" in op.arguments:  # what is itself made of requests: a batch
            given |= {"exchange": exchange, "submit": partial(self._submit, exchange)}
        if op.source_guard is not None:
            given["source"] = await self._copy_source(exchange, op.source_guard)
        assert op.call is not None
        return await op.call(self._ctx, target, *map(given.__getitem__, op.arguments))

    async def _submit(self, outer: Exchange, request: Request) -> Response:
        """Answer a request that came inside another one."""
        inner = Exchange(request=request, request_id=next(self._request_ids), started=time.perf_counter(), outer=outer)
        return await self._answer(inner)

    def _check_outer(self, exchange: Exchange, address: Address) -> None:
        outer = exchange.outer
        if outer is not None and outer.address is not None and outer.address.account != address.account:
            raise StorageError(Code.InvalidUri, message="A batch is for one account.")

    async def _copy_source(self, exchange: Exchange, rule: GuardRule) -> CopySource:
        async def authorize(request: Request, address: Address) -> Grant:
            if address.account not in self._ctx.accounts:
                raise StorageError(Code.ResourceNotFound, message="The specified account does not exist.")
            inner = Exchange(request=request, request_id=exchange.request_id, started=exchange.started)
            return await self._authenticated(inner, address)

        return await copy_source(
            exchange, rule, product_style=self._product_style, locate=self._service.locate, authorize=authorize
        )

    async def _preflight(self, exchange: Exchange, address: Address) -> Response:
        properties = await get_service_properties(self._ctx, AccountName(address.account, self._service.name))
        headers = exchange.request.headers
        allowed = cors.preflight(
            properties.cors,
            headers.get("origin"),
            headers.get("access-control-request-method"),
            headers.get("access-control-request-headers"),
        )
        return Response(status=200, headers=allowed)

    def _refused(self, exchange: Exchange, error: StorageError) -> Response:
        return self._service.error(error, exchange, self._now())

    def _stamp(self, exchange: Exchange, response: Response) -> None:
        """What every answer carries."""
        request = exchange.request
        headers = response.headers
        headers += [
            ("Server", self._server),
            ("x-ms-request-id", exchange.request_id),
            ("x-ms-version", exchange.version),
            ("Date", rfc1123(self._now())),
        ]
        client_id = request.headers.get("x-ms-client-request-id")
        if client_id is not None and len(client_id) <= 1024 and client_id.isascii() and client_id.isprintable():
            headers.append(("x-ms-client-request-id", client_id))

    async def _add_cors(self, exchange: Exchange, response: Response) -> None:
        address = exchange.address
        if address is None or exchange.request.method == "OPTIONS":
            return
        try:
            properties = await get_service_properties(self._ctx, AccountName(address.account, self._service.name))
        except StorageError:
            return  # the store is away; the answer says so already
        request = exchange.request
        names = [name for name, _ in response.headers]
        response.headers += cors.response_headers(properties.cors, request.method, request.headers.get("origin"), names)

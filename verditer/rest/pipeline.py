"""The steps of every request, in the order in which they run. The pipeline reads rows and contains no operation's name.

`handle` is what the server calls. It runs the steps, turns errors into answers, adds the common headers and reports the request
to the observer (log, metrics). It raises only `ClientGone`.
"""

import asyncio
import itertools
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from operator import attrgetter
from typing import TypeVar

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.rest.auth.oauth import Trust
from verditer.rest.common_headers import CommonHeaders
from verditer.rest.copy_source import Endpoints
from verditer.rest.faults import Faults
from verditer.rest.http.message import ClientGone, Request, Response
from verditer.rest.route_cache import RouteCache
from verditer.rest.router import Router
from verditer.rest.service import Service
from verditer.rest.stages import Accepted, Authorized, BatchScope, Decoded, IncomingRequest, Progress, Routed
from verditer.rest.steps.accept import Acceptance
from verditer.rest.steps.add_source import Sources
from verditer.rest.steps.authenticate import Authenticator, check_intent
from verditer.rest.steps.authorize import authorize
from verditer.rest.steps.decode import decode
from verditer.rest.steps.encode import encode_response
from verditer.rest.wire_errors import UnknownVersion, invalid_query
from verditer.services.context import Context

logger = logging.getLogger("verditer")
T = TypeVar("T")
Observer = Callable[[IncomingRequest, Response, int, float], None]
"""(stage, response, time of the answer in ticks, duration in seconds)"""


class Pipeline:
    def __init__(
        self,
        ctx: Context,
        service: Service,
        *,
        observer: Observer,
        product_style: bool = True,
        trust: Trust | None = None,
        services_by_port: Mapping[int, Service] | None = None,
        grant: Grant | None = None,
        read_only: bool = False,
        faults: Faults | None = None,
    ) -> None:
        """`services_by_port` are the storage ports of this server: copies read from all of them. `grant` is for callers that were
        authenticated already: it replaces what the credentials of a request say."""
        self._ctx = ctx
        self._read_only = read_only
        self._faults = faults
        self._now = ctx.engine.now
        self._service = service
        self._observer = observer
        self._request_ids = _request_ids()
        self._acceptance = Acceptance(ctx, service, product_style=product_style)
        self._router = Router(service.operations, wrong_verb=service.wrong_verb)
        self._routes = RouteCache(service, self._router, self._now)
        self._authenticator = Authenticator(ctx, service, trust=trust, given=grant)
        endpoints = Endpoints(product_style=product_style, own=service, by_port=services_by_port or {})
        self._sources = Sources(ctx, self._authenticator, endpoints)
        self._common_headers = CommonHeaders(ctx, service)
        read = _ARGUMENTS | {"submit": lambda decoded: self._submit}
        self._arguments = {op.call: tuple(read[name] for name in op.arguments) for op in service.operations}

    def handle(self, request: Request) -> Awaitable[Response]:
        return self._answer(IncomingRequest(request=request, request_id=next(self._request_ids)))

    def _submit(self, request: Request, batch: BatchScope) -> Awaitable[Response]:
        """Answer a request that is part of a batch."""
        return self._answer(IncomingRequest(request=request, request_id=next(self._request_ids), batch=batch))

    async def _answer(self, received: IncomingRequest) -> Response:
        started = time.perf_counter()
        progress = Progress(received)
        try:
            if self._faults is not None:
                await self._faults.before(self._service.name, received.request)
            response = await self._run(progress)
        except StorageError as error:
            logger.debug("request %s is refused: %s %s", received.request_id, error.code.name, error.reason, exc_info=True)
            response = self._refused(progress.stage, error)
        except ClientGone:
            self._observer(progress.stage, Response(status=499, headers=[]), self._now(), time.perf_counter() - started)
            raise  # the connection decides what to send to a client that may still read
        except Exception:
            logger.exception("request %s failed unexpectedly", received.request_id)
            response = self._refused(progress.stage, StorageError(Code.InternalError))
        stage, now = progress.stage, self._now()
        self._common_headers.add(stage, response, now)
        if "origin" in received.request.headers:
            await self._common_headers.add_cors(stage, response)
        if isinstance(response.body, bytes):
            self._observer(stage, response, now, time.perf_counter() - started)
        else:  # a streamed body takes most of the time
            answer = response
            response.sent = lambda: self._observer(stage, answer, self._now(), time.perf_counter() - started)
        if self._faults is not None:
            self._faults.after(self._service.name, received.request, response)
        return response

    # --- the steps ----------------------------------------------------------------------------------------------------------

    async def _run(self, progress: Progress) -> Response:
        """The steps that decide which operation the caller may call, then those that carry it out."""
        received = progress.stage
        if received.request.method == "OPTIONS":  # is answered for every path, without credentials
            return await self._common_headers.preflight(await self._accept(progress))
        routed = progress.stage = self._routes.find(received) or await self._route(progress)
        authorized = routed if isinstance(routed, Authorized) else await self._authorize(routed)
        if "timeout" in authorized.address.query:
            return await _within_time(authorized.address.query["timeout"], self._execute(authorized))
        return await self._execute(authorized)

    async def _execute(self, authorized: Authorized) -> Response:
        decoded = await self._decode(authorized)
        if decoded.op.takes_source:
            decoded = await self._sources.add(decoded)
        result = await self._call(decoded)
        return encode_response(decoded, result)

    async def _accept(self, progress: Progress) -> Accepted:
        located = progress.stage = self._acceptance.locate(progress.stage)
        accepted = progress.stage = await self._acceptance.accept(located)
        return accepted

    async def _route(self, progress: Progress) -> Routed:
        """Find the row of the operation and the resource it acts on."""
        accepted = await self._accept(progress)
        request, address = accepted.request, accepted.address
        level, target = self._service.locate(address, request.headers)
        op = self._router.find(request, address, level, self._service.verb(request))
        routed = Routed(
            request=request,
            request_id=accepted.request_id,
            batch=accepted.batch,
            address=address,
            version=accepted.version,
            op=op,
            target=target,
        )
        self._routes.keep(routed)
        return routed

    async def _authorize(self, routed: Routed) -> Authorized:
        """Find out who calls, and whether the caller may."""
        grant = await self._authenticator.grant_of(routed.request, routed.address)
        if routed.op.needs_intent:
            check_intent(self._service, routed.request, grant)
        authorized = authorize(routed, grant)
        if self._read_only and routed.op.writes:
            raise StorageError(Code.InsufficientAccountPermissions)
        self._routes.keep_access(authorized, self._ctx.accounts[routed.address.account])
        return authorized

    async def _decode(self, authorized: Authorized) -> Decoded:
        try:
            return await decode(authorized)
        except StorageError:
            if authorized.op.check_target is not None:
                await authorized.op.check_target(self._ctx, authorized.target)
            raise

    def _call(self, decoded: Decoded) -> Awaitable[object]:
        """The function of the row takes what its parameters name."""
        op = decoded.op
        return op.call(self._ctx, decoded.target, *[read(decoded) for read in self._arguments[op.call]])

    def _refused(self, stage: IncomingRequest, error: StorageError) -> Response:
        response = self._service.error(error, stage, self._now())
        response.error_code = error.code.azure_code
        response.names_version = not isinstance(error, UnknownVersion)
        return response


_ARGUMENTS: dict[str, Callable[[Decoded], object]] = {
    "request": attrgetter("parameters"),
    "guard": attrgetter("guard"),
    "body": attrgetter("request.body"),
    "grant": attrgetter("grant"),
    "source": attrgetter("source"),
    "batch": lambda decoded: decoded,  # a batch answers for the requests in it
}


def _request_ids() -> Iterator[str]:
    """GUIDs, of which one part is random and the other counts. They are no secrets, and every request needs one."""
    digits = f"{random.getrandbits(72):018x}"
    first = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:]}"
    for number in itertools.count(random.getrandbits(47)):
        yield f"{first}-{number:012x}"


async def _within_time(seconds: str, call: Coroutine[object, object, T]) -> T:
    """`timeout=n`: the answer is an error after n seconds. A write that was sent to the engine by then may still be committed."""
    if re.fullmatch(r"[0-9]{1,9}", seconds) is None or int(seconds) < 1:
        call.close()
        raise invalid_query("timeout", seconds)
    try:
        async with asyncio.timeout(int(seconds)):
            return await call
    except TimeoutError:
        raise StorageError(Code.OperationTimedOut) from None

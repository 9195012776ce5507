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
from types import CoroutineType
from typing import Any, NamedTuple, TypeVar

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
from verditer.rest.stages import (
    Accepted,
    AddressedRequest,
    Authenticated,
    Authorized,
    BatchScope,
    Called,
    Decoded,
    IncomingRequest,
    Routed,
    Step,
)
from verditer.rest.steps.accept import Acceptance
from verditer.rest.steps.add_source import Sources
from verditer.rest.steps.authenticate import Authenticator
from verditer.rest.steps.authorize import authorize, authorize_reading
from verditer.rest.steps.call import Calling
from verditer.rest.steps.decode import Decoding
from verditer.rest.steps.encode import encode
from verditer.rest.steps.route import Routing
from verditer.rest.wire_errors import UnknownVersion, invalid_query
from verditer.services.context import Context

logger = logging.getLogger("verditer")
T = TypeVar("T")
Observer = Callable[[IncomingRequest, Response, int, float], None]
"""(stage, response, time of the answer in ticks, duration in seconds)"""


class Steps(NamedTuple):
    """The steps of a request in their order. Each takes the stage that the one before it gives."""

    locate: Step[IncomingRequest, AddressedRequest]
    accept: Step[AddressedRequest, Accepted]
    route: Step[Accepted, Routed]
    authenticate: Step[Routed, Authenticated]
    authorize: Step[Authenticated, Authorized]
    decode: Step[Authorized, Decoded]
    add_source: Step[Decoded, Decoded]
    call: Step[Decoded, Called]
    encode: Step[Called, Response]


_STEPS_BEFORE: dict[type, int] = {IncomingRequest: 0, Accepted: 2, Routed: 3, Authorized: 5}
"""How many steps lead to a stage."""


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
        self._faults = faults
        self._now = ctx.engine.now
        self._service = service
        self._observer = observer
        self._request_ids = _request_ids()
        self._common_headers = CommonHeaders(ctx, service)
        acceptance = Acceptance(ctx, service, product_style=product_style)
        router = Router(service.operations, wrong_verb=service.wrong_verb)
        self._routes = RouteCache(ctx, service, router)
        authenticator = Authenticator(ctx, service, trust=trust, given=grant)
        endpoints = Endpoints(product_style=product_style, accounts=ctx.accounts, own=service, by_port=services_by_port or {})
        self._steps = Steps(
            locate=acceptance.locate,
            accept=acceptance.accept,
            route=self._routes.storing_route(Routing(service, router).route),
            authenticate=authenticator.authenticate,
            authorize=self._routes.storing_access(authorize_reading if read_only else authorize),
            decode=Decoding(ctx).decode,
            add_source=Sources(ctx, authenticator, endpoints).add,
            call=Calling(ctx, service.operations, self._submit).call,
            encode=encode,
        )
        accepted, authorized = _STEPS_BEFORE[Accepted], _STEPS_BEFORE[Authorized]
        self._acceptance = self._steps[:accepted]
        self._admission = {stage: self._steps[count:authorized] for stage, count in _STEPS_BEFORE.items()}
        self._execution = self._steps[authorized:]

    def handle(self, request: Request) -> Awaitable[Response]:
        return self._answer(IncomingRequest(request=request, request_id=next(self._request_ids)))

    def _submit(self, request: Request, batch: BatchScope) -> Awaitable[Response]:
        """Answer a request that is part of a batch."""
        return self._answer(IncomingRequest(request=request, request_id=next(self._request_ids), batch=batch))

    async def _answer(self, received: IncomingRequest) -> Response:
        started = time.perf_counter()
        stage: Any = received  # the last one that the request has reached
        try:
            if self._faults is not None:
                await self._faults.before(self._service.name, received.request)
            is_preflight = received.request.method == "OPTIONS"  # answered for every path, without credentials
            stage = self._routes.find(received) or received
            for step in self._acceptance if is_preflight else self._admission[type(stage)]:
                given = step(stage)
                stage = await given if type(given) is CoroutineType else given
            response = await (self._common_headers.preflight(stage) if is_preflight else self._execute(stage))
        except StorageError as error:
            logger.debug("request %s is refused: %s %s", received.request_id, error.code.name, error.reason, exc_info=True)
            response = self._refused(stage, error)
        except ClientGone:
            self._observer(stage, Response(status=499, headers=[]), self._now(), time.perf_counter() - started)
            raise  # the connection decides what to send to a client that may still read
        except Exception:
            logger.exception("request %s failed unexpectedly", received.request_id)
            response = self._refused(stage, StorageError(Code.InternalError))
        now = self._now()
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

    def _execute(self, authorized: Authorized) -> Coroutine[Any, Any, Response]:
        """The steps after the caller was admitted, within the time that the request allows."""
        seconds = authorized.address.query.get("timeout")
        return self._run(authorized) if seconds is None else _within_time(seconds, self._run(authorized))

    async def _run(self, authorized: Authorized) -> Response:
        stage: Any = authorized  # the types of `Steps` say that the last one is a response
        for step in self._execution:
            given = step(stage)
            stage = await given if type(given) is CoroutineType else given
        response: Response = stage
        return response

    def _refused(self, stage: IncomingRequest, error: StorageError) -> Response:
        response = self._service.error(error, stage, self._now())
        response.error_code = error.code.azure_code
        response.names_version = not isinstance(error, UnknownVersion)
        return response


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

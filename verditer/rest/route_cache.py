"""A cache around the first steps of the pipeline, from locate to authorize, for request lines that come again and again.

Inserts into one table, messages of one queue and listings of one container repeat their request line. Such a line leads to the
same row and resource each time (locate, accept, route). If it has a shared access signature, it has the same caller too
(authenticate, authorize), as long as the signature is valid here and now. A line that names one of many objects does not repeat,
and a row that headers decide about cannot be found by its line; neither is kept. The cache holds nothing that a write to the
store can change. `docs/decisions/request-caches.md` says what it brings.
"""

from collections.abc import Callable
from typing import NamedTuple

from verditer.core.caches import BoundedCache
from verditer.core.errors import StorageError
from verditer.core.grant import Grant
from verditer.rest.address import Address, requested_version
from verditer.rest.auth import CredentialKind, scheme_of
from verditer.rest.auth.sas import Token, check_circumstances, token_of
from verditer.rest.http.message import Request
from verditer.rest.operation import Level, Op
from verditer.rest.router import Router
from verditer.rest.service import Service
from verditer.rest.stages import Accepted, Authenticated, Authorized, IncomingRequest, ResourceName, Routed, Step
from verditer.services.context import Context

RequestLine = tuple[str, str, str, str | None, str | None]
"""Verb, target, host, version, and the verb that a POST may stand for."""

MAX_ENTRIES = 1024
MAX_LINE_CHARACTERS = 1024
ONE_OF_MANY = frozenset({Level.BLOB, Level.ENTITY, Level.MESSAGE, Level.PATH})  # never cached


class _Access(NamedTuple):
    token: Token
    grant: Grant
    create_only: bool


class _Route(NamedTuple):
    address: Address
    version: str
    op: Op
    target: ResourceName
    access: _Access | None  # None: the signature of the line has not been checked yet, or it has none


class RouteCache:
    """The requests of a batch bypass it, because their version is that of the batch."""

    def __init__(self, ctx: Context, service: Service, router: Router) -> None:
        self._accounts = ctx.accounts
        self._service = service
        self._router = router
        self._now = ctx.engine.now
        self.routes = BoundedCache[RequestLine, _Route](MAX_ENTRIES)

    def find(self, received: IncomingRequest) -> Authorized | Routed | None:
        """The stage that the steps of an equal request led to, if it is known."""
        request = received.request
        route = self.routes.get(_line(request))
        if route is None or received.batch is not None:
            return None
        address, version, op, target, access = route
        if access is None or not self._is_valid(access.token, request):
            return Routed(request=request, request_id=received.request_id, address=address, version=version, op=op, target=target)
        return Authorized(
            request=request,
            request_id=received.request_id,
            address=address,
            version=version,
            op=op,
            target=target,
            grant=access.grant,
            create_only=access.create_only,
        )

    def _is_valid(self, token: Token, request: Request) -> bool:
        """Otherwise the steps of the pipeline say why it is not."""
        if "authorization" in request.headers:
            return False
        try:
            check_circumstances(token, request, self._service, self._now())
        except StorageError:
            return False
        return True

    def storing_route(self, route: Callable[[Accepted], Routed]) -> Step[Accepted, Routed]:
        def route_and_store(accepted: Accepted) -> Routed:
            routed = route(accepted)
            if routed.op.route.level not in ONE_OF_MANY:
                self._store_route(routed)
            return routed

        return route_and_store

    def storing_access(self, authorize: Callable[[Authenticated], Authorized]) -> Step[Authenticated, Authorized]:
        def authorize_and_store(authenticated: Authenticated) -> Authorized:
            authorized = authorize(authenticated)
            if authorized.op.route.level not in ONE_OF_MANY:
                self._store_access(authorized)
            return authorized

        return authorize_and_store

    def _store_route(self, routed: Routed) -> None:
        """Only if the same line leads to the same route each time. An account may change the version that counts where a request
        names none, so such a request is routed each time."""
        op = routed.op
        if routed.batch is not None or not self._router.is_decided_by_line(op):
            return
        line = _line(routed.request)
        if requested_version(routed.request, routed.address) is None or sum(map(len, filter(None, line))) > MAX_LINE_CHARACTERS:
            return
        self.routes.keep(line, _Route(routed.address, routed.version, op, routed.target, None))

    def _store_access(self, authorized: Authorized) -> None:
        """For a stored line with a signature that names no stored policy, because a write may change a policy."""
        if authorized.batch is not None:
            return
        request, address, line = authorized.request, authorized.address, _line(authorized.request)
        route = self.routes.get(line)
        if route is None or scheme_of(request, address) is not CredentialKind.SAS:
            return
        token = token_of(address, self._service, self._accounts[address.account])
        if not token.policy and token.grant is authorized.grant:
            self.routes[line] = route._replace(access=_Access(token, token.grant, authorized.create_only))


def _line(request: Request) -> RequestLine:
    sent = request.headers.get
    return request.method, request.target, sent("host", ""), sent("x-ms-version"), sent("x-http-method")

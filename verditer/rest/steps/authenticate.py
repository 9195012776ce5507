"""Authenticate: who sends a request to a service, by the schemes of `rest/auth`."""

from collections.abc import Awaitable
from functools import partial

from verditer.core.grant import Grant, Scheme
from verditer.rest.address import Address
from verditer.rest.auth import authenticate
from verditer.rest.auth.oauth import Trust
from verditer.rest.http.message import Request
from verditer.rest.service import Service
from verditer.rest.stages import Authenticated, Routed
from verditer.rest.steps.accept import no_account
from verditer.rest.wire_errors import invalid_header, missing_header
from verditer.services.context import Context
from verditer.services.delegation import key_value

_INTENT = "x-ms-file-request-intent"


class Authenticator:
    """`given` is the grant of callers that were authenticated already: it replaces what the credentials of a request say."""

    def __init__(self, ctx: Context, service: Service, *, trust: Trust | None, given: Grant | None) -> None:
        self._ctx = ctx
        self._service = service
        self._trust = trust
        self._given = given
        self._now = ctx.engine.now
        self._read_access = partial(service.policies.read, ctx)
        self._key_value = partial(key_value, ctx)

    async def authenticate(self, routed: Routed) -> Authenticated:
        grant = await self.grant_of(routed.request, routed.address)
        if routed.op.needs_intent:
            check_intent(self._service, routed.request, grant)
        return Authenticated(
            request=routed.request,
            request_id=routed.request_id,
            batch=routed.batch,
            address=routed.address,
            version=routed.version,
            op=routed.op,
            target=routed.target,
            grant=grant,
        )

    def grant_of(self, request: Request, address: Address) -> Awaitable[Grant]:
        """The account of the address exists."""
        if self._given is not None:
            return _as_awaitable(self._given)
        account = self._ctx.accounts[address.account]
        return authenticate(
            request, address, self._service, account, self._now(), self._read_access, self._trust, self._key_value
        )

    async def grant_for_source(self, service: Service, request: Request, address: Address) -> Grant:
        """Of the request that would read the source of a copy, from this service or another one."""
        if address.account not in self._ctx.accounts:
            raise no_account(address)
        grant = await Authenticator(self._ctx, service, trust=self._trust, given=self._given).grant_of(request, address)
        check_intent(service, request, grant)
        return grant


def check_intent(service: Service, request: Request, grant: Grant) -> None:
    """A bearer token passes over the permissions of files, so the request has to say that it means to."""
    if service.bearer_intent is None or grant.scheme is not Scheme.BEARER:
        return
    sent = request.headers.get(_INTENT)
    if sent is None:
        raise missing_header(_INTENT)
    if sent.lower() != service.bearer_intent:
        raise invalid_header(_INTENT, sent)


async def _as_awaitable(grant: Grant) -> Grant:
    return grant

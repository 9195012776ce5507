"""Health, metrics and, with `--test-control`, control over the clock and the data.

`/health/live` says that the process runs, `/health/ready` that it should be sent requests; `/metrics` is for Prometheus.
`/control/…` moves the time, empties accounts, changes their settings and, with `--oauth development`, issues tokens.
"""

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import msgspec

from verditer.core.dates import TICKS_PER_SECOND, UNIX_EPOCH, iso, seconds
from verditer.core.names import ContainerName
from verditer.core.records.settings import AccountSettings, SettingsChange
from verditer.rest.faults import Fault, Faults
from verditer.rest.http.message import Request, Response
from verditer.rest.http.server import Handler
from verditer.services.blob.containers import protect_container
from verditer.services.blob.protection import ProtectContainer, protection_as_set
from verditer.services.context import Context
from verditer.services.control import move_clock, reset_account
from verditer.services.readiness import Readiness
from verditer.services.settings import change_settings, get_settings
from verditer.serving.metrics import Metrics
from verditer.web.answers import InvalidDocument, document_of, json_answer

if TYPE_CHECKING:
    from verditer.rest.auth.issuer import DevelopmentIssuer

MAX_SECONDS = 100 * 366 * 86400
_ACCOUNT = re.compile(r"(?<=/accounts/)[^/]+")
_CONTAINER = re.compile(r"(?<=/containers/)[^/]+")
_Page = Callable[["Control", Request], Awaitable[Response]]


class MoveClock(msgspec.Struct, frozen=True, kw_only=True):
    seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]


class ResetAccount(msgspec.Struct, frozen=True, kw_only=True):
    account: str


class NewToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bearer token: for whom, for which audience and for how long. A negative time makes one that has expired."""

    oid: str | msgspec.UnsetType = msgspec.UNSET
    tid: str | msgspec.UnsetType = msgspec.UNSET
    audience: str | msgspec.UnsetType = msgspec.UNSET
    seconds: Annotated[float, msgspec.Meta(ge=-MAX_SECONDS, le=MAX_SECONDS)] = 3600


class Control:
    def __init__(
        self,
        ctx: Context,
        metrics: Metrics,
        readiness: Readiness,
        *,
        test_control: bool,
        issuer: "DevelopmentIssuer | None" = None,
        faults: Faults | None = None,
    ) -> None:
        self._faults = faults
        self._ctx = ctx
        self._readiness = readiness
        self._metrics = metrics
        self._pages = PAGES | (CONTROL if test_control else {})
        if issuer is not None:
            self._issuer = issuer
            self._pages |= OAUTH | (TOKENS if test_control else {})

    def is_open(self, request: Request) -> bool:
        """Health, metrics and public keys are for programs that cannot know the token."""
        return (_verb(request), request.target.partition("?")[0]) in PAGES | OAUTH

    async def handle(self, request: Request) -> Response:
        path = _CONTAINER.sub("<container>", _ACCOUNT.sub("<name>", request.target.partition("?")[0]))
        page = self._pages.get((_verb(request), path))
        if page is not None:
            return await page(self, request)
        known = any(path == other for _, other in self._pages)
        return json_answer(405 if known else 404, {"error": "method not allowed" if known else "not found"})

    async def live(self, request: Request) -> Response:
        return json_answer(200, {"status": "live"})

    async def ready(self, request: Request) -> Response:
        return await _health(self._readiness)

    async def metrics(self, request: Request) -> Response:
        from prometheus_client import CollectorRegistry, generate_latest  # see `Metrics.collect`
        from prometheus_client.exposition import CONTENT_TYPE_LATEST

        registry = CollectorRegistry()
        registry.register(self._metrics.of_all_workers())
        return Response(status=200, headers=[("Content-Type", CONTENT_TYPE_LATEST)], body=generate_latest(registry))

    async def clock(self, request: Request) -> Response:
        return json_answer(200, {"now": iso(self._ctx.now())})

    async def advance_clock(self, request: Request) -> Response:
        """`{"seconds": 15}` moves time forward for every process of the store."""
        wanted = await document_of(request, MoveClock)
        await move_clock(self._ctx, seconds(wanted.seconds))
        return json_answer(200, {"now": iso(self._ctx.now())})

    async def reset(self, request: Request) -> Response:
        """`{"account": "devstoreaccount1"}` deletes everything the account holds."""
        account = (await document_of(request, ResetAccount)).account
        if account not in self._ctx.accounts:
            return json_answer(404, {"error": "no such account"})
        await reset_account(self._ctx, account)
        return json_answer(200, {"account": account, "status": "empty"})

    async def list_faults(self, request: Request) -> Response:
        return json_answer(200, msgspec.to_builtins(self._one_process().left))

    async def add_fault(self, request: Request) -> Response:
        """`{"kind": "refuse", "count": 3}`: the next three requests are answered with 503."""
        faults = self._one_process()
        faults.add(await document_of(request, Fault))
        return json_answer(200, msgspec.to_builtins(faults.left))

    async def clear_faults(self, request: Request) -> Response:
        self._one_process().clear()
        return json_answer(200, [])

    def _one_process(self) -> Faults:
        if self._faults is None:
            raise InvalidDocument("faults need a server of one process: --workers 1 or --inMemoryPersistence")
        return self._faults

    async def settings(self, request: Request) -> Response:
        account = self._account_of(request)
        if account is None:
            return json_answer(404, {"error": "no such account"})
        return _settings(await get_settings(self._ctx, account))

    async def set_settings(self, request: Request) -> Response:
        """`{"versioning": true}` changes the settings that it names; the answer has all settings."""
        account = self._account_of(request)
        if account is None:
            return json_answer(404, {"error": "no such account"})
        change = await document_of(request, SettingsChange)
        return _settings(await change_settings(self._ctx, account, change))

    async def protect(self, request: Request) -> Response:
        """`{"immutability_days": 7, "locked": true, "legal_holds": ["case1"]}` protects the blobs of a container. The answer has
        all values."""
        account, container = self._account_of(request), _CONTAINER.search(request.target.partition("?")[0])
        if account is None or container is None:
            return json_answer(404, {"error": "no such account"})
        change = await document_of(request, ProtectContainer)
        protection = await protect_container(self._ctx, ContainerName(account, container[0]), change)
        return json_answer(200, msgspec.to_builtins(protection_as_set(protection)))

    def _account_of(self, request: Request) -> str | None:
        found = _ACCOUNT.search(request.target.partition("?")[0])
        return found[0] if found is not None and found[0] in self._ctx.accounts else None

    async def jwks(self, request: Request) -> Response:
        return json_answer(200, self._issuer.jwks)

    async def token(self, request: Request) -> Response:
        """A bearer token as the document describes it; every field is optional."""
        wanted = await document_of(request, NewToken)
        now, span = self._ctx.now(), int(wanted.seconds)
        named = {name: value for name, value in msgspec.to_builtins(wanted).items() if name != "seconds"}
        return json_answer(
            200,
            {
                "access_token": self._issuer.token(now, seconds=wanted.seconds, **named),
                "token_type": "Bearer",
                "expires_in": span,
                "expires_on": (now - UNIX_EPOCH) // TICKS_PER_SECOND + span,
            },
        )


def _verb(request: Request) -> str:
    """HEAD is answered like GET, without the body."""
    return "GET" if request.method == "HEAD" else request.method


def _settings(settings: AccountSettings) -> Response:
    return json_answer(200, {name: value for name, value in msgspec.structs.asdict(settings).items() if name != "account"})


def with_health(ctx: Context, readiness: Readiness, handler: Handler) -> Handler:
    """Probes ask storage ports too. A path of one segment is an account there, so an account of that name keeps its meaning."""
    paths = {path for path in ("/health", "/healthz") if path[1:] not in ctx.accounts}

    def answer(request: Request) -> Awaitable[Response]:
        if request.target in paths and request.method in ("GET", "HEAD"):
            return _health(readiness)
        return handler(request)

    return answer


async def _health(readiness: Readiness) -> Response:
    state = await readiness.state()
    if state.draining:
        status = "the server is about to stop"
    else:
        status = "ready" if state.records_answer else "the store does not answer"
    extents = {} if state.extents_answer else {"extents": "the store of large bodies does not answer"}
    return json_answer(200 if state.is_ready else 503, {"status": status, **extents})


# fmt: off
PAGES: dict[tuple[str, str], _Page] = {
    ("GET",  "/health/live"):     Control.live,
    ("GET",  "/health/ready"):    Control.ready,
    ("GET",  "/health"):          Control.ready,
    ("GET",  "/healthz"):         Control.ready,
    ("GET",  "/metrics"):         Control.metrics,
}
CONTROL: dict[tuple[str, str], _Page] = {
    ("GET",  "/control/clock"):   Control.clock,
    ("POST", "/control/clock"):   Control.advance_clock,
    ("POST", "/control/reset"):   Control.reset,
    ("GET",  "/control/faults"):  Control.list_faults,
    ("POST", "/control/faults"):  Control.add_fault,
    ("DELETE", "/control/faults"): Control.clear_faults,
    ("GET",  "/control/accounts/<name>/settings"): Control.settings,
    ("PUT",  "/control/accounts/<name>/settings"): Control.set_settings,
    ("PUT",  "/control/accounts/<name>/containers/<container>"): Control.protect,
}
OAUTH: dict[tuple[str, str], _Page] = {  # with --oauth development
    ("GET",  "/oauth/jwks"):      Control.jwks,
}
TOKENS: dict[tuple[str, str], _Page] = {
    ("POST", "/control/token"):   Control.token,
}
# fmt: on

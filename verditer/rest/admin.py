"""The admin port: health, metrics and, when asked for, control over the clock and the data. Loopback unless told otherwise.

`/health/live` says the process runs, `/health/ready` that the store answers, `/metrics` is for Prometheus. `/control/…` exists
only with `--test-control`: it moves time, empties accounts, changes their settings and, with `--oauth development`, hands out
tokens.
"""

import json
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from verditer.core.dates import TICKS_PER_SECOND, UNIX_EPOCH, iso, seconds
from verditer.core.errors import StorageError
from verditer.core.records.settings import AccountSettings
from verditer.rest.message import ClientGone, Request, Response
from verditer.rest.observe import Metrics
from verditer.services.context import Context
from verditer.services.control import is_ready, move_clock, reset_account
from verditer.services.settings import change_settings, get_settings, read_change

if TYPE_CHECKING:
    from verditer.rest.auth.issuer import DevelopmentIssuer

MAX_SECONDS = 100 * 366 * 86400
_ACCOUNT = re.compile(r"(?<=/accounts/)[^/]+")
_Page = Callable[["Admin", Request], Awaitable[Response]]


class Admin:
    def __init__(self, ctx: Context, metrics: Metrics, *, test_control: bool, issuer: "DevelopmentIssuer | None" = None) -> None:
        self._ctx = ctx
        self._metrics = metrics
        self._pages = PAGES | (CONTROL if test_control else {})
        if issuer is not None:
            self._issuer = issuer
            self._pages |= OAUTH | (TOKENS if test_control else {})

    async def handle(self, request: Request) -> Response:
        path = _ACCOUNT.sub("<name>", request.target.partition("?")[0])
        page = self._pages.get((request.method, path))
        try:
            if page is not None:
                return await page(self, request)
            known = any(path == other for _, other in self._pages)
            return _json(405 if known else 404, {"error": "method not allowed" if known else "not found"})
        except StorageError as error:
            return _json(error.code.status, {"error": error.message})
        except ClientGone:
            return Response(status=400, headers=[], close=True)

    async def live(self, request: Request) -> Response:
        return _json(200, {"status": "live"})

    async def ready(self, request: Request) -> Response:
        ready = await is_ready(self._ctx)
        return _json(200 if ready else 503, {"status": "ready" if ready else "the store does not answer"})

    async def metrics(self, request: Request) -> Response:
        from prometheus_client import CollectorRegistry, generate_latest  # see `Metrics.collect`
        from prometheus_client.exposition import CONTENT_TYPE_LATEST

        registry = CollectorRegistry()
        registry.register(self._metrics.of_all_workers())
        return Response(status=200, headers=[("Content-Type", CONTENT_TYPE_LATEST)], body=generate_latest(registry))

    async def clock(self, request: Request) -> Response:
        return _json(200, {"now": iso(self._ctx.now())})

    async def advance_clock(self, request: Request) -> Response:
        """`{"seconds": 15}` moves time forward for every process of the store."""
        document = await _document(request)
        step = document.get("seconds")
        if isinstance(step, bool) or not isinstance(step, int | float) or not 0 <= step <= MAX_SECONDS:
            return _json(400, {"error": 'expected {"seconds": number of seconds to move forward}'})
        await move_clock(self._ctx, seconds(step))
        return _json(200, {"now": iso(self._ctx.now())})

    async def reset(self, request: Request) -> Response:
        """`{"account": "devstoreaccount1"}` deletes everything the account holds."""
        account = (await _document(request)).get("account")
        if not isinstance(account, str) or account not in self._ctx.accounts:
            return _json(404, {"error": "no such account"})
        await reset_account(self._ctx, account)
        return _json(200, {"account": account, "status": "empty"})

    async def settings(self, request: Request) -> Response:
        account = self._account_of(request)
        if account is None:
            return _json(404, {"error": "no such account"})
        return _settings(await get_settings(self._ctx, account))

    async def set_settings(self, request: Request) -> Response:
        """`{"versioning": true}` changes what it names and leaves the rest; the answer has all."""
        account = self._account_of(request)
        if account is None:
            return _json(404, {"error": "no such account"})
        try:
            change = read_change(await _document(request))
        except ValueError as error:
            return _json(400, {"error": str(error)})
        return _settings(await change_settings(self._ctx, account, change))

    def _account_of(self, request: Request) -> str | None:
        found = _ACCOUNT.search(request.target.partition("?")[0])
        return found[0] if found is not None and found[0] in self._ctx.accounts else None

    async def jwks(self, request: Request) -> Response:
        return _json(200, self._issuer.jwks)

    async def token(self, request: Request) -> Response:
        """A bearer token, for whom and as long as the document says: `{"oid", "tid", "audience", "seconds"}`, each optional."""
        document = await _document(request)
        known = {"oid": str, "tid": str, "audience": str, "seconds": int | float}
        if any(name not in known or not isinstance(value, known[name]) for name, value in document.items()):
            return _json(400, {"error": 'expected {"oid": text, "tid": text, "audience": text, "seconds": number}'})
        span = float(document.get("seconds", 3600))
        if not -MAX_SECONDS <= span <= MAX_SECONDS:
            return _json(400, {"error": "seconds is out of range"})
        now = self._ctx.now()
        return _json(
            200,
            {
                "access_token": self._issuer.token(now, **document),
                "token_type": "Bearer",
                "expires_in": int(span),
                "expires_on": (now - UNIX_EPOCH) // TICKS_PER_SECOND + int(span),
            },
        )


async def _document(request: Request) -> dict[str, Any]:
    try:
        document = json.loads(await request.body.read_all(64 * 1024) or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _settings(settings: AccountSettings) -> Response:
    return _json(200, {name: value for name, value in msgspec.structs.asdict(settings).items() if name != "account"})


def _json(status: int, document: dict[str, Any]) -> Response:
    body = json.dumps(document).encode() + b"\n"
    return Response(status=status, headers=[("Content-Type", "application/json")], body=body)


# fmt: off
PAGES: dict[tuple[str, str], _Page] = {
    ("GET",  "/health/live"):     Admin.live,
    ("GET",  "/health/ready"):    Admin.ready,
    ("GET",  "/metrics"):         Admin.metrics,
}
CONTROL: dict[tuple[str, str], _Page] = {
    ("GET",  "/control/clock"):   Admin.clock,
    ("POST", "/control/clock"):   Admin.advance_clock,
    ("POST", "/control/reset"):   Admin.reset,
    ("GET",  "/control/accounts/<name>/settings"): Admin.settings,
    ("PUT",  "/control/accounts/<name>/settings"): Admin.set_settings,
}
OAUTH: dict[tuple[str, str], _Page] = {  # with --oauth development
    ("GET",  "/oauth/jwks"):      Admin.jwks,
}
TOKENS: dict[tuple[str, str], _Page] = {
    ("POST", "/control/token"):   Admin.token,
}
# fmt: on

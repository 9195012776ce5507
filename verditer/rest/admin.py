"""The admin port: health, metrics and, when asked for, control over the clock and the data. Loopback unless told otherwise.

`/health/live` says the process runs, `/health/ready` that the store answers, `/metrics` is for Prometheus. `/control/…` exists
only with `--test-control`: it moves time and empties accounts.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from verditer.core.dates import iso, seconds
from verditer.core.errors import StorageError
from verditer.rest.message import ClientGone, Request, Response
from verditer.rest.observe import Metrics
from verditer.services.context import Context
from verditer.services.control import is_ready, move_clock, reset_account

MAX_SECONDS = 100 * 366 * 86400
_Page = Callable[["Admin", Request], Awaitable[Response]]


class Admin:
    def __init__(self, ctx: Context, metrics: Metrics, *, test_control: bool) -> None:
        self._ctx = ctx
        self._registry = CollectorRegistry()
        self._registry.register(metrics)
        self._pages = PAGES | (CONTROL if test_control else {})

    async def handle(self, request: Request) -> Response:
        path = request.target.partition("?")[0]
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
        return Response(status=200, headers=[("Content-Type", CONTENT_TYPE_LATEST)], body=generate_latest(self._registry))

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


async def _document(request: Request) -> dict[str, Any]:
    try:
        document = json.loads(await request.body.read_all(64 * 1024) or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


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
}
# fmt: on

"""Server-sent events: the feed of requests, the counters for the charts, and the state of the object that a page shows."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import unquote

from verditer.core.dates import iso
from verditer.core.errors import StorageError
from verditer.rest.http.message import Response
from verditer.services.context import Context
from verditer.services.inspection import inspect
from verditer.serving.metrics import Metrics
from verditer.serving.request_feed import FeedEntry, RequestFeed
from verditer.serving.request_summary import RequestSummary
from verditer.web.answers import json_answer
from verditer.web.refusals import sentence
from verditer.web.shown import show_inspection

TICK_SECONDS = 0.25
METRICS_EVERY, OBJECT_EVERY, OBJECT_ALWAYS, ALIVE_EVERY = 4, 2, 8, 40  # ticks
MAX_STREAMS = 100
_READS = ("GET", "HEAD", "OPTIONS")
_SERVICES = {"smb": "file"}  # the service whose data a front end changes, where its name is another
_SMB_WRITES = ("Create", "Write", "SetInfo", "Close")  # what may change a listing


class Events:
    def __init__(self, ctx: Context, metrics: Metrics, feed: RequestFeed) -> None:
        self._ctx = ctx
        self._metrics = metrics
        self._feed = feed
        self._stopping = asyncio.Event()
        self._streams = 0

    def stop(self) -> None:
        """End every stream: a server that stops waits for running requests."""
        self._stopping.set()

    def answer(self, query: Mapping[str, str]) -> Response:
        if self._streams >= MAX_STREAMS:
            return json_answer(503, {"error": f"{MAX_STREAMS} pages are watching already"})
        headers = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
        return Response(status=200, headers=headers, body=self._stream(query))

    async def _stream(self, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        topics = query.get("topics", "").split(",")
        sources: list[Callable[[int], list[bytes]]] = []
        if "feed" in topics:
            sources.append(self._feed_source())
        if "metrics" in topics:
            sources.append(self._metrics_source)
        if "changes" in topics:
            sources.append(self._changes_source(query))
        watched = _Watched(self._ctx, query) if "path" in query else None
        self._streams += 1
        try:
            tick = 0
            yield b": watching\n\n"
            while not self._stopping.is_set():
                for source in sources:
                    for event in source(tick):
                        yield event
                if watched is not None and tick % OBJECT_EVERY == 0 and (state := await watched.changed(tick)) is not None:
                    yield state
                if tick % ALIVE_EVERY == 0:
                    yield b": alive\n\n"
                tick += 1
                await self._pause()
        finally:
            self._streams -= 1

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(TICK_SECONDS):
                await self._stopping.wait()
        except TimeoutError:
            pass

    def _feed_source(self) -> Callable[[int], list[bytes]]:
        seen: dict[int, int] = {}

        def newer(tick: int) -> list[bytes]:
            entries = self._feed.newer_than(seen)
            return [_event("requests", [_show(entry) for entry in entries])] if entries else []

        return newer

    def _changes_source(self, query: Mapping[str, str]) -> Callable[[int], list[bytes]]:
        """Tells a page that shows a list when requests since then may have changed it: the page reads the list again."""
        service, place = query.get("service", ""), [query.get("account", ""), *filter(None, [query.get("list", "")])]
        seen: dict[int, int] = {}
        self._feed.newer_than(seen)

        def newer(tick: int) -> list[bytes]:
            entries = self._feed.newer_than(seen)
            return [_event("changed", {})] if any(_changes(entry.request, service, place) for entry in entries) else []

        return newer

    def _metrics_source(self, tick: int) -> list[bytes]:
        if tick % METRICS_EVERY:
            return []
        totals = self._metrics.of_all_workers().totals()
        document = {name: getattr(totals, name) for name in totals.__struct_fields__}
        return [_event("metrics", document | {"time": iso(self._ctx.now())})]


class _Watched:
    """The object of a page. Its state is sent when it changed and, so that countdowns follow the server's clock, now and then."""

    def __init__(self, ctx: Context, query: Mapping[str, str]) -> None:
        self._ctx = ctx
        self._target = (query.get("service", ""), query.get("account", ""), query["path"])
        self._sent: object = None

    async def changed(self, tick: int) -> bytes | None:
        try:
            document = show_inspection(await inspect(self._ctx, *self._target))
        except StorageError as error:
            document = {"kind": "missing", "error": error.message, "code": error.code.azure_code}
        same = {name: value for name, value in document.items() if name != "now"}
        if same == self._sent and tick % OBJECT_ALWAYS:
            return None
        self._sent = same
        return _event("object", document)


def _changes(request: RequestSummary, service: str, place: list[str]) -> bool:
    """Whether a request may have changed what a list shows. `place` is [account] for the list of its containers, queues, tables
    or shares, and [account, name] for the contents of one."""
    if _SERVICES.get(request.service, request.service) != service:
        return False
    if isinstance(request.status, str):  # over SMB
        return request.operation in _SMB_WRITES and request.status == "SUCCESS"
    if request.method in _READS or request.status >= 300:
        return False
    account, *names = unquote(request.path).strip("/").split("/")
    if account != place[0]:  # the account is in the host name, which the summary does not have
        account, names = place[0], [account, *names]
    if len(place) == 1:
        return len(names) == 1
    return bool(names) and names[0].partition("(")[0] in (place[1], "$batch")


def _show(entry: FeedEntry) -> dict[str, object]:
    request = entry.request
    return {
        "id": f"{entry.worker}.{entry.number}",
        "time": iso(entry.request.time),
        "worker": entry.worker,
        "service": request.service,
        "operation": request.operation or request.method,
        "method": request.method,
        "path": request.path,
        "status": request.status,
        "code": request.error_code,
        "why": sentence(request.status, request.error_code),
        "in": request.bytes_in,
        "out": request.bytes_out,
        "ms": round(request.seconds * 1000, 2),
        "requestId": request.request_id,
        "client": request.client,
    }


def _event(name: str, document: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(document)}\n\n".encode()

"""Builds the server from a Config: stores, services, listening ports, background jobs. `cli.py` calls `run` or `run_workers`."""

import asyncio
import contextlib
import logging
import secrets
import socket
import ssl
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from verditer.config import PORTS, Config
from verditer.core.grant import Grant, Scheme
from verditer.jobs.collect import Collector
from verditer.jobs.copy import Copier
from verditer.jobs.handles import HandleMonitor
from verditer.partition.sqlite.shared import SharedStore
from verditer.parts import engine_of, extents_of, limits_of, tls_of, trust_of
from verditer.rest.auth.oauth import Trust
from verditer.rest.debug_log import with_debug_log
from verditer.rest.faults import Faults
from verditer.rest.http.server import Handler, HttpServer
from verditer.rest.outbound.sources import HttpSourceReader
from verditer.rest.pipeline import Pipeline
from verditer.rest.seed import store_seeds
from verditer.rest.service import Service
from verditer.rest.services import SERVICES
from verditer.rest.summary import summarized
from verditer.rest.website import Website
from verditer.services.context import Context
from verditer.services.readiness import Readiness
from verditer.services.settings import apply_configured
from verditer.serving.accept import WorkerConnections
from verditer.serving.metrics import Metrics
from verditer.serving.request_feed import RequestFeed
from verditer.serving.request_log import RequestLog
from verditer.serving.request_summary import RequestSummary
from verditer.serving.server import ConnectionServer
from verditer.serving.sockets import open_all
from verditer.serving.workers import Worker, WorkerLink, Workers
from verditer.web.access import Access
from verditer.web.admin import Admin
from verditer.web.api import Api, ServerFacts
from verditer.web.control import Control, with_health
from verditer.web.events import Events
from verditer.web.storage import Storage

if TYPE_CHECKING:
    from verditer.rest.auth.issuer import DevelopmentIssuer

logger = logging.getLogger("verditer")

Sockets = Mapping[str, list[socket.socket]]
"""The listening sockets of each port, by the name of its row in PORTS."""


class App:
    """A server that can be started and stopped inside a running event loop: by the command line, and by tests.

    One of several worker processes passes its `worker` and, with the embedded engine, the `store` that all workers share."""

    def __init__(self, config: Config, worker: Worker | None = None, store: SharedStore | None = None) -> None:
        self.config = config
        self.worker = worker
        self.engine = engine_of(config, worker, store)
        self.ctx = Context(
            engine=self.engine,
            extents=extents_of(config, lambda: self.engine.now()),
            accounts=config.accounts,
            inline_limit=config.inline_limit,
            source_reader=HttpSourceReader(config.outbound),
        )
        self.metrics = Metrics(worker.metrics, worker.number) if worker is not None else Metrics()
        self.feed = RequestFeed(worker.feed, worker.number) if worker is not None else RequestFeed()
        self.admin: Admin | None = None
        self.admin_token = config.admin.token or secrets.token_urlsafe(24)
        self._publishing: list[asyncio.Task[None]] = []
        self.log = None if config.silent else RequestLog(config.log_format)
        self.servers: dict[str, ConnectionServer] = {}
        self.readiness = Readiness(self.ctx)
        self._drain_ended = asyncio.Event()
        self.faults = Faults() if config.test_control and (worker is None or worker.count == 1) else None
        self.copier = Copier(self.ctx)
        self.handle_monitor = HandleMonitor(
            self.ctx,
            number=worker.number if worker is not None else 0,
            is_only_server=config.database is None,
            has_workers=worker is not None,
        )
        self.collector = Collector(self.ctx, config.collect_seconds)

    async def start(self) -> None:
        tls = tls_of(self.config)
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])
        await self.engine.open()
        is_first = self.worker is None or self.worker.number == 0
        is_new = is_first and not (self.worker is not None and self.worker.restarted)
        try:
            trust, issuer = await trust_of(self.config, self.ctx)
            if is_new:
                await apply_configured(self.ctx)
            await self.ctx.extents.open()
            await self.collector.start(collecting=is_first)
            await self.handle_monitor.start()
            if is_new:
                await store_seeds(self.ctx, self.config.seed)  # before the ports accept connections
            sockets = self.worker.sockets if self.worker is not None else open_all(self.config.ports)
            await self._start_servers(sockets, self._handlers(sockets, trust, issuer), tls)
        except BaseException:  # cancellation included: the engine's threads would keep the process alive
            await self.stop()
            raise
        self.copier.start()
        loop = asyncio.get_running_loop()
        self._publishing = [loop.create_task(self.metrics.keep_published()), loop.create_task(self.feed.keep_published())]
        logger.debug("listening: %s", ", ".join(f"{name} {server.port}" for name, server in self.servers.items()))

    def _handlers(self, sockets: Sockets, trust: Trust | None, issuer: "DevelopmentIssuer | None") -> dict[str, Handler]:
        """What answers the requests of each port."""
        handlers: dict[str, Handler] = {}
        served = [service for service in SERVICES if service.name in sockets]
        by_port = {listening.getsockname()[1]: service for service in served for listening in sockets[service.name]}
        for service in served:
            pipeline = Pipeline(
                self.ctx,
                service,
                observer=summarized(service.name, self._record),
                product_style=self.config.product_style,
                trust=trust,
                services_by_port=by_port,
                faults=self.faults,
            )
            handlers[service.name] = with_health(self.ctx, self.readiness, pipeline.handle)
        handlers["website"] = Website(self.ctx, product_style=self.config.product_style).handle
        self.admin = self._admin(by_port, issuer)
        handlers["admin"] = self.admin.handle
        if self.config.debug is not None:
            return {name: with_debug_log(name, handler) for name, handler in handlers.items()}
        return handlers

    def _admin(self, by_port: dict[int, Service], issuer: "DevelopmentIssuer | None") -> Admin:
        config = self.config

        @cache
        def pipeline(name: str, read_only: bool) -> Handler | None:
            """Made when the explorer is used: what it asks for is in the log and in the feed, but does not count as load."""
            service = next((each for each in SERVICES if each.name == name), None)
            if service is None:
                return None
            observer = summarized(name, self._record_explorer)
            grant = Grant(scheme=Scheme.KEY)
            return Pipeline(
                self.ctx,
                service,
                observer=observer,
                product_style=False,
                services_by_port=by_port,
                grant=grant,
                read_only=read_only,
            ).handle

        return Admin(
            Access(self.admin_token, config.admin.names),
            Control(
                self.ctx,
                self.metrics,
                self.readiness,
                test_control=config.test_control,
                issuer=issuer,
                faults=self.faults,
            ),
            Api(self.ctx, self._facts),
            Events(self.ctx, self.metrics, self.feed),
            Storage(pipeline),
            read_only=config.admin.read_only,
        )

    def _facts(self) -> ServerFacts:
        config = self.config
        return ServerFacts(
            store="postgresql" if config.database is not None else "memory" if config.in_memory else "folder",
            workers=self.worker.count if self.worker is not None else 1,
            read_only=config.admin.read_only,
            test_control=config.test_control,
            endpoints={row.name: self.url(row.name) for row in PORTS if row.is_storage and row.name in self.servers},
        )

    def url(self, name: str) -> str:
        """Where a client on this machine reaches a port."""
        host = self.config.ports[name].host
        return self._url(name, {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host))

    def bound_url(self, name: str) -> str:
        """The address that a port is bound to, as Azurite shows it."""
        return self._url(name, self.config.ports[name].host)

    def _url(self, name: str, host: str) -> str:
        row = next(row for row in PORTS if row.name == name)
        secure = row.is_encrypted and (self.config.cert is not None or self.config.development_tls)
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        scheme = "smb" if row.is_smb else "https" if secure else "http"
        return f"{scheme}://{host}:{self.servers[name].port}"

    async def _start_servers(self, sockets: Sockets, handlers: dict[str, Handler], tls: ssl.SSLContext | None) -> None:
        worker = self.worker
        connections = worker.connections if worker is not None else None
        for row in PORTS:
            if row.name not in sockets:
                continue
            if row.is_smb:
                self.servers[row.name] = self._smb_server(sockets[row.name], connections)
                continue
            self.servers[row.name] = HttpServer(
                handlers[row.name],
                sockets[row.name],
                limits=limits_of(self.config, row.name),
                tls=tls if row.is_encrypted else None,
                connections=connections,
            )
        for server in self.servers.values():
            await server.start()

    def _smb_server(self, sockets: list[socket.socket], connections: WorkerConnections | None) -> ConnectionServer:
        from verditer.smb.server import SmbServer  # only where the port is open

        return SmbServer(
            self.ctx,
            sockets,
            self._record,
            guid=uuid.uuid5(uuid.NAMESPACE_URL, f"smb://{socket.gethostname()}{self.config.location.absolute()}"),
            requires_encryption=self.config.smb_encryption,
            connections=connections,
        )

    def _record(self, request: RequestSummary) -> None:
        self.metrics.record(request)
        self.feed.record(request)
        if self.log is not None or self.config.debug is not None:
            self._log(request)

    def _record_explorer(self, request: RequestSummary) -> None:
        request.client = "explorer"
        self.feed.record(request)
        self._log(request)

    def _log(self, request: RequestSummary) -> None:
        if self.config.debug is not None:
            logger.debug("request %s: %s", request.request_id, request)
        if self.log is not None:
            self.log.record(request)

    async def stop(self) -> None:
        """Stop accepting, let running requests finish, then close everything.

        Cancelling this does not interrupt it, but ends the time that running requests have to finish."""
        stopping = asyncio.get_running_loop().create_task(self._stop())
        while not stopping.done():
            try:
                await asyncio.shield(stopping)
            except asyncio.CancelledError:
                self._drain_ended.set()
                for server in self.servers.values():
                    server.end_grace()
        stopping.result()

    async def _drain(self) -> None:
        """Serve on while load balancers notice that the server is not ready. Every response ends its connection."""
        self.readiness.draining = True
        for row in PORTS:
            if row.is_storage and row.name in self.servers:
                self.servers[row.name].draining = True
        if self.servers and self.config.drain_seconds:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drain_ended.wait(), self.config.drain_seconds)

    async def _stop(self) -> None:
        logger.debug("stopping")
        await self._drain()
        if self.admin is not None:
            self.admin.events.stop()
        await asyncio.gather(*[server.stop(self.config.grace_seconds) for server in self.servers.values()])
        for task in self._publishing:
            task.cancel()
        await self.copier.stop()
        await self.handle_monitor.stop()
        self.ctx.source_reader.close()
        await self.collector.stop()
        await self.ctx.extents.close()
        await self.engine.close()
        if self.log is not None:
            self.log.flush()
        logger.debug("stopped")


async def run(
    config: Config, started: Callable[[App], None], worker: Worker | None = None, store: SharedStore | None = None
) -> None:
    """Serve until the task is cancelled. `started` is called when every port accepts connections."""
    app = App(config, worker, store)
    await app.start()
    try:
        started(app)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
    finally:
        await app.stop()


def run_workers(config: Config, count: int, work: Callable[[WorkerLink, SharedStore | None], int]) -> int:
    """Serve with `count` processes until they have ended; the status to exit with. `work` is what each of them does."""
    store = SharedStore(config.location) if config.database is None else None
    try:
        return Workers(count, open_all(config.ports), lambda link: work(link, store)).run()
    finally:
        if store is not None:
            store.close()

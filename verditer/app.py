"""The one place that builds everything: stores, services, servers, jobs. `cli.py` fills a Config and calls `run`."""

import asyncio
import contextlib
import secrets
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verditer.config import Config, Listen
from verditer.jobs.collect import Collector
from verditer.jobs.copy import Copier
from verditer.partition.engine import Engine
from verditer.partition.shared import SharedStore
from verditer.partition.sqlite import SqliteEngine
from verditer.rest.accept import Member
from verditer.rest.admin import Admin
from verditer.rest.auth.oauth import Trust, authorization_uri_of, basic_trust
from verditer.rest.exchange import Exchange
from verditer.rest.message import Response
from verditer.rest.observe import Board, Metrics, RequestLog
from verditer.rest.pipeline import Pipeline
from verditer.rest.server import Handler, HttpServer
from verditer.rest.services import SERVICES
from verditer.services.context import Context
from verditer.services.fetch import Fetcher
from verditer.services.settings import apply_configured
from verditer.stream.extents import ExtentStore
from verditer.stream.local import LocalExtents
from verditer.stream.memory import MemoryExtents

if TYPE_CHECKING:
    from verditer.rest.auth.issuer import DevelopmentIssuer


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """One of several processes that serve the same ports from one store, and what it has in common with the others."""

    number: int
    again: bool  # it takes the place of one that died
    sockets: dict[str, list[socket.socket]]  # by service
    board: Board
    member: Member
    store: SharedStore | None  # None with PostgreSQL


class App:
    """A server that can be started and stopped inside a running loop: the command line does it, and so do tests."""

    def __init__(self, config: Config, worker: Worker | None = None) -> None:
        self.config = config
        self.worker = worker
        self.engine = _engine(config, worker)
        self.ctx = Context(
            engine=self.engine,
            extents=_extents(config, lambda: self.engine.now()),
            accounts=config.accounts,
            inline_limit=config.inline_limit,
            fetcher=Fetcher(config.outbound),
        )
        self.metrics = Metrics(worker.board, worker.number) if worker is not None else Metrics()
        self._posting: asyncio.Task[None] | None = None
        self.log = None if config.silent else RequestLog(config.log_format, self.engine.now)
        self.servers: dict[str, HttpServer] = {}
        self.copier = Copier(self.ctx)
        self.collector = Collector(self.ctx, config.collect_seconds)

    async def start(self) -> None:
        tls = _tls(self.config)
        trust, issuer = _trust(self.config)
        await self.engine.open()
        for service in SERVICES:
            pipeline = Pipeline(
                self.ctx, service, observer=self._observer(service.name), product_style=self.config.product_style, trust=trust
            )
            self.servers[service.name] = self._server(pipeline.handle, service.name, tls)
        admin = Admin(self.ctx, self.metrics, test_control=self.config.test_control, issuer=issuer)
        self.servers["admin"] = self._server(admin.handle, "admin", None)
        first = self.worker is None or self.worker.number == 0
        try:
            if first and not (self.worker is not None and self.worker.again):
                await apply_configured(self.ctx)
            await self.ctx.extents.open()
            for server in self.servers.values():
                await server.start()
        except BaseException:  # a signal in mid-start included: the engine's threads would keep the process alive
            await self.stop()
            raise
        self.collector.start(collecting=first)
        self.copier.start()
        self._posting = asyncio.get_running_loop().create_task(self.metrics.keep_posted())

    async def stop(self) -> None:
        """Stop accepting, let running requests finish, then put everything away."""
        try:
            await self._stop_servers(self.config.grace_seconds)
        except asyncio.CancelledError:  # a second signal: whoever is slow is cut off
            await self._stop_servers(0)
        if self._posting is not None:
            self._posting.cancel()
        await self.copier.stop()
        self.ctx.fetcher.close()
        await self.collector.stop()
        await self.ctx.extents.close()
        await self.engine.close()
        if self.log is not None:
            self.log.flush()

    def _server(self, handler: Handler, service: str, tls: ssl.SSLContext | None) -> HttpServer:
        listen: Listen = getattr(self.config, service)
        shared: dict[str, Any] = {}
        if self.worker is not None:
            shared = {"sockets": self.worker.sockets[service], "member": self.worker.member}
        return HttpServer(handler, listen.host, listen.port, ssl=tls, name=service.capitalize(), **shared)

    async def _stop_servers(self, grace_seconds: float) -> None:
        await asyncio.gather(*[server.stop(grace_seconds) for server in self.servers.values()])

    def _observer(self, service: str) -> Callable[[Exchange, Response, float], None]:
        count, log = self.metrics.observer(service), self.log
        if log is None:
            return count

        def both(exchange: Exchange, response: Response, seconds: float) -> None:
            count(exchange, response, seconds)
            log(exchange, response, seconds)

        return both


def _engine(config: Config, worker: Worker | None) -> Engine:
    if config.database is not None:
        from verditer.partition.postgres import PostgresEngine  # an extra: psycopg is installed only where it is used

        return PostgresEngine(config.database)
    if worker is not None:
        return SqliteEngine(config.location, shared=worker.store, worker=worker.number)
    return SqliteEngine(None if config.in_memory else config.location)


def _extents(config: Config, now: Callable[[], int]) -> ExtentStore:
    def new_id() -> str:
        return f"{now():016x}{secrets.token_hex(8)}"

    if config.in_memory:
        return MemoryExtents(new_id, config.memory_limit)
    return LocalExtents(config.location / "extents", new_id)


def _tls(config: Config) -> ssl.SSLContext | None:
    if config.cert is None and not config.development_tls:
        return None
    from verditer.rest.tls import development_certificate, server_context  # costs 30 ms of every start that needs it

    if config.cert is not None:
        return server_context(config.cert, config.key, config.password)
    cert, key = development_certificate(Path(config.location) / "tls")
    return server_context(cert, key)


def _trust(config: Config) -> tuple[Trust | None, "DevelopmentIssuer | None"]:
    """Whose bearer tokens count, and who signs them when that is this server itself."""
    oauth = config.oauth
    if oauth is None:
        return None, None
    from verditer.rest.auth.issuer import DevelopmentIssuer  # imports cryptography, as TLS does
    from verditer.rest.auth.jwks import keys_from

    audiences = frozenset(oauth.audiences)
    if oauth.mode == "development":
        issuer = DevelopmentIssuer(None if config.in_memory else config.location / "oauth")
        return issuer.trust(audiences), issuer
    if oauth.mode == "basic":
        return basic_trust(audiences, allow_http=oauth.allow_http), None
    trust = Trust(
        keys=keys_from(oauth.jwks),
        issuers=oauth.issuers,
        audiences=audiences,
        authorization_uri=authorization_uri_of(oauth.issuers[0]),
        allow_http=oauth.allow_http,
    )
    return trust, None


async def run(config: Config, started: Callable[[App], None], worker: Worker | None = None) -> None:
    """Serve until the task is cancelled."""
    app = App(config, worker)
    await app.start()
    started(app)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
    finally:
        await app.stop()

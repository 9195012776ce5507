"""A complete server inside the test process: an App on its own event loop, in its own thread, on its own ports.

Tests move the clock instead of waiting: `move_clock` uses the admin port, and `now` is the server's time.
"""

import asyncio
import http.client
import json
import logging
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from verditer.app import App
from verditer.config import PORTS, AdminPort, Config
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from verditer.serving.sockets import ListenAddress

T = TypeVar("T")
ADMIN_TOKEN = "token-of-the-tests"
ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
PATIENCE_SECONDS = 20.0  # a start or stop that takes longer has failed


class Running:
    account = DEVELOPMENT_ACCOUNT
    key = DEVELOPMENT_KEY

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self._loop = loop
        self.port = app.servers["blob"].port
        self.admin_port = app.servers["admin"].port
        self.base_url = f"http://127.0.0.1:{self.port}/{self.account}"
        self.errors: list[str] = []  # errors in the server's log: a test that causes one has found a bug
        self._moved = 0.0

    @property
    def connection_string(self) -> str:
        table = f"http://127.0.0.1:{self.app.servers['table'].port}/{self.account}"
        return (
            f"DefaultEndpointsProtocol=http;AccountName={self.account};AccountKey={self.key};"
            f"BlobEndpoint={self.base_url};TableEndpoint={table};"
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's event loop, for example a read or a collection."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def now(self) -> float:
        return time.time() + self._moved

    def move_clock(self, seconds: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=PATIENCE_SECONDS)
        connection.request("POST", "/control/clock", json.dumps({"seconds": seconds}), ADMIN)
        assert connection.getresponse().status == 200
        connection.close()
        self._moved += seconds


@contextmanager
def running(location: Path, *, in_memory: bool = False, database: str | None = None, **settings: Any) -> Iterator[Running]:
    usual: dict[str, Any] = {"silent": True, "test_control": True, "grace_seconds": 1.0, "admin": AdminPort(token=ADMIN_TOKEN)}
    usual["ports"] = {row.name: ListenAddress(port=0) for row in PORTS}
    settings = usual | settings
    config = Config(
        location=location,
        in_memory=in_memory,
        database=database,
        **settings,
    )
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    app = App(config)
    asyncio.run_coroutine_threadsafe(app.start(), loop).result(PATIENCE_SECONDS)
    server = Running(app, loop)
    try:
        with _errors_kept(server.errors):
            yield server
    finally:
        asyncio.run_coroutine_threadsafe(app.stop(), loop).result(PATIENCE_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_SECONDS)
        loop.close()


@contextmanager
def _errors_kept(errors: list[str]) -> Iterator[None]:
    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            errors.append(self.format(record))

    keep = Keep(logging.ERROR)
    logging.getLogger("verditer").addHandler(keep)
    try:
        yield
    finally:
        logging.getLogger("verditer").removeHandler(keep)

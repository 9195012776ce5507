"""A whole server inside the test process: an App on a loop of its own, in a thread of its own, on ports of its own.

Time is moved, never waited for: `move_clock` asks the admin port, and `now` is what the server then believes.
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
from verditer.config import Config, Listen
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY

T = TypeVar("T")
PATIENCE_SECONDS = 20.0  # starting or stopping takes longer than this only when something is broken


class Running:
    account = DEVELOPMENT_ACCOUNT
    key = DEVELOPMENT_KEY

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self._loop = loop
        self.port = app.servers["blob"].port
        self.admin_port = app.servers["admin"].port
        self.base_url = f"http://127.0.0.1:{self.port}/{self.account}"
        self.errors: list[str] = []  # what the server logged as going wrong: a test that causes one has found a bug
        self._moved = 0.0

    @property
    def connection_string(self) -> str:
        table = f"http://127.0.0.1:{self.app.servers['table'].port}/{self.account}"
        return (
            f"DefaultEndpointsProtocol=http;AccountName={self.account};AccountKey={self.key};"
            f"BlobEndpoint={self.base_url};TableEndpoint={table};"
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the server's own loop do something: look into the store, collect."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def now(self) -> float:
        return time.time() + self._moved

    def move_clock(self, seconds: float) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=PATIENCE_SECONDS)
        connection.request("POST", "/control/clock", json.dumps({"seconds": seconds}))
        assert connection.getresponse().status == 200
        connection.close()
        self._moved += seconds


@contextmanager
def running(location: Path, *, in_memory: bool = False, database: str | None = None, **settings: Any) -> Iterator[Running]:
    anywhere = Listen(port=0)
    settings = {"silent": True, "test_control": True, "grace_seconds": 1.0} | settings
    config = Config(
        location=location,
        in_memory=in_memory,
        database=database,
        blob=anywhere,
        queue=anywhere,
        table=anywhere,
        file=anywhere,
        admin=anywhere,
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

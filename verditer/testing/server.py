"""`StorageServer`: a complete server in a thread, and what a test does with it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from verditer.app import App
    from verditer.rest.faults import Fault, FaultKind

T = TypeVar("T")
PATIENCE_SECONDS = 30.0
SERVICES = ("blob", "queue", "table", "file")


class StorageServer:
    """Start and stop it with `with`, or with `start()` and `stop()`. It listens on free ports of 127.0.0.1 and keeps nothing."""

    def __init__(self, account: str = "devstoreaccount1", key: str | None = None) -> None:
        from verditer.services.account import DEVELOPMENT_KEY

        self.account = account
        self.key = key or DEVELOPMENT_KEY
        self._app: App | None = None

    def __enter__(self) -> "StorageServer":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    # --- start and stop -----------------------------------------------------------------------------------------------------

    def start(self) -> "StorageServer":
        """Returns when every port accepts connections."""
        from verditer.app import App
        from verditer.config import PORTS, Config
        from verditer.services.account import parse_accounts
        from verditer.serving.sockets import ListenAddress

        config = Config(
            in_memory=True,
            silent=True,
            test_control=True,
            grace_seconds=1.0,
            ports={row.name: ListenAddress(port=0) for row in PORTS},
            accounts=parse_accounts(f"{self.account}:{self.key}"),
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="verditer", daemon=True)
        self._thread.start()
        self._app = App(config)
        self._run(self._app.start())
        return self

    def stop(self) -> None:
        """May be called more than once."""
        if self._app is None:
            return
        self._run(self._app.stop())
        self._app = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    # --- addresses ----------------------------------------------------------------------------------------------------------

    @property
    def connection_string(self) -> str:
        """For the SDKs of all services."""
        endpoints = "".join(f"{name.capitalize()}Endpoint={self.url(name)};" for name in SERVICES)
        return f"DefaultEndpointsProtocol=http;AccountName={self.account};AccountKey={self.key};{endpoints}"

    def url(self, service: str) -> str:
        """The address of the account in a service: blob, queue, table or file."""
        return f"{self._running.url(service)}/{self.account}"

    @property
    def explorer_url(self) -> str:
        """Opens the explorer in a browser, for a test that is being debugged."""
        return f"{self._running.url('admin')}/?token={self._running.admin_token}"

    # --- time and data ------------------------------------------------------------------------------------------------------

    def move_clock(self, seconds: float) -> None:
        """Move the server's time forward: leases expire, messages reappear, signatures end. It cannot be moved back."""
        from verditer.core.dates import seconds as ticks
        from verditer.services.control import move_clock

        self._run(move_clock(self._running.ctx, ticks(seconds)))

    def reset(self) -> None:
        """Delete everything that is stored, leased or not, and forget the faults."""
        from verditer.services.control import reset_account

        self.clear_faults()
        self._run(reset_account(self._running.ctx, self.account))

    # --- faults -------------------------------------------------------------------------------------------------------------

    def refuse_next(self, count: int = 1, *, service: str = "", method: str = "", path: str = "") -> None:
        """The next requests are answered with 503 ServerBusy, which clients retry. `path` is a part of the request's path."""
        self._add("refuse", count=count, service=service, method=method, path=path)

    def delay_next(self, count: int = 1, seconds: float = 1.0, *, service: str = "", method: str = "", path: str = "") -> None:
        """The next requests wait before they are carried out."""
        self._add("wait", count=count, seconds=seconds, service=service, method=method, path=path)

    def cut_next(self, count: int = 1, *, service: str = "", method: str = "", path: str = "") -> None:
        """The next requests are not carried out, and their connections are closed without an answer."""
        self._add("cut", count=count, service=service, method=method, path=path)

    def lose_next_answers(self, count: int = 1, *, service: str = "", method: str = "", path: str = "") -> None:
        """The next requests are carried out, and their connections are closed without an answer: the client cannot know."""
        self._add("cut-answer", count=count, service=service, method=method, path=path)

    def clear_faults(self) -> None:
        self._on_loop(lambda app: app.faults.clear() if app.faults is not None else None)

    @property
    def faults(self) -> "tuple[Fault, ...]":
        """The faults that no request has met yet."""
        faults = self._running.faults
        assert faults is not None
        return faults.left

    def _add(self, kind: "FaultKind", **fields: Any) -> None:
        from verditer.rest.faults import Fault

        fault = Fault(kind=kind, **fields)
        self._on_loop(lambda app: app.faults.add(fault) if app.faults is not None else None)

    # --- the event loop -----------------------------------------------------------------------------------------------------

    @property
    def _running(self) -> "App":
        if self._app is None:
            raise RuntimeError("the server is not running: use it in a with statement, or call start()")
        return self._app

    def _on_loop(self, action: "Callable[[App], object]") -> None:
        async def act() -> None:
            action(self._running)

        self._run(act())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

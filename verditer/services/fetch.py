"""Outbound HTTP, for copies from elsewhere: one GET at a time, bounded in every direction.

Redirects are not followed, headers and waiting times are limited, and the operator says which hosts may be asked, if any. The
blocking client of the standard library runs on threads of its own, so a slow source keeps nobody else waiting; that there are
few of them bounds how many sources are read at once.
"""

import asyncio
import contextlib
import http.client
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from verditer.core.caches import remember

T = TypeVar("T")

AT_ONCE = 8  # sources that are waited for at a time; others queue
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0  # between two pieces
TOTAL_SECONDS = 600.0  # for what a client waits for
PIECE_BYTES = 1 << 20
ERROR_BYTES = 64 << 10  # of what a source says about its refusal
MAX_URL = 2048
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")  # folded lines: what becomes a property must fit into one line of ours
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,100})</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]{1,2000})</Message>")


class FetchFailed(Exception):
    """`status` and `code` are what the source answered, or what we make of its silence."""

    def __init__(self, status: int, code: str, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.code = code
        self.reason = reason
        self.passing = passing  # trying again later may help


class Outbound(msgspec.Struct, frozen=True, kw_only=True):
    """Which hosts may be asked. `hosts` are names, `*.domain` or either with `:port`; empty means any."""

    allowed: bool = True
    hosts: tuple[str, ...] = ()

    def allows(self, url: SplitResult) -> bool:
        if not self.allowed or not self.hosts:
            return self.allowed
        name = (url.hostname or "").lower()
        port = url.port or _DEFAULT_PORTS[url.scheme]
        return any(_fits(host.lower(), name, port) for host in self.hosts)


def _fits(host: str, name: str, port: int) -> bool:
    pattern, _, wanted = host.rpartition(":") if host.rpartition(":")[2].isdigit() else (host, "", "")
    if wanted and int(wanted) != port:
        return False
    pattern = pattern.strip("[]")
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern


@remember(256, 1024)  # many copies have one source, and the address of this server comes with each
def parse_url(text: str) -> SplitResult | None:
    """An absolute http or https URL that can be asked for, or None."""
    if len(text) > MAX_URL or re.search(r"[\x00-\x20\x7f]", text):
        return None
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return None
    if url.scheme not in _DEFAULT_PORTS or not url.hostname or "@" in url.netloc or port == 0:
        return None
    return url


class Fetcher:
    def __init__(self, outbound: Outbound | None = None) -> None:
        self._outbound = outbound or Outbound()

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(AT_ONCE, "verditer-fetch")

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def open(self, url: str, headers: Mapping[str, str], *, total_seconds: float | None = TOTAL_SECONDS) -> "Fetched":
        """GET. Returns once the source has said yes; raises FetchFailed otherwise."""
        parsed = parse_url(url)
        if parsed is None:
            raise FetchFailed(400, "InvalidUri", "The source is not an http or https URL.")
        if not self._outbound.allows(parsed):
            raise FetchFailed(403, "AuthorizationFailure", "This server may not read from the host of the source.")
        connection = self._connection(parsed)
        fetched = Fetched(self._threads, connection, None if total_seconds is None else time.monotonic() + total_seconds)
        try:
            await fetched.ask(_target(parsed), {"Accept-Encoding": "identity", "Connection": "close", **headers})
        except BaseException:
            fetched.close()
            raise
        return fetched

    def _connection(self, url: SplitResult) -> http.client.HTTPConnection:
        assert url.hostname is not None
        if url.scheme == "https":
            return http.client.HTTPSConnection(url.hostname, url.port, timeout=CONNECT_SECONDS, context=self._tls)
        return http.client.HTTPConnection(url.hostname, url.port, timeout=CONNECT_SECONDS)

    def close(self) -> None:
        if "_threads" in self.__dict__:
            self._threads.shutdown(wait=False, cancel_futures=True)


class Fetched:
    """What a source answers: the body of a request whose bytes come from somewhere else."""

    status: int
    headers: dict[str, str]  # lower-case names
    length: int | None
    ended = False

    def __init__(self, threads: ThreadPoolExecutor, connection: http.client.HTTPConnection, end: float | None) -> None:
        self._threads = threads
        self._connection = connection
        self._end = end
        self._socket: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None
        self._received = 0

    async def ask(self, target: str, headers: Mapping[str, str]) -> None:
        def ask() -> None:
            self._connection.connect()
            self._socket = self._connection.sock  # the connection forgets it once the answer has begun
            self._socket.settimeout(IDLE_SECONDS)
            self._connection.request("GET", target, headers=dict(headers))
            response = self._response = self._connection.getresponse()
            self.status = response.status
            self.headers = {name.lower(): _CONTROLS.sub(" ", value) for name, value in response.getheaders()}
            self.length = response.length  # None when it is sent in chunks, or until the connection closes
            if response.status not in (200, 206):
                raise _refusal(response)

        await self._in_thread(ask)

    async def read(self) -> bytes:
        return await self.read_up_to(PIECE_BYTES)

    async def read_up_to(self, most: int) -> bytes:
        """The next piece; `b""` at the end. A body that ends before its announced length raises."""
        response = self._response
        assert response is not None
        piece = await self._in_thread(lambda: response.read1(min(most, PIECE_BYTES)))
        self._received += len(piece)
        if not piece and self.length is not None and self._received < self.length:
            raise FetchFailed(500, "InternalError", "The source ended before all of it had come.", passing=True)
        return piece

    def close(self) -> None:
        """A thread that waits for the source is woken by its socket."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
            if self._response is not None:
                self._response.close()
            self._connection.close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        left = None if self._end is None else self._end - time.monotonic()
        working = asyncio.get_running_loop().run_in_executor(self._threads, work)
        if not (await asyncio.wait([working], timeout=left))[0]:
            working.cancel()
            raise FetchFailed(500, "OperationTimedOut", "The source did not answer in time.", passing=True)
        try:
            return await working
        except (OSError, http.client.HTTPException, ValueError) as problem:
            reason = f"The source cannot be read: {type(problem).__name__}."
            raise FetchFailed(500, "InternalError", reason, passing=True) from problem


def _target(url: SplitResult) -> str:
    """Path and query as they stand; what cannot stand in a request line is percent-encoded."""
    path = quote(url.path or "/", safe="/%:@!$&'()*+,;=~-._")
    return f"{path}?{quote(url.query, safe='/%:@!$&()*+,;=~-._?')}" if url.query else path


def _refusal(response: http.client.HTTPResponse) -> FetchFailed:
    body = response.read(ERROR_BYTES)
    code, message = _CODE.search(body), _MESSAGE.search(body)
    name = response.headers.get("x-ms-error-code") or (code[1].decode() if code else response.reason.replace(" ", ""))
    text = message[1].decode("utf-8", "replace") if message else f"The source answered {response.status}."
    return FetchFailed(response.status, _plain(name, 100), _plain(text.partition("\n")[0], 500), passing=response.status >= 500)


def _plain(text: str, length: int) -> str:
    """Fit to be repeated in a header of ours."""
    return "".join(character if " " <= character <= "~" else "?" for character in text[:length])

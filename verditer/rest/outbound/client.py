"""The HTTP client: GET requests, limited in time, header size and concurrency. Redirects are not followed.

It is built on the connections of urllib3, which block, so requests run on threads of the client. A slow server delays no other
part of the process, and the number of threads limits how many servers are read at a time. urllib3 is imported by the first
request (`docs/decisions/outbound-client.md`).
"""

import asyncio
import contextlib
import logging
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult

from verditer.rest.outbound.urls import request_target

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse
    from urllib3.connection import HTTPConnection

T = TypeVar("T")

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0  # between two chunks
CHUNK_BYTES = 1 << 20
_CONTROLS = re.compile(r"[ \t]*[\x00-\x1f\x7f]+[ \t]*")  # of folded lines: a value that becomes a property must fit into one line


class RequestFailed(Exception):
    """The server could not be reached, did not answer in time, or did not answer with HTTP. Another attempt may succeed."""

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.timed_out = timed_out


class HttpClient:
    """`concurrency` is the number of requests that may wait for a server at a time. Others queue."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._concurrency, "verditer-outbound")

    @cached_property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def get(self, url: SplitResult, headers: Mapping[str, str], *, total_seconds: float | None) -> "HttpAnswer":
        """Returns once the head of the answer is here, whatever its status. `total_seconds` includes the body."""
        answer = HttpAnswer(self._threads, None if total_seconds is None else time.monotonic() + total_seconds)
        try:
            await answer.request(lambda: self._connection(url), request_target(url), headers)
        except BaseException:
            answer.close()
            raise
        return answer

    def _connection(self, url: SplitResult) -> "HTTPConnection":
        from urllib3.connection import HTTPConnection, HTTPSConnection

        # Its warnings about malformed headers contain the URL, and so the signature in it.
        logging.getLogger("urllib3.connection").disabled = True
        assert url.hostname is not None
        if url.scheme == "https":
            return HTTPSConnection(url.hostname, url.port, timeout=CONNECT_SECONDS, ssl_context=self.tls)
        return HTTPConnection(url.hostname, url.port, timeout=CONNECT_SECONDS)

    def close(self) -> None:
        if "_threads" in self.__dict__:
            self._threads.shutdown(wait=False, cancel_futures=True)


class HttpAnswer:
    """The answer of a server while its body is read."""

    status: int
    reason: str
    headers: dict[str, str]  # lower-case names
    length: int | None  # None when the body is sent in chunks, or until the connection closes

    def __init__(self, threads: ThreadPoolExecutor, deadline: float | None) -> None:
        self._threads = threads
        self._deadline = deadline
        self._connection: HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._response: BaseHTTPResponse | None = None
        self._received = 0

    async def request(self, connect: "Callable[[], HTTPConnection]", target: str, headers: Mapping[str, str]) -> None:
        def request() -> None:
            from urllib3.util import SKIP_HEADER

            connection = self._connection = connect()
            connection.connect()
            self._socket = connection.sock  # the connection drops its reference once the answer has begun
            connection.timeout = IDLE_SECONDS
            sent = {"User-Agent": SKIP_HEADER, "Accept-Encoding": "identity", "Connection": "close", **headers}
            connection.request("GET", target, headers=sent, preload_content=False, decode_content=False)
            response = self._response = connection.getresponse()
            self.status, self.reason = response.status, response.reason or ""
            self.headers = {name.lower(): _CONTROLS.sub(" ", value) for name, value in response.headers.iteritems()}
            self.length = response.length_remaining

        await self._in_thread(request)

    async def read(self, most: int = CHUNK_BYTES) -> bytes:
        """The next bytes; `b""` at the end. Raises RequestFailed when the body ends before its announced length."""
        response = self._response
        assert response is not None
        chunk = await self._in_thread(lambda: response.read1(min(most, CHUNK_BYTES)))
        self._received += len(chunk)
        if not chunk and self.length is not None and self._received < self.length:
            raise RequestFailed("the answer ended before all of it had arrived")
        return chunk

    def close(self) -> None:
        """Shutting down the socket wakes a thread that waits for the server."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            if self._response is not None:
                self._response.close()
            if self._connection is not None:
                self._connection.close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        left = None if self._deadline is None else self._deadline - time.monotonic()
        working = asyncio.get_running_loop().run_in_executor(self._threads, _translating_errors, work)
        if not (await asyncio.wait([working], timeout=left))[0]:
            working.cancel()
            raise RequestFailed("the server did not answer in time", timed_out=True)
        return await working


def _translating_errors(work: Callable[[], T]) -> T:
    """The message names the type of the problem only: its text may contain the URL."""
    from http.client import HTTPException

    from urllib3.exceptions import HTTPError

    try:
        return work()
    except (OSError, HTTPError, HTTPException, ValueError) as problem:
        raise RequestFailed(type(problem.__cause__ or problem).__name__) from problem

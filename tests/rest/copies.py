"""Copy requests, and a small web server that serves as a source on another host."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

from tests.rest.client import Box, Reply
from tests.rest.running import PATIENCE_SECONDS


def url(box: Box, name: str = "source", query: str = "") -> str:
    return f"http://127.0.0.1:{box.server.port}/{box.client.account}{box.path}/{quote(name)}{'?' + query if query else ''}"


def signed(box: Box, name: str = "source") -> str:
    """The same with a SAS, which every operation except Copy Blob requires even within the account."""
    return url(box, name, box.sas("rt"))


def copy(box: Box, source: str, name: str = "copy", headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    """Copy Blob, which is asynchronous."""
    return box.blob("PUT", name, headers={"x-ms-copy-source": source, **(headers or {})}, **more)


def copy_now(box: Box, source: str, name: str = "copy", headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    """Copy Blob From URL."""
    return copy(box, source, name, {"x-ms-requires-sync": "true", **(headers or {})}, **more)


def abort(box: Box, copy_id: str, name: str = "copy", headers: Mapping[str, str] | None = None) -> Reply:
    sent = {"x-ms-copy-action": "abort", **(headers or {})}
    return box.blob("PUT", name, "copy", sent, query={"copyid": copy_id})


def settled(box: Box, name: str = "copy") -> Reply:
    """Wait until the copy is no longer pending. Only the fetch itself takes time."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (reply := box.head(name))["x-ms-copy-status"] == "pending":
        assert time.monotonic() < end, reply.headers
        time.sleep(0.01)
    return reply


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@dataclass
class File:
    """What the source serves. Until `gate` is opened, it sends only `before_gate` bytes of a body."""

    body: bytes = b"from elsewhere"
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200
    ranges: bool = True
    heeds_conditions: bool = True
    gate: threading.Event | None = None
    before_gate: int = 0
    breaks: dict[int, int] = field(default_factory=dict)  # number of the response → bytes after which the connection breaks
    asked: list[dict[str, str]] = field(default_factory=list)

    @property
    def etag(self) -> str | None:
        return self.headers.get("ETag")


class Elsewhere:
    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = server.server_address[1]
        self.files: dict[str, File] = {}

    def add(self, name: str, file: File) -> str:
        self.files[f"/{name}"] = file
        return f"http://127.0.0.1:{self.port}/{name}"


@contextmanager
def elsewhere() -> Iterator[Elsewhere]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    source = Elsewhere(server)
    server.source = source  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield source
    finally:
        for file in source.files.values():
            if file.gate is not None:
                file.gate.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_SECONDS)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        file: File = self.server.source.files[self.path.partition("?")[0]]  # type: ignore[attr-defined]
        file.asked.append({name.lower(): value for name, value in self.headers.items()})
        wanted = self.headers.get("If-Match")
        if file.heeds_conditions and wanted is not None and wanted != file.etag:
            self._answer(412, {}, b"")
            return
        start, end = 0, len(file.body)
        asked = self.headers.get("Range")
        if asked is not None and file.ranges and file.status == 200:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1 if last else end, end)
            span = {"Content-Range": f"bytes {start}-{end - 1}/{len(file.body)}"}
            self._answer(206, file.headers | span, file.body[start:end], file)
        else:
            self._answer(file.status, file.headers, file.body, file)

    def _answer(self, status: int, headers: dict[str, str], body: bytes, file: File | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if headers.get("Transfer-Encoding") != "chunked":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self._send(body, file)
        except OSError:
            self.close_connection = True

    def _send(self, body: bytes, file: File | None) -> None:
        if file is not None and file.headers.get("Transfer-Encoding") == "chunked":
            self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
            return
        if file is not None and len(file.asked) - 1 in file.breaks:
            self.wfile.write(body[: file.breaks[len(file.asked) - 1]])
            self.close_connection = True
            return
        if file is not None and file.gate is not None:
            self.wfile.write(body[: file.before_gate])
            self.wfile.flush()
            file.gate.wait(PATIENCE_SECONDS)
            body = body[file.before_gate :]
        self.wfile.write(body)

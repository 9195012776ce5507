"""HTTP/1.1 on the wire: the limits of a connection, the head of a response as bytes, and the refusals a connection sends itself.

Plain functions over values. Nothing here knows a socket.
"""

from email.utils import formatdate
from http import HTTPStatus

import msgspec

from verditer.core.limits import KIB
from verditer.rest.http.message import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
MAX_TARGET = 32 * KIB  # bytes of a request target, also within a batch
MAX_HEAD = 64 * KIB  # bytes of all headers
MAX_HEADERS = 100

_REASONS = {int(status): status.phrase for status in HTTPStatus}
_LINE_BREAKERS = str.maketrans("\r\n\0", "   ")


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may do on one connection before it is refused or disconnected."""

    max_connections: int = 10_000
    max_pipelined: int = 16  # requests queued behind the running one; at this number reading pauses
    max_headers: int = MAX_HEADERS
    max_header_bytes: int = MAX_HEAD
    max_target_bytes: int = MAX_TARGET
    max_buffered_body_bytes: int = 1024 * 1024  # above this, reading pauses
    max_drained_body_bytes: int = (
        64 * 1024
    )  # an unread rest up to this size is read and dropped; a longer one ends the connection
    header_seconds: float = 30.0  # from the first byte of a request to the end of its headers
    idle_seconds: float = 120.0
    body_stall_seconds: float = 60.0  # without one byte while the handler waits for the body
    write_stall_seconds: float = 60.0  # without one byte accepted while the server waits to write
    linger_seconds: float = 30.0  # how long a refused client may go on sending before it is reset


class Refusal(Exception):
    """The request is malformed or exceeds a limit. The connection answers it, and it never reaches the handler."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    def response(self) -> Response:
        document = (
            f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{self.code}</Code><Message>{self.message}</Message></Error>'
        )
        headers = [
            ("Content-Type", "application/xml"),
            ("x-ms-error-code", self.code),
            ("Date", formatdate(usegmt=True)),
        ]
        return Response(status=self.status, headers=headers, body=document.encode(), close=True)


def malformed(message: str) -> Refusal:
    return Refusal(400, "InvalidInput", message)


def response_head(response: Response, framing: str) -> bytes:
    """The status line, the headers exactly as given, and the lines of `framing_lines`."""
    reason = response.reason or _REASONS.get(response.status, "Unknown")
    lines = "\r\n".join((f"HTTP/1.1 {response.status} {reason}", *map(": ".join, response.headers), framing))
    ends = 1 + len(response.headers) + framing.count("\n")
    if lines.count("\n") != ends or lines.count("\r") != ends:  # a value contains a line break
        return response_head(_on_one_line_each(response, reason), framing)
    return f"{lines}\r\n".encode("latin-1", "replace")


def framing_lines(status: int, length: int | None, *, http_1_0: bool, close: bool) -> str:
    """The headers that say where the response ends and whether another may follow."""
    if close:
        connection = "Connection: close\r\n"
    else:
        connection = "Connection: keep-alive\r\n" if http_1_0 else ""
    if status == 204 or (status == 304 and not length):
        return connection
    if length is not None:
        return f"Content-Length: {length}\r\n{connection}"
    return connection if http_1_0 else f"Transfer-Encoding: chunked\r\n{connection}"


def _on_one_line_each(response: Response, reason: str) -> Response:
    headers = [(name.translate(_LINE_BREAKERS), value.translate(_LINE_BREAKERS)) for name, value in response.headers]
    return msgspec.structs.replace(response, headers=headers, reason=reason.translate(_LINE_BREAKERS))

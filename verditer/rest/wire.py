"""HTTP/1.1 as it leaves: the limits a connection keeps, the head of an answer as bytes, and the refusals it gives by itself.

Plain functions over values; `connection.py` uses them, and nothing here knows a socket.
"""

from email.utils import formatdate
from http import HTTPStatus

import msgspec

from verditer.core.limits import MAX_HEAD, MAX_HEADERS, MAX_TARGET
from verditer.rest.message import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_REASONS = {int(status): status.phrase for status in HTTPStatus}
_LINE_BREAKERS = str.maketrans("\r\n\0", "   ")


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may ask of one connection before it is refused or cut off."""

    max_connections: int = 10_000
    max_pipelined: int = 16  # requests waiting behind the running one; past it the socket is no longer read
    max_headers: int = MAX_HEADERS
    max_header_bytes: int = MAX_HEAD
    max_target_bytes: int = MAX_TARGET
    max_buffered_body_bytes: int = 1024 * 1024  # past it the socket is no longer read
    max_drained_body_bytes: int = 64 * 1024  # an unread rest up to here is swallowed, a longer one costs the connection
    header_seconds: float = 30.0  # from the first byte of a request to the end of its headers
    idle_seconds: float = 120.0
    body_stall_seconds: float = 60.0  # without one byte while the handler waits for the body
    write_stall_seconds: float = 60.0  # without one byte taken while the handler waits to write
    linger_seconds: float = 30.0  # how long a refused client may go on sending before it is reset


class Refusal(Exception):
    """The request cannot be understood or breaks a limit. It is answered by the connection and never reaches the handler."""

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
    if lines.count("\n") != ends or lines.count("\r") != ends:  # something would begin a line of its own
        return response_head(_on_one_line_each(response, reason), framing)
    return f"{lines}\r\n".encode("latin-1", "replace")


def framing_lines(status: int, length: int | None, *, http_1_0: bool, close: bool) -> str:
    """How the client finds the end of the answer, and whether another one may follow."""
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

"""multipart/mixed and application/http: bodies that contain requests, and bodies that contain their responses.

Reading is lenient, as Azure is: line ends of either kind, a last boundary that lacks its dashes, headers of any case.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus

import msgspec

from verditer.core.caches import bounded_cache
from verditer.core.errors import Code, StorageError
from verditer.core.limits import KIB
from verditer.rest.http.message import Response
from verditer.rest.http.wire import MAX_HEADERS, MAX_TARGET

_BOUNDARY = re.compile(r'multipart/mixed\s*;.*?\bboundary\s*=\s*(?:"([^"]+)"|([^\s;]+))', re.IGNORECASE)
_MAX_PARTS = 1000  # more than any batch may have; the rest of the body stays one part
_MAX_PART_HEAD = 16 * KIB  # bytes of the headers of a request within a batch, which may hold hundreds of requests
_REASONS = {int(status): status.phrase for status in HTTPStatus}


class MultipartPart(msgspec.Struct, frozen=True):
    """Header names in lower case. Parts may share one dictionary of headers: it is read only."""

    headers: Mapping[str, str]
    body: bytes


class InnerRequest(msgspec.Struct, frozen=True):
    """A request within a batch. `fields` are its header lines as they were sent."""

    method: str
    target: str
    fields: bytes
    body: bytes

    @staticmethod
    def of(head: bytes, body: bytes) -> "InnerRequest":
        line, _, fields = head.partition(b"\n")
        words = line[: 2 * MAX_TARGET].decode("latin-1").split()
        if len(words) != 3 or not words[2].startswith("HTTP/") or len(words[1]) > MAX_TARGET:
            raise StorageError(Code.InvalidInput)
        return InnerRequest(words[0].upper(), words[1], fields, body)

    @property
    def headers(self) -> Mapping[str, str]:
        return headers_of(self.fields)


def boundary_of(content_type: str) -> str:
    """The boundary of a multipart/mixed body."""
    match = _BOUNDARY.match(content_type)
    if match is None:
        raise StorageError(Code.InvalidInput)
    return match[1] or match[2]


def is_multipart(part: MultipartPart) -> bool:
    return part.headers.get("content-type", "").lower().startswith("multipart/mixed")


def parse_parts(body: bytes, boundary: str) -> list[MultipartPart]:
    return [MultipartPart(*_head_and_body(piece)) for piece in split_parts(body, boundary)]


def split_parts(body: bytes, boundary: str) -> list[bytes]:
    """The parts between the boundaries; text before the first and after the last is ignored. The line break before
    a boundary belongs to the boundary."""
    delimiter = b"\n--" + boundary.encode()
    parts: list[list[bytes]] = []
    for piece in (b"\n" + body.removesuffix(b"\n")).split(delimiter, _MAX_PARTS)[1:]:
        line, _, content = piece.partition(b"\n")
        kind = line.rstrip(b" \t\r")
        if kind == b"--":
            break
        if not kind:
            parts.append([content])
        elif parts:
            parts[-1] += (delimiter, piece)  # a line that only begins like a boundary
    texts = [b"".join(pieces).lstrip(b"\r\n").removesuffix(b"\r") for pieces in parts]
    return [text for text in texts if text]


def parse_request(part: MultipartPart) -> InnerRequest:
    """The request inside an application/http part."""
    return InnerRequest.of(*cut(part.body.lstrip()))


def _head_and_body(text: bytes) -> tuple[Mapping[str, str], bytes]:
    head, body = cut(text)
    return headers_of(head), body


def cut(text: bytes) -> tuple[bytes, bytes]:
    """The parts before and after the first blank line; lines end with LF, with or without CR."""
    at, behind = text.find(b"\n\r\n"), 3
    other = text.find(b"\n\n", 0, at + 1 if at >= 0 else len(text))
    if other >= 0:
        at, behind = other, 2
    return (text[:at], text[at + behind :]) if at >= 0 else (text, b"")


@bounded_cache(256, 1024)  # most parts of a batch have the same headers
def headers_of(head: bytes) -> Mapping[str, str]:
    """The values of a repeated name are joined, as in requests outside of batches."""
    if len(head) > _MAX_PART_HEAD or head.count(b"\n") > MAX_HEADERS:
        raise StorageError(Code.InvalidInput)
    headers: dict[str, str] = {}
    for line in head.decode("latin-1").split("\n"):
        name, _, value = (text.strip(" \t\r") for text in line.partition(":"))
        name = name.lower()
        if name:
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def render_changeset(answers: Iterable[Response | bytes], guid: str) -> bytes:
    """The responses may be bytes already."""
    inner = f"changesetresponse_{guid}"
    return (
        f"--batchresponse_{guid}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n".encode()
        + _parts(answers, inner)
        + f"--batchresponse_{guid}--\r\n".encode()
    )


def render_answer(answer: Response, guid: str) -> bytes:
    """One response directly in the batch: that of a query."""
    return _parts([answer], f"batchresponse_{guid}")


def render_batch(answers: Iterable[tuple[str | None, Response]], guid: str) -> tuple[bytes, str]:
    """The responses, each with the Content-ID of its request; and the boundary between them."""
    boundary = f"batchresponse_{guid}"
    parts = []
    for content_id, response in answers:
        response.headers.append(("Content-Length", str(len(response.body) if isinstance(response.body, bytes) else 0)))
        parts.append(_numbered(boundary, content_id) + _answer(response))
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), boundary


def _numbered(boundary: str, content_id: str | None) -> bytes:
    number = f"Content-ID: {content_id}\r\n" if content_id is not None else ""
    return f"--{boundary}\r\nContent-Type: application/http\r\n{number}\r\n".encode("latin-1", "replace")


def _parts(answers: Iterable[Response | bytes], boundary: str) -> bytes:
    opening = f"--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n".encode()
    texts = [answer if isinstance(answer, bytes) else _answer(answer) for answer in answers]
    return opening + opening.join(texts) + f"--{boundary}--\r\n".encode()


def _answer(response: Response) -> bytes:
    assert isinstance(response.body, bytes)
    head = head_text(response.status, response.headers, response.reason)
    return head.encode("latin-1", "replace") + b"\r\n" + response.body + b"\r\n"


def head_text(status: int, headers: Iterable[tuple[str, str]], reason: str = "") -> str:
    """A status line and headers; the caller appends the empty line."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    return f"HTTP/1.1 {status} {reason or _REASONS.get(status, 'Unknown')}\r\n{lines}"

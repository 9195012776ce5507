"""multipart/mixed and application/http: a body that holds requests, and one that holds their answers.

Reading is lenient, as Azure is: line ends of either kind, a last boundary that lacks its dashes, headers of any case.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.rest.message import Response

_BOUNDARY = re.compile(r'multipart/mixed\s*;.*?\bboundary\s*=\s*(?:"([^"]+)"|([^\s;]+))', re.IGNORECASE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_REASONS = {int(status): status.phrase for status in HTTPStatus}


class Part(msgspec.Struct, frozen=True):
    """Header names in lower case. Parts may share one dictionary of headers: it is read only."""

    headers: Mapping[str, str]
    body: bytes


class InnerRequest(msgspec.Struct, frozen=True):
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


def boundary_of(content_type: str) -> str:
    """The boundary of a multipart/mixed body."""
    match = _BOUNDARY.match(content_type)
    if match is None:
        raise StorageError(Code.InvalidInput)
    return match[1] or match[2]


def is_multipart(part: Part) -> bool:
    return part.headers.get("content-type", "").lower().startswith("multipart/mixed")


def parse_parts(body: bytes, boundary: str) -> list[Part]:
    """The parts between the boundaries; whatever stands before the first and behind the last is ignored."""
    line = re.compile(rb"^--" + re.escape(boundary.encode()) + rb"(--)?[ \t]*\r?$", re.MULTILINE)
    marks = list(line.finditer(body))
    parts = []
    for index, mark in enumerate(marks):
        if mark[1]:
            break
        end = marks[index + 1].start() if index + 1 < len(marks) else len(body)
        piece = body[mark.end() : end].lstrip(b"\r\n")
        if piece:
            parts.append(Part(*_head_and_body(piece)))
    return parts


def parse_request(part: Part) -> InnerRequest:
    """The request inside an application/http part."""
    line, _, rest = part.body.lstrip().partition(b"\n")
    words = line.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        raise StorageError(Code.InvalidInput)
    headers, body = _head_and_body(rest)
    return InnerRequest(words[0].upper(), words[1], headers, body)


def _head_and_body(text: bytes) -> tuple[Mapping[str, str], bytes]:
    """The line break before the next boundary belongs to the boundary."""
    match = _BLANK_LINE.search(text)
    head, body = (text[: match.start()], text[match.end() :]) if match is not None else (text, b"")
    return _headers(head), body.removesuffix(b"\n").removesuffix(b"\r")


@lru_cache(maxsize=256)  # the parts of a batch mostly have the same headers
def _headers(head: bytes) -> Mapping[str, str]:
    lines = [line.partition(":") for line in head.decode("latin-1").splitlines() if line]
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def render_changeset(answers: Iterable[Response], guid: str) -> bytes:
    inner = f"changesetresponse_{guid}"
    return (
        f"--batchresponse_{guid}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n".encode()
        + _parts(answers, inner)
        + f"--batchresponse_{guid}--\r\n".encode()
    )


def render_answer(answer: Response, guid: str) -> bytes:
    """One answer directly in the batch: a query."""
    return _parts([answer], f"batchresponse_{guid}")


def render_batch(answers: Iterable[tuple[str | None, Response]], guid: str) -> tuple[bytes, str]:
    """Answers side by side, each under the Content-ID of its request; and the boundary between them."""
    boundary = f"batchresponse_{guid}"
    parts = []
    for content_id, response in answers:
        response.headers.append(("Content-Length", str(len(response.body) if isinstance(response.body, bytes) else 0)))
        parts.append(_numbered(boundary, content_id) + _answer(response))
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), boundary


def _numbered(boundary: str, content_id: str | None) -> bytes:
    number = f"Content-ID: {content_id}\r\n" if content_id is not None else ""
    return f"--{boundary}\r\nContent-Type: application/http\r\n{number}\r\n".encode("latin-1", "replace")


def _parts(answers: Iterable[Response], boundary: str) -> bytes:
    opening = f"--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n".encode()
    return b"".join([opening + _answer(answer) for answer in answers]) + f"--{boundary}--\r\n".encode()


def _answer(response: Response) -> bytes:
    assert isinstance(response.body, bytes)
    lines = "".join([f"{name}: {value}\r\n" for name, value in response.headers])
    head = f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Unknown')}\r\n{lines}\r\n"
    return head.encode("latin-1", "replace") + response.body + b"\r\n"

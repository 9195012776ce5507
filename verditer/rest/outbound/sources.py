"""Copy sources over HTTP: the implementation of `services/outbound.py`."""

import base64
import binascii
import re

from verditer.config import Outbound
from verditer.core.errors import ErrorClass
from verditer.rest.outbound.client import CHUNK_BYTES, HttpAnswer, HttpClient, RequestFailed
from verditer.rest.outbound.urls import is_allowed, parse_url
from verditer.services.outbound import TOTAL_SECONDS, SourceFailed, SourceProperties, SourceRequest

CONCURRENT_SOURCES = 8
ERROR_BYTES = 64 << 10  # how much of an error document is read
_METADATA = "x-ms-meta-"
_UNMET = {304: ErrorClass.NOT_MODIFIED, 412: ErrorClass.PRECONDITION_FAILED}
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,100})</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]{1,2000})</Message>")


class HttpSourceReader:
    def __init__(self, outbound: Outbound | None = None) -> None:
        self._outbound = outbound or Outbound()
        self._client = HttpClient(CONCURRENT_SOURCES)

    async def open(self, request: SourceRequest, *, total_seconds: float | None = TOTAL_SECONDS) -> "HttpSource":
        url = parse_url(request.url)
        if url is None:
            raise SourceFailed(ErrorClass.INVALID, "InvalidUri", "The source is not an http or https URL.")
        if not is_allowed(self._outbound, url):
            message = "This server may not read from the host of the source."
            raise SourceFailed(ErrorClass.FORBIDDEN, "AuthorizationFailure", message)
        try:
            answer = await self._client.get(url, _headers(request), total_seconds=total_seconds)
            if answer.status in (200, 206):
                return HttpSource(answer)
            try:
                raise await _refusal(answer)
            finally:
                answer.close()
        except RequestFailed as failure:
            raise _failed(failure) from failure

    def close(self) -> None:
        self._client.close()


class HttpSource:
    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer
        self.properties = _properties(answer)

    async def read(self, most: int | None = None) -> bytes:
        try:
            return await self._answer.read(CHUNK_BYTES if most is None else most)
        except RequestFailed as failure:
            raise _failed(failure) from failure

    def close(self) -> None:
        self._answer.close()


def _headers(request: SourceRequest) -> dict[str, str]:
    headers = {**request.access, **request.conditions}
    if request.etag is not None and not request.etag.startswith("W/"):  # If-Match never matches a weak ETag
        headers["If-Match"] = request.etag
    if request.range is not None:
        first, last = request.range
        headers["Range"] = f"bytes={first}-{'' if last is None else last}"
    return headers


def _properties(answer: HttpAnswer) -> SourceProperties:
    headers = answer.headers
    is_range = answer.status == 206
    return SourceProperties(
        length=answer.length,
        is_range=is_range,
        etag=headers.get("etag"),
        blob_type=headers.get("x-ms-blob-type"),
        content_type=headers.get("content-type"),
        content_encoding=headers.get("content-encoding"),
        content_language=headers.get("content-language"),
        content_disposition=headers.get("content-disposition"),
        cache_control=headers.get("cache-control"),
        content_md5=None if is_range else _md5(headers.get("content-md5")),
        metadata={name[len(_METADATA) :]: value for name, value in headers.items() if name.startswith(_METADATA)},
        sequence_number=_number(headers.get("x-ms-blob-sequence-number")),
        block_count=_number(headers.get("x-ms-blob-committed-block-count")),
    )


def _md5(text: str | None) -> bytes | None:
    try:
        digest = base64.b64decode(text or "", validate=True)
    except binascii.Error:
        return None
    return digest if len(digest) == 16 else None


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) <= 18 else 0


async def _refusal(answer: HttpAnswer) -> SourceFailed:
    body = await _beginning(answer)
    code, message = _CODE.search(body), _MESSAGE.search(body)
    name = answer.headers.get("x-ms-error-code") or (code[1].decode() if code else answer.reason.replace(" ", ""))
    text = message[1].decode("utf-8", "replace") if message else f"The source answered {answer.status}."
    status = _UNMET.get(answer.status, answer.status)
    return SourceFailed(status, _printable(name, 100), _printable(text.partition("\n")[0], 500), transient=answer.status >= 500)


async def _beginning(answer: HttpAnswer) -> bytes:
    body = b""
    while len(body) < ERROR_BYTES and (chunk := await answer.read(ERROR_BYTES - len(body))):
        body += chunk
    return body


def _failed(failure: RequestFailed) -> SourceFailed:
    if failure.timed_out:
        message = "The source did not answer in time."
        return SourceFailed(ErrorClass.INTERNAL, "OperationTimedOut", message, transient=True)
    return SourceFailed(ErrorClass.INTERNAL, "InternalError", f"The source cannot be read: {failure}.", transient=True)


def _printable(text: str, length: int) -> str:
    """A text that can be repeated in a header."""
    return "".join(character if " " <= character <= "~" else "?" for character in text[:length])

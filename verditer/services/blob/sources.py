"""Where a copy reads from: a blob of this server, or a URL elsewhere. `rest/sources.py` reads the request and checks who may.

Trouble with a source is the client's to know: it is told as CannotVerifyCopySource, with what the source answered.
"""

import base64
import binascii
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.services.blob.read import GetBlob, StoredBody, get_blob
from verditer.services.context import Context
from verditer.services.fetch import Fetched, FetchFailed

Range = tuple[int, int | None]


class LocalSource(msgspec.Struct, frozen=True, kw_only=True):
    """A blob of this server, which the caller may read."""

    name: BlobName
    snapshot: int | None = None
    version_id: int | None = None
    guard: Guard
    url: str  # as it is shown: without a signature
    same_account: bool
    may_read_tags: bool = True


class RemoteSource(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    shown: str
    headers: dict[str, str]  # version and authorization
    conditions: dict[str, str]  # as the source understands them


CopySource = LocalSource | RemoteSource


class SourceBody:
    """The bytes of a source while they come, and the blob they are from as far as it is known."""

    ended = False

    def __init__(self, pieces: AsyncIterator[bytes], length: int | None, blob: Blob, etag: str | None = None) -> None:
        self._pieces = pieces
        self.length = length
        self.blob = blob
        self.etag = etag  # of a source elsewhere, if it has one

    async def read(self) -> bytes:
        return await anext(self._pieces, b"")

    async def close(self) -> None:
        if isinstance(self._pieces, AsyncGenerator | StoredBody):
            await self._pieces.aclose()


@asynccontextmanager
async def opened(ctx: Context, source: CopySource, source_range: Range | None = None) -> AsyncIterator[SourceBody]:
    try:
        if isinstance(source, LocalSource):
            body = await _open_local(ctx, source, source_range)
            try:
                yield body
            finally:
                await body.close()
            return
        fetched = await ctx.fetcher.open(source.url, source.headers | source.conditions | range_header(source_range))
        try:
            if source_range is not None and fetched.status != 206:
                raise FetchFailed(416, "InvalidRange", "The source does not serve ranges.")
            yield SourceBody(_pieces(fetched), fetched.length, remote_blob(fetched), fetched.headers.get("etag"))
        finally:
            fetched.close()
    except FetchFailed as failure:
        raise refused(failure) from None


async def _open_local(ctx: Context, source: LocalSource, source_range: Range | None) -> SourceBody:
    request = GetBlob(snapshot=source.snapshot, version_id=source.version_id, range=source_range)
    try:
        read = await get_blob(ctx, source.name, request, source.guard)
    except StorageError as error:
        raise unverified_by(error) from None
    pieces = _one(read.body) if isinstance(read.body, bytes) else read.body
    return SourceBody(pieces, read.length, read.blob)


async def _one(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


async def _pieces(fetched: Fetched) -> AsyncIterator[bytes]:
    while piece := await fetched.read():
        yield piece


def range_header(source_range: Range | None) -> dict[str, str]:
    if source_range is None:
        return {}
    first, last = source_range
    return {"Range": f"bytes={first}-{'' if last is None else last}"}


def remote_blob(fetched: Fetched) -> Blob:
    """A source elsewhere as a record: what its headers tell of it. Whatever does not say its type is a block blob."""
    headers = fetched.headers
    kind = headers.get("x-ms-blob-type", "")
    blob_type = BlobType(kind) if kind in list(BlobType) else BlobType.BLOCK
    prefix = "x-ms-meta-"
    return Blob(
        container_id=0,
        name="",
        etag=0,
        created=0,
        blob_type=blob_type,
        size=fetched.length or 0,
        content_id=0,
        inline=False,
        content_type=headers.get("content-type") or "application/octet-stream",
        content_encoding=headers.get("content-encoding"),
        content_language=headers.get("content-language"),
        content_disposition=headers.get("content-disposition"),
        cache_control=headers.get("cache-control"),
        content_md5=_md5(headers.get("content-md5")) if fetched.status == 200 else None,
        metadata={name[len(prefix) :]: value for name, value in headers.items() if name.startswith(prefix)},
        sequence_number=_number(headers.get("x-ms-blob-sequence-number")) if blob_type is BlobType.PAGE else None,
        block_count=_number(headers.get("x-ms-blob-committed-block-count")) if blob_type is BlobType.APPEND else None,
    )


def _md5(text: str | None) -> bytes | None:
    try:
        digest = base64.b64decode(text or "", validate=True)
    except binascii.Error:
        return None
    return digest if len(digest) == 16 else None


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) <= 18 else 0


def refused(failure: FetchFailed) -> StorageError:
    """A condition we passed on is ours to tell; redirects, which we do not follow, are nothing a client could act on."""
    if failure.status in (304, 412):
        return StorageError(Code.SourceConditionNotMet)
    status = failure.status if failure.status >= 400 else 409
    return unverified(status, failure.code, failure.reason, answered=failure.status)


def unverified_by(error: StorageError) -> StorageError:
    """The refusal of a blob of ours, told as that of a copy source."""
    if error.code in (Code.SourceConditionNotMet, Code.CannotVerifyCopySource) or error.status >= 500:
        return error
    return unverified(error.status, error.code.wire, error.message)


def unverified(status: int, code: str, message: str, *, answered: int | None = None) -> StorageError:
    source_status = str(answered or status)
    return StorageError(
        Code.CannotVerifyCopySource,
        status=status,
        message=message,
        headers={"x-ms-copy-source-status-code": source_status, "x-ms-copy-source-error-code": code},
        details={"CopySourceStatusCode": source_status, "CopySourceErrorCode": code, "CopySourceErrorMessage": message},
    )

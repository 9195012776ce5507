"""The source of a copy: a blob or file of this server, or a URL of another one. `rest/copy_source.py` checks that the caller may
read it.

A source that cannot be read is reported to the client as CannotVerifyCopySource, with the refusal of the source.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from verditer.core.errors import SERVER_FAILURES, Code, ErrorClass, SourceRefusal, StorageError
from verditer.core.guard import COPY_SOURCE, PART_SOURCE, Guard, GuardRule
from verditer.core.names import BlobName, FilePath
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.file import FileEntry
from verditer.services.blob.encryption import NO_ENCRYPTION, EncryptionRequest
from verditer.services.blob.read import GetBlob, get_blob
from verditer.services.content.reading import StoredBody
from verditer.services.context import Context
from verditer.services.file.reading import GetFile, get_file
from verditer.services.outbound import OpenSource, SourceFailed, SourceProperties, SourceRange, SourceRequest


class BlobSource(msgspec.Struct, frozen=True, kw_only=True):
    """A blob of this server, which the caller may read."""

    name: BlobName
    snapshot: int | None = None
    version_id: int | None = None
    guard: Guard
    shown: str  # the URL that readers of the copy see: without a signature
    same_account: bool
    may_read_tags: bool = True
    encryption: EncryptionRequest = NO_ENCRYPTION  # its key, for the operations that take one


class FileSource(msgspec.Struct, frozen=True, kw_only=True):
    """A file of this server, which the caller may read."""

    path: FilePath
    snapshot: int | None = None  # of its share
    guard: Guard
    shown: str  # the URL that readers of the copy see: without a signature
    same_account: bool


class RemoteSource(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of another server. `access` and `conditions` are passed on to the source reader (`services/outbound.py`)."""

    url: str
    shown: str  # the URL that readers of the copy see: without a signature
    rule: GuardRule  # how an unmet condition is reported
    access: dict[str, str]
    conditions: dict[str, str]


CopySource = BlobSource | FileSource | RemoteSource


class SourceBody:
    """The bytes of a source while they arrive. `blob` describes the source, as far as it is known, as a blob."""

    ended = False

    def __init__(self, chunks: AsyncIterator[bytes], length: int | None, blob: Blob, etag: str | None = None) -> None:
        self._chunks = chunks
        self.length = length
        self.blob = blob
        self.etag = etag  # of a source on another server, if it has one

    async def read(self) -> bytes:
        return await anext(self._chunks, b"")

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def close(self) -> None:
        if isinstance(self._chunks, AsyncGenerator | StoredBody):
            await self._chunks.aclose()


@asynccontextmanager
async def opened(ctx: Context, source: CopySource, source_range: SourceRange | None = None) -> AsyncIterator[SourceBody]:
    """The body of a source, closed at the end. Failures of a source on another server become StorageErrors."""
    if not isinstance(source, RemoteSource):
        body = await _open_local(ctx, source, source_range)
        try:
            yield body
        finally:
            await body.close()
        return
    request = SourceRequest(url=source.url, access=source.access, conditions=source.conditions, range=source_range)
    try:
        remote = await ctx.source_reader.open(request)
        try:
            properties = remote.properties
            if source_range is not None and not properties.is_range:
                raise SourceFailed(ErrorClass.INVALID_RANGE, "InvalidRange", "The source does not serve ranges.")
            yield SourceBody(_chunks(remote), properties.length, remote_blob(properties), properties.etag)
        finally:
            remote.close()
    except SourceFailed as failure:
        raise refused(failure, source.rule) from None


async def _open_local(ctx: Context, source: BlobSource | FileSource, source_range: SourceRange | None) -> SourceBody:
    try:
        if isinstance(source, FileSource):
            request = GetFile(snapshot=source.snapshot, range=source_range)
            read = await get_file(ctx, source.path, request, source.guard)
            return SourceBody(_chunks_of(read.body), read.length, file_as_blob(read.entry))
        found = await get_blob(
            ctx,
            source.name,
            GetBlob(
                snapshot=source.snapshot,
                version_id=source.version_id,
                range=source_range,
                **msgspec.structs.asdict(source.encryption),
            ),
            source.guard,
        )
    except StorageError as error:
        raise unverified_by(error, source.guard.rule) from None
    return SourceBody(_chunks_of(found.body), found.length, found.blob)


def _chunks_of(body: bytes | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    return _one(body) if isinstance(body, bytes) else body


async def _one(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


async def _chunks(remote: OpenSource) -> AsyncIterator[bytes]:
    while chunk := await remote.read():
        yield chunk


def remote_blob(properties: SourceProperties) -> Blob:
    """A source on another server as a record. A source that does not state its type is a block blob."""
    kind = properties.blob_type
    blob_type = BlobType(kind) if kind in list(BlobType) else BlobType.BLOCK
    return Blob(
        container_id=0,
        name="",
        etag=0,
        created=0,
        blob_type=blob_type,
        size=properties.length or 0,
        content_id=0,
        inline=False,
        content_type=properties.content_type or "application/octet-stream",
        content_encoding=properties.content_encoding,
        content_language=properties.content_language,
        content_disposition=properties.content_disposition,
        cache_control=properties.cache_control,
        content_md5=properties.content_md5,
        metadata=properties.metadata,
        sequence_number=properties.sequence_number if blob_type is BlobType.PAGE else None,
        block_count=properties.block_count if blob_type is BlobType.APPEND else None,
    )


def file_as_blob(entry: FileEntry) -> Blob:
    """A file of this server as the source of a blob: a block blob with its properties."""
    return Blob(
        container_id=0,
        name="",
        etag=entry.etag,
        created=entry.created,
        blob_type=BlobType.BLOCK,
        size=entry.size,
        content_id=0,
        inline=False,
        content_type=entry.content_type,
        content_encoding=entry.content_encoding,
        content_language=entry.content_language,
        content_disposition=entry.content_disposition,
        cache_control=entry.cache_control,
        content_md5=entry.content_md5,
        metadata=entry.metadata,
    )


def refused(failure: SourceFailed, rule: GuardRule) -> StorageError:
    """A condition that was passed on is reported as the rule says: by an error of its own, or as the refusal of the source."""
    if failure.is_condition and rule.conditions.unmet is Code.SourceConditionNotMet:
        return StorageError(Code.SourceConditionNotMet)
    return _unverified(SourceRefusal(failure.status, failure.code, failure.message), rule)


def unverified_by(error: StorageError, rule: GuardRule = COPY_SOURCE) -> StorageError:
    """The refusal of a blob or file of this server, reported as that of a copy source."""
    if error.code in _REPORTED_AS_THEY_ARE or error.code.error_class in SERVER_FAILURES:
        return error
    if error.code is Code.ConditionNotMet and rule.conditions.unmet is Code.SourceConditionNotMet:
        return error  # a condition on tags
    return _unverified(SourceRefusal(error.code.error_class, error.code.azure_code, error.message), rule)


_REPORTED_AS_THEY_ARE = (Code.SourceConditionNotMet, Code.CannotVerifyCopySource, Code.CopySourceNotBlockBlob)


def _unverified(refusal: SourceRefusal, rule: GuardRule) -> StorageError:
    """Seen on Azure: the operations that read a part of a source have a message of their own, the others repeat the source's."""
    message = "" if rule is PART_SOURCE else refusal.message
    return StorageError(Code.CannotVerifyCopySource, message=message, details=refusal)

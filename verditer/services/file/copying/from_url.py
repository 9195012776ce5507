"""Put Range From URL: Put Range with bytes that are read from a source. The checksums of the request are those of the source.

The bytes, at most 4 MiB, are read before anything is written: the request may depend on their CRC64.
"""

from verditer.core.errors import Code, Limit, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_FILE_RANGE
from verditer.core.names import FilePath
from verditer.services.context import Context
from verditer.services.copying.sources import CopySource, opened
from verditer.services.file.answers import RangeWritten
from verditer.services.file.ranges import PutRange, bounds_of, put_range
from verditer.stream.digest import digest


class PutRangeFromUrl(PutRange, frozen=True, kw_only=True):
    """`if_match_crc64` and `if_none_match_crc64` are conditions on the bytes of the source range."""

    source_range: tuple[int, int]
    if_match_crc64: bytes | None = None
    if_none_match_crc64: bytes | None = None


async def put_range_from_url(
    ctx: Context, target: FilePath, request: PutRangeFromUrl, guard: Guard, source: CopySource
) -> RangeWritten:
    first, last = request.source_range
    start, end = bounds_of(request)
    if last - first + 1 != end - start:
        raise StorageError(Code.InvalidHeaderValue, field="source_range", value=f"bytes={first}-{last}")
    if last - first >= MAX_FILE_RANGE:
        raise StorageError(Code.RequestBodyTooLarge, details=Limit(MAX_FILE_RANGE))
    async with opened(ctx, source, request.source_range) as body:
        data = b"".join([chunk async for chunk in body])
    if len(data) != last - first + 1:
        raise StorageError(Code.InvalidRange)
    _check_conditions(request, data)
    return await put_range(ctx, target, request, guard, _ReceivedBody(data))


def _check_conditions(request: PutRangeFromUrl, data: bytes) -> None:
    if request.if_match_crc64 is None and request.if_none_match_crc64 is None:
        return
    crc64 = digest(data)[1]
    if request.if_match_crc64 not in (None, crc64) or request.if_none_match_crc64 == crc64:
        raise StorageError(Code.SourceConditionNotMet)


class _ReceivedBody:
    """The body of a request that was received already."""

    ended = True

    def __init__(self, data: bytes) -> None:
        self.length = len(data)
        self._data = data

    async def read(self) -> bytes:
        data, self._data = self._data, b""
        return data

"""Get File: a file's bytes, whole or a range, with the properties of the very same state (contract G3)."""

import msgspec

from verditer.core.errors import Code, ResourceSize, StorageError
from verditer.core.files.share_modes import READ_DATA
from verditer.core.guard import Guard
from verditer.core.limits import MAX_RANGE_DIGEST
from verditer.core.names import FilePath
from verditer.core.records.file import FileEntry
from verditer.partition.engine import Transaction
from verditer.services.content.reading import ContentPart, body_of, content_parts, reads_many_rows, whole_body
from verditer.services.context import Context
from verditer.services.file import opens
from verditer.services.file.answers import FileRead
from verditer.services.file.current import require_file
from verditer.services.file.opens import check_access
from verditer.stream.digest import digest


class GetFile(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    range: tuple[int, int | None] | None = None  # first byte, last byte or None for "to the end"
    range_md5: bool = False


async def get_file(ctx: Context, target: FilePath, request: GetFile, guard: Guard) -> FileRead:
    def read(tx: Transaction, *, may_be_long: bool = False) -> tuple[FileRead, list[ContentPart]] | None:
        """None: the range may have many intervals, so it is read again beside the event loop."""
        _, entry = require_file(tx, target, request.snapshot)
        guard.check(entry, tx.now)
        start, length = _bounds(entry, request)
        if request.snapshot is None:
            check_access(tx, entry, READ_DATA, start=start, end=start + length)
        if reads_many_rows(entry, length) and not may_be_long:
            return None
        ranged = request.range is not None
        found = FileRead(entry=entry, now=tx.now, start=start, length=length, ranged=ranged, body=b"")
        return found, content_parts(tx, entry, start, length)

    with ctx.activity.begin(ctx.now()) as operation:  # until the body is registered as an operation itself
        found = await opens.read(ctx, target.scope, read)
        if found is None:
            found = await opens.read(ctx, target.scope, lambda tx: read(tx, may_be_long=True), long=True)
        assert found is not None
        answer, parts = found
        body = await body_of(ctx, operation.start, parts, answer.length)
    if not request.range_md5:
        return msgspec.structs.replace(answer, body=body)
    whole = await whole_body(body)
    return msgspec.structs.replace(answer, body=whole, range_md5=digest(whole)[0])


def _bounds(entry: FileEntry, request: GetFile) -> tuple[int, int]:
    """First byte and number of bytes. A range is cut at the end of the file; one that begins behind it is refused."""
    if request.range is None:
        if request.range_md5:
            raise StorageError(Code.MissingRequiredHeader, field="range")
        return 0, entry.size
    first, last = request.range
    if first >= entry.size:
        raise StorageError(Code.InvalidRange, details=ResourceSize(entry.size))
    length = min(last if last is not None else entry.size - 1, entry.size - 1) - first + 1
    if request.range_md5 and length > MAX_RANGE_DIGEST:
        raise StorageError(Code.InvalidHeaderValue, field="range_md5", value="true")
    return first, length

"""Parts of a file that are written, and server-side copies between two handles."""

from itertools import islice

from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask
from verditer.partition.engine import Transaction
from verditer.services.content.intervals import spans, visible_intervals
from verditer.services.content.ranges import in_blocks
from verditer.services.context import Context
from verditer.services.file.handles import data
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.requests import ALLOCATION_UNIT, ByteRange, Chunk
from verditer.services.file.handles.using import look, require_access, require_file_handle, used


async def allocated_ranges(ctx: Context, handle: Handle, start: int, length: int, limit: int) -> list[ByteRange]:
    """The first `limit` runs of written bytes in a range, in whole allocation units as far as the range and the file go."""
    require_file_handle(handle)
    require_access(handle, AccessMask.READ_DATA)

    def body(tx: Transaction) -> list[ByteRange]:
        entry = used(tx, handle).entry
        end = min(start + length, entry.size)
        low, high = start // ALLOCATION_UNIT * ALLOCATION_UNIT, -(-end // ALLOCATION_UNIT) * ALLOCATION_UNIT
        written = spans(visible_intervals(tx, entry, low, high), low, high)
        found = islice(in_blocks(written, ALLOCATION_UNIT, start, end), limit)
        return [ByteRange(first, last - first) for first, last in found]

    return await look(ctx, handle, body, long=True)


async def copy_chunk(ctx: Context, source: Handle, target: Handle, chunk: Chunk) -> int:
    """Copy within the server; the caller has checked the size. Returns how many bytes were copied.

    Errors as of `read` and `write`; InvalidRange when the chunk reaches beyond the end of the source."""
    found = await data.read(ctx, source, chunk.source_start, chunk.length)
    if len(found) < chunk.length:
        raise StorageError(Code.InvalidRange)
    return await data.write(ctx, target, chunk.target_start, found)

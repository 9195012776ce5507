"""The entries of an open directory, a page at a time, in the order of their folded names."""

from itertools import islice

from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask
from verditer.core.files.names import fold
from verditer.core.records.file import FileEntry
from verditer.core.records.record import text_bytes
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.using import look, require_access, used
from verditer.services.file.listing import INLINE_PAGE


async def list_page(ctx: Context, handle: Handle, prefix: str | None, after: str | None, limit: int) -> list[FileEntry]:
    """Up to `limit` entries whose folded names begin with `prefix`, after the folded name `after`. Fewer: there are no more.

    Entries that are marked for deletion are shown, as on Windows. `prefix` may be in any case.
    Errors: AccessNotGranted, NotADirectory, HandleClosed."""
    _check(handle)
    start = text_bytes(after) + b"\0\0" if after is not None else b""  # behind the key of that name

    def body(tx: Transaction) -> list[FileEntry]:
        found = used(tx, handle)
        return list(islice(found.tree.children(tx, handle.node_id, prefix=fold(prefix or ""), start=start), limit))

    return await look(ctx, handle, body, long=limit > INLINE_PAGE)


async def find_child(ctx: Context, handle: Handle, name: str) -> FileEntry | None:
    """The entry of exactly this name, in any case. Errors as of `list_page`."""
    _check(handle)
    return await look(ctx, handle, lambda tx: used(tx, handle).tree.child(tx, handle.node_id, fold(name)))


def _check(handle: Handle) -> None:
    if not handle.is_directory:
        raise StorageError(Code.NotADirectory)
    require_access(handle, AccessMask.READ_DATA)

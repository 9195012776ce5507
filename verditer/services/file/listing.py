"""List Directories and Files: the entries of one directory, a page at a time. Every page is one committed state (contract G3)."""

from collections.abc import Iterator

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.names import FilePath
from verditer.core.records.file import FileEntry
from verditer.core.records.file_open import PendingDelete
from verditer.core.records.record import span_of, text_bytes
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.answers import EntryPage
from verditer.services.file.current import InShare, compared_prefix, require_directory
from verditer.services.file.opens import is_delete_pending
from verditer.services.markers import decode_marker, first_page

INLINE_PAGE = 256  # entries: a page up to this long is read on the event loop, a longer one beside it


class ListEntries(msgspec.Struct, frozen=True, kw_only=True):
    prefix: str = ""
    marker: str = ""
    max_results: int = 5000
    snapshot: int | None = None
    include: frozenset[str] = frozenset()
    extended_info: bool = False


async def list_entries(ctx: Context, target: FilePath, request: ListEntries) -> EntryPage:
    start = decode_marker(request.marker) if request.marker else b""

    def read(tx: Transaction, limit: int) -> EntryPage | None:
        """None: the directory has more entries than `limit`, and more of them were asked for."""
        located, directory = require_directory(tx, target, request.snapshot)
        if request.snapshot is None and is_delete_pending(tx, directory):
            raise StorageError(Code.SMBDeletePending)
        found = _entries(tx, located, directory, request, start)
        page, marker = first_page(found, limit, lambda entry: text_bytes(entry.folded))
        if marker and limit < request.max_results:
            return None
        entries = [located.tree.followed(tx, entry) for entry in page]
        return EntryPage(directory=directory, entries=entries, next_marker=marker)

    page = await ctx.engine.read(target.scope, lambda tx: read(tx, min(request.max_results, INLINE_PAGE)))
    if page is None:
        page = await ctx.engine.read(target.scope, lambda tx: read(tx, request.max_results), long=True)
    assert page is not None
    return page


def _entries(tx: Transaction, located: InShare, directory: FileEntry, request: ListEntries, start: bytes) -> Iterator[FileEntry]:
    """Entries that an SMB client has marked for deletion are left out (contract F3)."""
    entries = located.tree.children(tx, directory.node_id, prefix=compared_prefix(located.share, request.prefix), start=start)
    if request.snapshot is not None:
        return entries
    pending = {found.node_id for found in tx.scan(PendingDelete, span_of(located.share.id, directory.node_id))}
    return (entry for entry in entries if entry.node_id not in pending) if pending else entries

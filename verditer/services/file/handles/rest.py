"""List Handles and Force Close Handles: the open handles of SMB clients on a file, a directory, or all that is below it."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.names import FilePath
from verditer.core.records.file_open import FileOpen
from verditer.core.records.record import span_of
from verditer.core.records.tree import LIVE
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.answers import HandlePage, HandlesClosed
from verditer.services.file.current import InShare, require_entry
from verditer.services.file.handles.closing import close_open
from verditer.services.file.handles.processes.signals import Outbox, SignalKind, write_and_signal

ALL_HANDLES = "*"
CLOSED_AT_ONCE = 1000


class ListHandles(msgspec.Struct, frozen=True, kw_only=True):
    marker: str = ""
    max_results: int = 5000
    snapshot: int | None = None
    recursive: bool = False


class ForceCloseHandles(msgspec.Struct, frozen=True, kw_only=True):
    handle_id: str  # a number, or `*` for all
    marker: str = ""
    snapshot: int | None = None
    recursive: bool = False


async def list_handles(ctx: Context, target: FilePath, request: ListHandles) -> HandlePage:
    def read(tx: Transaction) -> HandlePage:
        found = list(islice(_handles(tx, target, request.snapshot, request.recursive, request.marker), request.max_results + 1))
        more = found[request.max_results :]
        return HandlePage(handles=found[: request.max_results], next_marker=str(more[0].handle_id) if more else "")

    return await ctx.engine.read(target.scope, read, long=True)


async def force_close_handles(ctx: Context, target: FilePath, request: ForceCloseHandles) -> HandlesClosed:
    """The handles are gone from the open table at once, and the processes that serve them are told. A file that was marked for
    deletion goes with the last of them; a handle that was to delete its file when it is closed, does not."""
    if request.handle_id != ALL_HANDLES and not (request.handle_id.isascii() and request.handle_id.isdigit()):
        raise StorageError(Code.InvalidHeaderValue, field="handle_id", value=request.handle_id)

    def commit(tx: Transaction, outbox: Outbox) -> tuple[HandlesClosed, list[FileOpen]]:
        found = list(islice(_handles(tx, target, request.snapshot, request.recursive, request.marker), CLOSED_AT_ONCE + 1))
        wanted = [handle for handle in found[:CLOSED_AT_ONCE] if request.handle_id in (ALL_HANDLES, str(handle.handle_id))]
        for handle in wanted:
            close_open(tx, outbox, handle, may_delete=False)
            outbox.send(handle.owner, handle.handle_id, SignalKind.CLOSED)
        more = found[CLOSED_AT_ONCE:]
        return HandlesClosed(closed=len(wanted), failed=0, next_marker=str(more[0].handle_id) if more else ""), wanted

    answer, closed = await write_and_signal(ctx, [target.scope], commit)
    for handle in closed:
        ctx.handles.touch(handle.share_id, handle.node_id)
    return answer


def _handles(tx: Transaction, target: FilePath, snapshot: int | None, recursive: bool, marker: str) -> Iterator[FileOpen]:
    """In the order of their ids, from the marker on."""
    if marker and not (marker.isascii() and marker.isdigit()):
        raise StorageError(Code.InvalidQueryParameterValue, field="marker", value=marker)
    located, entry = require_entry(tx, target, snapshot)
    if recursive and not entry.is_directory:
        raise StorageError(Code.InvalidHeaderValue, field="recursive", value="true")
    span = span_of(located.share.id) if recursive else span_of(located.share.id, entry.node_id)
    found = [handle for handle in tx.scan(FileOpen, span) if _is_wanted(handle, located, target, recursive)]
    return (handle for handle in sorted(found, key=lambda handle: handle.handle_id) if handle.handle_id >= int(marker or 0))


def _is_wanted(handle: FileOpen, located: InShare, target: FilePath, recursive: bool) -> bool:
    view = 0 if located.tree.view == LIVE else located.tree.view
    return handle.view == view and (not recursive or handle.folded_path[: len(target.folded)] == target.folded)

"""The open table: handles and byte-range locks of SMB clients, checked inside the transaction of every operation on a file.

The rules are in `core/files`. An operation that has to break an oplock first raises `OplockBreakNeeded` in its transaction,
before it has changed anything. `read` and `write`, by which all operations on files run, then break the oplock, wait for its
holder where that is due, and run the operation again. So no transaction is open while anybody waits.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.oplocks import (
    BREAK_TICKS,
    LEVEL_II,
    NONE,
    REST_WAIT_TICKS,
    Break,
    OplockEffect,
    breaks_of,
)
from verditer.core.files.share_modes import LockRule, RestAccess, check_rest_access, conflicts, is_shut_out
from verditer.core.names import FilePath
from verditer.core.records.file import FileEntry
from verditer.core.records.file_open import DirectoryWatch, FileLock, FileOpen
from verditer.core.records.record import span_of
from verditer.partition.engine import Scope, Transaction
from verditer.services.activity import ActiveOperation
from verditer.services.content import receiving
from verditer.services.context import Context
from verditer.services.file.handles.processes.signals import Outbox, SignalKind, write_and_signal
from verditer.stream.intake import Received

T = TypeVar("T")
replace = msgspec.structs.replace


class OplockBreakNeeded(Exception):
    """Oplocks on a node have to be broken before an operation may go on."""

    def __init__(self, share_id: int, node_id: int, breaks: Sequence[Break]) -> None:
        super().__init__("an oplock has to be broken first")
        self.share_id = share_id
        self.node_id = node_id
        self.breaks = breaks


def read(ctx: Context, scope: Scope, body: Callable[[Transaction], T], *, long: bool = False) -> Awaitable[T]:
    """As `engine.read`, for an operation of REST on files."""
    return after_breaks(ctx, [scope], lambda: ctx.engine.read(scope, body, long=long), REST_WAIT_TICKS)


def write(ctx: Context, scopes: Sequence[Scope], body: Callable[[Transaction], T]) -> Awaitable[T]:
    """As `engine.write`, for an operation of REST on files."""
    return after_breaks(ctx, scopes, lambda: ctx.engine.write(scopes, body), REST_WAIT_TICKS)


def write_received(
    ctx: Context, scope: Scope, work: ActiveOperation, received: Received, body: Callable[[Transaction], T]
) -> Awaitable[T]:
    """As `receiving.write_received`, for an operation of REST on files."""
    if received.extent is None:
        return write(ctx, [scope], body)
    return after_breaks(ctx, [scope], lambda: receiving.write_received(ctx, scope, work, received, body), REST_WAIT_TICKS)


def write_during(ctx: Context, scope: Scope, work: ActiveOperation, body: Callable[[Transaction], T]) -> Awaitable[T]:
    """As `work.write`, for an operation of REST on files."""
    return after_breaks(ctx, [scope], lambda: work.write(ctx.engine, scope, body), REST_WAIT_TICKS)


async def after_breaks(
    ctx: Context, scopes: Sequence[Scope], operation: Callable[[], Awaitable[T]], wait_ticks: int | None = None
) -> T:
    """Run an operation, again and again while it has to break oplocks. `wait_ticks`: give up after so long."""
    began: int | None = None
    while True:
        try:
            return await operation()
        except OplockBreakNeeded as found:
            needed = found
        began = ctx.now() if began is None else began
        with ctx.handles.waiter(needed.share_id, needed.node_id) as waiter:
            while await _break(ctx, scopes, needed):
                if wait_ticks is not None and ctx.now() - began > wait_ticks:
                    raise StorageError(Code.ClientCacheFlushDelay)
                await waiter.wait()


async def _break(ctx: Context, scopes: Sequence[Scope], needed: OplockBreakNeeded) -> bool:
    """Tell the holders. True: one of them has not acknowledged yet."""

    def is_settled(tx: Transaction) -> bool | None:
        """None: something has to be written."""
        waits = False
        for one, handle in _holders(tx, needed):
            if handle.breaks_to is None or tx.now - handle.break_began > BREAK_TICKS:
                return None
            waits |= one.waits
        return waits

    waits = await ctx.engine.read(scopes[0], is_settled)
    if waits is not None:
        return waits
    return await write_and_signal(ctx, scopes, lambda tx, outbox: _begin_breaks(tx, outbox, needed))


def _begin_breaks(tx: Transaction, outbox: Outbox, needed: OplockBreakNeeded) -> bool:
    waits = False
    for one, handle in _holders(tx, needed):
        if handle.breaks_to is None:
            outbox.send(handle.owner, handle.handle_id, SignalKind.OPLOCK_BROKEN, level=one.level)
        if handle.oplock == LEVEL_II:
            tx.put(replace(handle, oplock=int(one.level)))
        elif handle.breaks_to is None:
            tx.put(replace(handle, breaks_to=int(one.level), break_began=tx.now))
            waits = True
        elif tx.now - handle.break_began > BREAK_TICKS:
            tx.put(replace(handle, oplock=int(NONE), breaks_to=None))
        else:
            waits = True
    return waits


def _holders(tx: Transaction, needed: OplockBreakNeeded) -> list[tuple[Break, FileOpen]]:
    """The handles that still hold what has to be broken."""
    found = ((one, tx.get(FileOpen, needed.share_id, needed.node_id, one.handle_id)) for one in needed.breaks)
    return [(one, handle) for one, handle in found if handle is not None and handle.oplock > one.level]


def opens_of(tx: Transaction, share_id: int, node_id: int) -> list[FileOpen]:
    return [found for found in tx.scan(FileOpen, span_of(share_id, node_id)) if not found.view]


def locks_of(tx: Transaction, share_id: int, node_id: int) -> list[FileLock]:
    return list(tx.scan(FileLock, span_of(share_id, node_id)))


def check_access(tx: Transaction, entry: FileEntry, wanted: RestAccess, *, start: int = 0, end: int = 0) -> None:
    """Refuse a REST operation on an entry that an SMB client has open in a way that forbids it."""
    opens = opens_of(tx, entry.tree_id, entry.node_id)
    if not opens:
        return
    if not any(found.delete_pending for found in opens):
        require_breaks(entry, _breaks_for_rest(wanted, opens))
    locks = locks_of(tx, entry.tree_id, entry.node_id) if wanted.locks is not LockRule.IGNORED else []
    check_rest_access(wanted, opens, locks, start=start, end=end)


def require_breaks(entry: FileEntry, breaks: Sequence[Break]) -> None:
    if breaks:
        raise OplockBreakNeeded(entry.tree_id, entry.node_id, breaks)


def _breaks_for_rest(wanted: RestAccess, opens: Sequence[FileOpen]) -> tuple[Break, ...]:
    """Before a request is refused, a holder that may have closed the file without telling so has to tell."""
    if not is_shut_out(wanted, opens):
        return breaks_of(wanted.oplocks, opens)
    blocking = [found for found in opens if wanted.alone or conflicts(wanted.access, wanted.shares, found)]
    return breaks_of(OplockEffect.CLOSES, blocking)


def is_delete_pending(tx: Transaction, entry: FileEntry) -> bool:
    return any(found.delete_pending for found in opens_of(tx, entry.tree_id, entry.node_id))


def handles_below(tx: Transaction, share_id: int, folded: tuple[str, ...]) -> list[FileOpen]:
    """The handles on an entry and on everything below it."""
    opens = tx.scan(FileOpen, span_of(share_id))
    return [found for found in opens if found.folded_path[: len(folded)] == folded and not found.view]


def move_handles(tx: Transaction, entry: FileEntry, target: FilePath) -> None:
    """An entry has moved: the handles on it follow. The caller has made sure that nothing below it is open."""
    fields = {"path": (*target.names[:-1], entry.name), "folded_path": target.folded}
    for found in opens_of(tx, entry.tree_id, entry.node_id):
        tx.put(replace(found, parent_id=entry.parent_id, **fields))
    for watch in list(tx.scan(DirectoryWatch, span_of(entry.tree_id, entry.node_id))):
        tx.put(replace(watch, folded_path=target.folded))

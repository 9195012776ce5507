"""The handles of a former session, which a client names when it logs in again: they would stand in its way.

The process that served the session may be another one. It is told that the handles are closed."""

from verditer.core.records.file import Share
from verditer.core.records.file_open import FileOpen
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.handles.closing import close_open
from verditer.services.file.handles.processes.signals import Outbox, SignalKind, write_and_signal


async def close_handles_of_session(ctx: Context, account: str, session_id: int) -> int:
    """Close what a session of this account has open, in whichever process. Returns how many handles that were."""

    def find(tx: Transaction) -> list[FileOpen]:
        shares = list(tx.scan(Share, span_of(account)))
        return [found for share in shares for found in tx.scan(FileOpen, span_of(share.id)) if found.session_id == session_id]

    handles = await ctx.engine.read((account, "file"), find, long=True)
    for handle in handles:
        await _close(ctx, handle)
    return len(handles)


async def _close(ctx: Context, handle: FileOpen) -> None:
    """As a lost connection does it. A rename since the handle was found is no obstacle: the record says where the file is."""

    def commit(tx: Transaction, outbox: Outbox) -> FileOpen | None:
        current = tx.get(FileOpen, handle.share_id, handle.node_id, handle.handle_id)
        if current is None or current.folded_path != handle.folded_path:
            return current
        close_open(tx, outbox, current)
        outbox.send(current.owner, current.handle_id, SignalKind.CLOSED)
        return None

    moved: FileOpen | None = handle
    while moved is not None:
        handle = moved
        moved = await write_and_signal(ctx, [handle.file_path.scope], commit)
    ctx.handles.touch(handle.share_id, handle.node_id)

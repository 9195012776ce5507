"""The handles of a former session, which a client names when it logs in again: they would stand in its way.

The process that served the session may be another one. It is told that the handles are closed."""

from verditer.core.records.file import Share
from verditer.core.records.file_open import FileOpen
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.handles.closing import close_record


async def close_handles_of_session(ctx: Context, account: str, session_id: int) -> int:
    """Close what a session of this account has open, in whichever process. Returns how many handles that were."""

    def find(tx: Transaction) -> list[FileOpen]:
        shares = list(tx.scan(Share, span_of(account)))
        return [found for share in shares for found in tx.scan(FileOpen, span_of(share.id)) if found.session_id == session_id]

    handles = await ctx.engine.read((account, "file"), find, long=True)
    for handle in handles:
        await close_record(ctx, handle, tell_owner=True)
    return len(handles)

"""Sessions of SMB clients: each has a record, so that every process knows of it.

A client that lost its connection logs in again and names its former session, which another process may serve: that process is
told to end the session, and the login waits until the record of the session is gone.
"""

import asyncio
import contextlib
from collections.abc import Callable

from verditer.core.records.file_open import FileSession
from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.services.context import Context
from verditer.services.file.handles.processes.of_session import close_handles_of_session
from verditer.services.file.handles.processes.owners import OwnerLost, forget_record, require_owner, session_scope
from verditer.services.file.handles.processes.signals import Outbox, SignalKind, write_and_signal

LOOKS = 250  # another process has five seconds to end a session; it takes a tenth of a second
_LOOK_SECONDS = 0.02


async def record_session(ctx: Context, session_id: int, account: str, details: bytes, end: Callable[[], None]) -> bool:
    """Make a session known to all processes until `forget_session`. False: another session has this id. `end` is called when the
    session is to end, once or more."""
    table = ctx.handles

    def commit(tx: Transaction) -> bool:
        require_owner(tx, table)
        if tx.get(FileSession, session_id) is not None:
            return False
        tx.put(FileSession(session_id=session_id, owner=table.owner, account=account, details=details))
        return True

    while True:
        table.sessions[session_id] = end
        try:
            is_new = await ctx.engine.write([session_scope(session_id)], commit)
        except OwnerLost:
            del table.sessions[session_id]  # the others end now
            table.start_again()
        else:
            break
    if is_new:
        table.is_registered = True
        table.listening.set()
    else:
        del table.sessions[session_id]
    return is_new


async def forget_session(ctx: Context, session_id: int) -> None:
    """A session of this process has ended. A record that cannot be removed is removed when somebody asks for the session."""
    if ctx.handles.sessions.pop(session_id, None) is None:
        return
    with contextlib.suppress(EngineUnavailable):
        await forget_record(ctx, session_id, ctx.handles.owner)


async def find_session(ctx: Context, session_id: int) -> FileSession | None:
    return await ctx.engine.read(session_scope(session_id), lambda tx: tx.get(FileSession, session_id))


async def end_former_session(ctx: Context, account: str, session_id: int) -> None:
    """End a session of this account, in whichever process: its handles are closed when this returns."""
    found = await find_session(ctx, session_id)
    if found is not None and found.account != account:
        return
    if found is not None and await _has_ended(ctx, found):
        return
    await close_handles_of_session(ctx, account, session_id)  # nobody serves it
    if found is not None:
        await forget_record(ctx, session_id, found.owner)


async def _has_ended(ctx: Context, session: FileSession) -> bool:
    """Tell the process that serves a session, and wait until it has ended the session."""
    if session.owner == ctx.handles.owner and session.session_id not in ctx.handles.sessions:
        return False

    def commit(tx: Transaction, outbox: Outbox) -> None:
        outbox.send(session.owner, session.session_id, SignalKind.SESSION_ENDED)

    await write_and_signal(ctx, [session_scope(session.session_id)], commit)
    for _ in range(LOOKS):
        if await find_session(ctx, session.session_id) != session:
            return True
        await asyncio.sleep(_LOOK_SECONDS)
    return False

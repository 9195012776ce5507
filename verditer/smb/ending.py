"""The end of sessions: what they have open is closed, and no process knows of them any more."""

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from verditer.services.context import Context
from verditer.services.file.handles.closing import close_handles
from verditer.services.file.handles.processes.sessions import forget_session
from verditer.smb.opens import Open, OpenFile

if TYPE_CHECKING:
    from verditer.smb.connection import SmbConnection
    from verditer.smb.sessions import Session

logger = logging.getLogger("verditer")


async def end_session(session: "Session") -> None:
    """Its requests are refused from now on. Other processes see that it has ended when all that it had open is closed."""
    connection = session.connection
    connection.sessions.pop(session.session_id, None)
    for tree in session.trees.values():
        tree.is_connected = False
    session.trees.clear()
    await close_opens(connection.ctx, session.opens.take())
    await forget_session(connection.ctx, session.session_id)


async def close_opens(ctx: Context, opens: Iterable[Open]) -> None:
    """Close what was taken out of a table of opens."""
    handles = [opened.handle for opened in opens if isinstance(opened, OpenFile)]
    if handles:
        await close_handles(ctx, handles)


async def end_sessions(connection: "SmbConnection") -> None:
    """The connection ends."""
    for session in list(connection.sessions.values()):
        await _end_or_log(session)


def end_session_soon(session: "Session") -> None:
    """The client has logged in again on another connection, maybe in another process, and this session is in its way."""
    connection = session.connection
    if connection.sessions.get(session.session_id) is session:
        task = asyncio.get_running_loop().create_task(_end_or_log(session))
        connection.ending.add(task)
        task.add_done_callback(connection.ending.discard)


async def _end_or_log(session: "Session") -> None:
    try:
        await end_session(session)
    except Exception:
        logger.exception("the opens of an SMB session could not be closed")

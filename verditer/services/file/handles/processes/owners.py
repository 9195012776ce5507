"""The processes that serve handles: each is an owner with a record, and when a process ends, its handles and sessions end with
it.

An owner stores its record with its first session and renews its heartbeat from then on. A worker that starts knows at once which
owners are dead: its own predecessor, and with the embedded store every owner of an earlier server. The owners of other nodes are
taken for dead when their heartbeat has not changed for `DEAD_AFTER_SECONDS`, by the observer's own monotonic clock. The process
that finds a dead owner marks it and closes its handles. A process that was taken for dead by mistake finds its handles closed,
and starts as a new owner. `jobs/handles.py` calls all this.
"""

from collections.abc import Callable

import msgspec

from verditer.core.dates import seconds
from verditer.core.records.file_open import FileOpen, FileOwner, FileSession, FileSignal
from verditer.core.records.record import EVERY_KEY, span_of
from verditer.partition.engine import Scope, Transaction
from verditer.services.context import Context
from verditer.services.file.handles.closing import close_record
from verditer.services.file.handles.handle import HandleTable

HEARTBEAT_SECONDS = 10.0
DEAD_AFTER_SECONDS = 45.0  # and a look every HEARTBEAT_SECONDS: handles of a dead node are closed within a minute
FORGOTTEN_AFTER = seconds(60)  # a transaction that began before its owner was marked as dead has ended by then
_SIGNALS_AT_ONCE = 1000


class OwnerLost(Exception):
    """Another process has taken this one for dead and closed its handles."""


def require_owner(tx: Transaction, table: HandleTable) -> None:
    """The owner of a new handle has to be stored, so that somebody closes the handle when the process dies."""
    stored = tx.get(FileOwner, table.owner)
    if stored is None and not table.is_registered:
        tx.put(FileOwner(owner=table.owner, instance=table.instance, number=table.number, heartbeat=tx.tick()))
    elif stored is None or stored.is_dead:
        raise OwnerLost


async def beat(ctx: Context) -> None:
    """Renew the heartbeat of this process, if it has handles."""
    table = ctx.handles
    if not table.is_registered:
        return

    def commit(tx: Transaction) -> bool:
        stored = tx.get(FileOwner, table.owner)
        if stored is None or stored.is_dead:
            return False
        tx.put(msgspec.structs.replace(stored, heartbeat=tx.tick()))
        return True

    if not await ctx.engine.write([_scope(table.owner)], commit):
        table.start_again()


async def owners(ctx: Context) -> list[FileOwner]:
    return await ctx.engine.read(("jobs", "file_owner"), lambda tx: list(tx.scan(FileOwner, EVERY_KEY)))


class OwnerWatch:
    """Which owners have stopped, as one process sees it."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._looked = monotonic()
        self._since: dict[str, tuple[int, float]] = {}  # heartbeat, and when it was first seen

    def dead(self, found: list[FileOwner]) -> list[FileOwner]:
        """Those whose heartbeat has been the same for too long. An observer that did not look for a while starts anew: it may
        have slept together with the others."""
        now = self._monotonic()
        if now - self._looked > 2 * HEARTBEAT_SECONDS:
            self._since.clear()
        self._looked = now
        known, self._since = self._since, {}
        for owner in found:
            heartbeat, since = known.get(owner.owner, (owner.heartbeat, now))
            self._since[owner.owner] = (owner.heartbeat, since if heartbeat == owner.heartbeat else now)
        return [owner for owner in found if owner.is_dead or now - self._since[owner.owner][1] > DEAD_AFTER_SECONDS]


async def release(ctx: Context, dead: FileOwner) -> int:
    """Close the handles of a dead owner: what was marked for deletion goes. Its sessions end. Returns how many were closed."""
    await ctx.engine.write([_scope(dead.owner)], lambda tx: _mark_dead(tx, dead))
    opens = await ctx.engine.read(
        ("jobs", "file_owner"), lambda tx: [one for one in tx.scan(FileOpen, EVERY_KEY) if one.owner == dead.owner], long=True
    )
    for one in opens:
        await close_record(ctx, one, tell_owner=False)
    await _end_sessions(ctx, dead.owner)
    if not opens:
        await ctx.engine.write([_scope(dead.owner)], lambda tx: _forget(tx, dead))
    return len(opens)


async def _end_sessions(ctx: Context, owner: str) -> None:
    def find(tx: Transaction) -> list[FileSession]:
        return [one for one in tx.scan(FileSession, EVERY_KEY) if one.owner == owner]

    for session in await ctx.engine.read(("jobs", "file_session"), find, long=True):
        await forget_record(ctx, session.session_id, owner)


async def forget_record(ctx: Context, session_id: int, owner: str) -> None:
    """Remove the record of a session, unless another owner has made one with the same id."""

    def commit(tx: Transaction) -> None:
        stored = tx.get(FileSession, session_id)
        if stored is not None and stored.owner == owner:
            tx.delete(FileSession, session_id)

    await ctx.engine.write([session_scope(session_id)], commit)


def session_scope(session_id: int) -> Scope:
    return ("jobs", "file_session", str(session_id))


def _mark_dead(tx: Transaction, dead: FileOwner) -> None:
    stored = tx.get(FileOwner, dead.owner)
    if stored is not None and not stored.is_dead:
        tx.put(msgspec.structs.replace(stored, is_dead=True, heartbeat=tx.now))


def _forget(tx: Transaction, dead: FileOwner) -> None:
    """Remove what is left of an owner, when no transaction of it can be running any more."""
    stored = tx.get(FileOwner, dead.owner)
    if stored is None or tx.now - stored.heartbeat < FORGOTTEN_AFTER:
        return
    _, rest = tx.delete_span(FileSignal, span_of(dead.owner), _SIGNALS_AT_ONCE)
    if rest is None:
        tx.delete(FileOwner, dead.owner)


async def withdraw(ctx: Context) -> None:
    """This process stops, and its handles are closed."""
    table = ctx.handles
    if table.is_registered:
        await _end_sessions(ctx, table.owner)
        await ctx.engine.write([_scope(table.owner)], lambda tx: tx.delete(FileOwner, table.owner))


def is_dead_at_start(owner: FileOwner, table: HandleTable, *, is_only_server: bool) -> bool:
    """Whether an owner is known to be dead when this process starts: it was the same worker of the same server, or it belonged to
    an earlier server on a store that serves only one."""
    if owner.instance == table.instance:
        return owner.number == table.number and owner.owner != table.owner
    return is_only_server


def _scope(owner: str) -> Scope:
    return ("jobs", "file_owner", owner)

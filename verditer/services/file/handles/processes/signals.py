"""Messages to the holders of handles and sessions: a broken oplock, a changed directory, a handle that was closed, a session that
is to end.

A transaction decides whom to tell. A holder served by this process is told after the commit; for another process the transaction
puts a `FileSignal`, which that process finds when it looks (`receive`).
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import IntEnum
from typing import TypeVar

from verditer.core.files.oplocks import OplockLevel
from verditer.core.records.file_open import FileSignal
from verditer.core.records.record import span_of
from verditer.partition.engine import Scope, Transaction
from verditer.services.context import Context
from verditer.services.file.handles.handle import DirectoryChange, HandleTable

T = TypeVar("T")
MAX_RECEIVED = 512  # signals that are taken from the store at once


class SignalKind(IntEnum):
    OPLOCK_BROKEN = 1
    CHANGED = 2
    CLOSED = 3
    SESSION_ENDED = 4


class Outbox:
    """The signals of one run of a transaction body."""

    def __init__(self, tx: Transaction, own: str) -> None:
        self._tx = tx
        self._own = own
        self.local: list[FileSignal] = []

    def send(
        self, owner: str, handle_id: int, kind: SignalKind, *, level: int = 0, action: int = 0, names: tuple[str, ...] = ()
    ) -> None:
        is_local = owner == self._own
        number = 0 if is_local else self._tx.tick()
        signal = FileSignal(owner=owner, number=number, handle_id=handle_id, kind=kind, level=level, action=action, names=names)
        if is_local:
            self.local.append(signal)
        else:
            self._tx.put(signal)


async def write_and_signal(ctx: Context, scopes: Sequence[Scope], body: Callable[[Transaction, Outbox], T]) -> T:
    """As `engine.write`. The body gets an outbox for what it has to tell the holders of handles."""
    result, signals = await begin_write(ctx, scopes, body)
    deliver(ctx.handles, signals)
    return result


def begin_write(
    ctx: Context, scopes: Sequence[Scope], body: Callable[[Transaction, Outbox], T]
) -> Awaitable[tuple[T, list[FileSignal]]]:
    """The same for a caller that delivers the signals itself."""
    own = ctx.handles.owner

    def commit(tx: Transaction) -> tuple[T, list[FileSignal]]:
        outbox = Outbox(tx, own)
        return body(tx, outbox), outbox.local

    return ctx.engine.write(scopes, commit)


def deliver(table: HandleTable, signals: Sequence[FileSignal]) -> None:
    for signal in signals:
        if signal.kind == SignalKind.SESSION_ENDED:
            table.end_session(signal.handle_id)
            continue
        handle = table.find(signal.handle_id)
        if handle is None:
            continue
        if signal.kind == SignalKind.CLOSED:
            table.lose(handle)
        elif signal.kind == SignalKind.CHANGED:
            handle.note_change(DirectoryChange(signal.action, signal.names))
            if handle.listener is not None:
                handle.listener.changed()
        else:
            if handle.oplock is OplockLevel.LEVEL_II:  # broken at once; the other levels when they are acknowledged
                handle.oplock = OplockLevel.NONE
            if handle.listener is not None:
                handle.listener.oplock_broken(OplockLevel(signal.level))


async def receive(ctx: Context) -> bool:
    """Take the signals that other processes have put for this one. True: there may be more."""
    owner = ctx.handles.owner
    scope = ("jobs", "file_signal", owner)
    found = await ctx.engine.read(scope, lambda tx: list(tx.scan(FileSignal, span_of(owner), limit=MAX_RECEIVED)))
    if not found:
        return False

    def commit(tx: Transaction) -> None:
        for signal in found:
            tx.delete(FileSignal, owner, signal.number)

    await ctx.engine.write([scope], commit)
    deliver(ctx.handles, found)
    return len(found) == MAX_RECEIVED

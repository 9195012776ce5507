"""Oplocks of handles: acknowledging a break. Breaks themselves begin in `services/file/opens.py`."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.oplocks import OplockLevel, acknowledged_level
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.using import change, used


async def acknowledge_break(ctx: Context, handle: Handle, level: OplockLevel) -> OplockLevel:
    """The holder has written back what it cached. Returns the level it has now. Errors: InvalidOplockAcknowledgement,
    HandleClosed."""

    def commit(tx: Transaction) -> OplockLevel:
        record = used(tx, handle).record
        granted = acknowledged_level(record, level) if record is not None else None
        if record is None or granted is None:
            raise StorageError(Code.InvalidOplockAcknowledgement)
        tx.put(msgspec.structs.replace(record, oplock=int(granted), breaks_to=None))
        return granted

    handle.oplock = await change(ctx, handle, lambda tx, _: commit(tx))
    ctx.handles.touch(handle.share_id, handle.node_id)
    return handle.oplock

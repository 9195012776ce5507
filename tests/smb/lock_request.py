"""The LOCK request as a structure of smbprotocol, which has none."""

from collections import OrderedDict
from typing import Any

from smbprotocol.header import Commands
from smbprotocol.structure import BytesField, IntField, Structure


class SMB2LockRequest(Structure):  # type: ignore[misc]
    COMMAND: Any = Commands.SMB2_LOCK

    def __init__(self) -> None:
        self.fields = OrderedDict(
            [
                ("structure_size", IntField(size=2, default=48)),
                ("lock_count", IntField(size=2)),
                ("lock_sequence", IntField(size=4)),
                ("file_id", BytesField(size=16)),
                ("locks", BytesField()),
            ]
        )
        super().__init__()

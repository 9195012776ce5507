"""Oplock breaks for tests: smbprotocol does not expect messages that answer no request, so a stand-in receives them."""

import queue
import threading
from collections import OrderedDict
from typing import Any

from smbprotocol.header import Commands
from smbprotocol.open import Open
from smbprotocol.structure import BytesField, IntField, Structure

from tests.smb.mounted import Mounted
from tests.smb.requests import send

NO_OPLOCK, LEVEL_II, EXCLUSIVE, BATCH = 0, 1, 8, 9
_UNSOLICITED = 0xFFFFFFFFFFFFFFFF
_PATIENCE_SECONDS = 20.0


class SMB2OplockBreak(Structure):  # type: ignore[misc]
    COMMAND: Any = Commands.SMB2_OPLOCK_BREAK

    def __init__(self) -> None:
        self.fields = OrderedDict(
            [
                ("structure_size", IntField(size=2, default=24)),
                ("oplock_level", IntField(size=1)),
                ("reserved", IntField(size=1)),
                ("reserved2", IntField(size=4)),
                ("file_id", BytesField(size=16)),
            ]
        )
        super().__init__()


class _Reserved:
    def get_value(self) -> int:
        return 0


class BreakReceiver:
    """Takes the place of the request that a break notification would answer."""

    def __init__(self, mounted: Mounted) -> None:
        self.session_id = mounted.session.session_id
        self.message = {"reserved": _Reserved()}
        self.response_event_lock = threading.Lock()
        self.response_event = self
        self.async_id = b""
        self.response: Any = None
        self._received: queue.Queue[tuple[int, bytes]] = queue.Queue()
        mounted.connection.outstanding_requests[_UNSOLICITED] = self

    def set(self) -> None:
        """Called when `response` was set."""
        if self.response is not None:
            message = SMB2OplockBreak()
            message.unpack(self.response["data"].get_value())
            self._received.put((message["oplock_level"].get_value(), message["file_id"].get_value()))
            self.response = None

    def next(self) -> tuple[int, bytes]:
        """The level and the file id of the next break."""
        return self._received.get(timeout=_PATIENCE_SECONDS)

    def is_empty(self) -> bool:
        return self._received.empty()


def acknowledge(handle: Open, level: int) -> int:
    """Returns the level that the server answers."""
    message = SMB2OplockBreak()
    message["oplock_level"] = level
    message["file_id"] = handle.file_id
    answer = SMB2OplockBreak()
    answer.unpack(send(handle, message)["data"].get_value())
    return int(answer["oplock_level"].get_value())

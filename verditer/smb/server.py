"""The SMB server of one listening port, and what its connections share: the table of commands, the id of the server, delays."""

import socket
import uuid
from collections.abc import Callable, Sequence

from verditer.services.context import Context
from verditer.serving.accept import WorkerConnections
from verditer.serving.request_summary import RequestSummary
from verditer.serving.server import ConnectionServer
from verditer.smb.auth.failures import FailureDelays
from verditer.smb.call import Call, Reply
from verditer.smb.commands import COMMANDS
from verditer.smb.connection import SmbConnection
from verditer.smb.limits import SmbLimits
from verditer.smb.status import Status

SERVER_NAME = "VERDITER"
SummaryObserver = Callable[[RequestSummary], None]


class SmbServer(ConnectionServer):
    """`requires_encryption`: every session has to be encrypted, whatever its account says."""

    def __init__(
        self,
        ctx: Context,
        sockets: Sequence[socket.socket],
        observer: SummaryObserver,
        *,
        guid: uuid.UUID,
        requires_encryption: bool = False,
        limits: SmbLimits | None = None,
        connections: WorkerConnections | None = None,
    ) -> None:
        self.ctx = ctx
        self.commands = COMMANDS
        self.name = SERVER_NAME
        self.guid = guid.bytes_le
        self.requires_encryption = requires_encryption
        self.limits = limits or SmbLimits()
        self.failures = FailureDelays(self.limits.failure_delay_seconds, self.limits.max_failure_delay_seconds)
        self._observer = observer
        super().__init__(
            lambda: SmbConnection(self),
            sockets,
            max_connections=self.limits.max_connections,
            sweep_seconds=1.0,
            handshake_seconds=1.0,
            connections=connections,
        )

    def observe(self, call: Call, reply: Reply, seconds: float) -> None:
        """Count and log one answered request."""
        row = self.commands.get(call.header.command)
        name = row.name if row is not None else None
        self._observer(
            RequestSummary(
                time=self.ctx.now(),
                service="smb",
                operation=name,
                method=name or "Unknown",
                path=call.path or _path_of(call),
                status=_NAMES.get(reply.status) or f"{reply.status:08X}",
                error_code=None,
                bytes_in=len(call.message),
                bytes_out=len(reply.body) + len(reply.payload),
                seconds=seconds,
                request_id=f"{call.header.session_id:x}-{call.header.message_id:x}",
                client=call.connection.address,
            )
        )


_NAMES = {status.value: status.name for status in Status}


def _path_of(call: Call) -> str:
    tree = getattr(call, "tree", None)
    return tree.name if tree is not None else ""

"""An open named pipe: what the client writes is a remote procedure call, and its answer waits in the pipe to be read."""

from collections import deque

from verditer.smb.pipes.rpc import HEADER_SIZE, MAX_REQUEST, RpcError, RpcServer, fragment_length, parse_fragment
from verditer.smb.status import SmbError, Status

MAX_UNREAD = 1 << 20


class Pipe:
    """Messages of the pipe are the fragments of calls and answers."""

    def __init__(self, server: RpcServer) -> None:
        self._server = server
        self._written = b""
        self._unread: deque[bytes] = deque()

    async def write(self, data: bytes) -> None:
        self._written += data
        if len(self._written) > MAX_REQUEST or sum(map(len, self._unread)) > MAX_UNREAD:
            raise SmbError(Status.PIPE_DISCONNECTED)
        try:
            while len(self._written) >= HEADER_SIZE and len(self._written) >= fragment_length(self._written):
                fragment, length = parse_fragment(self._written)
                self._written = self._written[length:]
                self._unread.extend(await self._server.answer(fragment))
        except RpcError:
            raise SmbError(Status.PIPE_DISCONNECTED) from None

    def read(self, length: int) -> tuple[bytes, Status]:
        """One message, or its beginning when there is no room for all of it."""
        if not self._unread:
            raise SmbError(Status.PIPE_EMPTY)
        message = self._unread.popleft()
        if len(message) <= length:
            return message, Status.SUCCESS
        self._unread.appendleft(message[length:])
        return message[:length], Status.BUFFER_OVERFLOW

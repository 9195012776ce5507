"""Where files leave: the kernel copies them to the socket of a plain connection, and their bytes never come up here.

`connection.py` opens an outlet for a stretch of a file, behind everything the transport has written. The socket does not
block: a thread that runs `send` waits for a disk at most, never for a client.
"""

import asyncio
import errno
import os
import sys
import threading

from verditer.rest.message import ClientGone

KERNEL_COPIES = sys.platform == "linux"  # elsewhere sendfile is absent, or means something else

_NO_SENDFILE = (errno.EINVAL, errno.ENOSYS)  # a file system that cannot
_PIECE_BYTES = 256 * 1024


class Outlet:
    """The descriptor is its own: the transport's may be closed meanwhile, and its number be another file's by then."""

    def __init__(self, transport: asyncio.Transport) -> None:
        assert not transport.is_closing()
        self.descriptor = os.dup(transport.get_extra_info("socket").fileno())
        self.full = False  # the client has to read before there is room again
        self._lock = threading.Lock()
        self._closed = False

    def send(self, file: int, offset: int, count: int) -> int:
        """Runs in a thread. Copies until the socket is full, and says how many bytes that were."""
        with self._lock:
            self.full = False
            sent = 0
            while sent < count and not self.full and not self._closed:
                sent += self._copy(file, offset + sent, count - sent)
            return sent

    def _copy(self, file: int, offset: int, count: int) -> int:
        try:
            copied = _sendfile(self.descriptor, file, offset, count)
        except BlockingIOError:
            self.full = True
            return 0
        except (ConnectionError, TimeoutError):
            raise ClientGone from None
        if not copied:
            raise EOFError(f"The file ended {count} bytes early.")
        return copied

    def close(self) -> None:
        """Never under a thread that is sending; it waits for one only when the sender was cancelled."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.descriptor)


def _sendfile(target: int, file: int, offset: int, count: int) -> int:
    try:
        return os.sendfile(target, file, offset, count)
    except OSError as error:
        if error.errno not in _NO_SENDFILE:
            raise
    return os.write(target, os.pread(file, min(count, _PIECE_BYTES), offset))

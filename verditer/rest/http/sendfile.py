"""Zero-copy sending: the kernel copies a part of a file to the socket of an unencrypted connection
(docs/decisions/sendfile.md).

`response_writer.py` makes a `SocketFileSender` once the transport's buffer is empty. The socket does not block: a thread that
runs `send` may wait for a disk, but never for a client.
"""

import asyncio
import errno
import os
import sys
import threading

from verditer.rest.http.message import ClientGone

SENDFILE_AVAILABLE = sys.platform == "linux"  # elsewhere sendfile is missing or has other semantics

_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS)  # the file system cannot do it
_COPY_BYTES = 256 * 1024


class SocketFileSender:
    """It duplicates the socket's descriptor, because the transport may close its own meanwhile and the number be reused."""

    def __init__(self, transport: asyncio.Transport) -> None:
        assert not transport.is_closing()
        self.descriptor = os.dup(transport.get_extra_info("socket").fileno())
        self.full = False  # the socket's buffer is: the client has to read first
        self._lock = threading.Lock()
        self._closed = False

    def send(self, file: int, offset: int, count: int) -> int:
        """Copy until the socket is full, and return how many bytes were copied. Runs in a thread."""
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
        """Waits for a thread that is sending, which happens only when the task that started it was cancelled."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self.descriptor)


def _sendfile(target: int, file: int, offset: int, count: int) -> int:
    try:
        return os.sendfile(target, file, offset, count)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return os.write(target, os.pread(file, min(count, _COPY_BYTES), offset))

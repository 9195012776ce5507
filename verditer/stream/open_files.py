"""Files that were read a moment ago, kept open so that a short read of the same file needs neither a path nor a thread.

A read without a thread must not wait for the disk: `RWF_NOWAIT` gives what Linux has in its cache and nothing else. Files are
closed on the event loop alone, so none is closed while it is read (docs/decisions/open-extents.md).
"""

import asyncio
import os
from time import monotonic

MAX_FILES = 256
KEPT_SECONDS = 5.0  # a deleted file occupies the disk until it is closed
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)


class OpenFiles:
    def __init__(self) -> None:
        self._files: dict[str, tuple[int, float]] = {}  # by name: the descriptor, and when it was opened
        self._timer: asyncio.TimerHandle | None = None
        self._is_able = _NOWAIT is not None
        self._is_closed = False

    @property
    def may_keep(self) -> bool:
        return self._is_able and len(self._files) < MAX_FILES

    def read(self, name: str, offset: int, length: int) -> bytes | None:
        """The bytes, if the file is open and they need not be waited for."""
        found = self._files.get(name)
        if found is None or _NOWAIT is None:
            return None
        buffer = bytearray(length)
        try:
            count = os.preadv(found[0], [buffer], offset, _NOWAIT)
        except BlockingIOError:
            return None
        except OSError:  # the file system knows no such reads
            self._is_able = False
            self.close()
            return None
        return bytes(buffer) if count == length else None

    def keep(self, name: str, file: int) -> None:
        """Take over an open file. Called on the event loop."""
        if self._is_closed or not self.may_keep or name in self._files:
            os.close(file)
            return
        self._files[name] = file, monotonic()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._close_old)

    def forget(self, name: str) -> None:
        found = self._files.pop(name, None)
        if found is not None:
            os.close(found[0])

    def close(self) -> None:
        """Close all files, and keep none from now on."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for name in list(self._files):
            self.forget(name)

    def _close_old(self) -> None:
        """The oldest files come first."""
        self._timer, now = None, monotonic()
        for name, (_, opened) in list(self._files.items()):
            left = opened + KEPT_SECONDS - now
            if left > 0:
                self._timer = asyncio.get_running_loop().call_later(left, self._close_old)
                return
            self.forget(name)

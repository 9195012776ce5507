"""Frames: four bytes of length and one message or chain of messages. A small frame is copied out of the buffer that receives it;
a large one is received where it stays."""

import struct

from verditer.smb.limits import MAX_CHAIN
from verditer.smb.wire.header import HEADER_BYTES, MAGIC, Flags, Header, parse_header

_BUFFER_BYTES = 16 * 1024
_MIN_FRAME_BYTES = 32  # the header of SMB1
FRAME_HEADER = struct.Struct(">I")


class BadFrame(Exception):
    """The client does not send frames, or one that is too long."""


class FrameBuffer:
    """What has arrived from a client and is not taken yet."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = self._end = 0  # of what is in the buffer
        self._large: memoryview | None = None
        self._large_end = 0

    @property
    def is_empty(self) -> bool:
        return self._start == self._end and self._large is None

    def room(self) -> memoryview:
        """Where the next bytes go."""
        if self._large is not None:
            return self._large[self._large_end :]
        return self._buffer[self._end :]

    def received(self, count: int) -> None:
        if self._large is not None:
            self._large_end += count
        else:
            self._end += count

    def next_frame(self, max_bytes: int) -> memoryview | None:
        """The next complete frame, if there is one."""
        if self._large is not None:
            return self._next_large()
        if self._end - self._start < FRAME_HEADER.size:
            self._make_room()
            return None
        (length,) = FRAME_HEADER.unpack_from(self._buffer, self._start)
        if not _MIN_FRAME_BYTES < length <= max_bytes:  # the first byte of a frame is 0
            raise BadFrame(f"a frame of {length} bytes")
        start = self._start + FRAME_HEADER.size
        if start + length > self._end:
            if FRAME_HEADER.size + length > _BUFFER_BYTES:
                self._begin_large(start, length)
            self._make_room()
            return None
        self._start = start + length
        return memoryview(bytearray(self._buffer[start : start + length]))

    def _next_large(self) -> memoryview | None:
        if self._large is None or self._large_end < len(self._large):
            return None
        frame, self._large = self._large, None
        return frame

    def _begin_large(self, start: int, length: int) -> None:
        self._large = memoryview(bytearray(length))
        self._large_end = self._end - start
        self._large[: self._large_end] = self._buffer[start : self._end]
        self._start = self._end

    def _make_room(self) -> None:
        """Move what is left to the beginning, so that there is room for the rest of its frame."""
        if self._start:
            left = bytes(self._buffer[self._start : self._end])
            self._buffer[: len(left)] = left
            self._start, self._end = 0, len(left)


def split_chain(frame: memoryview) -> list[tuple[Header, memoryview]] | None:
    """The messages of a chain; None when the lengths are wrong."""
    messages: list[tuple[Header, memoryview]] = []
    at = 0
    while len(messages) < MAX_CHAIN:
        if len(frame) - at < HEADER_BYTES + 2:
            return None
        header = parse_header(frame, at)
        if header.magic != MAGIC or header.structure_size != HEADER_BYTES or header.flags & Flags.RESPONSE:
            return None
        if not header.next_command:
            messages.append((header, frame[at:]))
            return messages
        if header.next_command % 8 or header.next_command < HEADER_BYTES + 2:
            return None
        messages.append((header, frame[at : at + header.next_command]))
        at += header.next_command
    return None

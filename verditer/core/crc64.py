"""CRC-64/NVME, the checksum of x-ms-content-crc64. The library takes 45 ms to load, which a start need not wait for."""

from collections.abc import Callable
from functools import cache


def crc64nvme(data: bytes | bytearray, before: int = 0) -> int:
    """The checksum of `data`, or of all bytes so far where `before` is that of those that went ahead."""
    return _library()(data, before)


@cache
def _library() -> Callable[[bytes | bytearray, int], int]:
    from awscrt.checksums import crc64nvme

    found: Callable[[bytes | bytearray, int], int] = crc64nvme
    return found

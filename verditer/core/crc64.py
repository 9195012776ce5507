"""CRC-64/NVME, the checksum that Azure Storage calls CRC64. The library takes 45 ms to load, so it is loaded at first use."""

from collections.abc import Callable
from functools import cache


def crc64nvme(data: bytes | bytearray, before: int = 0) -> int:
    """The checksum of `data` after bytes whose checksum is `before`."""
    return _library()(data, before)


@cache
def _library() -> Callable[[bytes | bytearray, int], int]:
    from awscrt.checksums import crc64nvme

    function: Callable[[bytes | bytearray, int], int] = crc64nvme
    return function

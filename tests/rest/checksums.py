"""MD5 and CRC-64/NVME as headers carry them. The CRC is computed bit by bit, apart from the library the server uses."""

import base64
import hashlib

_POLYNOMIAL = 0x9A6C9329AC4BC9B5


def md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body).digest()).decode()


def crc64(body: bytes) -> str:
    value = 2**64 - 1
    for byte in body:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return base64.b64encode((value ^ 2**64 - 1).to_bytes(8, "little")).decode()

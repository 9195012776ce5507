"""Parts of a request that an offset and a length name, checked against the message, and text in UTF-16."""

from verditer.smb.status import SmbError, Status

HEADER_BYTES = 64  # offsets inside a message count from its header


def part(message: memoryview, offset: int, length: int, *, earliest: int = HEADER_BYTES) -> memoryview:
    """The bytes that a request names. `earliest` is where the variable part of the request begins."""
    if not length:
        return message[:0]
    if offset < earliest or offset + length > len(message):
        raise SmbError(Status.INVALID_PARAMETER)
    return message[offset : offset + length]


def text(data: memoryview | bytes) -> str:
    """UTF-16 without a terminator. Half a surrogate pair is kept, so that the check of names refuses it."""
    if len(data) % 2:
        raise SmbError(Status.INVALID_PARAMETER)
    return str(data, "utf-16-le", "surrogatepass")


def utf16(value: str) -> bytes:
    return value.encode("utf-16-le", "surrogatepass")

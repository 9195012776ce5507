"""Markers: the position where the next page of a listing begins, as opaque text."""

import base64
import binascii

from verditer.core.errors import Code, StorageError


def encode_marker(position: bytes) -> str:
    return base64.urlsafe_b64encode(position).decode()


def decode_marker(marker: str) -> bytes:
    try:
        return base64.b64decode(marker.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise StorageError(Code.InvalidQueryParameterValue, field="marker", value=marker) from None

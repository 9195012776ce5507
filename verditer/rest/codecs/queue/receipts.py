"""The wire form of a pop receipt: Base64 of a version byte and the tick of the operation that issued the receipt."""

import base64
import binascii

from verditer.services.queue.current import PopReceipt

_VERSION = b"\x01"


def show_receipt(tick: int) -> str:
    """Twelve characters that need no escaping in a URL. Ticks are unique, so no two receipts are equal."""
    return base64.urlsafe_b64encode(_VERSION + tick.to_bytes(8, "big")).decode()


def parse_receipt(name: str, text: str) -> PopReceipt:
    try:
        decoded = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        decoded = b""
    is_receipt = len(decoded) == 9 and decoded[:1] == _VERSION
    return PopReceipt(text=text, tick=int.from_bytes(decoded[1:], "big") if is_receipt else None)

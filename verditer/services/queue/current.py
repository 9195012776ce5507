"""The state an operation meets: its queue, and the message it names. The 404s of the Queue service live here."""

import base64
import binascii

from verditer.core.errors import Code, StorageError, invalid_query
from verditer.core.names import MessageName, QueueName
from verditer.core.records.queue import Message, Queue, parse_message_id
from verditer.partition.engine import Transaction

_RECEIPT_VERSION = b"\x01"


def require_queue(tx: Transaction, target: QueueName | MessageName) -> Queue:
    queue = tx.get(Queue, target.account, target.queue)
    if queue is None:
        raise StorageError(Code.QueueNotFound)
    return queue


def require_message(tx: Transaction, target: MessageName, receipt: str) -> Message:
    """The message, for whoever holds its current receipt, and nobody else gets it before this transaction ends.

    Azure says MessageNotFound to a receipt that is not the current one any more; only what never was a receipt is called so.
    """
    queue = require_queue(tx, target)
    key = parse_message_id(queue.id, target.message)
    message = tx.hold(Message, queue.id, *key) if key is not None else None
    if message is None or message.expires <= tx.now:
        raise StorageError(Code.MessageNotFound)
    if parse_receipt(receipt) != message.receipt:
        raise StorageError(Code.MessageNotFound)
    return message


def show_receipt(tick: int) -> str:
    """Twelve characters that need no escaping in a URL. The tick is unique, so no two receipts are ever alike."""
    return base64.urlsafe_b64encode(_RECEIPT_VERSION + tick.to_bytes(8, "big")).decode()


def parse_receipt(text: str) -> int:
    try:
        decoded = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        decoded = b""
    if len(decoded) != 9 or decoded[:1] != _RECEIPT_VERSION:
        raise invalid_query("popreceipt", text, "Invalid pop receipt format.")
    return int.from_bytes(decoded[1:], "big")

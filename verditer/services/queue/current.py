"""The queue and the message that an operation names. The "not found" errors of the Queue service are raised here."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.names import MessageName, QueueName
from verditer.core.records.queue import Message, Queue, parse_message_id
from verditer.partition.engine import Transaction


class PopReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """A pop receipt as the client sent it. `tick` identifies the operation that issued it; None: the text is not a receipt."""

    text: str
    tick: int | None


def require_queue(tx: Transaction, target: QueueName | MessageName) -> Queue:
    queue = tx.get(Queue, target.account, target.queue)
    if queue is None:
        raise StorageError(Code.QueueNotFound)
    return queue


def require_message(tx: Transaction, target: MessageName, receipt: PopReceipt) -> Message:
    """The message, locked until this transaction ends, for a caller with its current receipt.

    Azure answers MessageNotFound for a receipt that is no longer current. Only a text that is not a receipt is called invalid.
    """
    queue = require_queue(tx, target)
    key = parse_message_id(queue.id, target.message)
    message = tx.get(Message, queue.id, *key, for_update=True) if key is not None else None
    if message is None or message.expires <= tx.now:
        raise StorageError(Code.MessageNotFound)
    if receipt.tick is None:
        reason = "Invalid pop receipt format."
        raise StorageError(Code.InvalidQueryParameterValue, field="pop_receipt", value=receipt.text, reason=reason)
    if receipt.tick != message.receipt:
        raise StorageError(Code.MessageNotFound)
    return message

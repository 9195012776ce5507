"""Queues and their messages.

Messages are keyed by the queue's id, so deleting or clearing a queue touches one record, and the collector removes what that
leaves. The key also holds the time to live: messages of one queue with one time to live expire in the order of their keys, so
expired ones are found without an index of their own, at the front of each such run. The rank is the order of delivery.
"""

import struct

import msgspec

from verditer.core.dates import MAX_TICKS, TICKS_PER_SECOND
from verditer.core.records.container import AccessPolicy
from verditer.core.records.record import Record, Span, key_of

FOREVER = 0  # the time to live of a message that never expires
_three_numbers = struct.Struct(">QQQ").pack  # as `key_of` does it, at a quarter of the cost
_guid = struct.Struct(">QII").pack


class Queue(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "queue"
    KEY = ("account", "name")
    PARENT = True

    account: str
    name: str
    id: int  # a new one when the queue is cleared
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    policies: tuple[AccessPolicy, ...] = ()


class Message(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "message"
    KEY = ("queue_id", "ttl_seconds", "sequence")
    RANK = ("queue_id", "visible", "sequence")

    queue_id: int
    ttl_seconds: int
    sequence: int  # a tick of its own
    inserted: int
    visible: int  # from when on the next consumer may have it
    receipt: int  # the tick of the Put, Get or Update that handed out the current pop receipt
    dequeue_count: int
    text: str

    def key(self) -> bytes:
        return _three_numbers(self.queue_id, self.ttl_seconds, self.sequence)

    def rank(self) -> bytes:
        return _three_numbers(self.queue_id, self.visible, self.sequence)

    @property
    def expires(self) -> int:
        return MAX_TICKS if self.ttl_seconds == FOREVER else self.inserted + self.ttl_seconds * TICKS_PER_SECOND

    @property
    def id(self) -> str:
        return show_message_id(self.queue_id, self.ttl_seconds, self.sequence)


def due(queue_id: int, now: int) -> Span:
    """The ranks of the messages that are visible now, expired ones among them."""
    return Span(key_of(queue_id), key_of(queue_id, now + 1))


def show_message_id(queue_id: int, ttl_seconds: int, sequence: int) -> str:
    """A GUID made of what finds the message: its sequence, its time to live, and some of the queue's id."""
    digits = _guid(sequence, ttl_seconds, queue_id & 0xFFFFFFFF).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def parse_message_id(queue_id: int, text: str) -> tuple[int, int] | None:
    """Time to live and sequence, or None where no message of this queue can have such an id."""
    try:
        digits = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return None
    sequence, ttl_seconds = int.from_bytes(digits[:8], "big"), int.from_bytes(digits[8:12], "big")
    return (ttl_seconds, sequence) if show_message_id(queue_id, ttl_seconds, sequence) == text.lower() else None

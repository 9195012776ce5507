"""Queues and their messages.

Messages are keyed by the id of their queue, so deleting or clearing a queue changes one record, and the collector removes the
messages. The key also holds the time to live. Messages of one queue with the same time to live expire in the order of their keys,
so the expired ones are at the front of each such run and need no index. The rank is the order of delivery.
"""

import struct

import msgspec

from verditer.core.dates import MAX_TICKS, TICKS_PER_SECOND
from verditer.core.records.container import AccessPolicy
from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record, Span, key_of

FOREVER = 0  # the time to live of a message that never expires
_two_numbers = struct.Struct(">QQ").pack
_three_numbers = struct.Struct(">QQQ").pack  # the same bytes as `key_of`, at a quarter of the cost
_guid = struct.Struct(">QII").pack


class Queue(Record, tag=1, frozen=True, kw_only=True):
    """A queue. Its messages are keyed by `id`."""

    TABLE = "queue"
    KEY = ("account", "name")
    LIFECYCLE = Lifecycle(parent=Root.ACCOUNT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    account: str
    name: str
    id: int  # a new one when the queue is cleared
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    policies: tuple[AccessPolicy, ...] = ()


class Message(Record, tag=1, frozen=True, kw_only=True):
    """A message of a queue. Expired messages are found by their keys (`services/queue/expired.py`), not by an `Expiry`."""

    TABLE = "message"
    KEY = ("queue_id", "ttl_seconds", "sequence")
    RANK = ("queue_id", "visible", "sequence")
    LIFECYCLE = Lifecycle(parent=Queue, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    queue_id: int
    ttl_seconds: int
    sequence: int  # a tick of its own
    inserted: int
    visible: int  # the tick from which a consumer may get it
    receipt: int  # the tick of the Put, Get or Update that issued the current pop receipt
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


class MessageCount(Record, tag=1, frozen=True, kw_only=True):
    """A part of the number of a queue's messages (`services/queue/counting.py`). It may be negative; the sum is not."""

    TABLE = "message_count"
    KEY = ("queue_id", "lane")
    IS_COUNTER = True
    LIFECYCLE = Lifecycle(parent=Queue, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    queue_id: int
    lane: int
    count: int

    def key(self) -> bytes:
        return _two_numbers(self.queue_id, self.lane)


def due(queue_id: int, now: int) -> Span:
    """The ranks of the messages that are visible now, expired ones included."""
    return Span(key_of(queue_id), key_of(queue_id, now + 1))


def show_message_id(queue_id: int, ttl_seconds: int, sequence: int) -> str:
    """A GUID made of the sequence and the time to live, which find the message, and of the low half of the queue's id."""
    digits = _guid(sequence, ttl_seconds, queue_id & 0xFFFFFFFF).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def parse_message_id(queue_id: int, text: str) -> tuple[int, int] | None:
    """Time to live and sequence, or None when no message of this queue can have such an id."""
    try:
        digits = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return None
    sequence, ttl_seconds = int.from_bytes(digits[:8], "big"), int.from_bytes(digits[8:12], "big")
    return (ttl_seconds, sequence) if show_message_id(queue_id, ttl_seconds, sequence) == text.lower() else None

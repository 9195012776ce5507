"""Removal of messages that are past their time to live. No operation returns such a message.

A Get removes the few that it finds. When many are in front of the first live message, Get and Peek call
`remove_expired_in_front`, and the collector removes them from every queue. Each transaction removes a limited number, so other
writes do not wait for long.

Messages of one queue with one time to live are a run, in which keys are in the order of time: its expired messages are one span.
"""

from verditer.core.dates import seconds
from verditer.core.names import QueueName
from verditer.core.records.queue import FOREVER, Message, Queue, due
from verditer.core.records.record import Span, key_of, span_of
from verditer.partition.engine import Order, Transaction
from verditer.services.context import Context
from verditer.services.queue.counting import change_count

REMOVED_AT_ONCE = 1000  # messages removed in one transaction: about 3 ms on the embedded engine
IN_FRONT = 32  # messages read to find the runs that have expired messages in front
RUNS_AT_ONCE = 1000  # runs that one call of `due_runs` examines: about 10 ms


async def remove_expired_in_front(ctx: Context, target: QueueName) -> bool:
    """Remove expired messages from the runs at the front of the order of delivery; False when there were none."""

    def commit(tx: Transaction) -> bool:
        queue = tx.get(Queue, target.account, target.queue)
        if queue is None:
            return False
        in_front = tx.scan(Message, due(queue.id, tx.now), limit=IN_FRONT, order=Order.RANK)
        runs = {message.ttl_seconds for message in in_front if message.expires <= tx.now}
        spans = [expired_span(queue.id, run, tx.now) for run in runs]
        removed = sum([tx.delete_span(Message, span, REMOVED_AT_ONCE // len(spans))[0] for span in spans])
        if removed:
            change_count(tx, queue.id, 0, -removed)
        return removed > 0

    return await ctx.engine.write([target.scope], commit)


async def due_runs(ctx: Context, queue: Queue, after_ttl: int = FOREVER) -> tuple[list[int], int]:
    """The times to live in the queue whose oldest message has expired, and the last time to live that was examined, from which
    the next call continues; FOREVER at the end. Most queues have one run."""

    def look(tx: Transaction) -> tuple[list[int], int]:
        found: list[int] = []
        last = after_ttl
        for _ in range(RUNS_AT_ONCE):
            rest = Span(key_of(queue.id, last + 1), span_of(queue.id).high)
            oldest = next(iter(tx.scan(Message, rest, limit=1)), None)
            if oldest is None:
                return found, FOREVER
            last = oldest.ttl_seconds
            if oldest.expires <= tx.now:
                found.append(last)
        return found, last

    return await ctx.engine.read(("jobs",), look, long=True)


def remove_expired(tx: Transaction, queue: Queue, span: Span, limit: int) -> Span | None:
    """Remove some messages of a span in which all have expired, and return the rest of the span. The transaction is in the scope
    of the queue."""
    current = tx.get(Queue, queue.account, queue.name)
    if current is None or current.id != queue.id:
        return None  # the queue was deleted or cleared: the collector removes all its messages
    removed, rest = tx.delete_span(Message, span, limit)
    if removed:
        change_count(tx, queue.id, 0, -removed)
    return rest


def expired_span(queue_id: int, ttl_seconds: int, now: int) -> Span:
    """The messages of a run that expired before now. The sequence of a message is never before its insertion, so all messages of
    the span have expired; a message that expired a moment ago may be outside."""
    assert ttl_seconds != FOREVER, "messages without a time to live never expire"
    end = max(now - seconds(ttl_seconds), 0)
    return Span(key_of(queue_id, ttl_seconds), key_of(queue_id, ttl_seconds, end))

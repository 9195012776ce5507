"""Messages past their time to live. Nobody gets to see one; these functions also remove them.

A Get removes the few it meets. Where many lie in front of the first live message, Get and Peek call `clear_the_way`; and the
collector removes them from every queue. Each transaction removes a limited number, so nobody waits long for it.

Messages of one queue with one time to live are a run, in which keys are in the order of time: what has expired of it is a span.
"""

from verditer.core.dates import seconds
from verditer.core.names import QueueName
from verditer.core.records.queue import FOREVER, Message, Queue, due
from verditer.core.records.record import Span, key_of, span_of
from verditer.partition.engine import Transaction
from verditer.services.context import Context

AT_ONCE = 1000  # messages removed in one transaction: about 3 ms on the embedded engine
IN_FRONT = 32  # messages looked at to see which runs are in the way
RUNS_AT_ONCE = 1000  # runs that one call of `due_runs` looks at: about 10 ms


async def clear_the_way(ctx: Context, target: QueueName) -> bool:
    """Remove expired messages from the runs at the front of the order of delivery; False when there were none."""

    def commit(tx: Transaction) -> bool:
        queue = tx.get(Queue, target.account, target.queue)
        if queue is None:
            return False
        in_front = tx.ranked(Message, due(queue.id, tx.now), IN_FRONT)
        runs = {message.ttl_seconds for message in in_front if message.expires <= tx.now}
        spans = [expired_span(queue.id, run, tx.now) for run in runs]
        removed = sum([tx.delete_span(Message, span, AT_ONCE // len(spans))[0] for span in spans])
        if removed:
            tx.add(-removed, queue.id)
        return removed > 0

    return await ctx.engine.write(target.scope, commit)


async def due_runs(ctx: Context, queue: Queue, after_ttl: int = FOREVER) -> tuple[list[int], int]:
    """The times to live of the queue whose oldest message has expired, and the last one looked at, to go on with next time;
    FOREVER when that was the end. Most queues have one run."""

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

    return await ctx.engine.scan(("jobs",), look)


def remove_expired(tx: Transaction, queue: Queue, span: Span, limit: int) -> Span | None:
    """Remove some messages of a span in which all have expired, and give what is left of it. In the queue's own scope."""
    current = tx.get(Queue, queue.account, queue.name)
    if current is None or current.id != queue.id:
        return None  # they are being forgotten anyway
    removed, rest = tx.delete_span(Message, span, limit)
    if removed:
        tx.add(-removed, queue.id)
    return rest


def expired_span(queue_id: int, ttl_seconds: int, now: int) -> Span:
    """Of a run, the messages that expired before now. A sequence is never before its message's insertion, so all in the span
    have expired; one that did a moment ago may be behind it."""
    assert ttl_seconds != FOREVER, "these never expire"
    end = max(now - seconds(ttl_seconds), 0)
    return Span(key_of(queue_id, ttl_seconds), key_of(queue_id, ttl_seconds, end))

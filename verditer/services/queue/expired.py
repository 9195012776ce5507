"""Messages past their time to live. Nobody gets to see one; these functions also remove them.

A Get removes the ones it meets. Where many lie in front of the first live message, a Peek asks `clear_the_way`; and the
collector calls `remove_expired` for every queue. Each transaction removes a limited number, so nobody waits long for it.
"""

from verditer.core.names import QueueName
from verditer.core.records.queue import FOREVER, Message, Queue, due
from verditer.core.records.record import Span, key_of, span_of
from verditer.partition.engine import Transaction
from verditer.services.context import Context

AT_ONCE = 250  # messages removed in one transaction: about 3 ms on the embedded engine
RUNS_AT_ONCE = 1000  # different times to live that one call of `remove_expired` looks at: about 10 ms


async def clear_the_way(ctx: Context, target: QueueName) -> bool:
    """Remove expired messages from the front of the order of delivery; False when there were none."""

    def commit(tx: Transaction) -> bool:
        queue = tx.get(Queue, target.account, target.queue)
        return queue is not None and _remove(tx, queue, tx.ranked(Message, due(queue.id, tx.now), AT_ONCE))

    return await ctx.engine.write(target.scope, commit)


async def remove_expired(ctx: Context, queue: Queue, after_ttl: int = FOREVER) -> int:
    """Remove what has expired of the queue, and return the `after_ttl` to go on with next time.

    Messages with one time to live are a run in which the oldest, the first, expires first: one look at the front of a run tells
    whether there is anything to do. Most queues have one run.
    """
    scope = QueueName(queue.account, queue.name).scope
    due_runs, last = await ctx.engine.scan(scope, lambda tx: _due_runs(tx, queue, after_ttl))
    for ttl_seconds in due_runs:
        run = span_of(queue.id, ttl_seconds)

        def commit(tx: Transaction, run: Span = run) -> bool:
            current = tx.get(Queue, queue.account, queue.name)
            same = current is not None and current.id == queue.id  # otherwise its messages are being forgotten anyway
            return same and _remove(tx, queue, list(tx.scan(Message, run, limit=AT_ONCE)))

        while await ctx.engine.write(scope, commit):  # the queue's own scope: nobody else removes the same ones
            pass
    return last


def _due_runs(tx: Transaction, queue: Queue, after_ttl: int) -> tuple[list[int], int]:
    """The times to live whose oldest message has expired, and the last one looked at; FOREVER when that was the end."""
    found: list[int] = []
    for _ in range(RUNS_AT_ONCE):
        rest = Span(key_of(queue.id, after_ttl + 1), span_of(queue.id).high)
        oldest = next(iter(tx.scan(Message, rest, limit=1)), None)
        if oldest is None:
            return found, FOREVER
        after_ttl = oldest.ttl_seconds
        if oldest.expires <= tx.now:
            found.append(after_ttl)
    return found, after_ttl


def _remove(tx: Transaction, queue: Queue, messages: list[Message]) -> bool:
    expired = [message for message in messages if message.expires <= tx.now]
    for message in expired:
        tx.delete(Message, message.queue_id, message.ttl_seconds, message.sequence)
    if expired:
        tx.add(-len(expired), queue.id)
    return bool(expired)

"""Messages: put, get, peek, update, delete (contract Q1, Q2).

A write names a scope below its queue that is its own, so it shares the queue with all others and excludes only what deletes
or clears it. What two of them might both want is a message, and that they claim or hold: consumers pass each other by, and an
update or delete waits for whoever has the message at that moment and then sees what became of it.
"""

import random

import msgspec

from verditer.core.dates import TICKS_PER_SECOND, seconds
from verditer.core.errors import invalid_query, query_out_of_range
from verditer.core.limits import MAX_TTL_SECONDS
from verditer.core.names import MessageName, QueueName
from verditer.core.records.queue import FOREVER, Message, due
from verditer.partition.engine import Scope, Transaction
from verditer.services.context import Context
from verditer.services.queue.current import require_message, require_queue
from verditer.services.queue.expired import clear_the_way

replace = msgspec.structs.replace
INFINITE = -1  # messagettl
PEEK_FURTHER = 100  # messages looked at beyond those wanted, where some have expired
MANY_EXPIRED = 100  # so many are removed on the way, one by one, before the way is cleared


class PutMessage(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    visibility_seconds: int = 0
    ttl_seconds: int = MAX_TTL_SECONDS
    version: str = ""


class GetMessages(msgspec.Struct, frozen=True, kw_only=True):
    count: int = 1
    visibility_seconds: int = 30
    peek_only: bool = False  # spelled out as false


class PeekMessages(msgspec.Struct, frozen=True, kw_only=True):
    count: int = 1


class UpdateMessage(msgspec.Struct, frozen=True, kw_only=True):
    pop_receipt: str
    visibility_seconds: int
    text: str | None = None  # None keeps what it says


class DeleteMessage(msgspec.Struct, frozen=True, kw_only=True):
    pop_receipt: str


async def put_message(ctx: Context, target: QueueName, request: PutMessage) -> Message:
    _check_lifetime(request)
    ttl_seconds = FOREVER if request.ttl_seconds == INFINITE else request.ttl_seconds

    def commit(tx: Transaction) -> Message:
        queue = require_queue(tx, target)
        now = tx.now
        tick = tx.tick(now - 1)  # not before `inserted`, on which `expired_span` builds
        message = Message(
            queue_id=queue.id,
            ttl_seconds=ttl_seconds,
            sequence=tick,
            inserted=now,
            visible=now + seconds(request.visibility_seconds),
            receipt=tick,
            dequeue_count=0,
            text=request.text,
        )
        tx.put(message)
        tx.add(1, queue.id)
        return message

    return await ctx.engine.write(_beside_others(target), commit)


async def get_messages(ctx: Context, target: QueueName, request: GetMessages) -> list[Message]:
    """Hand out up to so many visible messages, each hidden from everyone else from now on and under a receipt of its own."""

    def commit(tx: Transaction) -> tuple[list[Message], bool]:
        queue, now = require_queue(tx, target), tx.now
        taken: list[Message] = []
        expired, done = 0, False
        while not done and expired < MANY_EXPIRED:
            wanted = request.count - len(taken) + expired  # where some have expired, more will have
            claimed = tx.claim(Message, due(queue.id, now), wanted)
            for message in claimed:
                if message.expires <= now:
                    tx.delete(Message, message.queue_id, message.ttl_seconds, message.sequence)
                    expired += 1
                elif len(taken) < request.count:
                    taken.append(_hand_out(tx, message, now + seconds(request.visibility_seconds)))
            done = len(claimed) < wanted or len(taken) == request.count
        if expired:
            tx.add(-expired, queue.id)
        return taken, done

    while True:  # once, unless many expired messages are in the way; every transaction removes some
        taken, done = await ctx.engine.write(_beside_others(target), commit)
        if taken or done:
            return taken
        await clear_the_way(ctx, target)


def _hand_out(tx: Transaction, message: Message, visible: int) -> Message:
    held = replace(message, visible=visible, receipt=tx.tick(), dequeue_count=message.dequeue_count + 1)
    tx.put(held)
    return held


async def peek_messages(ctx: Context, target: QueueName, request: PeekMessages) -> list[Message]:
    def look(tx: Transaction) -> tuple[list[Message], bool]:
        span, wanted = due(require_queue(tx, target).id, tx.now), request.count
        found = tx.ranked(Message, span, wanted)
        live = [message for message in found if message.expires > tx.now]
        if len(live) < len(found):
            wanted += PEEK_FURTHER
            found = tx.ranked(Message, span, wanted)
            live = [message for message in found if message.expires > tx.now][: request.count]
        return live, len(live) == request.count or len(found) < wanted

    while True:
        live, done = await ctx.engine.read(target.scope, look)
        if done or not await clear_the_way(ctx, target):
            return live


async def update_message(ctx: Context, target: MessageName, request: UpdateMessage) -> Message:
    """Hide it for so long from now on, change what it says, and replace its receipt."""

    def commit(tx: Transaction) -> Message:
        message = require_message(tx, target, request.pop_receipt)
        visible = tx.now + seconds(request.visibility_seconds)
        if visible > message.expires:
            left = (message.expires - tx.now) // TICKS_PER_SECOND
            raise query_out_of_range("visibilitytimeout", str(request.visibility_seconds), 0, left)
        text = message.text if request.text is None else request.text
        updated = replace(message, visible=visible, receipt=tx.tick(), text=text)
        tx.put(updated)
        return updated

    return await ctx.engine.write(target.scope, commit)


async def delete_message(ctx: Context, target: MessageName, request: DeleteMessage) -> None:
    def commit(tx: Transaction) -> None:
        message = require_message(tx, target, request.pop_receipt)
        tx.delete(Message, message.queue_id, message.ttl_seconds, message.sequence)
        tx.add(-1, message.queue_id)

    await ctx.engine.write(target.scope, commit)


def _check_lifetime(request: PutMessage) -> None:
    """Put Message, "messagettl": any positive number of seconds since 2017-07-29, a week at most before that."""
    ttl, visibility = request.ttl_seconds, request.visibility_seconds
    if request.version < "2017-07-29" and not 1 <= ttl <= MAX_TTL_SECONDS:
        raise query_out_of_range("messagettl", str(ttl), 1, MAX_TTL_SECONDS)
    if ttl < 1 and ttl != INFINITE:
        reason = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL."
        raise invalid_query("messagettl", str(ttl), reason)
    if ttl != INFINITE and visibility >= ttl:
        raise invalid_query("visibilitytimeout", str(visibility), "messagettl must be greater than visibilitytimeout.")


def _beside_others(target: QueueName) -> Scope:
    return (*target.scope, f"{random.getrandbits(64):x}")

"""Messages: put, get, peek, update, delete (contract Q1, Q2).

A write names a scope below its queue (`counting.py`), so it excludes the writes that delete or clear the queue and seldom waits
for others. Two writes may want the same message: consumers claim messages and skip those that others have claimed. An update or
delete waits for the transaction that has claimed the message, and then sees its result.
"""

import msgspec

from verditer.core.dates import TICKS_PER_SECOND, seconds
from verditer.core.errors import Bounds, Code, StorageError
from verditer.core.limits import MAX_TTL_SECONDS
from verditer.core.names import MessageName, QueueName
from verditer.core.records.queue import FOREVER, Message, due
from verditer.partition.engine import Order, Transaction
from verditer.services.context import Context
from verditer.services.queue.counting import change_count, lane_scope, pick_lane, random_lane
from verditer.services.queue.current import PopReceipt, require_message, require_queue
from verditer.services.queue.expired import remove_expired_in_front

replace = msgspec.structs.replace
INFINITE = -1  # the time to live of a message that never expires, in requests
EXTRA_PEEKED = 100  # messages read beyond those requested, when some have expired
MAX_EXPIRED_IN_GET = 100  # expired messages that one Get removes one by one; beyond this it removes them by spans


class PutMessage(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    visibility_seconds: int = 0
    ttl_seconds: int = MAX_TTL_SECONDS
    version: str = ""


class GetMessages(msgspec.Struct, frozen=True, kw_only=True):
    count: int = 1
    visibility_seconds: int = 30
    peek_only: bool = False  # only the value false is legal here


class PeekMessages(msgspec.Struct, frozen=True, kw_only=True):
    count: int = 1


class UpdateMessage(msgspec.Struct, frozen=True, kw_only=True):
    pop_receipt: PopReceipt
    visibility_seconds: int
    text: str | None = None  # None keeps the text


class DeleteMessage(msgspec.Struct, frozen=True, kw_only=True):
    pop_receipt: PopReceipt


async def put_message(ctx: Context, target: QueueName, request: PutMessage) -> Message:
    _check_lifetime(request)
    ttl_seconds = FOREVER if request.ttl_seconds == INFINITE else request.ttl_seconds
    lane = pick_lane()

    def commit(tx: Transaction) -> Message:
        queue = require_queue(tx, target)
        now = tx.now
        tick = tx.tick(now - 1)  # not before `inserted`: `expired_span` relies on it
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
        change_count(tx, queue.id, lane, 1)
        return message

    return await ctx.engine.write([lane_scope(target.scope, lane)], commit)


async def get_messages(ctx: Context, target: QueueName, request: GetMessages) -> list[Message]:
    """Return up to `count` visible messages. Each gets a receipt of its own and is hidden from other consumers from now on."""
    lane = random_lane()

    def commit(tx: Transaction) -> tuple[list[Message], bool]:
        queue, now = require_queue(tx, target), tx.now
        taken: list[Message] = []
        expired, done = 0, False
        while not done and expired < MAX_EXPIRED_IN_GET:
            wanted = request.count - len(taken) + expired  # if some have expired, more are likely to have
            claimed = tx.claim(Message, due(queue.id, now), wanted)
            for message in claimed:
                if message.expires <= now:
                    tx.delete(Message, message.queue_id, message.ttl_seconds, message.sequence)
                    expired += 1
                elif len(taken) < request.count:
                    taken.append(_hand_out(tx, message, now + seconds(request.visibility_seconds)))
            done = len(claimed) < wanted or len(taken) == request.count
        if expired:
            change_count(tx, queue.id, lane, -expired)
        return taken, done

    while True:  # once, unless many expired messages are in front; every transaction removes some
        taken, done = await ctx.engine.write([lane_scope(target.scope, lane)], commit)
        if taken or done:
            return taken
        await remove_expired_in_front(ctx, target)


def _hand_out(tx: Transaction, message: Message, visible: int) -> Message:
    held = replace(message, visible=visible, receipt=tx.tick(), dequeue_count=message.dequeue_count + 1)
    tx.put(held)
    return held


async def peek_messages(ctx: Context, target: QueueName, request: PeekMessages) -> list[Message]:
    def look(tx: Transaction) -> tuple[list[Message], bool]:
        span, wanted = due(require_queue(tx, target).id, tx.now), request.count
        found = list(tx.scan(Message, span, limit=wanted, order=Order.RANK))
        live = [message for message in found if message.expires > tx.now]
        if len(live) < len(found):
            wanted += EXTRA_PEEKED
            found = list(tx.scan(Message, span, limit=wanted, order=Order.RANK))
            live = [message for message in found if message.expires > tx.now][: request.count]
        return live, len(live) == request.count or len(found) < wanted

    while True:
        live, done = await ctx.engine.read(target.scope, look)
        if done or not await remove_expired_in_front(ctx, target):
            return live


async def update_message(ctx: Context, target: MessageName, request: UpdateMessage) -> Message:
    """Hide the message for a time from now on, replace its text if the request has one, and replace its receipt."""

    def commit(tx: Transaction) -> Message:
        message = require_message(tx, target, request.pop_receipt)
        visible = tx.now + seconds(request.visibility_seconds)
        if visible > message.expires:
            left = (message.expires - tx.now) // TICKS_PER_SECOND
            raise _out_of_range("visibility_seconds", request.visibility_seconds, Bounds(0, left))
        text = message.text if request.text is None else request.text
        updated = replace(message, visible=visible, receipt=tx.tick(), text=text)
        tx.put(updated)
        return updated

    return await ctx.engine.write([target.scope], commit)


async def delete_message(ctx: Context, target: MessageName, request: DeleteMessage) -> None:
    lane = pick_lane()

    def commit(tx: Transaction) -> None:
        message = require_message(tx, target, request.pop_receipt)
        tx.delete(Message, message.queue_id, message.ttl_seconds, message.sequence)
        change_count(tx, message.queue_id, lane, -1)

    await ctx.engine.write([target.scope, lane_scope(target.scope[:-1], lane)], commit)


def _check_lifetime(request: PutMessage) -> None:
    """Put Message, "messagettl": any positive number of seconds since 2017-07-29, a week at most before that."""
    ttl, visibility = request.ttl_seconds, request.visibility_seconds
    if request.version < "2017-07-29" and not 1 <= ttl <= MAX_TTL_SECONDS:
        raise _out_of_range("ttl_seconds", ttl, Bounds(1, MAX_TTL_SECONDS))
    if ttl < 1 and ttl != INFINITE:
        reason = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL."
        raise StorageError(Code.InvalidQueryParameterValue, field="ttl_seconds", value=ttl, reason=reason)
    if ttl != INFINITE and visibility >= ttl:
        reason = "{ttl_seconds} must be greater than {visibility_seconds}."
        raise StorageError(Code.InvalidQueryParameterValue, field="visibility_seconds", value=visibility, reason=reason)


def _out_of_range(field: str, value: int, bounds: Bounds) -> StorageError:
    return StorageError(Code.OutOfRangeQueryParameterValue, field=field, value=value, details=bounds)

"""Queues: create, delete, list, metadata, access policies. Queues have no ETags: the last writer wins (contract Q3)."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_METADATA
from verditer.core.names import AccountName, QueueName, check_metadata
from verditer.core.records.container import AccessPolicy
from verditer.core.records.queue import Queue
from verditer.core.records.record import key_of, span_of_prefix
from verditer.partition.engine import Transaction
from verditer.services.access import check_policies
from verditer.services.context import Context
from verditer.services.queue.counting import message_count
from verditer.services.queue.current import require_queue
from verditer.services.removal import remove, remove_children

replace = msgspec.structs.replace


class CreateQueue(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


class SetQueueMetadata(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


class SetQueueAcl(msgspec.Struct, frozen=True, kw_only=True):
    policies: tuple[AccessPolicy, ...] = ()


class ListQueues(msgspec.Struct, frozen=True, kw_only=True):
    prefix: str = ""
    marker: str = ""
    max_results: int = 5000
    include: frozenset[str] = frozenset()


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    queue: Queue
    messages_count: int


class QueuePage(msgspec.Struct, frozen=True, kw_only=True):
    queues: list[Queue]
    next_marker: str


async def create_queue(ctx: Context, target: QueueName, request: CreateQueue) -> bool:
    """Whether the queue is new. A queue that exists with the same metadata is not an error."""
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> bool:
        current = tx.get(Queue, target.account, target.queue)
        if current is None:
            tx.put(Queue(account=target.account, name=target.queue, id=tx.tick(), metadata=request.metadata))
            return True
        if _lowered(current.metadata) != _lowered(request.metadata):
            raise StorageError(Code.QueueAlreadyExists)
        return False

    return await ctx.engine.write([target.scope], commit)


def _lowered(metadata: dict[str, str]) -> dict[str, str]:
    """Names are compared without case, values with it."""
    return {name.lower(): value for name, value in metadata.items()}


async def delete_queue(ctx: Context, target: QueueName) -> None:
    """Delete one record. Its messages are keyed by its id and become unreachable; the collector removes them."""

    def commit(tx: Transaction) -> None:
        remove(tx, require_queue(tx, target))

    await ctx.engine.write([target.scope], commit)


async def clear_messages(ctx: Context, target: QueueName) -> None:
    """Give the queue a new id, under which there are no messages. The collector removes those of the old id."""

    def commit(tx: Transaction) -> None:
        queue = require_queue(tx, target)
        tx.put(replace(queue, id=tx.tick()))
        remove_children(tx, queue)

    await ctx.engine.write([target.scope], commit)


async def get_queue(ctx: Context, target: QueueName) -> QueueState:
    """The count includes expired messages that were not collected yet; otherwise it is exact."""

    def look(tx: Transaction) -> QueueState:
        queue = require_queue(tx, target)
        return QueueState(queue=queue, messages_count=message_count(tx, queue.id))

    return await ctx.engine.read(target.scope, look)


async def set_queue_metadata(ctx: Context, target: QueueName, request: SetQueueMetadata) -> None:
    check_metadata(request.metadata, MAX_METADATA)
    await ctx.engine.write([target.scope], lambda tx: tx.put(replace(require_queue(tx, target), metadata=request.metadata)))


async def get_queue_acl(ctx: Context, target: QueueName) -> Queue:
    return await ctx.engine.read(target.scope, lambda tx: require_queue(tx, target))


async def set_queue_acl(ctx: Context, target: QueueName, request: SetQueueAcl) -> None:
    check_policies(request.policies)
    await ctx.engine.write([target.scope], lambda tx: tx.put(replace(require_queue(tx, target), policies=request.policies)))


async def list_queues(ctx: Context, target: AccountName, request: ListQueues) -> QueuePage:
    span = span_of_prefix(target.account, prefix=request.prefix)
    if request.marker:
        span = span.starting(key_of(target.account, _decode_marker(target.account, request.marker)))

    def look(tx: Transaction) -> QueuePage:
        found = list(tx.scan(Queue, span, limit=request.max_results + 1))
        more = found[request.max_results :]
        marker = f"/{target.account}/{more[0].name}" if more else ""
        return QueuePage(queues=found[: request.max_results], next_marker=marker)

    return await ctx.engine.read(target.scope, look, long=True)


def _decode_marker(account: str, marker: str) -> str:
    """Azure's form: the path of the first queue of the next page."""
    name = marker.removeprefix(f"/{account}/")
    if name == marker or not name or "/" in name:
        raise StorageError(Code.InvalidMarker)
    return name

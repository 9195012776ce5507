"""Counters and other shared records, on every engine: what an engine remembers for the writes of one commit is never wrong."""

import asyncio
from collections.abc import Callable

import pytest

from tests.contract.stores import Store, opened
from verditer.core.records.file import ShareUsage
from verditer.core.records.file_open import FileLock, FileOpen
from verditer.core.records.queue import MessageCount
from verditer.core.records.record import key_of, span_of
from verditer.partition.engine import Engine, Transaction

SCOPE = ("account", "queue", "q")


def add(amount: int, lane: int = 0) -> Callable[[Transaction], int]:
    def body(tx: Transaction) -> int:
        before = tx.get(MessageCount, 1, lane)
        count = amount + (before.count if before is not None else 0)
        tx.put(MessageCount(queue_id=1, lane=lane, count=count))
        return count

    return body


def failing(body: Callable[[Transaction], int]) -> Callable[[Transaction], int]:
    def fail(tx: Transaction) -> int:
        body(tx)
        raise ValueError

    return fail


def scanned(tx: Transaction) -> dict[int, int]:
    return {each.lane: each.count for each in tx.scan(MessageCount, span_of(1))}


def read_many(tx: Transaction) -> int:
    return sum(each.count for each in tx.get_many(MessageCount, [key_of(1, 0), key_of(1, 1), key_of(1, 2)]).values())


async def together(engine: Engine, *bodies: Callable[[Transaction], object]) -> list[object]:
    """Writes that wait at the same time, so that engines commit them together."""
    return await asyncio.gather(*[engine.write([SCOPE], body) for body in bodies], return_exceptions=True)


async def test_each_write_of_a_commit_sees_the_counter_that_the_one_before_has_left(store: Store) -> None:
    async with opened(store) as engine:
        assert await together(engine, *[add(1)] * 20, scanned, add(1, lane=1), read_many) == [*range(1, 21), {0: 20}, 1, 21]
        assert await engine.read(SCOPE, scanned) == {0: 20, 1: 1}


async def test_a_write_that_fails_after_it_has_counted_takes_only_its_own_count_back(store: Store) -> None:  # contract G7
    async with opened(store) as engine:
        results = await together(engine, add(1), failing(add(100)), add(1), scanned, failing(add(100)), add(1))
        assert [result for result in results if not isinstance(result, ValueError)] == [1, 2, {0: 2}, 3]
        assert await engine.read(SCOPE, scanned) == {0: 3}


async def test_deleting_a_counter_deletes_what_was_counted_in_the_same_commit(store: Store) -> None:
    def delete(tx: Transaction) -> None:
        tx.delete(MessageCount, 1, 0)

    def delete_all(tx: Transaction) -> tuple[int, int]:
        add(1, lane=1)(tx)
        removed, _ = tx.delete_span(MessageCount, span_of(1), 10)
        return removed, add(7)(tx)

    async with opened(store) as engine:
        assert await together(engine, add(5), delete, add(1)) == [5, None, 1]
        assert await engine.write([SCOPE], delete_all) == (2, 7)
        assert await engine.read(SCOPE, scanned) == {0: 7}


async def test_counters_that_are_read_together_are_as_the_writes_before_have_left_them(store: Store) -> None:
    def put(lane: int, size: int) -> Callable[[Transaction], int]:
        def body(tx: Transaction) -> int:
            tx.put(ShareUsage(share_id=1, lane=lane, size_bytes=size))
            return size

        return body

    def sizes(tx: Transaction) -> list[int | None]:
        found = [tx.get(ShareUsage, 1, lane) for lane in range(4)]
        return [None if each is None else each.size_bytes for each in found]

    def delete(tx: Transaction) -> None:
        tx.delete(ShareUsage, 1, 1)

    async with opened(store) as engine:
        await engine.write([SCOPE], put(0, 5))
        await engine.write([SCOPE], put(1, 7))
        results = await together(engine, put(1, 8), sizes, put(2, 9), sizes, failing(put(0, 1)), delete, sizes)
        assert results[:4] == [8, [5, 8, None, None], 9, [5, 8, 9, None]]
        assert results[5:] == [None, [5, None, 9, None]]
        assert await engine.read(SCOPE, sizes) == [5, None, 9, None]


def handle(number: int) -> FileOpen:
    return FileOpen(
        share_id=1,
        node_id=2,
        handle_id=number,
        account="a",
        share="s",
        owner="o",
        access=0,
        share_mode=0,
        path=("f",),
        folded_path=("f",),
        parent_id=0,
        session_id=1,
        client="c",
        opened=1,
    )


def handles(tx: Transaction) -> list[int]:
    return [found.handle_id for found in tx.scan(FileOpen, span_of(1, 2))]


def put_one(tx: Transaction) -> None:
    tx.put(handle(3))


def put_with_others(tx: Transaction) -> None:
    tx.put(FileLock(share_id=1, node_id=2, handle_id=3, lock_id=1, start=0, length=1, exclusive=True), handle(3))


@pytest.mark.parametrize("put", [put_one, put_with_others])
async def test_a_table_that_was_empty_is_searched_again_after_a_put(store: Store, put: Callable[[Transaction], None]) -> None:
    def delete(tx: Transaction) -> None:
        tx.delete(FileOpen, 1, 2, 3)

    async with opened(store) as engine:
        assert await engine.read(SCOPE, handles) == []
        assert await together(engine, handles, put, handles, delete, handles, put) == [[], None, [3], None, [], None]
        assert await engine.read(SCOPE, handles) == [3]
        await engine.write([SCOPE], delete)
        assert await engine.read(SCOPE, handles) == []

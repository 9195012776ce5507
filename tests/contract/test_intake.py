"""Intake: bodies small and large, limits, checksums, and every way a body can fail to arrive, on every extent store."""

import asyncio
import random
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest

from tests.contract.extent_stores import run
from verditer.core.errors import Code, Digests, Limit, StorageError
from verditer.stream import intake
from verditer.stream.digest import Checksums, digest
from verditer.stream.extents import ExtentStore
from verditer.stream.intake import Received, receive
from verditer.stream.local import LocalExtents
from verditer.stream.memory import MemoryExtents

INLINE = 1000
LARGE = random.Random(2).randbytes(3 * intake.BATCH_BYTES + 4321)


class Fake:
    """A body in given pieces; an exception among them is raised in its turn, an event is waited for."""

    def __init__(self, pieces: Iterable[bytes | BaseException | asyncio.Event], length: int | None = None) -> None:
        self.length = length
        self.ended = False
        self._pieces = iter(pieces)
        self.reads = 0

    async def read(self) -> bytes:
        self.reads += 1
        for piece in self._pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            elif isinstance(piece, BaseException):
                raise piece
            else:
                return piece
        return b""


class Gone(Exception):
    """The client went away."""


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ExtentStore:
    numbers = count(1)

    def new_id() -> str:
        return f"{next(numbers):016x}{random.getrandbits(64):016x}"

    made: ExtentStore = LocalExtents(tmp_path, new_id) if request.param == "local" else MemoryExtents(new_id)
    return made


async def take(store: ExtentStore, source: Fake, limit: int = 1 << 30, expected: Checksums = Checksums()) -> Received:
    return await receive(source, store, limit=limit, inline_limit=INLINE, expected=expected)


async def refusal(store: ExtentStore, source: Fake, limit: int = 1 << 30, expected: Checksums = Checksums()) -> StorageError:
    with pytest.raises(StorageError) as refused:
        await take(store, source, limit, expected)
    assert await leftovers(store) == []
    return refused.value


async def leftovers(store: ExtentStore) -> list[str]:
    return [extent async for extent, _ in store.list()]


@pytest.mark.parametrize("pieces", [[], [b"a"], [b"ab", b"c"], [bytes(INLINE)], [b"x"] * INLINE])
@pytest.mark.parametrize("known", [True, False])
def test_a_small_body_stays_in_hand(store: ExtentStore, pieces: list[bytes], known: bool) -> None:
    async def scenario() -> None:
        body = b"".join(pieces)
        md5, crc64 = digest(body)
        received = await take(store, Fake(pieces, len(body) if known else None))
        assert received == Received(size=len(body), md5=md5, crc64=crc64, inline=body, extent=None)
        assert await leftovers(store) == []

    run(store, scenario)


def test_a_small_body_asks_for_no_task_and_no_thread(store: ExtentStore) -> None:
    coroutine = take(store, Fake([b"small"], 5))
    with pytest.raises(StopIteration) as ended:  # it runs to its end without a loop
        coroutine.send(None)
    assert ended.value.value.inline == b"small"


@pytest.mark.parametrize("piece_bytes", [len(LARGE), 65_536, 1_000_003])
@pytest.mark.parametrize("known", [True, False])
def test_a_large_body_becomes_an_extent(store: ExtentStore, piece_bytes: int, known: bool) -> None:
    async def scenario() -> None:
        md5, crc64 = digest(LARGE)
        received = await take(store, Fake(cut(LARGE, piece_bytes), len(LARGE) if known else None))
        assert received.extent is not None
        assert received == Received(size=len(LARGE), md5=md5, crc64=crc64, inline=None, extent=received.extent)
        assert b"".join([piece async for piece in store.read(received.extent, 0, received.size)]) == LARGE
        assert not store.is_writing(received.extent)

    run(store, scenario)


def test_one_byte_more_than_inline_is_an_extent(store: ExtentStore) -> None:
    async def scenario() -> None:
        received = await take(store, Fake([bytes(INLINE), b"x"]))
        assert received.inline is None
        assert received.extent is not None
        assert await leftovers(store) == [received.extent]

    run(store, scenario)


def test_a_body_known_to_be_too_large_is_refused_before_a_byte_is_read(store: ExtentStore) -> None:
    async def scenario() -> None:
        source = Fake([bytes(101)], 101)
        refused = await refusal(store, source, limit=100)
        assert (refused.code, refused.details) == (Code.RequestBodyTooLarge, Limit(100))
        assert source.reads == 0

    run(store, scenario)


@pytest.mark.parametrize("limit", [500, INLINE, INLINE + 1, 2_000_000, len(LARGE) - 1])
def test_a_body_that_turns_out_too_large_is_refused_and_leaves_nothing(store: ExtentStore, limit: int) -> None:
    async def scenario() -> None:
        refused = await refusal(store, Fake(cut(LARGE, 65_536)), limit=limit)
        assert (refused.code, refused.details) == (Code.RequestBodyTooLarge, Limit(limit))

    run(store, scenario)


@pytest.mark.parametrize("body", [b"small", LARGE])
def test_a_body_of_exactly_the_limit_is_taken(store: ExtentStore, body: bytes) -> None:
    async def scenario() -> None:
        assert (await take(store, Fake(cut(body, 65_536)), limit=len(body))).size == len(body)

    run(store, scenario)


@pytest.mark.parametrize("body", [b"", b"small", LARGE])
def test_checksums_are_compared_and_a_mismatch_leaves_nothing(store: ExtentStore, body: bytes) -> None:
    async def scenario() -> None:
        md5, crc64 = digest(body)
        refused = await refusal(store, Fake([body]), expected=Checksums(md5=bytes(16)))
        assert refused.code is Code.Md5Mismatch
        assert refused.details == Digests(bytes(16), md5)
        refused = await refusal(store, Fake([body]), expected=Checksums(crc64=b"12345678"))
        assert refused.code is Code.Crc64Mismatch
        assert refused.details == Digests(b"12345678", crc64)
        assert (await take(store, Fake([body]), expected=Checksums(md5=md5, crc64=crc64))).size == len(body)

    run(store, scenario)


@pytest.mark.parametrize("arrived", [0, 10, INLINE + 1, 1_500_000, len(LARGE)])
def test_a_client_that_goes_away_leaves_nothing_and_the_next_is_served(store: ExtentStore, arrived: int) -> None:  # race G2
    async def scenario() -> None:
        with pytest.raises(Gone):
            await take(store, Fake([*cut(LARGE[:arrived], 65_536), Gone()], len(LARGE)))
        assert await leftovers(store) == []
        assert (await take(store, Fake([LARGE], len(LARGE)))).md5 == digest(LARGE)[0]

    run(store, scenario)


@pytest.mark.parametrize("arrived", [10, INLINE + 1, 1_500_000])
def test_a_cancelled_request_leaves_nothing(store: ExtentStore, arrived: int) -> None:  # race G2
    async def scenario() -> None:
        waiting = asyncio.Event()

        class Stalled(asyncio.Event):
            async def wait(self) -> "bool":  # type: ignore[override]
                waiting.set()
                return await super().wait()

        receiving = asyncio.ensure_future(take(store, Fake([*cut(LARGE[:arrived], 65_536), Stalled()], len(LARGE))))
        await waiting.wait()
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving
        assert await leftovers(store) == []

    run(store, scenario)


def test_a_store_without_room_refuses_and_leaves_nothing() -> None:
    numbers = count(1)
    store = MemoryExtents(lambda: f"{next(numbers):032x}", limit_bytes=2_000_000)

    async def scenario() -> None:
        assert (await refusal(store, Fake(cut(LARGE, 65_536), len(LARGE)))).code is Code.InsufficientStorage
        assert (await take(store, Fake([LARGE[:2_000_000]]))).size == 2_000_000

    run(store, scenario)


def test_receiving_never_runs_more_than_a_batch_ahead_of_the_disk(store: ExtentStore) -> None:
    async def scenario() -> None:
        arrived = stored = furthest = 0

        def pieces() -> Iterable[bytes]:
            nonlocal arrived, furthest
            for piece in cut(LARGE * 8, 65_536):
                arrived += len(piece)
                furthest = max(furthest, arrived - stored)
                yield piece

        new = store.new

        def watched() -> object:
            writer = new()
            write = writer.write

            async def counted(batch: list[bytes] | bytes) -> None:
                nonlocal stored
                await write(batch)
                stored += sum(map(len, batch)) if isinstance(batch, list) else len(batch)

            writer.write = counted  # type: ignore[method-assign, assignment]
            return writer

        store.new = watched  # type: ignore[method-assign, assignment]
        await take(store, Fake(pieces()))
        assert stored == len(LARGE) * 8
        assert furthest <= 2 * (intake.AHEAD_BYTES + 65_536)

    run(store, scenario)

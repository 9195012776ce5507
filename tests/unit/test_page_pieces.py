"""Pieces inside one transaction: what a mover meets when others were faster, and what a piece that is cut keeps."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.content import ExtentUse, Garbage, Piece
from verditer.core.records.record import Span, span_of
from verditer.partition.engine import Transaction
from verditer.partition.sqlite import SqliteEngine
from verditer.services.blob.pieces import cut, move_pieces, new_pieces, open_view, small_pieces, visible, write_piece
from verditer.stream.intake import Received

T = TypeVar("T")
EXTENT = "0" * 32


def in_a_store(body: Callable[[Transaction], T]) -> T:
    async def run() -> T:
        engine = SqliteEngine(None)
        await engine.open()
        try:
            return await engine.write((), body)
        finally:
            await engine.close()

    return asyncio.run(run())


def new_blob(tx: Transaction) -> Blob:
    pieces = new_pieces(tx, 1, ("scope",))
    return Blob(
        container_id=1, name="b", etag=1, created=1, blob_type=BlobType.PAGE, size=100, content_id=1, inline=False, pieces=pieces
    )


def written(tx: Transaction, blob: Blob, start: int, data: bytes) -> Blob:
    received = Received(size=len(data), md5=b"", crc64=b"", inline=data)
    return msgspec.structs.replace(blob, pieces=write_piece(tx, blob, start, received))


def shown(tx: Transaction, blob: Blob) -> list[tuple[int, bytes | tuple[int, int]]]:
    """Start, and the bytes of a small piece or the part of the extent that has them."""
    rows = visible(tx, blob, 0, blob.size)
    return [(row.start, row.data if row.extent is None else (row.offset, row.length)) for row in rows]


def test_a_piece_that_was_written_again_is_not_moved() -> None:
    def body(tx: Transaction) -> None:
        blob = new_blob(tx)
        for start, data in ((0, b"aa"), (2, b"bb"), (4, b"cc"), (6, b"dd"), (10, b"ee")):
            blob = written(tx, blob, start, data)
        small = small_pieces(tx, 1)
        blob = written(tx, blob, 2, b"BB")  # as long as the one before, and in the same epoch
        blob = msgspec.structs.replace(blob, pieces=move_pieces(tx, blob, small, EXTENT))
        assert shown(tx, blob) == [(0, (0, 2)), (2, b"BB"), (4, (4, 4)), (10, (8, 2))]
        assert blob.pieces is not None
        assert blob.pieces.small_bytes == 2
        assert [piece.data for piece in small_pieces(tx, 1)] == [b"BB"]
        use = tx.get(ExtentUse, 1, EXTENT)
        assert use is not None
        assert use.count == 3

    in_a_store(body)


def test_pieces_of_different_epochs_stay_apart_when_they_are_moved() -> None:
    def body(tx: Transaction) -> None:
        blob = written(tx, new_blob(tx), 0, b"aa")
        blob_pieces, snapshot_pieces = open_view(tx, blob, 5)
        snapshot = msgspec.structs.replace(blob, pieces=snapshot_pieces)
        blob = written(tx, msgspec.structs.replace(blob, pieces=blob_pieces), 2, b"bb")
        blob = msgspec.structs.replace(blob, pieces=move_pieces(tx, blob, small_pieces(tx, 1), EXTENT))
        assert shown(tx, blob) == [(0, (0, 2)), (2, (2, 2))]
        assert shown(tx, snapshot) == [(0, (0, 2))]

    in_a_store(body)


def test_an_extent_is_let_go_with_its_last_piece() -> None:
    def body(tx: Transaction) -> None:
        blob = written(tx, written(tx, new_blob(tx), 0, b"aaaa"), 8, b"bbbb")
        blob = msgspec.structs.replace(blob, pieces=move_pieces(tx, blob, small_pieces(tx, 1), EXTENT))
        let_go = []
        for start in (1, 8, 0, 2):  # the middle of the first, the second, and what is left of the first
            blob = written(tx, blob, start, b"x" if start < 2 else b"xx" if start == 2 else b"xxxx")
            let_go.append([row.extent for row in tx.scan(Garbage, Span(b"", b"\xff" * 64))])
        assert let_go == [[], [], [], [EXTENT]]
        assert tx.get(ExtentUse, 1, EXTENT) is None
        assert b"".join(row.data for row in tx.scan(Piece, span_of(1))) == b"xxxxxxxx"

    in_a_store(body)


def test_a_cut_piece_has_the_bytes_it_had() -> None:
    small = Piece(content_id=1, start=10, length=6, epoch=0, data=b"abcdef")
    large = Piece(content_id=1, start=10, length=6, epoch=0, extent=EXTENT, offset=100)
    assert cut(small, 0, 99) is small
    assert (cut(small, 12, 14).start, cut(small, 12, 14).data) == (12, b"cd")
    assert (cut(small, 0, 11).start, cut(small, 0, 11).data) == (10, b"a")
    assert (cut(large, 12, 99).start, cut(large, 12, 99).offset, cut(large, 12, 99).length) == (12, 102, 4)

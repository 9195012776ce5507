"""Extents as objects of an S3-compatible store. Implements the contract of `extents.py`, on obstore.

An extent is one object, which appears whole or not at all. Keys are never written twice: an id is random, so correctness does not
rest on conditional puts. Up to PART_BYTES are sent in one request; more become a multipart upload, which is fed as the body
arrives. A process that dies leaves an upload without an object; `list` shows it as an extent of no bytes, and `delete` aborts it.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Sequence

import obstore
from obstore.exceptions import BaseError

from verditer.core.records.lifecycle import ExtentId
from verditer.stream.extents import PIECE_BYTES, ExtentMissing, ExtentsUnavailable, NewId
from verditer.stream.s3_client import DEADLINE_SECONDS, Credentials, connect, within
from verditer.stream.s3_location import S3Location
from verditer.stream.s3_uploads import MultipartUploads, Upload

PART_BYTES = 8 << 20  # a body of 5,000 MiB has 625 parts; S3 allows 10,000
PARTS_IN_FLIGHT = 2
RANGE_BYTES = 4 << 20  # of one GET: with one range ahead, a reader needs 8 MiB at most
PAGE = 1000  # objects of one page of a listing
ABORT_SECONDS = 2.0  # for removing what a failed write has left: the client waits for its answer, and the sweep finds the rest
_ID = re.compile(r"[0-9a-f]{32}")


class S3Extents:
    """Objects at `<prefix>/<shard>/<id>`. The shard is two of the random digits of the id, so that keys spread evenly."""

    is_remote = True

    def __init__(
        self,
        location: S3Location,
        new_id: NewId,
        *,
        credentials: Credentials | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self.location = location
        self.deadline_seconds = deadline_seconds
        self._new_id = new_id
        self._credentials = credentials
        self._writers: dict[str, S3Writer] = {}
        self._interrupted: dict[str, list[Upload]] = {}  # uploads that the last listing found, by extent

    async def open(self) -> None:
        """Refuses a bucket that does not exist or that cannot be listed, so that a wrong setting is seen at the start."""
        credentials = self._credentials or Credentials()
        await credentials.get()
        self._store = connect(self.location, credentials, self.deadline_seconds)
        self._uploads = MultipartUploads(self.location, credentials, self.deadline_seconds)
        await self.probe()

    async def close(self) -> None:
        await asyncio.gather(*[writer.abort() for writer in list(self._writers.values())])
        self._uploads.close()

    async def probe(self) -> None:
        """Return when the store answers. Raises ExtentsUnavailable."""
        try:
            await within(
                self.deadline_seconds, anext(aiter(obstore.list(self._store, self.location.key("00"), chunk_size=1)), None)
            )
        except FileNotFoundError:
            raise ExtentsUnavailable(f"the S3 store has no bucket {self.location.bucket}") from None

    def new(self) -> "S3Writer":
        extent = ExtentId(self._new_id())
        writer = S3Writer(self, extent)
        self._writers[extent] = writer
        return writer

    async def read(self, extent: str, offset: int, length: int) -> AsyncIterator[bytes]:
        end = offset + length
        ahead: asyncio.Task[memoryview] | None = None
        try:
            for start in range(offset, end, RANGE_BYTES):
                current, ahead = ahead, asyncio.create_task(self._range(extent, start, min(start + RANGE_BYTES, end), end))
                if current is not None:
                    for piece in _pieces(await current):
                        yield piece
                elif start == offset:
                    await asyncio.wait([ahead])  # the first range shows whether there are enough bytes
            if ahead is not None:
                for piece in _pieces(await ahead):
                    yield piece
        finally:
            if ahead is not None and not ahead.cancel() and not ahead.cancelled():
                ahead.exception()  # nobody needs it any more

    def read_now(self, extent: str, offset: int, length: int) -> bytes | None:
        return None

    def file(self, extent: str, offset: int, length: int) -> None:
        return None

    async def delete(self, extent: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            await within(self.deadline_seconds, obstore.delete_async(self._store, self._key(extent)))
        for upload in self._interrupted.pop(extent, ()):
            await self._uploads.abort(upload)

    async def list(self) -> AsyncIterator[tuple[str, int]]:
        for writer in list(self._writers.values()):
            yield writer.id, writer.size
        async for extent in self._list_uploads():
            if extent not in self._writers:
                yield extent, 0
        pages = aiter(obstore.list(self._store, self.location.prefix or None, chunk_size=PAGE))
        while page := await within(self.deadline_seconds, anext(pages, None)):
            for found in page:
                name = found["path"].rpartition("/")[2]
                if _ID.fullmatch(name) and found["path"] == self._key(name):
                    yield name, found["size"]

    def is_writing(self, extent: str) -> bool:
        return extent in self._writers

    async def _list_uploads(self) -> AsyncIterator[str]:
        found: dict[str, list[Upload]] = {}
        async for upload in self._uploads.list(f"{self.location.prefix}/" if self.location.prefix else ""):
            name = upload.key.rpartition("/")[2]
            if _ID.fullmatch(name) and upload.key == self._key(name):
                found.setdefault(name, []).append(upload)
        self._interrupted = found
        for extent in list(found):
            yield extent

    async def _range(self, extent: str, start: int, end: int, needed: int) -> memoryview:
        try:
            found = await within(self.deadline_seconds, self._range_if_there(self._key(extent), start, end, needed))
        except FileNotFoundError:
            found = None
        if found is None:
            raise ExtentMissing(extent)
        return found

    async def _range_if_there(self, key: str, start: int, end: int, needed: int) -> memoryview | None:
        """None when the object is shorter than needed."""
        try:
            answer = await obstore.get_async(self._store, key, options={"range": (start, end)})
        except FileNotFoundError:
            raise
        except BaseError:
            if (await obstore.head_async(self._store, key))["size"] >= needed:
                raise
            return None  # a range that begins behind the end is an error of the store
        return memoryview(await answer.bytes_async()) if answer.meta["size"] >= needed else None

    async def _put(self, extent: str, data: bytes) -> None:
        await within(self.deadline_seconds, obstore.put_async(self._store, self._key(extent), data, use_multipart=False))

    async def _put_parts(self, extent: str, parts: AsyncIterator[bytes]) -> None:
        """Has no deadline as a whole: the writer watches the progress. An error raised by `parts` aborts the upload."""
        await obstore.put_async(
            self._store,
            self._key(extent),
            parts,
            use_multipart=True,
            chunk_size=PART_BYTES,
            max_concurrency=PARTS_IN_FLIGHT,
        )

    async def _remove(self, extent: str) -> None:
        """Remove the object and every multipart upload of this extent."""
        await self.delete(extent)
        async for upload in self._uploads.list(self._key(extent)):
            await self._uploads.abort(upload)

    def _key(self, extent: str) -> str:
        assert _ID.fullmatch(extent), "extent ids are generated, never a name that a client sent"
        return self.location.key(f"{extent[16:18]}/{extent}")


class _Aborted(Exception):
    """Raised inside the feed of a multipart upload, so that obstore aborts it."""


class S3Writer:
    """Collects the first part. When there is more, a task sends parts, and `write` waits until the task has taken its bytes."""

    def __init__(self, store: S3Extents, extent: ExtentId) -> None:
        self.id = extent
        self.size = 0
        self._store = store
        self._collected: list[bytes] = []
        self._feed: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._sending: asyncio.Task[None] | None = None
        self._ended = False
        self._failed = False

    async def write(self, pieces: Sequence[bytes | bytearray] | bytes) -> None:
        assert not self._ended, "the extent was committed or aborted"
        data = pieces if isinstance(pieces, bytes) else b"".join(pieces)
        self.size += len(data)
        if self._sending is None:
            self._collected.append(data)
            if self.size <= PART_BYTES:
                return
            data = b"".join(self._collected)
            self._collected = []
            self._sending = asyncio.create_task(self._store._put_parts(self.id, self._parts()))
        await self._progress(data)

    async def commit(self) -> None:
        assert not self._ended, "the extent was committed or aborted"
        try:
            if self._sending is None:
                await self._store._put(self.id, b"".join(self._collected))
            else:
                await self._progress(None)
                await within(PARTS_IN_FLIGHT * self._store.deadline_seconds, asyncio.shield(self._sending))
        except ExtentsUnavailable:
            self._failed = True
            raise
        finally:
            self._collected = []
        self._end()

    async def abort(self) -> None:
        # Shielded: a caller that aborts because it was cancelled may be cancelled again, and the object must still be removed.
        await asyncio.shield(asyncio.create_task(self._abort()))

    async def _abort(self) -> None:
        sending, was_empty = self._sending, not self.size
        patience = self._store.deadline_seconds
        if self._failed:
            patience = min(patience, ABORT_SECONDS)
        self._collected = []
        self._ended = True
        if sending is not None and not sending.done():
            while not self._feed.empty():
                self._feed.get_nowait()
            self._feed.put_nowait(None)
            await asyncio.wait([sending], timeout=patience)
            sending.cancel()
        if not was_empty or sending is not None:
            with contextlib.suppress(ExtentsUnavailable):  # the sweep finds what could not be removed
                await within(patience, self._store._remove(self.id))
        self._end()

    async def _progress(self, data: bytes | None) -> None:
        """Wait until the upload has taken the bytes before these, as long as it makes progress."""
        assert self._sending is not None
        queued = asyncio.create_task(self._feed.put(data))
        try:
            await asyncio.wait([queued, self._sending], timeout=self._store.deadline_seconds, return_when=asyncio.FIRST_COMPLETED)
            if self._sending.done():
                await within(self._store.deadline_seconds, asyncio.shield(self._sending))  # raises what went wrong
            if not queued.done():
                raise ExtentsUnavailable(f"the S3 store took no bytes for {self._store.deadline_seconds:g} s")
        except ExtentsUnavailable:
            self._failed = True
            raise
        finally:
            queued.cancel()

    async def _parts(self) -> AsyncIterator[bytes]:
        while (data := await self._feed.get()) is not None:
            yield data
        if self._ended:
            raise _Aborted

    def _end(self) -> None:
        self._ended = True
        self._store._writers.pop(self.id, None)


def _pieces(data: memoryview) -> "list[bytes]":
    return [bytes(data[start : start + PIECE_BYTES]) for start in range(0, len(data), PIECE_BYTES)]

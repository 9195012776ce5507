"""Extents in S3, on a real server: what a disk does not show (multipart uploads, a store that hangs or is away, credentials)."""

import asyncio
import dataclasses
import random
import re
import resource
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from awscrt.auth import AwsCredentialsProvider

from tests.contract.s3 import S3Proxy, S3Server
from tests.contract.tcp_proxy import running_proxy
from tests.contract.test_extents import get, ids, listed, put
from verditer.core.errors import Code
from verditer.stream.extents import ExtentMissing, ExtentsUnavailable
from verditer.stream.s3 import PART_BYTES, S3Extents
from verditer.stream.s3_client import Credentials
from verditer.stream.s3_location import S3Location, s3_location
from verditer.stream.s3_uploads import MultipartUploads

BODY = random.Random(2).randbytes(2 * PART_BYTES + 54_321)
MIB = 1 << 20
SAME_PAGE = """\
<ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker><NextUploadIdMarker>b</NextUploadIdMarker>
</ListMultipartUploadsResult>"""


@asynccontextmanager
async def opened(server: S3Server, location: S3Location | None = None, deadline: float = 10) -> AsyncIterator[S3Extents]:
    store = S3Extents(location or server.location(), ids(), credentials=server.credentials(), deadline_seconds=deadline)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def stopped(server: S3Server) -> Iterator[None]:
    """The server neither answers nor closes its connections."""
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


async def uploads(store: S3Extents) -> list[str]:
    return [upload.key async for upload in store._uploads.list("")]


async def test_a_body_of_several_parts_reads_back_and_leaves_no_upload(s3_server: S3Server) -> None:
    async with opened(s3_server) as store:
        extent = await put(store, *[BODY[start : start + MIB] for start in range(0, len(BODY), MIB)])
        assert await get(store, extent, 0, len(BODY)) == BODY
        assert await get(store, extent, PART_BYTES - 3, 7) == BODY[PART_BYTES - 3 : PART_BYTES + 4]
        assert await listed(store) == {extent: len(BODY)}
        assert await uploads(store) == []


async def test_a_second_process_reads_what_the_first_one_wrote(s3_server: S3Server) -> None:
    async with opened(s3_server) as first, opened(s3_server, first.location) as second:
        extent = await put(first, b"bytes")
        assert await get(second, extent, 0, 5) == b"bytes"
        await second.delete(extent)
        with pytest.raises(ExtentMissing):
            await get(first, extent, 0, 5)


async def test_aborting_an_upload_of_several_parts_leaves_neither_object_nor_upload(s3_server: S3Server) -> None:
    async with opened(s3_server) as store:
        writer = store.new()
        for start in range(0, len(BODY), MIB):
            await writer.write(BODY[start : start + MIB])
        await writer.abort()
        assert await listed(store) == {}
        assert await uploads(store) == []
        assert not store.is_writing(writer.id)


async def test_an_upload_that_a_killed_process_left_is_listed_and_deleting_it_aborts_it(s3_server: S3Server) -> None:
    async with opened(s3_server) as store, opened(s3_server, store.location) as collector:
        writer = store.new()
        await writer.write(BODY)
        await writer.write(b"more")  # the parts before it have been taken
        assert writer._sending is not None
        while not await uploads(collector):  # each round asks the store
            pass
        writer._sending.cancel()  # as a kill does: nobody aborts the upload
        assert await listed(collector) == {writer.id: 0}
        await collector.delete(writer.id)
        assert await listed(collector) == {}
        assert await uploads(collector) == []


async def test_nothing_rests_on_conditions_which_some_stores_ignore(s3_server: S3Server) -> None:
    seen = bytearray()
    async with running_proxy(("127.0.0.1", s3_server.port)) as proxy:
        proxy.watch = seen.extend
        location = dataclasses.replace(s3_server.location(), endpoint=f"http://127.0.0.1:{proxy.port}")
        async with opened(s3_server, location) as store:
            for body in (b"bytes", BODY):
                extent = await put(store, body)
                assert await get(store, extent, 0, len(body)) == body
                await store.delete(extent)
            assert await listed(store) == {}
    for request in (b"PUT /", b"POST /", b"GET /"):
        assert request in seen
    assert not re.search(rb"\r\nif-[a-z-]+:", seen, re.IGNORECASE)


async def test_memory_stays_flat_while_a_large_body_passes(s3_server: S3Server) -> None:
    async with opened(s3_server) as store:
        piece = bytes(MIB)
        await put(store, *[piece] * 32)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        writer = store.new()
        for _ in range(96):
            await writer.write(piece)
        await writer.commit()
        async for received in store.read(writer.id, 0, 96 * MIB):
            assert len(received) == MIB
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 48 * 1024  # KiB


async def test_a_listing_has_several_pages_and_only_extents(s3_server: S3Server) -> None:
    if not isinstance(s3_server, S3Proxy):
        pytest.skip("the objects are put into the folder of s3proxy")
    async with opened(s3_server) as store:
        new_id = ids()
        made = {new_id(): 3 for _ in range(1100)}
        bucket = s3_server.home / "objects" / store.location.bucket
        for extent in made:
            shard = bucket / "extents" / extent[16:18]
            shard.mkdir(parents=True, exist_ok=True)
            (shard / extent).write_bytes(b"abc")
        (bucket / "extents" / "notes.txt").write_text("not ours")
        (bucket / new_id()).write_text("outside of the prefix")
        assert await listed(store) == made


async def test_a_store_that_hangs_refuses_within_the_deadline_and_serves_again_afterwards(s3_server: S3Server) -> None:
    async with opened(s3_server, deadline=0.5) as store:
        extent = await put(store, b"bytes")
        large = store.new()
        await large.write(bytes(PART_BYTES))

        async def large_write() -> None:
            for _ in range(8):
                await large.write(bytes(PART_BYTES))
            await large.commit()

        calls = [get(store, extent, 0, 5), put(store, b"more"), store.delete(extent), listed(store), store.probe(), large_write()]
        with stopped(s3_server):
            began = time.monotonic()
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert time.monotonic() - began < 10
        for outcome in outcomes:
            assert isinstance(outcome, ExtentsUnavailable), outcome
            assert outcome.code is Code.ServerBusy
        await asyncio.wait_for(large.abort(), 10)
    async with opened(s3_server, store.location) as store:
        assert await get(store, await put(store, BODY), 0, len(BODY)) == BODY


async def test_a_store_that_is_away_refuses_at_once(s3_server: S3Server) -> None:
    async with opened(s3_server, deadline=2) as store:
        extent = await put(store, b"bytes")
        s3_server.kill()
        try:
            for call in (get(store, extent, 0, 5), put(store, b"more"), store.delete(extent), listed(store), store.probe()):
                with pytest.raises(ExtentsUnavailable):
                    await call
        finally:
            s3_server.start()
        assert await get(store, extent, 0, 5) == b"bytes"


@pytest.mark.parametrize("page", ["", "sorry", "<html><br></html>", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', SAME_PAGE])
async def test_a_listing_of_uploads_that_makes_no_sense_is_a_failure_of_the_store(page: str) -> None:
    async with answering(page) as location, asyncio.timeout(10):
        store = MultipartUploads(location, Credentials(AwsCredentialsProvider.new_static("key", "secret")), 5)
        with pytest.raises(ExtentsUnavailable):
            _ = [upload async for upload in store.list("extents/")]
        assert store.supported


async def test_a_store_that_takes_a_listing_of_uploads_for_one_of_objects_does_not_know_the_call() -> None:
    page = "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>extents/00/x</Key></Contents></ListBucketResult>"
    async with answering(page) as location, asyncio.timeout(10):
        store = MultipartUploads(location, Credentials(AwsCredentialsProvider.new_static("key", "secret")), 5)
        assert [upload async for upload in store.list("extents/")] == []
        assert not store.supported


async def test_credentials_that_may_not_list_uploads_are_told_and_objects_are_looked_at_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with answering("", "403 Forbidden") as location, asyncio.timeout(10):
        store = MultipartUploads(location, Credentials(AwsCredentialsProvider.new_static("key", "secret")), 5)
        assert [upload async for upload in store.list("extents/")] == []
    assert "s3:ListBucketMultipartUploads is not permitted" in caplog.text


@asynccontextmanager
async def answering(page: str, status: str = "200 OK") -> AsyncIterator[S3Location]:
    """A store that answers everything with this page."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(page)}\r\n\r\n{page}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield S3Location(bucket="bucket", endpoint=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_wrong_credentials_or_no_bucket_refuse_the_start_and_show_no_secret(s3_server: S3Server) -> None:
    location = s3_server.location()
    wrong = Credentials(AwsCredentialsProvider.new_static(s3_server.key, "a-wrong-secret"))
    with pytest.raises(ExtentsUnavailable) as refused:
        await S3Extents(location, ids(), credentials=wrong).open()
    assert "a-wrong-secret" not in str(refused.value)
    absent = S3Location(bucket="no-such-bucket", endpoint=s3_server.endpoint)
    with pytest.raises(ExtentsUnavailable, match=r"no-such-bucket|NoSuchBucket"):
        await S3Extents(absent, ids(), credentials=s3_server.credentials()).open()


def test_the_location_comes_from_the_url_and_the_usual_environment() -> None:
    assert s3_location("s3://bucket/a/b/", {}) == S3Location(bucket="bucket", prefix="a/b")
    environment = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000/", "AWS_DEFAULT_REGION": "eu-west-1"}
    assert s3_location("s3://bucket", environment) == S3Location(
        bucket="bucket", endpoint="http://127.0.0.1:9000", region="eu-west-1"
    )
    for wrong in ("s3://", "s3://UPPER/x", "http://bucket/x", "s3://bucket/a//b", "s3://bucket/x?y=1", "s3://bucket/a b"):
        with pytest.raises(ValueError, match=r"s3|prefix"):
            s3_location(wrong, {})
    with pytest.raises(ValueError, match="AWS_ENDPOINT_URL"):
        s3_location("s3://bucket", {"AWS_ENDPOINT_URL": "localhost:9000"})

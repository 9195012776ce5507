"""Structured bodies: the content is restored however the bytes arrive, and every corruption is detected."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from struct import pack

import pytest
from awscrt.checksums import crc64nvme
from hypothesis import given, settings
from hypothesis import strategies as st

from verditer.core.errors import Code, StorageError
from verditer.core.grant import KEY_ONLY, Grant, Scheme
from verditer.core.guard import NONE
from verditer.core.names import BlobName
from verditer.rest.address import parse_address
from verditer.rest.codecs import structured
from verditer.rest.codecs.structured import Decoder, Encoder, StructuredBody
from verditer.rest.errors import elements_of
from verditer.rest.http.message import Request
from verditer.rest.operation import STREAM, Answer, Level, Op, Takes, route
from verditer.rest.operations.blob import OPERATIONS
from verditer.rest.stages import LATEST_VERSION, Authorized
from verditer.rest.steps.decode import decode_fields

SMALL_SEGMENT = 7


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured, "SEGMENT_BYTES", SMALL_SEGMENT)


def message(segments: list[bytes], **changes: int) -> bytes:
    """A message built by hand, independently of the code under test."""
    content = b"".join(segments)
    length = changes.get("length", 13 + 18 * len(segments) + len(content) + 8)
    text = pack("<BQHH", changes.get("version", 1), length, changes.get("flags", 1), changes.get("count", len(segments)))
    for number, segment in enumerate(segments, changes.get("first", 1)):
        text += pack("<HQ", number, len(segment)) + segment + pack("<Q", crc64nvme(segment))
    return text + pack("<Q", crc64nvme(content))


def cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    """Chunks of these sizes, then the rest."""
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
    yield data[at:]


def decoded(text: bytes, content_length: int, sizes: list[int] | None = None, message_length: int | None = None) -> bytes:
    decoder = Decoder(content_length, message_length)
    content = b"".join([decoder.feed(piece) for piece in cut(text, sizes or [])])
    decoder.end()
    return content


def refusal(text: bytes, content_length: int, message_length: int | None = None) -> Code:
    with pytest.raises(StorageError) as refused:
        decoded(text, content_length, message_length=message_length)
    return refused.value.code


pieces = st.lists(st.integers(0, 20), max_size=30)


@settings(max_examples=300, deadline=None)
@given(segments=st.lists(st.binary(max_size=40), max_size=6), sizes=pieces)
def test_content_comes_back_however_the_message_is_cut(segments: list[bytes], sizes: list[int]) -> None:
    content = b"".join(segments)
    text = message(segments)
    assert decoded(text, len(content), sizes, len(text)) == content


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=100), sizes=pieces)
def test_what_is_encoded_is_the_message_written_by_hand(content: bytes, sizes: list[int]) -> None:
    encoder = Encoder(len(content))
    text = encoder.begin() + b"".join(part for piece in cut(content, sizes) for part in encoder.feed(piece))
    segments = [content[at : at + SMALL_SEGMENT] for at in range(0, len(content), SMALL_SEGMENT)] or [b""]
    assert text == message(segments)
    assert encoder.message_length == len(text)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), segments=st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4))
def test_no_changed_byte_goes_unnoticed(data: st.DataObject, segments: list[bytes]) -> None:
    text = bytearray(message(segments))
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] ^= data.draw(st.integers(1, 255))
    length = len(b"".join(segments))
    assert refusal(bytes(text), length, len(text)) in (Code.Crc64Mismatch, Code.InvalidInput)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), segments=st.lists(st.binary(max_size=20), max_size=4))
def test_a_message_cut_short_is_incomplete(data: st.DataObject, segments: list[bytes]) -> None:
    text = message(segments)
    kept = data.draw(st.integers(0, len(text) - 1))
    assert refusal(text[:kept], len(b"".join(segments))) is Code.InvalidInput


@pytest.mark.parametrize(
    ("changes", "content_length"),
    [
        ({"version": 2}, 10),
        ({"flags": 0}, 10),
        ({"flags": 3}, 10),
        ({"length": 1}, 10),
        ({"count": 1}, 10),
        ({"count": 3}, 10),
        ({"first": 0}, 10),
        ({"first": 2}, 10),
        ({}, 9),
        ({}, 11),
        ({}, 0),
    ],
)
def test_a_message_that_contradicts_itself_is_refused(changes: dict[str, int], content_length: int) -> None:
    assert refusal(message([b"12345", b"67890"], **changes), content_length) is Code.InvalidInput


def test_the_length_of_the_body_has_to_be_the_one_the_message_tells() -> None:
    text = message([b"12345"])
    assert refusal(text, 5, message_length=len(text) + 1) is Code.InvalidInput
    assert refusal(text + b"!", 5) is Code.InvalidInput


def test_segments_that_leave_content_out_are_refused() -> None:
    """The length of the message is correct, those of its segments are not."""
    short = pack("<BQHH", 1, 13 + 18 + 10 + 8, 1, 1) + pack("<HQ", 1, 5) + b"12345" + pack("<Q", crc64nvme(b"12345"))
    assert refusal(short + bytes(13), 10) is Code.InvalidInput


def test_a_wrong_checksum_is_reported_with_both_values() -> None:
    text = message([b"12345"])
    with pytest.raises(StorageError) as refused:
        decoded(text[:-1] + bytes([text[-1] ^ 1]), 5)
    assert refused.value.code is Code.Crc64Mismatch
    assert elements_of(refused.value).keys() == {"UserSpecifiedCrc64", "ServerCalculatedCrc64"}


def test_a_very_long_message_has_no_more_segments_than_can_be_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured, "MAX_SEGMENTS", 3)
    content = bytes(range(100))
    encoder = Encoder(100)
    text = encoder.begin() + b"".join(encoder.feed(content))
    assert text == message([content[:34], content[34:68], content[68:]])


class Arriving:
    """A body that returns the given chunks."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.length: int | None = sum(map(len, pieces))

    @property
    def ended(self) -> bool:
        return not self._pieces

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    async def read_all(self, limit: int) -> bytes:
        raise AssertionError("the structured body is read piece by piece")


def test_a_body_reads_as_its_content() -> None:
    text = message([b"12345", b"67890"])
    body = StructuredBody(Arriving(*[text[at : at + 1] for at in range(len(text))]), 10)
    assert (body.length, body.ended) == (10, False)
    assert asyncio.run(body.read_all(10)) == b"1234567890"
    assert body.ended


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    body = StructuredBody(Arriving(message([b"12345"])), 5)
    with pytest.raises(StorageError) as refused:
        asyncio.run(body.read_all(4))
    assert refused.value.code is Code.RequestBodyTooLarge
    assert not body.ended


def test_a_reader_who_gives_up_closes_the_content() -> None:
    closed = []

    async def content() -> AsyncIterator[bytes]:
        try:
            yield b"12345"
            yield b"67890"
        finally:
            closed.append(True)

    async def give_up() -> None:
        text, length = structured.encode(content(), 10)
        assert not isinstance(text, bytes)
        assert length == len(message([b"1234567", b"890"]))
        assert await anext(text)
        assert await anext(text)
        await text.aclose()  # type: ignore[attr-defined]

    asyncio.run(give_up())
    assert closed == [True]


async def takes_a_body(ctx: object, target: object, body: object) -> None: ...


def test_an_operation_that_takes_plain_bodies_refuses_a_structured_one() -> None:
    """Otherwise it would store the wrapped form."""
    op = Op("PutPlain", route("PUT", Level.BLOB), Takes(), STREAM, NONE, KEY_ONLY, takes_a_body, Answer(201))
    text = message([b"12345"])
    headers = {structured.HEADER: "XSM/1.0; properties=crc64", structured.LENGTH_HEADER: "5", "content-length": str(len(text))}
    request = Request(
        method="PUT", target="/a/c/b", headers=headers, raw_headers=[], body=Arriving(text), peer="127.0.0.1", secure=False
    )
    authorized = Authorized(
        request=request,
        request_id="",
        address=parse_address("/a/c/b", "127.0.0.1", accounts=()),
        version=LATEST_VERSION,
        op=op,
        target=BlobName("a", "c", "b"),
        grant=Grant(scheme=Scheme.KEY),
        create_only=False,
    )
    with pytest.raises(StorageError) as refused:
        decode_fields(authorized)
    assert refused.value.code is Code.InvalidHeaderValue


def test_every_operation_that_moves_content_takes_structured_bodies() -> None:
    assert {op.name for op in OPERATIONS if op.takes.structured} == {"GetBlob", "PutBlob", "PutBlock", "AppendBlock", "PutPage"}

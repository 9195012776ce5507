"""Append and page blobs through Microsoft's SDK: typical operations, with its chunking, ranges and checks."""

import io
from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient, PremiumPageBlobTier

from tests.conftest import watched
from tests.rest.history import settled
from tests.rest.running import Running

PAGE = 512
MIB = 1 << 20


@pytest.fixture
def server(steady: Running) -> Iterator[Running]:
    yield from watched(steady)


@pytest.fixture
def container(server: Running, request: pytest.FixtureRequest) -> Iterator[ContainerClient]:
    with BlobServiceClient.from_connection_string(server.connection_string, retry_total=0) as service:
        yield service.create_container(f"c{abs(hash(request.node.name)):x}"[:40])


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    return container.get_blob_client("blob")


def code_of(error: HttpResponseError) -> object:
    return getattr(error, "error_code", None)


def test_an_append_blob_grows_and_is_sealed(blob: BlobClient) -> None:
    blob.create_append_blob(metadata={"a": "1"}, tags={"t": "1"})
    first = blob.append_block(b"one", validate_content=True)
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    assert blob.append_block(b"two", appendpos_condition=3)["blob_append_offset"] == "3"
    with pytest.raises(HttpResponseError) as refused:
        blob.append_block(b"two", appendpos_condition=3)
    assert code_of(refused.value) == "AppendPositionConditionNotMet"
    with pytest.raises(HttpResponseError) as refused:
        blob.append_block(b"three", maxsize_condition=7)
    assert code_of(refused.value) == "MaxBlobSizeConditionNotMet"
    assert blob.seal_append_blob()["blob_sealed"]
    with pytest.raises(ResourceExistsError) as sealed:
        blob.append_block(b"no")
    assert code_of(sealed.value) == "BlobIsSealed"
    properties = blob.get_blob_properties()
    assert (properties.size, properties.append_blob_committed_block_count, properties.is_append_blob_sealed) == (6, 2, True)
    assert blob.download_blob().readall() == b"onetwo"


def test_an_append_blob_is_uploaded_in_chunks_and_added_to(blob: BlobClient) -> None:
    data = bytes(range(256)) * 40_000  # 10 MB: three blocks of 4 MiB
    blob.upload_blob(io.BytesIO(data), blob_type="AppendBlob", length=len(data))
    blob.upload_blob(b"more", blob_type="AppendBlob")  # without overwrite the SDK appends
    assert blob.download_blob(max_concurrency=2).readall() == data + b"more"
    blob.upload_blob(b"new", blob_type="AppendBlob", overwrite=True)
    assert blob.download_blob().readall() == b"new"


def test_a_page_blob_is_written_in_place(blob: BlobClient) -> None:
    blob.create_page_blob(4 * PAGE, metadata={"a": "1"}, sequence_number=3)
    blob.upload_page(b"a" * PAGE, offset=0, length=PAGE, validate_content=True)
    blob.upload_page(b"b" * PAGE, offset=2 * PAGE, length=PAGE, if_sequence_number_eq=3)
    with pytest.raises(HttpResponseError) as refused:
        blob.upload_page(b"c" * PAGE, offset=0, length=PAGE, if_sequence_number_lt=3)
    assert code_of(refused.value) == "SequenceNumberConditionNotMet"
    blob.clear_page(offset=0, length=PAGE)
    assert blob.download_blob().readall() == bytes(2 * PAGE) + b"b" * PAGE + bytes(PAGE)
    assert blob.set_sequence_number("increment")["blob_sequence_number"] == 4
    blob.resize_blob(8 * PAGE)
    properties = blob.get_blob_properties()
    assert (properties.size, properties.page_blob_sequence_number, properties.blob_type) == (8 * PAGE, 4, "PageBlob")


def test_page_ranges_and_their_difference_are_listed_in_pages(blob: BlobClient) -> None:
    blob.create_page_blob(20 * PAGE)
    for number in range(0, 10, 2):
        blob.upload_page(b"a" * PAGE, offset=number * PAGE, length=PAGE)
    taken = blob.create_snapshot()
    blob.clear_page(offset=0, length=PAGE)
    blob.upload_page(b"b" * PAGE, offset=PAGE, length=PAGE)
    listed = list(blob.list_page_ranges(results_per_page=2))
    assert [(one.start, (one.end or 0) + 1) for one in listed] == [
        (PAGE, 3 * PAGE),
        (4 * PAGE, 5 * PAGE),
        (6 * PAGE, 7 * PAGE),
        (8 * PAGE, 9 * PAGE),
    ]
    changed = list(blob.list_page_ranges(previous_snapshot=taken, results_per_page=1))
    assert [(one.start, one.cleared) for one in changed] == [(0, True), (PAGE, False)]


def test_a_page_blob_is_uploaded_whole_and_read_by_range(server: Running, blob: BlobClient) -> None:
    data = b"x" * MIB + bytes(8 * MIB) + b"y" * MIB
    with settled(server, sku="Premium_LRS"):
        blob.upload_blob(data, blob_type="PageBlob", premium_page_blob_tier=PremiumPageBlobTier.P4)
    assert blob.download_blob(offset=MIB - 10, length=20).readall() == b"x" * 10 + bytes(10)
    assert blob.download_blob(max_concurrency=2).readall() == data
    assert sum((one.end or 0) + 1 - (one.start or 0) for one in blob.list_page_ranges()) < len(
        data
    )  # the SDK sends no pages of zeros


def test_listings_show_all_types(container: ContainerClient) -> None:
    container.get_blob_client("append").create_append_blob()
    container.get_blob_client("page").create_page_blob(PAGE, sequence_number=5)
    container.upload_blob("block", b"x")
    assert {one.name: str(one.blob_type) for one in container.list_blobs()} == {
        "append": "BlobType.APPENDBLOB",
        "block": "BlobType.BLOCKBLOB",
        "page": "BlobType.PAGEBLOB",
    }

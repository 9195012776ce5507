"""Microsoft's SDK validating content with CRC64: it sends and requests structured bodies, and both sides verify them."""

import importlib
import io
import sys
import types
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from awscrt.checksums import crc64nvme
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient

from tests.conftest import watched
from tests.rest.running import Running

MIB = 1024 * 1024
FORM = "XSM/1.0; properties=crc64"
ALWAYS_STRUCTURED: Any = "crc64-sm"  # "crc64" is a header for a body in memory, and a structured body for a stream
SIZES = {"max_single_put_size": 8 * MIB, "max_block_size": 2 * MIB, "max_single_get_size": MIB, "max_chunk_get_size": MIB}


@pytest.fixture
def server(steady: Running) -> Iterator[Running]:
    yield from watched(steady)


@pytest.fixture(autouse=True)
def checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK computes CRC64 with a compiled extension; if that is not installed, another library computes the same checksum."""
    try:
        importlib.import_module("azure.storage.extensions.checksums")
    except ImportError:
        sums, extensions = types.ModuleType("checksums"), types.ModuleType("extensions")
        sums.crc64 = types.SimpleNamespace(compute=crc64nvme)  # type: ignore[attr-defined]
        extensions.checksums = sums  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "azure.storage.extensions", extensions)
        monkeypatch.setitem(sys.modules, "azure.storage.extensions.checksums", sums)


class Watch:
    """The number of structured requests and responses."""

    def __init__(self) -> None:
        self.sent = self.received = 0

    def __call__(self, response: Any) -> None:
        self.sent += response.http_request.headers.get("x-ms-structured-content-length") is not None
        self.received += response.http_response.headers.get("x-ms-structured-content-length") is not None


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def container(server: Running, watch: Watch) -> Iterator[ContainerClient]:
    more: dict[str, Any] = {"retry_total": 0, "raw_response_hook": watch, **SIZES}
    with BlobServiceClient.from_connection_string(server.connection_string, **more) as service:
        yield service.create_container(f"sdk-{uuid.uuid4().hex[:12]}")


def noise(size: int) -> bytes:
    return bytes(range(251)) * (size // 251) + bytes(size % 251)


@pytest.mark.parametrize("option", ["crc64", ALWAYS_STRUCTURED, "md5"])
@pytest.mark.parametrize("size", [0, 1, 100_000, 5 * MIB + 1])
def test_validated_uploads_and_downloads_pass(container: ContainerClient, watch: Watch, size: int, option: Any) -> None:
    content = noise(size)
    blob = container.upload_blob(f"b{size}", content, validate_content=option)
    assert blob.download_blob(validate_content=option, max_concurrency=2).readall() == content
    assert blob.download_blob().readall() == content
    assert bool(watch.sent) == (option == ALWAYS_STRUCTURED)
    assert bool(watch.received) == (option != "md5")


def test_a_validated_upload_in_blocks_passes(container: ContainerClient) -> None:
    content = noise(9 * MIB)
    blob = container.upload_blob("b", content, validate_content="crc64", max_concurrency=2)
    assert len(blob.get_block_list()[0]) == 5
    assert blob.download_blob(validate_content="crc64", max_concurrency=2).readall() == content


def test_a_validated_range_passes(container: ContainerClient, watch: Watch) -> None:
    content = noise(3 * MIB)
    blob = container.upload_blob("b", content)
    assert blob.download_blob(1000, 2 * MIB, validate_content="crc64").readall() == content[1000 : 1000 + 2 * MIB]
    assert watch.received == 2  # a MiB each


def test_a_block_from_a_stream_is_sent_structured(container: ContainerClient, watch: Watch) -> None:
    content = noise(5 * MIB)
    blob = container.get_blob_client("blocks")
    blob.stage_block("1", io.BytesIO(content), length=len(content), validate_content="crc64")
    blob.commit_block_list([BlobBlock("1")])
    assert watch.sent == 1
    assert blob.download_blob().readall() == content


def test_append_blocks_and_pages_are_sent_structured(container: ContainerClient, watch: Watch) -> None:
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.append_block(io.BytesIO(b"one"), length=3, validate_content="crc64")
    log.append_block(b"two", validate_content=ALWAYS_STRUCTURED)
    assert log.download_blob(validate_content="crc64").readall() == b"onetwo"
    disk = container.get_blob_client("disk")
    disk.create_page_blob(2048)
    disk.upload_page(noise(1024), 512, 1024, validate_content=ALWAYS_STRUCTURED)
    assert disk.download_blob(validate_content="crc64").readall() == bytes(512) + noise(1024) + bytes(512)
    assert watch.sent == 3


def test_damage_on_the_way_is_noticed(container: ContainerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK computes its checksums over other bytes than those it sends."""
    streams = importlib.import_module("azure.storage.blob._shared.streams")
    monkeypatch.setattr(streams, "calculate_crc64", lambda data, initial: crc64nvme(data + b"!", initial))
    with pytest.raises(HttpResponseError) as refused:
        container.upload_blob("b", b"hello", validate_content=ALWAYS_STRUCTURED)
    assert refused.value.error_code == "Crc64Mismatch"  # type: ignore[attr-defined]
    assert not container.get_blob_client("b").exists()

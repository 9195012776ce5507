"""List Blobs as Apache Arrow with Microsoft's client: the same items as in XML."""

import uuid
from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pytest
from azure.storage.blob import BlobProperties, BlobServiceClient, ContainerClient

from tests.rest.client import Box
from tests.rest.history import settled
from tests.rest.running import Running

INCLUDE = ["metadata", "tags", "snapshots", "versions", "deleted", "copy", "uncommittedblobs"]
ARROW = {"Accept": "application/vnd.apache.arrow.stream,application/xml"}


@pytest.fixture
def container(account: Running) -> Iterator[ContainerClient]:
    with BlobServiceClient.from_connection_string(account.connection_string) as service:
        yield service.create_container(f"arrow-{uuid.uuid4().hex[:12]}")


def items(container: ContainerClient, form: Literal["xml", "arrow"], **options: Any) -> list[BlobProperties]:
    return list(container.list_blobs(response_format=form, results_per_page=2, **options))


def shown(blob: BlobProperties) -> dict[str, object]:
    names = ("name", "etag", "size", "blob_type", "blob_tier", "snapshot", "version_id", "last_modified", "tag_count")
    lease = (bool(blob.deleted), blob.lease.status, blob.lease.state)
    content = (blob.content_settings.content_type, bytes(blob.content_settings.content_md5 or b""))
    return {name: getattr(blob, name) for name in names} | {"lease": lease, "content": content, "metadata": blob.metadata or {}}


def test_both_forms_show_the_same_items(container: ContainerClient, server: Running) -> None:
    with settled(server, versioning=True, blob_soft_delete_days=1):
        first = container.upload_blob("a", b"one", metadata={"k": "v"}, tags={"t": "1"})
        first.create_snapshot()
        first.upload_blob(b"two", overwrite=True)
        container.upload_blob("b", b"gone").delete_blob()
        container.upload_blob("c/d", b"")
        container.get_blob_client("e").stage_block("AAAA", b"x")
        xml, arrow = items(container, "xml", include=INCLUDE), items(container, "arrow", include=INCLUDE)
    assert [one.name for one in arrow] == [one.name for one in xml]
    committed = [one for one in xml if one.etag]
    assert [shown(one) for one in arrow if one.etag] == [shown(one) for one in committed]
    assert {tuple((one.tags or {}).items()) for one in arrow} == {(), (("t", "1"),)}


def test_prefixes_and_an_end(container: ContainerClient) -> None:
    for name in ("a", "b/1", "b/2", "c", "d"):
        container.upload_blob(name, b"")
    assert [one.name for one in items(container, "arrow", end_before="c")] == ["a", "b/1", "b/2"]
    assert [one.name for one in container.walk_blobs(delimiter="/", response_format="arrow")] == ["a", "b/", "c", "d"]


def test_the_schema_names_the_marker_and_the_number_of_records(box: Box) -> None:
    for name in ("a", "b", "c"):
        box.put(name, headers={"x-ms-meta-k": "v"})
    reply = box.page({"maxresults": "2", "include": "metadata"}, headers=ARROW, version="2026-10-06")
    assert (reply.status, reply["Content-Type"]) == (200, "application/vnd.apache.arrow.stream")
    table = pa.ipc.open_stream(reply.body).read_all()
    assert table.column("Name").to_pylist() == ["a", "b"]
    assert table.schema.field("Last-Modified").type == pa.timestamp("s")
    assert table.column("Metadata").to_pylist() == [[("k", "v")]] * 2
    assert table.schema.metadata[b"NumberOfRecords"] == b"2"
    rest = box.page({"marker": table.schema.metadata[b"NextMarker"].decode()}, headers=ARROW, version="2026-10-06")
    assert pa.ipc.open_stream(rest.body).read_all().column("Name").to_pylist() == ["c"]
    assert box.page(headers=ARROW, version="2026-06-06")["Content-Type"] == "application/xml"
    assert box.page(headers={"Accept": "application/xml"}, version="2026-10-06")["Content-Type"] == "application/xml"

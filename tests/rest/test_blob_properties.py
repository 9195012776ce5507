"""Set Blob Properties and Set Blob Metadata."""

import pytest

from tests.rest.checksums import md5
from tests.rest.client import Box


def test_properties_are_set_as_one_and_what_is_left_out_is_cleared(box: Box) -> None:
    # race E6
    first = box.put(headers={"x-ms-blob-content-language": "en", "x-ms-blob-content-type": "a/b", "x-ms-meta-kept": "yes"})
    reply = box.blob("PUT", comp="properties", headers={"x-ms-blob-cache-control": "private", "x-ms-blob-content-md5": md5(b"x")})
    assert (reply.status, reply.body) == (200, b"")
    assert reply["ETag"] > first["ETag"]
    after = box.head()
    assert after["ETag"] == reply["ETag"]
    assert after["Last-Modified"] == reply["Last-Modified"]
    assert after["Cache-Control"] == "private"
    assert after["Content-Type"] == "application/octet-stream"
    assert "Content-Language" not in after
    assert after["Content-MD5"] == md5(b"x")
    assert after.metadata == {"kept": "yes"}
    assert after["x-ms-creation-time"] == first["Last-Modified"]
    assert box.get().body == b"hello"


def test_an_md5_property_is_checked_for_its_form_only(box: Box) -> None:
    before = box.put()["ETag"]
    assert box.blob("PUT", comp="properties", headers={"x-ms-blob-content-md5": "!"}).answer == (400, "InvalidMd5")
    assert box.head()["ETag"] == before
    assert box.blob("PUT", comp="properties", headers={"x-ms-blob-content-md5": "AAAAAAAAAAAAAAAA"}).status == 200
    part = box.get(headers={"x-ms-range": "bytes=0-1"})
    assert part["x-ms-blob-content-md5"] == "AAAAAAAAAAAAAAAA"  # 12 bytes: seen on Azure


def test_metadata_is_replaced_and_the_etag_changes(box: Box) -> None:
    # race E6
    first = box.put(headers={"x-ms-meta-old": "1", "x-ms-blob-content-type": "a/b"})
    reply = box.blob("PUT", comp="metadata", headers={"x-ms-meta-New": "2"})
    assert reply.status == 200
    assert reply["x-ms-request-server-encrypted"] == "true"
    assert reply["ETag"] > first["ETag"]
    after = box.head()
    assert (after.metadata, after["Content-Type"], after["ETag"]) == ({"New": "2"}, "a/b", reply["ETag"])
    assert box.blob("PUT", comp="metadata").status == 200
    assert box.head().metadata == {}


@pytest.mark.parametrize("comp", ["metadata", "properties"])
def test_what_does_not_exist_cannot_be_set(box: Box, comp: str) -> None:
    assert box.blob("PUT", comp=comp).answer == (404, "BlobNotFound")
    assert Box(box.client).blob("PUT", comp=comp).answer == (404, "ContainerNotFound")


@pytest.mark.parametrize("comp", ["metadata", "properties", "snapshot", "lease"])
@pytest.mark.parametrize("history", ["snapshot", "versionid"])
def test_history_is_never_written(box: Box, comp: str, history: str) -> None:
    box.put()
    moment = box.blob("PUT", comp="snapshot")["x-ms-snapshot"]
    reply = box.blob("PUT", comp=comp, headers={"x-ms-lease-action": "break"}, query={history: moment})
    assert reply.answer == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize("comp", ["metadata", "properties", "snapshot"])
def test_a_body_where_none_belongs_is_refused(box: Box, comp: str) -> None:
    box.put()
    assert box.blob("PUT", comp=comp, body=b"surprise").answer == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("comp", ["metadata", "properties", "snapshot", "lease", "tags"])
def test_a_change_that_must_find_nothing_is_refused_where_there_is_a_blob(box: Box, comp: str) -> None:
    # Event Hubs' checkpoint stores claim a partition that nobody owns by Set Blob Metadata with this condition
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"} if comp == "lease" else {}
    condition = {"x-ms-blob-If-None-Match" if comp == "tags" else "If-None-Match": "*"}
    body = b"<Tags><TagSet/></Tags>" if comp == "tags" else b""
    assert box.blob("PUT", comp=comp, headers=lease | condition, body=body).answer == (404, "BlobNotFound")
    etag = box.put()["ETag"]
    assert box.blob("PUT", comp=comp, headers=lease | condition, body=body).answer == (412, "ConditionNotMet")
    assert box.head()["ETag"] == etag
    assert box.blob("DELETE", headers={"If-None-Match": "*"}).status == 202  # measured on Azure: ignored


def test_last_modified_never_goes_backwards(box: Box) -> None:
    # contract G4, race E12
    etags = [box.put()["ETag"]]
    for _ in range(5):
        etags.append(box.blob("PUT", comp="metadata")["ETag"])
        etags.append(box.blob("PUT", comp="properties")["ETag"])
        etags.append(box.put()["ETag"])
    assert etags == sorted(set(etags))

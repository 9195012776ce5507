"""The order of the properties in List Blobs is Azure's, for clients that parse the response as a stream."""

from tests.rest.client import Box


def properties(box: Box) -> list[str]:
    return [item.tag for item in box.page().xml.iterfind("Blobs/Blob/Properties/*")]


def test_what_becomes_of_an_archived_blob_stands_between_its_tier_and_since_when(box: Box) -> None:
    box.put(headers={"x-ms-access-tier": "Archive"})
    assert box.blob("PUT", comp="tier", headers={"x-ms-access-tier": "Hot"}).status == 202
    shown = properties(box)
    first = shown.index("BlobType")
    assert shown[first : first + 6] == [
        "BlobType",
        "AccessTier",
        "ArchiveStatus",
        "RehydratePriority",
        "AccessTierChangeTime",
        "LeaseStatus",
    ]

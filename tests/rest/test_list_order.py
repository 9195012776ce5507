"""In which order List Blobs tells the properties of a blob: that of Azure's own answers, for whoever reads them in passing."""

from tests.rest.client import Box


def properties(box: Box) -> list[str]:
    return [item.tag for item in box.page().xml.iterfind("Blobs/Blob/Properties/*")]


def test_what_becomes_of_an_archived_blob_stands_between_its_tier_and_since_when(box: Box) -> None:
    box.put(headers={"x-ms-access-tier": "Archive"})
    assert box.blob("PUT", comp="tier", headers={"x-ms-access-tier": "Hot"}).status == 202
    told = properties(box)
    first = told.index("BlobType")
    assert told[first : first + 6] == [
        "BlobType",
        "AccessTier",
        "ArchiveStatus",
        "RehydratePriority",
        "AccessTierChangeTime",
        "LeaseStatus",
    ]

"""List Blobs: order, prefix, delimiter, include options, and the contents of each entry."""

from xml.etree.ElementTree import Element

import pytest

from tests.rest.checksums import md5
from tests.rest.client import ANONYMOUS, Box


def items(box: Box, **query: str) -> list[Element]:
    reply = box.page(query)
    assert reply.status == 200
    return list(reply.xml.find("Blobs") or ())


def properties(item: Element) -> dict[str, str | None]:
    return {node.tag: node.text for node in item.find("Properties") or ()}


def test_an_empty_container_lists_nothing(box: Box) -> None:
    reply = box.page()
    assert (reply.status, reply["Content-Type"]) == (200, "application/xml")
    assert reply.body.startswith(b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>')
    assert reply.xml.attrib == {"ServiceEndpoint": f"{box.server.base_url}/", "ContainerName": box.name}
    assert [node.tag for node in reply.xml] == ["Blobs", "NextMarker"]
    assert reply.xml.findtext("NextMarker") == ""
    assert "ETag" not in reply  # contract B3


def test_an_entry_says_all_there_is_in_azures_order(box: Box) -> None:
    headers = {"x-ms-blob-content-type": "a/b", "x-ms-blob-cache-control": "no-store", "x-ms-blob-content-language": "en"}
    box.put(body=b"12345", headers=headers | {"x-ms-tags": "t=1"})
    box.acquire(-1)
    head = box.head()
    (item,) = items(box)
    assert [node.tag for node in item] == ["Name", "Properties", "OrMetadata"]
    assert list(properties(item).items()) == [
        ("Creation-Time", head["x-ms-creation-time"]),
        ("Last-Modified", head["Last-Modified"]),
        ("Etag", head["ETag"].strip('"')),
        ("Content-Length", "5"),
        ("Content-Type", "a/b"),
        ("Content-Encoding", None),
        ("Content-Language", "en"),
        ("Content-CRC64", None),
        ("Content-MD5", md5(b"12345")),
        ("Cache-Control", "no-store"),
        ("Content-Disposition", None),
        ("BlobType", "BlockBlob"),
        ("AccessTier", "Hot"),
        ("AccessTierInferred", "true"),
        ("LeaseStatus", "locked"),
        ("LeaseState", "leased"),
        ("LeaseDuration", "infinite"),
        ("ServerEncrypted", "true"),
        ("TagCount", "1"),
    ]


def test_what_was_asked_is_echoed(box: Box) -> None:
    box.put("a/b")
    root = box.page({"prefix": "a", "maxresults": "7", "delimiter": "/"}).xml
    assert [(node.tag, node.text) for node in root][:3] == [("Prefix", "a"), ("MaxResults", "7"), ("Delimiter", "/")]


def test_the_order_is_that_of_utf16_code_units(box: Box) -> None:
    names = ["A", "Z", "_", "a", "a!", "a/", "a0", "aa", "b", "ä", "z", "一", "\U0001f600", "\uff5e", "𝄞"]
    for name in names:
        box.put(name)
    assert box.names() == sorted(names, key=lambda name: name.encode("utf-16-be"))


def test_a_prefix_selects_by_the_beginning_of_names(box: Box) -> None:
    for name in ("a", "ab", "abc", "b", "äb"):
        box.put(name)
    assert box.names({"prefix": "ab"}) == ["ab", "abc"]
    assert box.names({"prefix": "ä"}) == ["äb"]
    assert box.names({"prefix": "x"}) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"delimiter": "/"}, ["/", "a", "a/", "b"]),
        ({"delimiter": "/", "prefix": "a/"}, ["a//", "a/1", "a/2/", "a/3"]),
        ({"delimiter": "/", "prefix": "a/2/"}, ["a/2/x", "a/2/y/"]),
        ({"delimiter": "//"}, ["/top", "a", "a//", "a/1", "a/2/x", "a/2/y/z", "a/3", "b"]),
        ({"delimiter": "b"}, ["/top", "a", "a//deep", "a/1", "a/2/x", "a/2/y/z", "a/3", "b"]),
        ({"delimiter": "/", "prefix": "none"}, []),
    ],
)
def test_a_delimiter_folds_names_into_prefixes(box: Box, query: dict[str, str], expected: list[str]) -> None:
    for name in ("/top", "a", "a//deep", "a/1", "a/2/x", "a/2/y/z", "a/3", "b"):
        box.put(name)
    assert box.names(query) == expected


def test_a_prefix_entry_has_a_name_and_nothing_else(box: Box) -> None:
    box.put("folder/x")
    (item,) = items(box, delimiter="/")
    assert (item.tag, [node.tag for node in item]) == ("BlobPrefix", ["Name"])


def test_metadata_and_tags_are_included_when_asked_for(box: Box) -> None:
    box.put("with", headers={"x-ms-meta-MyKey": "<&>", "x-ms-tags": "k=v"})
    box.put("without")
    plain = items(box)
    assert all(item.find("Metadata") is None and item.find("Tags") is None for item in plain)
    first, second = items(box, include="metadata,tags")
    assert first.findtext("Metadata/MyKey") == "<&>"
    assert (first.findtext("Tags/TagSet/Tag/Key"), first.findtext("Tags/TagSet/Tag/Value")) == ("k", "v")
    metadata = second.find("Metadata")
    assert metadata is not None
    assert len(metadata) == 0
    assert second.find("Tags") is None


def test_snapshots_come_before_their_blob_and_from_the_oldest_on(box: Box) -> None:
    box.put("a")
    box.put("b", headers={"x-ms-meta-k": "v"})
    box.acquire(-1, "b")
    moments = [box.blob("PUT", "b", "snapshot")["x-ms-snapshot"] for _ in range(3)]
    box.put("c")
    found = items(box, include="snapshots,metadata")
    assert [(item.findtext("Name"), item.findtext("Snapshot")) for item in found] == [
        ("a", None),
        *[("b", moment) for moment in moments],
        ("b", None),
        ("c", None),
    ]
    assert "LeaseStatus" not in properties(found[1])
    assert found[1].findtext("Metadata/k") == "v"
    assert properties(found[4])["LeaseState"] == "leased"


def test_uncommitted_blobs_show_only_their_name(box: Box) -> None:
    box.put("a")
    box.put_block("AAAA", name="b")
    box.put("c")
    box.put_block("AAAA", name="c")
    assert box.names() == ["a", "c"]
    found = items(box, include="uncommittedblobs")
    assert [item.findtext("Name") for item in found] == ["a", "b", "c"]
    shown = properties(found[1])
    assert (shown["Content-Length"], shown["BlobType"]) == ("0", "BlockBlob")
    assert "Etag" not in shown
    assert "Last-Modified" not in shown
    assert box.names({"include": "uncommittedblobs", "delimiter": "/"}) == ["a", "b", "c"]


def test_snapshots_do_not_go_with_a_delimiter(box: Box) -> None:
    reply = box.page({"include": "snapshots", "delimiter": "/"})
    assert reply.answer == (400, "InvalidQueryParameterValue")


def test_start_from_begins_at_a_name(box: Box) -> None:
    for name in "abcd":
        box.put(name)
    assert box.names({"startFrom": "b"}) == ["b", "c", "d"]
    assert box.names({"startFrom": "bb"}) == ["c", "d"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"maxresults": "0"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "-5"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "x"}, "InvalidQueryParameterValue"),
        ({"include": "everything"}, "InvalidQueryParameterValue"),
        ({"marker": "ä"}, "InvalidQueryParameterValue"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(box: Box, query: dict[str, str], code: str) -> None:
    reply = box.page(query)
    assert reply.answer == (400, code)
    assert reply.detail("QueryParameterName") == next(iter(query))


def test_a_write_is_listed_at_once(box: Box) -> None:
    # contract G2
    for number in range(5):
        etag = box.put(body=b"x" * number)["ETag"]
        (item,) = items(box)
        assert (properties(item)["Etag"], properties(item)["Content-Length"]) == (etag.strip('"'), str(number))


def test_leases_and_conditions_do_not_matter_to_a_listing(box: Box) -> None:
    box.acquire(-1, None)
    assert box.page(headers={"If-None-Match": "*", "If-Match": '"0x1"'}).status == 200
    assert box.page(auth=ANONYMOUS).status == 401

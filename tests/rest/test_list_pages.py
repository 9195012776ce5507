"""Pages of List Blobs: complete and in order at every page size, and names of every kind."""

from urllib.parse import unquote

import pytest

from tests.rest.client import Box

ODD_NAMES = (
    " leading and trailing ",
    "#hash",
    "%2F",
    "%",
    "&<>'\"",
    "+plus+",
    "..",
    ".hidden",
    "?question=1&b=2",
    "a//b",
    "a/./b",
    "a/../b",
    "back\x7fdelete",
    "colon:semi;",
    "dot.",
    "dots...",
    "line\nfeed",
    "n" * 1024,
    "return\rhere",
    "slash/",
    "tab\there",
    "x\x01control",
    "x\x1b\x1f",
    "ünï©ödé",
    "\u200bzero width",
    "\ufdd0",
    "\uffff",
    "\U0001f600",
    "\U0010ffff",
    "日本語/ファイル",
)


def walk(box: Box, size: int, **query: str) -> list[tuple[str, str | None]]:
    """Every entry, page after page: name and snapshot."""
    found: list[tuple[str, str | None]] = []
    marker = ""
    while True:
        reply = box.page({"maxresults": str(size), "marker": marker, **query})
        assert reply.status == 200
        page = list(reply.xml.find("Blobs") or ())
        assert len(page) <= size
        for item in page:
            name = item.find("Name")
            assert name is not None
            text = name.text or ""
            found.append((unquote(text) if name.get("Encoded") == "true" else text, item.findtext("Snapshot")))
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            return found
        assert page, "an empty page with a marker would be legal, and we never need it"


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_a_name_of_any_kind_can_be_written_read_listed_and_deleted(box: Box, name: str) -> None:
    assert box.put(name, name.encode()).status == 201
    assert box.get(name).body == name.encode()
    assert walk(box, 10) == [(name, None)]
    assert walk(box, 10, prefix=name) == [(name, None)]
    assert box.blob("DELETE", name).status == 202
    assert box.names() == []


@pytest.mark.parametrize("name", ["x\x01control", "\uffff", "a\x0b/b"], ids=ascii)
def test_a_name_that_xml_cannot_carry_is_percent_encoded(box: Box, name: str) -> None:
    box.put(name)
    element = box.page().xml.find("Blobs/Blob/Name")
    assert element is not None
    assert element.get("Encoded") == "true"
    assert unquote(element.text or "") == name


def test_a_folder_that_xml_cannot_carry_is_percent_encoded(box: Box) -> None:
    box.put("f\x02/x")
    element = box.page({"delimiter": "/"}).xml.find("Blobs/BlobPrefix/Name")
    assert element is not None
    assert (element.get("Encoded"), unquote(element.text or "")) == ("true", "f\x02/")


def test_an_ordinary_name_is_not_encoded(box: Box) -> None:
    box.put("ä <&>%20")
    element = box.page().xml.find("Blobs/Blob/Name")
    assert element is not None
    assert (element.get("Encoded"), element.text) == (None, "ä <&>%20")


@pytest.fixture
def crowd(box: Box) -> list[str]:
    """Names that could confuse a marker, in order."""
    for name in (*ODD_NAMES, "a", "a\x01", "a/", "a/b", "a/b/c", "a/bc", "a0", "aa", "b" * 8, "b" * 9):
        box.put(name)
    return [name for name, _ in walk(box, 5000)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 39, 40, 41])
def test_pages_of_every_size_show_every_name_once(box: Box, crowd: list[str], size: int) -> None:
    assert len(crowd) == len(ODD_NAMES) + 10
    assert crowd == sorted(crowd, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    assert [name for name, _ in walk(box, size)] == crowd


@pytest.mark.parametrize("size", [1, 2, 3, 50])
@pytest.mark.parametrize("prefix", ["", "a", "a/"])
def test_pages_of_a_hierarchy_show_every_prefix_once(box: Box, crowd: list[str], size: int, prefix: str) -> None:
    expected: list[str] = []
    for name in crowd:
        if name.startswith(prefix):
            head, delimiter, _ = name[len(prefix) :].partition("/")
            entry = prefix + head + delimiter
            if entry not in expected:
                expected.append(entry)
    assert [name for name, _ in walk(box, size, delimiter="/", prefix=prefix)] == expected


@pytest.mark.parametrize("size", range(1, 12))
def test_pages_with_snapshots_and_uncommitted_blobs_are_complete(box: Box, size: int) -> None:
    expected: list[tuple[str, str | None]] = []
    for name in ("a", "a!", "b"):
        box.put(name)
        expected += [(name, box.blob("PUT", name, "snapshot")["x-ms-snapshot"]) for _ in range(2)]
        expected.append((name, None))
    box.put_block("AAAA", name="aa")
    expected.insert(6, ("aa", None))
    assert walk(box, size, include="snapshots,uncommittedblobs") == expected


def test_a_snapshot_without_its_blob_position_is_not_lost_between_pages(box: Box) -> None:
    box.put("b")
    moments = [box.blob("PUT", "b", "snapshot")["x-ms-snapshot"] for _ in range(3)]
    first = box.page({"maxresults": "2", "include": "snapshots"}).xml.findtext("NextMarker") or ""
    box.blob("DELETE", "b", query={"snapshot": moments[2]})  # the entry that the marker refers to
    rest = box.page({"marker": first, "include": "snapshots"})
    assert [item.findtext("Snapshot") for item in rest.xml.find("Blobs") or ()] == [None]


def test_writes_between_pages_neither_repeat_nor_hide_what_stays(box: Box) -> None:
    # contract G3
    for name in "bdfh":
        box.put(name)
    reply = box.page({"maxresults": "2"})
    marker = reply.xml.findtext("NextMarker") or ""
    box.put("a")
    box.put("g")
    box.blob("DELETE", "f")
    assert box.names({"marker": marker}) == ["g", "h"]


def test_a_prefix_that_xml_cannot_carry_still_makes_a_document(box: Box) -> None:
    box.put("x\x01control")
    reply = box.page({"prefix": "x\x01"})
    assert len(reply.xml.find("Blobs") or ()) == 1

"""List Directories and Files: order, pages, prefix, what `include` adds, and odd names."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.conftest import watched
from tests.rest.client import BOM
from tests.rest.files import ShareBox
from tests.rest.running import Running


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def test_a_list_has_everything_in_its_place(share: ShareBox) -> None:
    share.make("d", "d/sub")
    share.put("d/File", 7)
    ids = {name: share.directory("GET", name)["x-ms-file-id"] for name in ("d", "d/sub")}
    file_id = share.head("d/file")["x-ms-file-id"]
    reply = share.page("d", {"maxresults": "9", "prefix": ""})
    assert reply["Content-Type"] == "application/xml"
    endpoint = f"http://127.0.0.1:{share.client.port}/{share.client.account}/"
    assert (
        reply.body
        == BOM
        + (
            f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="{endpoint}" ShareName="{share.name}" '
            f'DirectoryPath="d"><MaxResults>9</MaxResults><DirectoryId>{ids["d"]}</DirectoryId><Entries><File><Name>File</Name>'
            f"<FileId>{file_id}</FileId><Properties><Content-Length>7</Content-Length></Properties></File><Directory><Name>sub</Name>"
            f"<FileId>{ids['d/sub']}</FileId><Properties /></Directory></Entries><NextMarker /></EnumerationResults>"
        ).encode()
    )


def test_the_root_is_a_directory_without_a_path(share: ShareBox) -> None:
    share.put("file")
    for path in ("", "/"):
        reply = share.client.send("GET", share.path + path, {"restype": "directory", "comp": "list"})
        assert (reply.status, reply.xml.attrib["DirectoryPath"], reply.xml.findtext("DirectoryId")) == (200, "", "0")
    assert share.names() == ["file"]


def test_files_and_directories_are_mixed_in_the_order_of_their_names(share: ShareBox) -> None:
    share.make("b", "D")
    for name in ("c", "A", "e"):
        share.put(name)
    assert share.names() == ["A", "b", "c", "D", "e"]


def test_pages_go_on_where_the_last_one_ended(share: ShareBox) -> None:
    names = [f"n{number:02}" for number in range(11)]
    for name in names:
        share.put(name)
    found, marker = [], ""
    while True:
        reply = share.page(query={"maxresults": "4", **({"marker": marker} if marker else {})})
        page = [item.findtext("Name") or "" for item in reply.xml.find("Entries") or ()]
        assert 0 < len(page) <= 4
        assert (reply.xml.findtext("Marker") or "") == marker
        found += page
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            break
        share.file("DELETE", page[0])  # deleting what was listed changes nothing for the rest
    assert found == names
    exact = share.page(query={"prefix": "n0", "maxresults": "10"})
    assert exact.xml.findtext("NextMarker") == ""


def test_a_prefix_is_found_in_any_case(share: ShareBox) -> None:
    for name in ("Apple", "apricot", "banana", "APPLIANCE"):
        share.put(name)
    assert share.names(query={"prefix": "app"}) == ["Apple", "APPLIANCE"]
    assert share.names(query={"prefix": "AP"}) == ["Apple", "APPLIANCE", "apricot"]
    assert share.names(query={"prefix": "x"}) == []
    assert b"<Prefix>app</Prefix>" in share.page(query={"prefix": "app"}).body
    assert b"<Entries /><NextMarker />" in share.page(query={"prefix": "x"}).body


def test_include_adds_times_etags_attributes_and_permissions(share: ShareBox) -> None:
    share.make("d")
    share.put("file", 3, {"x-ms-file-attributes": "ReadOnly|Hidden", "x-ms-file-creation-time": "2001-02-03T04:05:06.7Z"})
    found = {"d": share.directory("GET", "d"), "file": share.head("file")}
    reply = share.page(query={"include": "Timestamps,Etag,Attributes,PermissionKey"})
    for item in reply.xml.find("Entries") or ():
        head = found[item.findtext("Name") or ""]
        assert [child.tag for child in item] == ["Name", "FileId", "Properties", "Attributes", "PermissionKey"]
        shown = {child.tag: child.text for child in item.find("Properties") or ()}
        length = {"Content-Length": "3"} if item.tag == "File" else {}
        assert shown == length | {
            "CreationTime": head["x-ms-file-creation-time"],
            "LastAccessTime": shown["LastAccessTime"],
            "LastWriteTime": head["x-ms-file-last-write-time"],
            "ChangeTime": head["x-ms-file-change-time"],
            "Last-Modified": head["Last-Modified"],
            "Etag": head["ETag"],
        }
        assert item.findtext("Attributes") == head["x-ms-file-attributes"]
        assert item.findtext("PermissionKey") == head["x-ms-file-permission-key"]
    assert found["file"]["x-ms-file-attributes"] == "ReadOnly | Hidden"
    assert found["file"]["x-ms-file-creation-time"] == "2001-02-03T04:05:06.7000000Z"
    some = share.page(query={"include": "etag"})
    assert b"<Etag>" in some.body
    assert b"<Attributes>" not in some.body


def test_older_versions_show_fewer_ids(share: ShareBox) -> None:
    share.put("file")
    assert b"FileId" not in share.page(version="2020-04-08").body
    assert b"DirectoryId" not in share.page(version="2020-04-08").body
    assert b"<FileId>" in share.page(headers={"x-ms-file-extended-info": "true"}, version="2020-04-08").body
    assert b"<DirectoryId>" in share.page(version="2020-10-02").body


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"maxresults": "0"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "x"}, "InvalidQueryParameterValue"),
        ({"include": "everything"}, "InvalidQueryParameterValue"),
        ({"marker": "!!!!"}, "InvalidQueryParameterValue"),
    ],
)
def test_a_list_refuses_what_it_cannot_use(share: ShareBox, query: dict[str, str], code: str) -> None:
    assert share.page(query=query).answer == (400, code)


def test_only_a_directory_is_listed(share: ShareBox) -> None:
    share.put("file")
    assert share.page("file").answer == (409, "ResourceTypeMismatch")
    assert share.page("missing").answer == (404, "ResourceNotFound")
    assert share.page("missing/d").answer == (404, "ParentNotFound")


# Names

ODD = ["a b", "a&b'c", "ä", "日本語", "e\u0301", "100%", "a+b", "#;=@,()[]{}!~$^`", "😀", "%41", ".hidden", "a.b.c", " x"]


def test_odd_names_survive(share: ShareBox) -> None:
    for name in ODD:
        assert share.put(name).status == 201, name
        assert share.head(name).status == 200, name
    assert sorted(share.names()) == sorted(ODD)
    share.make("dir é")
    share.put("dir é/" + ODD[3])
    assert share.names("dir é") == [ODD[3]]
    assert share.page("dir é").xml.attrib["DirectoryPath"] == "dir é"


def test_names_keep_their_case_and_are_found_in_any(share: ShareBox) -> None:
    share.make("Dir")
    share.put("Dir/Älter", 5)
    assert share.head("dIR/äLTER")["Content-Length"] == "5"
    assert share.directory("PUT", "DIR").answer == (409, "ResourceAlreadyExists")
    share.put("dir/älter", 6)
    assert share.names("DIR") == ["Älter"]
    assert share.put("dir").answer == (409, "ResourceTypeMismatch")
    share.put("ss")
    assert share.head("ß").answer == (404, "ResourceNotFound")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *((f"a{character}b", "InvalidResourceName") for character in '":|<>*?\x01\x1f'),
        *((name, "InvalidResourceName") for name in ("CON", "nul", "lpt1", "Com9", "clock$", "AUX", "d//f")),
        ("x" * 256, "InvalidFileOrDirectoryPathName"),
        ("/".join(["d" * 200] * 11), "InvalidFileOrDirectoryPathName"),
        ("/".join(["d"] * 252), "InvalidFileOrDirectoryPathName"),
    ],
)
def test_names_that_windows_cannot_have_are_refused(share: ShareBox, name: str, code: str) -> None:
    assert share.put(name).answer == (400, code)


def test_names_at_the_limits_are_taken(share: ShareBox) -> None:
    assert share.put("x" * 255).status == 201
    assert share.put("com0").status == 201
    assert share.names() == ["com0", "x" * 255]


def test_trailing_dots_count_only_when_the_request_says_so(share: ShareBox) -> None:
    dots = {"x-ms-allow-trailing-dot": "true"}
    assert share.directory("PUT", "dir.").status == 201
    assert share.put("dir./file...").status == 201
    assert share.names("dir.") == ["file"]
    assert share.page("dir...").xml.attrib["DirectoryPath"] == "dir"
    assert share.head("dir/file").status == 200
    assert share.head("dir/file.", dots).answer == (404, "ResourceNotFound")
    assert share.put("dir/file.", 3, dots).status == 201
    assert share.names("dir") == ["file", "file."]
    assert share.head("dir/file.", dots)["Content-Length"] == "3"
    assert share.head("dir/file.")["Content-Length"] == "0"
    assert share.directory("PUT", "dir.", headers=dots).status == 201
    assert share.page("dir.", headers=dots).xml.attrib["DirectoryPath"] == "dir."
    assert share.names() == ["dir", "dir."]
    assert share.file("DELETE", "dir/file.", headers=dots).status == 202
    assert share.names("dir") == ["file"]


def test_names_that_xml_cannot_carry_are_encoded(share: ShareBox) -> None:
    odd = "d\ufffe"
    share.make(odd)
    share.put(f"{odd}/f\uffff x")
    share.put(f"{odd}/plain")
    reply = share.page(odd, {"prefix": "f\uffff"})
    assert (reply.xml.attrib["Encoded"], reply.xml.attrib["DirectoryPath"]) == ("true", quote(odd))
    assert b'<Prefix Encoded="true">f%EF%BF%BF</Prefix>' in reply.body
    assert b'<Name Encoded="true">f%EF%BF%BF%20x</Name>' in reply.body
    assert b"<Name>plain</Name>" in share.page(odd).body
    assert "Encoded" not in share.page().xml.attrib
    assert share.put("f\ufffe", version="2021-10-04").answer == (400, "InvalidResourceName")

"""Blob index tags: Get, Set and Find, with their conditions, leases and limits."""

import threading
from urllib.parse import quote

import pytest

from tests.rest.client import Box, Client, Reply


def tags_xml(tags: dict[str, str]) -> bytes:
    rows = "".join(f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>" for key, value in tags.items())
    return f"<Tags><TagSet>{rows}</TagSet></Tags>".encode()


def set_tags(box: Box, tags: dict[str, str], headers: dict[str, str] | None = None, name: str = "blob") -> Reply:
    return box.blob("PUT", name, "tags", headers, tags_xml(tags))


def get_tags(box: Box, name: str = "blob") -> dict[str, str]:
    reply = box.blob("GET", name, "tags")
    assert reply.status == 200, reply.body
    return {tag.findtext("Key") or "": tag.findtext("Value") or "" for tag in reply.xml.iter("Tag")}


def find(box: Box, where: str, **query: str) -> list[str]:
    reply = box.container("GET", "blobs", query={"where": where, **query})
    assert reply.status == 200, reply.body
    return [blob.findtext("Name") or "" for blob in reply.xml.iter("Blob")]


def test_tags_are_set_whole_and_never_change_the_etag(box: Box) -> None:
    # race E5
    blob = box.put(headers={"x-ms-tags": "a=1&b=two%20words"})
    assert get_tags(box) == {"a": "1", "b": "two words"}
    assert set_tags(box, {"c": " kept "}).status == 204
    assert get_tags(box) == {"c": " kept "}
    head = box.head()
    assert (head["ETag"], head["Last-Modified"], head["x-ms-tag-count"]) == (blob["ETag"], blob["Last-Modified"], "1")
    assert set_tags(box, {}).status == 204
    assert get_tags(box) == {}
    assert "x-ms-tag-count" not in box.head()


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (tags_xml({f"t{number}": "v" for number in range(11)}), (400, "TagsTooLarge")),
        (tags_xml({"k" * 129: "v"}), (400, "TagsTooLarge")),
        (tags_xml({"": "v"}), (400, "EmptyTagName")),
        (b"<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>a</Key><Value>2</Value></Tag></TagSet></Tags>",
         (400, "DuplicateTagNames")),
        (tags_xml({"a": "no*star"}), (400, "InvalidTag")),
        (b"<Tags><TagSet><Tag><Key>a</Key></Tag></TagSet></Tags>", (400, "MissingRequiredXmlNode")),
        (b"<Tags />", (400, "InvalidXmlDocument")),
        (b"nothing", (400, "InvalidXmlDocument")),
    ],
)  # fmt: skip
def test_bad_tags_are_refused_and_change_nothing(box: Box, document: bytes, answer: tuple[int, str]) -> None:
    # contract G7
    box.put(headers={"x-ms-tags": "a=1"})
    assert box.blob("PUT", comp="tags", body=document).answer == answer
    assert get_tags(box) == {"a": "1"}


def test_setting_tags_of_a_leased_blob_asks_for_its_lease_id(box: Box) -> None:
    # contract L3
    box.put()
    lease_id = box.acquire(-1)
    assert set_tags(box, {"a": "1"}).answer == (412, "LeaseIdMissing")
    other = {"x-ms-lease-id": "11111111-1111-1111-1111-111111111111"}
    assert set_tags(box, {"a": "1"}, other).answer == (412, "LeaseIdMismatchWithBlobOperation")
    assert set_tags(box, {"a": "1"}, {"x-ms-lease-id": lease_id}).status == 204
    assert get_tags(box) == {"a": "1"}


def test_conditions_on_tags_have_headers_of_their_own(box: Box) -> None:
    # contract B2
    etag = box.put(headers={"x-ms-tags": "a=1"})["ETag"]
    assert set_tags(box, {"a": "2"}, {"x-ms-if-tags": "a='9'"}).answer == (412, "ConditionNotMet")
    assert set_tags(box, {"a": "2"}, {"x-ms-blob-if-match": '"0x1"'}).answer == (412, "ConditionNotMet")
    assert set_tags(box, {"a": "2"}, {"x-ms-blob-if-match": etag, "x-ms-if-tags": "a='1'"}).status == 204
    reply = box.blob("GET", comp="tags", headers={"x-ms-if-tags": "a='1'"})
    assert reply.answer == (412, "ConditionNotMet")


def test_find_reads_the_index_and_follows_every_change(box: Box) -> None:
    # contract G2
    for number in range(6):
        box.put(f"b{number}", headers={"x-ms-tags": f"n={number}&kind={'odd' if number % 2 else 'even'}"})
    assert find(box, "kind='odd'") == ["b1", "b3", "b5"]
    assert find(box, "n>='2' AND n<'4'") == ["b2", "b3"]
    assert find(box, "kind='even' AND n>'0'") == ["b2", "b4"]
    set_tags(box, {"kind": "even"}, name="b1")
    box.put("b3")
    box.blob("DELETE", "b5")
    assert find(box, "kind='odd'") == []
    assert find(box, "kind='even'") == ["b0", "b1", "b2", "b4"]


def test_a_result_shows_the_tags_that_were_asked_for(box: Box) -> None:
    box.put(headers={"x-ms-tags": "a=1&b=2"})
    reply = box.container("GET", "blobs", query={"where": "a='1'"})
    assert reply.xml.findtext("Where") == "a='1'"
    (found,) = reply.xml.iter("Blob")
    assert found.findtext("ContainerName") == box.name
    assert [(tag.findtext("Key"), tag.findtext("Value")) for tag in found.iter("Tag")] == [("a", "1")]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_of_a_search_are_complete(box: Box, size: int) -> None:
    names = [f"b{number}" for number in range(7)]
    for name in names:
        box.put(name, headers={"x-ms-tags": f"k={name}"})
    found: list[str] = []
    marker = ""
    while True:
        query = {"where": "k>''", "maxresults": str(size)} | ({"marker": marker} if marker else {})
        reply = box.container("GET", "blobs", query=query)
        page = [blob.findtext("Name") or "" for blob in reply.xml.iter("Blob")]
        assert len(page) <= size
        found += page
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            break
    assert found == names


def test_the_account_is_searched_container_by_container(client: Client) -> None:
    value = client.moment().replace(":", "")
    boxes = [Box(client).create() for _ in range(3)]
    for box in boxes:
        box.put("same", headers={"x-ms-tags": f"run={quote(value)}"})
    reply = client.send("GET", "", {"comp": "blobs", "where": f"run='{value}'"})
    found = {blob.findtext("ContainerName") for blob in reply.xml.iter("Blob")}
    assert found == {box.name for box in boxes}
    one = client.send("GET", "", {"comp": "blobs", "where": f"@container='{boxes[1].name}' AND run='{value}'"})
    assert [blob.findtext("ContainerName") for blob in one.xml.iter("Blob")] == [boxes[1].name]
    assert boxes[0].container("DELETE").status == 202
    again = client.send("GET", "", {"comp": "blobs", "where": f"run='{value}'"})
    assert len(list(again.xml.iter("Blob"))) == 2


def test_a_search_that_cannot_be_read_says_where(box: Box) -> None:
    reply = box.container("GET", "blobs", query={"where": "a = 1"})
    assert reply.answer == (400, "InvalidQueryParameterValue")
    assert reply.detail("QueryParameterName") == "where"
    assert box.container("GET", "blobs").answer == (400, "MissingRequiredQueryParameter")
    assert box.container("GET", "blobs", query={"where": "a='1'", "marker": "%%"}).answer == (400, "InvalidQueryParameterValue")


def test_tags_have_permissions_of_their_own(box: Box) -> None:
    box.put(headers={"x-ms-tags": "a=1"})
    assert box.blob("GET", comp="tags", auth=box.sas("r")).answer == (403, "AuthorizationPermissionMismatch")
    assert box.blob("GET", comp="tags", auth=box.sas("t")).status == 200
    assert box.container("GET", "blobs", query={"where": "a='1'"}, auth=box.sas("rt")).status == 403
    assert box.container("GET", "blobs", query={"where": "a='1'"}, auth=box.sas("f")).status == 200


@pytest.mark.parametrize("tags", ["a=1", ""])
def test_tags_that_come_with_a_write_need_their_permission(box: Box, tags: str) -> None:
    """Azure refuses the header even if it is empty (kahing/goofys#816)."""
    source = f"{box.server.base_url}{box.path}/source?{box.sas('r')}"
    box.put("source")
    box.put_block("AAAA")
    writes: list[tuple[str, dict[str, str], bytes]] = [
        ("", {"x-ms-blob-type": "BlockBlob"}, b"hello"),
        ("", {"x-ms-blob-type": "AppendBlob"}, b""),
        ("", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}, b""),
        ("", {"x-ms-copy-source": source}, b""),
        ("", {"x-ms-blob-type": "BlockBlob", "x-ms-copy-source": source}, b""),
        ("blocklist", {}, b"<BlockList><Latest>AAAA</Latest></BlockList>"),
    ]
    for token in (box.sas, box.client.account_sas):
        for comp, headers, body in writes:
            sent = {**headers, "x-ms-tags": tags}
            assert box.blob("PUT", "blob", comp, sent, body, auth=token("racwdl")).answer == (
                403,
                "AuthorizationPermissionMismatch",
            )
    assert box.head().status == 404
    for number, (comp, headers, body) in enumerate(writes[:-1]):
        assert box.blob("PUT", f"new{number}", comp, {**headers, "x-ms-tags": tags}, body, auth=box.sas("racwdlt")).status < 300


@pytest.mark.parametrize("include", ["tags", "metadata,Tags"])
def test_a_listing_with_tags_needs_their_permission(box: Box, include: str) -> None:
    box.put(headers={"x-ms-tags": "a=1"})
    query = {"include": include}
    for token in (box.sas, box.client.account_sas):
        assert box.page(query, auth=token("rl")).answer == (403, "AuthorizationPermissionMismatch")
        assert box.page({"include": "metadata"}, auth=token("rl")).status == 200
        assert box.page(query, auth=token("lt")).xml.findtext("Blobs/Blob/Tags/TagSet/Tag/Value") == "1"


def test_racing_taggers_leave_one_of_their_sets_and_an_index_that_agrees(box: Box) -> None:
    # contract G5
    box.put()

    def tag(number: int) -> None:
        client = Client(box.server)
        for iteration in range(10):
            assert set_tags(Box(client, box.name), {"who": str(number), "iteration": str(iteration)}).status == 204
        client.close()

    threads = [threading.Thread(target=tag, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = get_tags(box)
    hits = [number for number in range(4) if find(box, f"who='{number}'")]
    assert hits == [int(left["who"])]
    assert find(box, "iteration>=''") == ["blob"]


@pytest.mark.parametrize(("include", "status"), [("none", 200), ("versions", 400), ("deleted", 400), ("none,versions", 400)])
def test_only_current_blobs_are_found_and_other_includes_are_refused(box: Box, include: str, status: int) -> None:
    box.put(headers={"x-ms-tags": "a=1"})
    for reply in (
        box.container("GET", "blobs", query={"where": "a='1'", "include": include}),
        box.client.send("GET", "/", {"comp": "blobs", "where": "a='1'", "include": include}),
    ):
        assert reply.status == status
        if status == 400:
            assert (reply["x-ms-error-code"], reply.detail("QueryParameterName")) == ("InvalidQueryParameterValue", "include")


ELEVEN = " AND ".join(f"k{number}='v'" for number in range(11))


@pytest.mark.parametrize(
    "condition",
    [
        "key111==value1",
        "@container='v'",
        "a='v!'",
        f"a='{'v' * 257}'",
        f"{'k' * 129}='v'",
        "\"a!\"='v'",
        "a=v",
        "a='it''s'",
        ELEVEN,
    ],
)
def test_a_malformed_condition_on_tags_is_refused(box: Box, condition: str) -> None:
    box.put(headers={"x-ms-tags": "a=v"})
    reply = box.get(headers={"x-ms-if-tags": condition})
    assert (reply.answer, reply.detail("HeaderName")) == ((400, "InvalidHeaderValue"), "x-ms-if-tags")
    if not condition.startswith("@"):
        found = box.container("GET", "blobs", query={"where": condition})
        assert (found.answer, found.detail("QueryParameterName")) == ((400, "InvalidQueryParameterValue"), "where")

"""Copy Blob and Copy Blob From URL between blobs of one server: what is copied, conditions, and the copy status."""

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import pytest

from tests.rest.checksums import md5
from tests.rest.client import ANONYMOUS, Box, Reply
from tests.rest.copies import abort, copy, copy_now, signed, url

HOLDER = "aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa"
OTHER_ETAG = '"0x8D00000000"'
Form = Callable[..., Reply]
BOTH = pytest.mark.parametrize("form", [copy, copy_now], ids=["async", "sync"])
DESCRIBED = {
    "x-ms-blob-content-type": "text/plain",
    "x-ms-blob-content-encoding": "br",
    "x-ms-blob-content-language": "fr",
    "x-ms-blob-content-disposition": "inline",
    "x-ms-blob-cache-control": "no-cache",
    "x-ms-meta-Colour": "green",
}
SHOWN = ("Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control", "Content-MD5")


@BOTH
def test_a_copy_has_the_content_and_the_description_of_its_source(box: Box, form: Form) -> None:
    box.put("source", b"hello", DESCRIBED)
    reply = form(box, signed(box))
    assert (reply.status, reply["x-ms-copy-status"]) == (202, "success")
    source, copied = box.get("source"), box.get("copy")
    assert copied.body == b"hello"
    assert [copied[name] for name in SHOWN] == [source[name] for name in SHOWN]
    assert copied.metadata == {"Colour": "green"}
    assert copied["ETag"] == reply["ETag"] != source["ETag"]
    assert copied["x-ms-blob-type"] == "BlockBlob"


@BOTH
def test_a_copy_says_where_it_came_from(box: Box, form: Form) -> None:
    box.put("source", b"hello")
    reply = form(box, signed(box))
    for shown in (box.head("copy"), box.get("copy")):
        assert shown["x-ms-copy-id"] == reply["x-ms-copy-id"]
        assert shown["x-ms-copy-source"] == url(box)
        assert shown["x-ms-copy-status"] == "success"
        assert shown["x-ms-copy-progress"] == "5/5"
        assert shown["x-ms-copy-completion-time"] == shown["Last-Modified"]
        assert "x-ms-copy-status-description" not in shown
    assert "x-ms-copy-id" not in box.head("source")


def listed(box: Box, query: Mapping[str, str]) -> dict[str, str]:
    for blob in box.page(query).xml.iter("Blob"):
        if blob.findtext("Name") == "copy":
            return {item.tag: item.text or "" for item in blob.find("Properties") or () if item.tag.startswith("Copy")}
    raise AssertionError("it is not listed")


def test_a_listing_shows_copies_when_asked(box: Box) -> None:
    box.put("source", b"hello")
    reply = copy(box, url(box))
    shown = listed(box, {"include": "copy"})
    assert shown["CopyId"] == reply["x-ms-copy-id"]
    assert (shown["CopyStatus"], shown["CopyProgress"], shown["CopySource"]) == ("success", "5/5", url(box))
    assert shown["CopyCompletionTime"] == box.head("copy")["Last-Modified"]
    assert listed(box, {}) == {}


@pytest.mark.parametrize(
    ("comp", "headers", "body", "kept"),
    [
        ("", {"x-ms-blob-type": "BlockBlob"}, b"new", False),
        ("blocklist", {}, b"<BlockList />", False),
        ("properties", {"x-ms-blob-content-type": "a/b"}, None, False),
        ("metadata", {"x-ms-meta-a": "1"}, None, True),
        ("lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}, None, True),
    ],
    ids=["PutBlob", "PutBlockList", "SetBlobProperties", "SetBlobMetadata", "LeaseBlob"],
)
def test_a_write_that_replaces_the_blob_forgets_the_copy(
    box: Box, comp: str, headers: dict[str, str], body: bytes | None, kept: bool
) -> None:
    box.put("source")
    copy(box, url(box))
    assert box.blob("PUT", "copy", comp, headers, body).status in (200, 201)
    assert ("x-ms-copy-id" in box.head("copy")) is kept


@BOTH
def test_metadata_of_the_request_replaces_that_of_the_source(box: Box, form: Form) -> None:
    box.put("source", headers={"x-ms-meta-a": "1", "x-ms-meta-b": "2"})
    form(box, signed(box), headers={"x-ms-meta-c": "3"})
    assert box.head("copy").metadata == {"c": "3"}


@BOTH
def test_tags_and_lease_of_the_source_stay_with_it(box: Box, form: Form) -> None:
    box.put("source", headers={"x-ms-tags": "k=v"})
    box.acquire(-1, "source")
    assert form(box, signed(box)).status == 202
    copied = box.head("copy")
    assert "x-ms-tag-count" not in copied
    assert copied["x-ms-lease-state"] == "available"


def test_a_copy_may_get_tags_and_they_are_found(box: Box) -> None:
    box.put("source")
    copy(box, url(box), headers={"x-ms-tags": "colour=green"})
    found = box.container("GET", "blobs", query={"where": "colour = 'green'"})
    assert [item.findtext("Name") for item in found.xml.iter("Blob")] == ["copy"]
    copy(box, url(box))
    assert list(box.container("GET", "blobs", query={"where": "colour = 'green'"}).xml.iter("Blob")) == []


def test_a_synchronous_copy_takes_the_tags_along_when_asked(box: Box) -> None:
    box.put("source", headers={"x-ms-tags": "k=v"})
    asked = {"x-ms-copy-source-tag-option": "COPY"}
    assert copy_now(box, signed(box), headers=asked).status == 202
    assert box.head("copy")["x-ms-tag-count"] == "1"
    both = copy_now(box, signed(box), headers=asked | {"x-ms-tags": "a=b"})
    assert both.answer == (400, "BothUserTagsAndSourceTagsCopyPresentException")
    assert copy_now(box, signed(box), headers={"x-ms-copy-source-tag-option": "ALL"}).answer == (400, "InvalidHeaderValue")


def test_a_block_list_comes_along(box: Box) -> None:
    box.put_block("AAAA", b"one", "source")
    box.put_block("BBBB", b"two", "source")
    box.put_block_list("<Latest>AAAA</Latest><Latest>BBBB</Latest>", "source")
    copy(box, url(box))
    blocks = box.blob("GET", "copy", "blocklist").xml.find("CommittedBlocks")
    assert [(block.findtext("Name"), block.findtext("Size")) for block in blocks or ()] == [("AAAA", "3"), ("BBBB", "3")]
    assert box.put_block_list("<Committed>BBBB</Committed>", "copy").status == 201
    assert box.get("copy").body == b"two"
    assert box.get("source").body == b"onetwo"


def test_a_snapshot_may_be_copied_also_over_its_own_blob(box: Box) -> None:
    box.put("source", b"then")
    taken = box.blob("PUT", "source", "snapshot")["x-ms-snapshot"]
    box.put("source", b"now")
    copy(box, url(box, query=f"snapshot={taken}"))
    assert box.get("copy").body == b"then"
    assert box.head("copy")["x-ms-copy-source"].endswith(f"?snapshot={taken}")
    assert copy(box, url(box, query=f"snapshot={taken}"), "source").status == 202
    assert box.get("source").body == b"then"


@pytest.mark.parametrize("size", [5, 200_000])
def test_a_blob_may_be_copied_onto_itself(box: Box, size: int) -> None:
    box.put("source", b"x" * size, DESCRIBED)
    before = box.head("source")["ETag"]
    assert copy(box, url(box), "source", {"x-ms-meta-new": "1"}).status == 202
    after = box.get("source")
    assert (after.body, after.metadata) == (b"x" * size, {"new": "1"})
    assert after["ETag"] != before


def test_uncommitted_blocks_are_not_copied_and_those_of_the_target_go(box: Box) -> None:
    box.put("source", b"whole")
    box.put_block("AAAA", b"waiting", "source")
    box.put_block("BBBB", b"waiting", "copy")
    copy(box, url(box))
    assert (
        len(box.blob("GET", "copy", "blocklist", query={"blocklisttype": "uncommitted"}).xml.find("UncommittedBlocks") or ()) == 0
    )
    assert len(box.blob("GET", "source", "blocklist", query={"blocklisttype": "all"}).xml.find("UncommittedBlocks") or ()) == 1


def test_the_tier_is_the_request_s_to_choose(box: Box) -> None:
    box.put("source", headers={"x-ms-access-tier": "Cool"})
    copy(box, url(box))
    assert (box.head("copy")["x-ms-access-tier"], box.head("copy")["x-ms-access-tier-inferred"]) == ("Hot", "true")
    copy(box, url(box), headers={"x-ms-access-tier": "cold"})
    assert box.head("copy")["x-ms-access-tier"] == "Cold"
    assert copy(box, url(box), headers={"x-ms-access-tier": "Tepid"}).answer == (400, "InvalidHeaderValue")
    assert copy(box, url(box), headers={"x-ms-access-tier": "P10"}).answer == (400, "AccessTierNotSupportedForBlobType")


def test_an_archived_source_is_copied_only_to_rehydrate_it(box: Box) -> None:
    box.put("source", b"old", {"x-ms-access-tier": "Archive"})
    assert copy(box, url(box)).answer == (409, "BlobArchived")
    assert copy_now(box, signed(box)).answer == (409, "CannotVerifyCopySource")
    assert copy(box, url(box), headers={"x-ms-access-tier": "Hot", "x-ms-rehydrate-priority": "High"}).status == 202
    assert box.head("copy")["x-ms-archive-status"] == "rehydrate-pending-to-hot"
    assert box.get("copy").answer == (409, "BlobBeingRehydrated")
    box.server.move_clock(3601)
    assert box.get("copy").body == b"old"


# --- conditions -----------------------------------------------------------------------------------------------------------


def conditions(box: Box, etag: str, prefix: str = "") -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """For each header a value that is met and one that is not."""
    past, future = box.client.date(-3600), box.client.date(3600)
    texts = {
        "if-match": (etag, OTHER_ETAG),
        "if-none-match": (OTHER_ETAG, etag),
        "if-modified-since": (past, future),
        "if-unmodified-since": (future, past),
    }
    return {name: ({prefix + name: met}, {prefix + name: unmet}) for name, (met, unmet) in texts.items()}


FROM_URL = {"x-ms-blob-type": "BlockBlob"}
COPY_FORMS = [{}, {"x-ms-requires-sync": "true"}]
FORMS = pytest.mark.parametrize("extra", [*COPY_FORMS, FROM_URL], ids=str)


def target_error(extra: dict[str, str]) -> str:
    """Put Blob From URL answers as Put Blob does (seen on Azure)."""
    return "ConditionNotMet" if extra == FROM_URL else "TargetConditionNotMet"


@FORMS
def test_conditions_of_the_target_decide(box: Box, extra: dict[str, str]) -> None:
    # contract B2, B3
    box.put("source", b"new")
    for name in ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since"):
        etag = box.put("copy", b"old")["ETag"]
        met, unmet = conditions(box, etag)[name]
        assert copy(box, signed(box), headers=unmet | extra).answer == (412, target_error(extra))
        assert box.head("copy")["ETag"] == etag
        assert copy(box, signed(box), headers=met | extra).status in (201, 202)
        assert box.get("copy").body == b"new"


@pytest.mark.parametrize("extra", COPY_FORMS, ids=str)
def test_conditions_of_the_source_decide(box: Box, extra: dict[str, str]) -> None:
    # contract B2, B3
    etag = box.put("source", b"new", {"x-ms-tags": "k=v"})["ETag"]
    for met, unmet in conditions(box, etag, "x-ms-source-").values():
        before = box.put("copy", b"old")["ETag"]
        assert copy(box, signed(box), headers=unmet | extra).answer == (412, "SourceConditionNotMet")
        assert box.head("copy")["ETag"] == before
        assert copy(box, signed(box), headers=met | extra).status in (201, 202)
    wrong = {"x-ms-source-if-modified-since": "yesterday"}
    assert copy(box, signed(box), headers=wrong | extra).answer == (400, "InvalidHeaderValue")


@pytest.mark.parametrize(
    ("extra", "error"), [({}, "ConditionNotMet"), (FROM_URL, "CannotVerifyCopySource")], ids=["copy", "from URL"]
)
def test_tags_of_the_source_decide(box: Box, extra: dict[str, str], error: str) -> None:
    # contract B2
    box.put("source", b"new", {"x-ms-tags": "k=v"})
    unmet = {"x-ms-source-if-tags": "k = 'w'"}
    assert copy(box, signed(box), headers=unmet | extra).answer == (412, error)
    assert copy(box, signed(box), headers={"x-ms-source-if-tags": "k = 'v'"} | extra).status in (201, 202)


@pytest.mark.parametrize("condition", ["k = 'w'", "no condition"])
def test_copy_blob_from_url_has_no_condition_on_tags(box: Box, condition: str) -> None:
    box.put("source", b"new", {"x-ms-tags": "k=v"})
    assert copy_now(box, signed(box), headers={"x-ms-source-if-tags": condition}).status == 202


@FORMS
def test_tags_of_the_target_decide(box: Box, extra: dict[str, str]) -> None:
    # contract B2
    box.put("source", b"new")
    box.put("copy", b"old", {"x-ms-tags": "k=v"})
    assert copy(box, signed(box), headers={"x-ms-if-tags": "k = 'w'"} | extra).answer == (412, "ConditionNotMet")
    assert box.get("copy").body == b"old"


@FORMS
def test_a_copy_that_must_be_new_does_not_overwrite(box: Box, extra: dict[str, str]) -> None:
    # race E2
    box.put("source", b"new")
    only_new = {"If-None-Match": "*"} | extra
    assert copy(box, signed(box), headers=only_new).status in (201, 202)
    assert copy(box, signed(box), headers=only_new).answer == (409, "BlobAlreadyExists")
    absent = {"If-Match": "*"} | extra
    assert copy(box, signed(box), "absent", absent).answer == (412, target_error(extra))
    assert copy(box, signed(box), "absent", {"x-ms-if-tags": "a = 'b'"} | extra).answer == (412, target_error(extra))
    assert box.head("absent").status == 404


# --- leases -----------------------------------------------------------------------------------------------------------------


@BOTH
def test_a_leased_target_asks_for_its_lease_and_keeps_it(box: Box, form: Form) -> None:
    # contract L5, race L5
    box.put("source", b"new")
    box.put("copy", b"old")
    box.acquire(-1, "copy", HOLDER)
    assert form(box, signed(box)).answer == (412, "LeaseIdMissing")
    wrong = {"x-ms-lease-id": "bbbbbbbb-0000-0000-0000-bbbbbbbbbbbb"}
    assert form(box, signed(box), headers=wrong).answer == (412, "LeaseIdMismatchWithBlobOperation")
    assert form(box, signed(box), "absent", wrong).answer == (412, "LeaseNotPresentWithBlobOperation")
    assert form(box, signed(box), headers={"x-ms-lease-id": HOLDER}).status == 202
    assert box.get("copy").body == b"new"
    assert box.head("copy")["x-ms-lease-state"] == "leased"
    assert box.put("copy").answer == (412, "LeaseIdMissing")


def test_an_asynchronous_copy_needs_a_lease_without_end(box: Box) -> None:
    box.put("source")
    box.put("copy")
    box.acquire(60, "copy", HOLDER)
    held = {"x-ms-lease-id": HOLDER}
    assert copy(box, url(box), headers=held).answer == (412, "InfiniteLeaseDurationRequired")
    assert copy_now(box, signed(box), headers=held).status == 202
    box.server.move_clock(60)
    assert copy(box, url(box)).status == 202
    assert box.head("copy")["x-ms-lease-state"] == "available"


# --- refusals ---------------------------------------------------------------------------------------------------------------


def test_a_source_that_is_not_there(box: Box) -> None:
    assert copy(box, url(box)).answer == (404, "BlobNotFound")
    elsewhere = url(box).replace(box.name, "box-that-is-absent")
    assert copy(box, elsewhere).answer == (404, "ContainerNotFound")
    reply = copy_now(box, signed(box))
    assert reply.answer == (404, "CannotVerifyCopySource")
    assert (reply["x-ms-copy-source-status-code"], reply["x-ms-copy-source-error-code"]) == ("404", "BlobNotFound")
    assert reply.detail("CopySourceErrorMessage") == "The specified blob does not exist."
    stranger = url(box).replace(box.client.account, "stranger")
    assert copy(box, stranger).answer == (404, "CannotVerifyCopySource")
    assert box.names() == []


@pytest.mark.parametrize(
    "source",
    [
        "nonsense",
        "/devstoreaccount1/box/blob",
        "ftp://127.0.0.1/x/y",
        "http://",
        "http://me:secret@127.0.0.1/a/b/c",
        "http://127.0.0.1:70000/a/b/c",
        f"http://127.0.0.1/a/b/{'x' * 2048}",
    ],
)
def test_a_source_that_is_no_url_is_refused(box: Box, source: str) -> None:
    assert copy(box, source).answer == (400, "InvalidHeaderValue")


def test_what_is_no_blob_is_no_source(box: Box) -> None:
    account = url(box).removesuffix(f"{box.path}/source")
    assert copy(box, account).answer == (400, "InvalidHeaderValue")
    assert copy(box, f"{account}{box.path}?restype=container").answer == (400, "InvalidHeaderValue")


@BOTH
def test_a_target_of_another_type_is_in_the_way(box: Box, form: Form) -> None:
    box.put("source")
    box.blob("PUT", "copy", headers={"x-ms-blob-type": "AppendBlob"})
    assert form(box, signed(box)).answer == (409, "InvalidBlobType")


def test_a_synchronous_copy_compares_the_md5_of_the_source(box: Box) -> None:
    box.put("source", b"hello")
    right, wrong = md5(b"hello"), md5(b"other")
    assert copy_now(box, signed(box), headers={"x-ms-source-content-md5": wrong}).answer == (400, "Md5Mismatch")
    assert box.head("copy").status == 404
    assert copy_now(box, signed(box), headers={"x-ms-source-content-md5": right})["Content-MD5"] == right
    assert "Content-MD5" not in copy_now(box, signed(box))


def test_a_copy_that_is_done_cannot_be_aborted(box: Box) -> None:
    box.put("source")
    copy_id = copy(box, url(box))["x-ms-copy-id"]
    assert abort(box, copy_id).answer == (409, "NoPendingCopyOperation")
    assert abort(box, copy_id, "source").answer == (409, "NoPendingCopyOperation")
    assert abort(box, copy_id, "absent").answer == (404, "BlobNotFound")
    assert abort(box, "nonsense").answer == (400, "InvalidQueryParameterValue")
    assert box.blob("PUT", "copy", "copy", query={"copyid": copy_id}).answer == (400, "MissingRequiredHeader")


# --- who may ------------------------------------------------------------------------------------------------------------------


def through(box: Box, source: str, sp: str) -> Reply:
    return copy(box, source, auth=box.sas(sp))


def test_a_signature_for_the_target_does_not_open_the_source(box: Box) -> None:
    box.put("source")
    assert through(box, url(box), "rcw").answer == (401, "CannotVerifyCopySource")
    assert through(box, url(box, query=box.sas("r")), "c").status == 202
    assert through(box, url(box, query=box.sas("l")), "w").answer == (403, "CannotVerifyCopySource")
    assert through(box, url(box, query=box.sas("r").replace("sig=", "sig=A")), "w").answer == (403, "CannotVerifyCopySource")


def test_who_may_only_create_does_not_copy_over_something(box: Box) -> None:
    box.put("source")
    source = url(box, query=box.sas("r"))
    assert through(box, source, "c").status == 202
    assert through(box, source, "c").answer == (403, "UnauthorizedBlobOverwrite")
    assert through(box, source, "w").status == 202
    assert through(box, source, "r").answer == (403, "AuthorizationPermissionMismatch")


def test_the_signature_of_a_source_is_not_shown(box: Box) -> None:
    box.put("source")
    assert copy(box, url(box, query=box.sas("r"))).status == 202
    assert box.head("copy")["x-ms-copy-source"] == url(box)


def test_a_public_source_needs_no_signature(box: Box) -> None:
    box.put("source", b"for all")
    assert box.container("PUT", "acl", {"x-ms-blob-public-access": "blob"}).status == 200
    assert through(box, url(box), "w").status == 202
    assert copy(box, url(box), auth=ANONYMOUS).status == 401


def test_the_source_may_be_named_by_any_name_of_this_server(box: Box) -> None:
    box.put("source", b"hello")
    account, port = box.client.account, box.server.port
    for host, path in (("localhost", f"/{account}"), (f"{account}.blob.localhost", ""), ("[::1]", f"/{account}")):
        assert copy(box, f"http://{host}:{port}{path}{box.path}/source")["x-ms-copy-status"] == "success"
        assert urlsplit(box.head("copy")["x-ms-copy-source"]).netloc == f"{host}:{port}"


def test_odd_names_are_found_as_they_are_spelled_in_urls(box: Box) -> None:
    name = "a b+c%2F#é?/~"
    box.put(name, b"odd")
    assert copy(box, url(box, name)).status == 202
    assert box.get("copy").body == b"odd"

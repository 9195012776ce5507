"""Shares: create, properties, metadata, access policies, statistics, quota, delete, list, soft delete and restore."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import watched
from tests.rest.client import BOM, VERSION, Reply
from tests.rest.files import FileClient, ShareBox
from tests.rest.history import DAY, collect, settled
from tests.rest.running import Running

GIB = 1024**3


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


# Create and properties


def test_a_new_share_has_the_defaults_of_a_standard_account(files: FileClient) -> None:
    share = ShareBox(files)
    reply = share.share("PUT", headers={"x-ms-meta-Colour": "blue"})
    assert (reply.status, reply.body, reply["x-ms-version"]) == (201, b"", VERSION)
    found = share.share("GET")
    assert (found.status, found.body) == (200, b"")
    assert (found["ETag"], found["Last-Modified"]) == (reply["ETag"], reply["Last-Modified"])
    assert found.metadata == {"Colour": "blue"}
    assert (found["x-ms-share-quota"], found["x-ms-access-tier"]) == ("5120", "TransactionOptimized")
    assert found["x-ms-access-tier-change-time"] == reply["Last-Modified"]
    assert found["x-ms-enabled-protocols"] == "SMB"
    assert (found["x-ms-lease-status"], found["x-ms-lease-state"]) == ("unlocked", "available")
    assert "x-ms-lease-duration" not in found
    assert "x-ms-root-squash" not in found
    assert share.share("HEAD")["ETag"] == reply["ETag"]


def test_a_share_exists_once(share: ShareBox) -> None:
    reply = share.share("PUT")
    assert reply.answer == (409, "ShareAlreadyExists")
    assert (reply.detail("Message") or "").startswith("The specified share already exists.\nRequestId:")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Upper", "InvalidResourceName"),
        ("-begin", "InvalidResourceName"),
        ("end-", "InvalidResourceName"),
        ("two--dashes", "InvalidResourceName"),
        ("under_score", "InvalidResourceName"),
        ("$root", "InvalidResourceName"),
    ],
)
def test_a_name_is_three_to_63_letters_digits_and_single_dashes(files: FileClient, name: str, code: str) -> None:
    assert files.send("PUT", f"/{name}", {"restype": "share"}).answer == (400, code)


def test_properties_are_set_one_by_one_and_shown_as_they_were_set(files: FileClient) -> None:
    share = ShareBox(files).create({"x-ms-share-quota": "7", "x-ms-access-tier": "hot"})
    before = share.share("GET")
    assert (before["x-ms-share-quota"], before["x-ms-access-tier"]) == ("7", "Hot")
    figures = {
        "x-ms-share-provisioned-iops": "3000",
        "x-ms-share-provisioned-bandwidth-mibps": "125",
        "x-ms-share-paid-bursting-enabled": "true",
        "x-ms-share-paid-bursting-max-iops": "5000",
        "x-ms-share-paid-bursting-max-bandwidth-mibps": "1000",
    }
    reply = share.share("PUT", "properties", {"x-ms-access-tier": "Cool", **figures})
    assert reply.status == 200
    assert reply["ETag"] != before["ETag"]
    found = share.share("GET")
    assert (found["x-ms-share-quota"], found["x-ms-access-tier"]) == ("7", "Cool")
    assert {name: found[name] for name in figures} == figures
    [listed] = files.shares({"prefix": share.name})
    shown = {item.tag: item.text for item in listed.find("Properties") or ()}
    assert (shown["ProvisionedIops"], shown["ProvisionedBandwidthMiBps"]) == ("3000", "125")
    assert (shown["PaidBurstingEnabled"], shown["PaidBurstingMaxIops"]) == ("true", "5000")
    assert shown["PaidBurstingMaxBandwidthMibps"] == "1000"


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ms-share-quota": "0"},
        {"x-ms-share-quota": "102401"},
        {"x-ms-share-quota": "much"},
        {"x-ms-access-tier": "Lukewarm"},
        {"x-ms-enabled-protocols": "FTP"},
        {"x-ms-root-squash": "RootSquash"},  # for NFS only
    ],
)
def test_values_outside_the_range_are_refused(files: FileClient, headers: dict[str, str]) -> None:
    assert ShareBox(files).share("PUT", headers=headers).answer == (400, "InvalidHeaderValue")


def test_an_nfs_share_has_a_root_squash(files: FileClient) -> None:
    share = ShareBox(files).create({"x-ms-enabled-protocols": "NFS", "x-ms-root-squash": "AllSquash"})
    found = share.share("GET")
    assert (found["x-ms-enabled-protocols"], found["x-ms-root-squash"]) == ("NFS", "AllSquash")
    assert share.share("PUT", "properties", {"x-ms-root-squash": "NoRootSquash"}).status == 200
    [listed] = files.shares({"prefix": share.name})
    assert listed.findtext("Properties/RootSquash") == "NoRootSquash"


def test_metadata_is_replaced_as_a_whole_and_names_keep_their_case(share: ShareBox) -> None:
    assert share.share("PUT", "metadata", {"x-ms-meta-UP": "1", "x-ms-meta-down": "2"}).status == 200
    assert share.share("GET", "metadata").metadata == {"UP": "1", "down": "2"}
    assert share.share("PUT", "metadata", {"x-ms-meta-other": "3"}).status == 200
    assert share.share("HEAD", "metadata").metadata == {"other": "3"}
    assert share.share("PUT", "metadata").status == 200
    assert share.share("GET").metadata == {}


def test_writes_to_files_leave_the_share_as_it_is(share: ShareBox) -> None:
    before = share.share("GET")
    share.fill(b"content")
    assert share.share("GET")["ETag"] == before["ETag"]


def test_a_missing_share_is_reported_by_every_operation(files: FileClient) -> None:
    share = ShareBox(files)
    for method, comp in [("GET", ""), ("GET", "metadata"), ("GET", "acl"), ("GET", "stats"), ("PUT", "metadata"), ("PUT", "acl")]:
        assert share.share(method, comp).answer == (404, "ShareNotFound")
    assert share.share("PUT", "snapshot").answer == (404, "ShareNotFound")
    assert share.share("DELETE").answer == (404, "ShareNotFound")
    assert share.put().answer == (404, "ShareNotFound")
    assert share.get().answer == (404, "ShareNotFound")
    assert share.page().answer == (404, "ShareNotFound")


# Statistics and quota


def test_statistics_are_the_bytes_of_all_files(share: ShareBox) -> None:
    assert share.share("GET", "stats").body == BOM + (
        b'<?xml version="1.0" encoding="utf-8"?><ShareStats><ShareUsageBytes>0</ShareUsageBytes></ShareStats>'
    )
    share.make("d")
    share.put("d/a", 1000)
    share.put("b", 500)
    assert usage(share) == 1500
    share.file("PUT", "b", "properties", {"x-ms-content-length": "100"})
    share.put("d/a", 10)
    assert usage(share) == 110
    share.file("DELETE", "d/a")
    assert usage(share) == 100
    share.snapshot()
    share.file("DELETE", "b")
    reply = share.share("GET", "stats")
    assert reply["ETag"] == share.share("GET")["ETag"]
    assert usage(share) == 0  # without the snapshot


def usage(share: ShareBox) -> int:
    return int(share.share("GET", "stats").xml.findtext("ShareUsageBytes") or "")


def test_files_do_not_grow_beyond_the_quota(files: FileClient) -> None:
    share = ShareBox(files).create({"x-ms-share-quota": "1"})
    assert share.put("half", GIB // 2).status == 201
    refused = share.put("more", GIB // 2 + 1)
    assert refused.answer == (403, "ShareSizeLimitReached")
    assert share.put("empty", 0).status == 201
    assert share.file("PUT", "empty", "properties", {"x-ms-content-length": str(GIB)}).answer == (403, "ShareSizeLimitReached")
    assert share.put("half", 100).status == 201
    assert share.share("PUT", "properties", {"x-ms-share-quota": "2"}).status == 200
    assert share.put("more", GIB + 1).status == 201


# Access policies


def test_policies_come_back_as_they_were_set(share: ShareBox) -> None:
    assert share.share("GET", "acl").body.endswith(b"?><SignedIdentifiers />")
    sent = (
        "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Start>2026-01-02</Start>"
        "<Expiry>2027-01-02T03:04:05Z</Expiry><Permission>rcwdl</Permission></AccessPolicy></SignedIdentifier>"
        "<SignedIdentifier><Id>two</Id></SignedIdentifier></SignedIdentifiers>"
    )
    reply = share.share("PUT", "acl", body=sent.encode())
    assert reply.status == 200
    found = share.share("GET", "acl")
    assert found["ETag"] == reply["ETag"]
    assert [item.findtext("Id") for item in found.xml] == ["one", "two"]
    assert found.xml[0].findtext("AccessPolicy/Permission") == "rcwdl"
    assert (found.xml[0].findtext("AccessPolicy/Start") or "").startswith("2026-01-02T00:00:00")
    assert share.share("PUT", "acl").status == 200
    assert len(share.share("GET", "acl").xml) == 0


@pytest.mark.parametrize("ids", [[f"id-{number}" for number in range(6)], ["same", "same"], ["x" * 65]])
def test_policies_that_break_a_rule_are_refused(share: ShareBox, ids: list[str]) -> None:
    rows = "".join(f"<SignedIdentifier><Id>{id}</Id></SignedIdentifier>" for id in ids)
    body = f"<SignedIdentifiers>{rows}</SignedIdentifiers>".encode()
    assert share.share("PUT", "acl", body=body).answer == (400, "InvalidXmlDocument")


# Delete


def test_a_deleted_share_takes_its_files_along_and_may_come_back_empty(share: ShareBox) -> None:
    share.fill(b"content")
    assert share.share("DELETE").status == 202
    assert share.get().answer == (404, "ShareNotFound")
    assert share.create().names() == []
    assert usage(share) == 0


def test_a_share_with_snapshots_is_deleted_with_them_or_not_at_all(share: ShareBox) -> None:
    snapshot = share.snapshot()
    refused = share.share("DELETE")
    assert refused.answer == (409, "ShareHasSnapshots")
    expected = "The share has snapshots and the operation requires no snapshots."
    assert (refused.detail("Message") or "").startswith(expected)
    assert share.share("DELETE", headers={"x-ms-delete-snapshots": "only"}).answer == (400, "InvalidHeaderValue")
    assert share.share("DELETE", headers={"x-ms-delete-snapshots": "include"}).status == 202
    share.create()
    assert share.share("GET", query={"sharesnapshot": snapshot}).answer == (404, "ShareSnapshotNotFound")


# List


def test_a_list_has_everything_in_its_place(files: FileClient) -> None:
    share = ShareBox(files).create({"x-ms-meta-Colour": "a<b"})
    found = share.share("GET")
    reply = files.send("GET", "", {"comp": "list", "prefix": share.name, "maxresults": "9", "include": "metadata"})
    assert reply["Content-Type"] == "application/xml"
    root = reply.xml
    assert root.attrib == {"ServiceEndpoint": f"http://127.0.0.1:{files.port}/{files.account}/"}
    assert [child.tag for child in root] == ["Prefix", "MaxResults", "Shares", "NextMarker"]
    item = root.findall("Shares/Share")[0]
    assert [child.tag for child in item] == ["Name", "Properties", "Metadata"]
    assert item.findtext("Metadata/Colour") == "a<b"
    shown = {child.tag: child.text for child in item.find("Properties") or ()}
    assert shown == {
        "Last-Modified": found["Last-Modified"],
        "Etag": found["ETag"],
        "Quota": "5120",
        "AccessTier": "TransactionOptimized",
        "AccessTierChangeTime": found["Last-Modified"],
        "EnabledProtocols": "SMB",
        "LeaseStatus": "unlocked",
        "LeaseState": "available",
    }
    bare = files.send("GET", "", {"comp": "list", "prefix": share.name})
    assert b"Metadata" not in bare.body


def test_pages_go_by_name_with_the_snapshots_of_a_share_before_it(files: FileClient) -> None:
    prefix = ShareBox(files).name
    for letter in "cab":
        ShareBox(files, f"{prefix}{letter}").create()
    taken = [ShareBox(files, f"{prefix}b").snapshot() for _ in range(2)]
    entries = list(paged(files, {"prefix": prefix, "include": "snapshots", "maxresults": "2"}))
    assert [(item.findtext("Name"), item.findtext("Snapshot")) for item in entries] == [
        (f"{prefix}a", None),
        *((f"{prefix}b", snapshot) for snapshot in taken),
        (f"{prefix}b", None),
        (f"{prefix}c", None),
    ]
    assert [item.findtext("Name") for item in paged(files, {"prefix": prefix, "maxresults": "1"})] == [
        f"{prefix}{letter}" for letter in "abc"
    ]


def paged(files: FileClient, query: dict[str, str]) -> Iterator[Element]:
    marker = ""
    while True:
        reply = files.send("GET", "", {"comp": "list", **query, **({"marker": marker} if marker else {})})
        assert reply.status == 200
        entries = list(reply.xml.find("Shares") or ())
        assert len(entries) <= int(query["maxresults"])
        yield from entries
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            return


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"maxresults": "0"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "-1"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "x"}, "InvalidQueryParameterValue"),
        ({"include": "everything"}, "InvalidQueryParameterValue"),
        ({"marker": "!!!!"}, "InvalidQueryParameterValue"),
    ],
)
def test_a_list_refuses_what_it_cannot_use(files: FileClient, query: dict[str, str], code: str) -> None:
    assert files.send("GET", "", {"comp": "list", **query}).answer == (400, code)


# Soft delete


@pytest.fixture
def soft_delete(server: Running) -> Iterator[None]:
    with settled(server, share_soft_delete_days=7):
        yield


def deleted(share: ShareBox, include: str = "deleted,metadata") -> list[Element]:
    found = share.client.shares({"include": include, "prefix": share.name})
    return [item for item in found if item.findtext("Deleted") == "true"]


def restore(share: ShareBox, version: str, name: str = "") -> Reply:
    sent = {"x-ms-deleted-share-name": name or share.name, "x-ms-deleted-share-version": version}
    return share.share("PUT", "undelete", sent)


@pytest.mark.usefixtures("soft_delete")
def test_a_deleted_share_is_listed_only_when_asked_for_and_comes_back_whole(share: ShareBox) -> None:
    share.share("PUT", "metadata", {"x-ms-meta-m": "1"})
    share.make("d")
    share.fill(b"x" * 100_000, "d/file")
    etag = share.share("GET")["ETag"]
    assert share.share("DELETE").status == 202
    assert share.get("d/file").answer == (404, "ShareNotFound")
    assert deleted(share, "") == []
    [item] = deleted(share)
    assert item.findtext("Metadata/m") == "1"
    assert (item.findtext("Properties/DeletedTime") or "").endswith("GMT")
    assert item.findtext("Properties/RemainingRetentionDays") == "6"
    collect(share.server)
    reply = restore(share, item.findtext("Version") or "")
    assert (reply.status, reply["ETag"]) == (201, etag)
    assert share.get("d/file").body == b"x" * 100_000
    assert deleted(share) == []
    assert usage(share) == 100_000


@pytest.mark.usefixtures("soft_delete")
def test_deleted_generations_of_one_name_are_kept_apart(share: ShareBox) -> None:
    for text in (b"one", b"two"):
        share.fill(text)
        share.share("DELETE")
        share.create()
    versions = [item.findtext("Version") or "" for item in deleted(share)]
    assert len(set(versions)) == 2
    assert restore(share, versions[0]).answer == (409, "ShareAlreadyExists")
    share.share("DELETE")
    assert restore(share, versions[0]).status == 201
    assert share.get().body == b"one"
    assert restore(share, versions[0]).answer == (404, "ShareNotFound")
    assert restore(share, "0" * 16).answer == (404, "ShareNotFound")
    assert restore(share, "no version").answer == (404, "ShareNotFound")
    assert restore(share, versions[1], "another-name").answer == (400, "InvalidHeaderValue")


@pytest.mark.usefixtures("soft_delete")
def test_retention_ends(share: ShareBox) -> None:
    share.share("DELETE")
    version = deleted(share)[0].findtext("Version") or ""
    share.server.move_clock(8 * DAY)
    assert deleted(share) == []
    assert restore(share, version).answer == (404, "ShareNotFound")


def test_the_answer_to_a_delete_says_how_many_bytes_are_gone(share: ShareBox) -> None:
    share.put(size=1000)
    snapshot = share.snapshot()
    deleted = share.share("DELETE", query={"sharesnapshot": snapshot})
    assert (deleted.status, "x-ms-file-share-usage-bytes" in deleted) == (202, False)
    assert share.share("DELETE")["x-ms-file-share-usage-bytes"] == "1000"

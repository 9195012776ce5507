"""Access tiers: Set Blob Tier, operations on archived blobs, and rehydration."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.rest import pages
from tests.rest.client import Box, Reply
from tests.rest.copies import copy, url
from tests.rest.history import put_version, settled, snapshot
from tests.rest.history_fixtures import server  # noqa: F401

HOUR = 3600


def set_tier(box: Box, tier: str, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    return box.blob("PUT", comp="tier", headers={"x-ms-access-tier": tier, **(headers or {})}, **more)


def archive(box: Box) -> Box:
    assert box.put(headers={"x-ms-access-tier": "Archive"}).status == 201
    return box


def tier_of(box: Box, **more: Any) -> tuple[str | None, str | None, str | None]:
    head = box.head(**more)
    return head.header("x-ms-access-tier"), head.header("x-ms-archive-status"), head.header("x-ms-rehydrate-priority")


def test_a_tier_is_inferred_until_it_is_set(box: Box) -> None:
    box.put()
    head = box.head()
    assert (head["x-ms-access-tier"], head["x-ms-access-tier-inferred"]) == ("Hot", "true")
    reply = set_tier(box, "cool")
    assert (reply.status, reply.body) == (200, b"")
    after = box.head()
    assert (after["x-ms-access-tier"], after["ETag"]) == ("Cool", head["ETag"])
    assert "x-ms-access-tier-inferred" not in after
    assert "x-ms-access-tier-change-time" in after


@pytest.mark.parametrize("tier", ["Hot", "Cool", "Cold", "Archive"])
def test_an_online_blob_goes_anywhere_at_once(box: Box, tier: str) -> None:
    box.put()
    assert set_tier(box, tier).status == 200
    assert tier_of(box) == (tier, None, None)
    [item] = box.page().xml.findall("Blobs/Blob")
    assert item.findtext("Properties/AccessTier") == tier


REFUSED: dict[str, Callable[[Box], Reply]] = {
    "get": lambda box: box.get(),
    "put": lambda box: box.put(),
    "put page": lambda box: pages.create(box, 512),
    "stage": lambda box: box.put_block("YQ=="),
    "commit": lambda box: box.put_block_list(""),
    "metadata": lambda box: box.blob("PUT", comp="metadata"),
    "properties": lambda box: box.blob("PUT", comp="properties"),
    "snapshot": lambda box: box.blob("PUT", comp="snapshot"),
}
ALLOWED: dict[str, Callable[[Box], Reply]] = {
    "head": lambda box: box.head(),
    "get metadata": lambda box: box.blob("GET", comp="metadata"),
    "get tags": lambda box: box.blob("GET", comp="tags"),
    "set tags": lambda box: box.blob("PUT", comp="tags", body=b"<Tags><TagSet /></Tags>"),
    "lease": lambda box: box.lease("acquire"),
    "archive": lambda box: set_tier(box, "Archive"),
    "delete": lambda box: box.blob("DELETE"),
}


@pytest.mark.parametrize("operation", REFUSED)
def test_an_archived_blob_is_neither_read_nor_written(box: Box, operation: str) -> None:
    # contract G7
    archive(box)
    before = box.head()["ETag"]
    assert REFUSED[operation](box).answer == (409, "BlobArchived")
    set_tier(box, "Hot")
    assert REFUSED[operation](box).answer == (409, "BlobBeingRehydrated")
    assert box.head()["ETag"] == before


@pytest.mark.parametrize("operation", ALLOWED)
def test_what_an_archived_blob_allows(box: Box, operation: str) -> None:
    archive(box)
    assert ALLOWED[operation](box).status < 300


@pytest.mark.parametrize(("priority", "hours"), [("", 15), ("Standard", 15), ("high", 1)])
@pytest.mark.parametrize("tier", ["Hot", "Cool", "Cold"])
def test_rehydration_takes_its_time_by_the_clock(box: Box, tier: str, priority: str, hours: int) -> None:
    archive(box)
    before = box.head()
    reply = set_tier(box, tier, {"x-ms-rehydrate-priority": priority} if priority else None)
    assert reply.status == 202
    expected = (priority or "Standard").capitalize()
    assert tier_of(box) == ("Archive", f"rehydrate-pending-to-{tier.lower()}", expected)
    [item] = box.page().xml.findall("Blobs/Blob")
    assert item.findtext("Properties/ArchiveStatus") == f"rehydrate-pending-to-{tier.lower()}"
    assert item.findtext("Properties/RehydratePriority") == expected
    box.server.move_clock(hours * HOUR - 60)
    assert box.get().answer == (409, "BlobBeingRehydrated")
    box.server.move_clock(60)
    assert tier_of(box) == (tier, None, None)
    assert (box.get().status, box.head()["ETag"]) == (200, before["ETag"])
    assert box.head()["x-ms-access-tier-change-time"] != before["x-ms-access-tier-change-time"]
    assert set_tier(box, "Archive").status == 200
    assert box.get().answer == (409, "BlobArchived")


def test_a_pending_rehydration_goes_on_and_can_only_be_hastened(box: Box) -> None:
    archive(box)
    set_tier(box, "Cool")
    assert set_tier(box, "Cool").status == 202
    for other in ("Hot", "Archive"):
        assert set_tier(box, other).answer == (409, "BlobBeingRehydrated")
    assert set_tier(box, "Cool", {"x-ms-rehydrate-priority": "High"}).status == 202
    assert tier_of(box) == ("Archive", "rehydrate-pending-to-cool", "High")
    assert set_tier(box, "Cool", {"x-ms-rehydrate-priority": "Standard"}).answer == (409, "BlobBeingRehydrated")
    box.server.move_clock(HOUR)
    assert tier_of(box) == ("Cool", None, None)


def test_snapshots_and_versions_have_tiers_of_their_own(box: Box) -> None:
    with settled(box.server, versioning=True):
        version = put_version(box, b"one")
        one = snapshot(box)
    for query in ({"versionid": version}, {"snapshot": one}):
        assert set_tier(box, "Archive", query=query).status == 200
        assert box.get(query=query).answer == (409, "BlobArchived")
        assert box.get().body == b"one"
        assert set_tier(box, "Hot", query=query).status == 202


@pytest.mark.parametrize("tier", ["Warm", "", "P99"])
def test_an_unknown_tier_is_refused(box: Box, tier: str) -> None:
    box.put()
    assert set_tier(box, tier).answer in [(400, "InvalidHeaderValue"), (400, "MissingRequiredHeader")]
    assert set_tier(box, "Hot", {"x-ms-rehydrate-priority": "Low"}).answer == (400, "InvalidHeaderValue")


def test_a_tier_has_to_suit_the_blob_and_the_account(box: Box) -> None:
    box.blob("PUT", headers={"x-ms-blob-type": "AppendBlob"})
    assert set_tier(box, "Cool").answer == (400, "AccessTierNotSupportedForBlobType")
    box.put("block")
    p10 = {"x-ms-access-tier": "P10"}
    assert box.blob("PUT", "block", "tier", p10).answer == (400, "AccessTierNotSupportedForBlobType")
    box.blob("PUT", "page", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"})
    assert box.blob("PUT", "page", "tier", p10).answer == (400, "BlobAccessTierNotSupportedForAccountType")


def test_premium_page_blobs_move_upwards_only(box: Box) -> None:
    with settled(box.server, sku="Premium_LRS"):
        pages.create(box, 64 << 30)
        assert set_tier(box, "P4").answer == (409, "BlobTierInadequateForContentLength")
        assert set_tier(box, "p10").status == 200
        assert tier_of(box)[0] == "P10"
        assert set_tier(box, "P6").answer == (409, "CannotChangeToLowerTier")
        assert set_tier(box, "P20").status == 200


def test_a_lease_is_asked_for_only_when_it_is_named(box: Box) -> None:
    # contract L5
    box.put(headers={"x-ms-tags": "a=1"})
    lease = box.acquire(-1)
    assert set_tier(box, "Cool").status == 200
    assert set_tier(box, "Hot", {"x-ms-lease-id": lease}).status == 200
    other = {"x-ms-lease-id": "00000000-0000-0000-0000-000000000001"}
    assert set_tier(box, "Cool", other).answer == (412, "LeaseIdMismatchWithBlobOperation")
    assert set_tier(box, "Cool", {"x-ms-if-tags": "a='2'"}).answer == (412, "ConditionNotMet")
    assert set_tier(box, "Cool", {"If-Match": '"0x1"'}).status == 200  # which Set Blob Tier ignores


def test_what_set_blob_tier_answers_to_strangers(box: Box) -> None:
    assert set_tier(box, "Cool").answer == (404, "BlobNotFound")
    box.put()
    assert set_tier(box, "Cool", auth=box.sas("r")).answer == (403, "AuthorizationPermissionMismatch")
    assert set_tier(box, "Cool", auth=box.sas("w")).status == 200


SINCE, UNTIL = "x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since"


STATES: dict[str, Callable[[Box], dict[str, str]]] = {
    "blob": lambda box: {},
    "snapshot": lambda box: {"snapshot": snapshot(box)},
    "version": lambda box: {"versionid": put_version(box, b"former")},
}


@pytest.mark.parametrize("state", STATES)
def test_a_delete_may_ask_since_when_the_tier_is_what_it_is(box: Box, state: str) -> None:
    # contract G5
    with settled(box.server, versioning=state == "version"):
        box.put()
        where = STATES[state](box)
        if state == "version":
            box.put()
        box.server.move_clock(60)
        assert set_tier(box, "Cool", query=where).status == 200
        before, after = box.client.date(-30), box.client.date(30)
        for unmet in ({SINCE: after}, {UNTIL: before}):
            assert box.blob("DELETE", headers=unmet, query=where).answer == (412, "ConditionNotMet")
        both = {SINCE: before, UNTIL: after}
        assert box.blob("DELETE", headers=both, query=where).answer == (400, "MultipleConditionHeadersNotSupported")
        assert box.blob("DELETE", headers={UNTIL: "yesterday"}, query=where).answer == (400, "InvalidHeaderValue")
        assert box.head(query=where).status == 200
        assert box.blob("DELETE", headers={SINCE: before}, query=where).status == 202
        assert box.head(query=where).status == 404


def test_a_tier_that_was_never_set_counts_from_the_creation_of_the_blob(box: Box) -> None:
    created = box.put()["Last-Modified"]
    box.server.move_clock(60)
    box.blob("PUT", comp="metadata")
    assert box.blob("DELETE", headers={SINCE: created}).answer == (412, "ConditionNotMet")
    assert box.blob("DELETE", headers={UNTIL: created}).status == 202


def test_what_a_lease_and_an_etag_refuse_is_refused_before_the_tier(box: Box) -> None:
    box.put()
    old = {SINCE: box.client.date(60)}
    assert box.blob("DELETE", headers={**old, "If-Match": '"0x1"'}).answer == (412, "ConditionNotMet")
    lease = {"x-ms-lease-id": box.acquire(-1)}
    assert box.blob("DELETE", headers=old).answer == (412, "LeaseIdMissing")
    assert box.blob("DELETE", headers={UNTIL: box.client.date(60), **lease}).status == 202


def test_a_rehydrated_blob_counts_from_the_moment_it_was_ready(box: Box) -> None:
    archive(box)
    set_tier(box, "Hot", {"x-ms-rehydrate-priority": "High"})
    box.server.move_clock(HOUR + 60)
    assert box.blob("DELETE", headers={UNTIL: box.client.date(-120)}).answer == (412, "ConditionNotMet")
    assert box.blob("DELETE", headers={SINCE: box.client.date(-120)}).status == 202


@pytest.mark.parametrize(("version", "shown"), [("2026-06-06", False), ("2026-10-06", True)])
def test_get_blob_shows_the_tier_to_those_who_know_that_it_does(box: Box, version: str, shown: bool) -> None:
    box.put()
    names = {"x-ms-access-tier", "x-ms-access-tier-inferred", "x-ms-access-tier-change-time"}
    tier = {name: value for name, value in box.get(version=version).headers if name in names}
    assert tier == ({"x-ms-access-tier": "Hot", "x-ms-access-tier-inferred": "true"} if shown else {})
    set_tier(box, "Cold")
    reply, head = box.get(headers={"x-ms-range": "bytes=1-2"}, version=version), box.head(version=version)
    tier = {name: value for name, value in reply.headers if name in names}
    assert tier == ({name: value for name, value in head.headers if name in names} if shown else {})
    assert (reply.status, head["x-ms-access-tier"]) == (206, "Cold")


def test_the_smart_tier_is_refused_where_the_account_is_not_zone_redundant(box: Box) -> None:
    refused = (400, "BlobAccessTierNotSupportedForAccountType")
    assert box.put(headers={"x-ms-access-tier": "Smart"}).answer == refused
    box.put()
    assert set_tier(box, "smart").answer == refused
    assert copy(box, url(box, "blob"), headers={"x-ms-access-tier": "Smart"}).answer == refused
    assert set_tier(box, "Clever").answer == (400, "InvalidHeaderValue")


def smart(reply: Reply) -> tuple[str | None, str | None]:
    return reply.header("x-ms-access-tier"), reply.header("x-ms-smart-access-tier")


def test_a_smart_blob_follows_its_last_access(box: Box) -> None:
    with settled(box.server, sku="Standard_ZRS"):
        assert box.put(headers={"x-ms-access-tier": "Smart"}).status == 201
        assert smart(box.head()) == ("Smart", "Hot")
        assert "x-ms-access-tier-change-time" in box.head()
        assert smart(box.get(version="2026-10-06")) == ("Smart", "Hot")
        box.server.move_clock(30 * 86400)
        assert smart(box.head()) == ("Smart", "Cool")
        properties = box.page().xml.find("Blobs/Blob/Properties")
        assert properties is not None
        names = [one.tag for one in properties]
        assert names[names.index("AccessTierChangeTime") + 1] == "SmartAccessTier"
        assert properties.findtext("SmartAccessTier") == "Cool"
        box.server.move_clock(60 * 86400)
        assert smart(box.head()) == ("Smart", "Cold")
        etag = box.get()["ETag"]  # an access brings it back, and changes nothing else
        assert (smart(box.head()), box.head()["ETag"]) == (("Smart", "Hot"), etag)
        assert set_tier(box, "Archive").status == 200
        assert set_tier(box, "Smart").status == 202
        assert box.head()["x-ms-archive-status"] == "rehydrate-pending-to-smart"


def page_tier(box: Box, name: str = "blob") -> tuple[str | None, str | None, str | None]:
    head = box.head(name)
    return (
        head.header("x-ms-access-tier"),
        head.header("x-ms-access-tier-inferred"),
        head.header("x-ms-access-tier-change-time"),
    )


def listed_tier(box: Box, name: str = "blob") -> tuple[str | None, str | None]:
    found = box.page({"prefix": name}).xml.find("Blobs/Blob/Properties")
    assert found is not None
    return found.findtext("AccessTier"), found.findtext("AccessTierInferred")


def test_the_tier_of_a_premium_page_blob_follows_from_its_size_until_it_is_set(box: Box) -> None:
    """Seen on Azure."""
    page = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
    assert box.blob("PUT", headers=page).status == 201
    assert (page_tier(box), listed_tier(box)) == ((None, None, None), (None, None))
    with settled(box.server, sku="Premium_LRS"):
        assert (page_tier(box), listed_tier(box)) == (("P10", "true", None), ("P10", "true"))
        large = page | {"x-ms-blob-content-length": str(200 << 30)}
        assert box.blob("PUT", "large", headers=large).status == 201
        assert page_tier(box, "large") == ("P15", "true", None)
        assert set_tier(box, "P20").status == 200
        assert (page_tier(box), listed_tier(box)) == (("P20", None, None), ("P20", None))
        assert copy(box, url(box, "blob"), "copied").status == 202
        assert page_tier(box, "copied") == ("P10", "true", None)
        assert copy(box, url(box, "blob"), "risen", {"x-ms-access-tier": "P30"}).status == 202
        assert page_tier(box, "risen") == ("P30", None, None)


def test_the_last_access_time_is_reported_where_the_account_tracks_it(box: Box) -> None:
    box.put()
    assert "x-ms-last-access-time" not in box.get()
    with settled(box.server, last_access_tracking=True):
        made = box.head()["Last-Modified"]
        assert box.head()["x-ms-last-access-time"] == box.get()["x-ms-last-access-time"] == made
        box.server.move_clock(3600)
        box.get()
        assert box.head()["x-ms-last-access-time"] == made  # once in 24 hours
        box.server.move_clock(86400)
        box.head()
        assert box.head()["x-ms-last-access-time"] == made  # only reading the content is an access
        etag, read = box.get()["ETag"], box.client.date()
        after = box.head()
        assert (after["x-ms-last-access-time"] >= read, after["ETag"], after["Last-Modified"]) == (True, etag, made)
        properties = box.page().xml.find("Blobs/Blob/Properties")
        assert properties is not None
        names = [one.tag for one in properties]
        assert names[names.index("Content-Disposition") + 1] == "LastAccessTime"
        box.put_block("AAAA")
        box.put_block_list("<Latest>AAAA</Latest>")
        assert box.head()["x-ms-last-access-time"] == box.head()["Last-Modified"]

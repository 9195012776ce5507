"""Immutability policies and legal holds, of versions and of containers: what they refuse, and how they change."""

from collections.abc import Iterator

import pytest

from tests.rest.client import Box, Reply
from tests.rest.history import protect, settled
from tests.rest.history_fixtures import server  # noqa: F401

BY_POLICY, BY_HOLD = (409, "BlobImmutableDueToPolicy"), (409, "BlobImmutableDueToLegalHold")
UNTIL, MODE, HOLD = "x-ms-immutability-policy-until-date", "x-ms-immutability-policy-mode", "x-ms-legal-hold"
DAY = 86400


def set_policy(box: Box, seconds: float, mode: str = "Unlocked", name: str = "blob", **query: str) -> Reply:
    sent = {UNTIL: box.client.date(seconds), MODE: mode}
    return box.blob("PUT", name, "immutabilityPolicies", sent, query=query)


def set_hold(box: Box, value: str, name: str = "blob", **query: str) -> Reply:
    return box.blob("PUT", name, "legalhold", {HOLD: value}, query=query)


@pytest.fixture
def versions(box: Box) -> Iterator[Box]:
    """A container with version level immutability, in an account with versioning."""
    with settled(box.server, versioning=True):
        assert protect(box, version_level_immutability=True)[0] == 200
        yield box


def test_a_container_without_version_level_immutability_has_no_policies_of_blobs(box: Box) -> None:
    box.put()
    refused = (409, "BlobOperationNotSupported")
    assert set_policy(box, DAY).answer == refused
    assert set_hold(box, "true").answer == refused
    assert box.blob("DELETE", comp="immutabilityPolicies").answer == refused
    assert box.put("new", headers={HOLD: "true"}).answer == refused
    assert box.head("new").status == 404
    assert box.container("HEAD")["x-ms-immutable-storage-with-versioning-enabled"] == "false"


def test_protection_that_comes_with_a_write_needs_its_permission(versions: Box) -> None:
    box = versions
    for headers in ({HOLD: "true"}, {UNTIL: box.client.date(DAY)}, {UNTIL: box.client.date(DAY), MODE: "Unlocked"}):
        for token in (box.sas, box.client.account_sas):
            assert box.put(headers=headers, auth=token("racwdl")).answer == (403, "AuthorizationPermissionMismatch")
        assert box.head().status == 404
        assert box.put("new", headers=headers, auth=box.sas("cwi")).status == 201


def test_a_policy_is_reported_and_refuses_changes_until_its_end(versions: Box) -> None:
    # contract G7
    box = versions
    assert box.container("HEAD")["x-ms-immutable-storage-with-versioning-enabled"] == "true"
    etag = box.put()["ETag"]
    reply = set_policy(box, DAY)
    assert (reply.status, reply[MODE], "ETag" in reply) == (200, "unlocked", False)
    head = box.head()
    assert (head[UNTIL], head[MODE], head["ETag"]) == (reply[UNTIL], "unlocked", etag)
    listed = box.page({"include": "immutabilitypolicy"}).xml.find("Blobs/Blob/Properties")
    assert listed is not None
    assert (listed.findtext("ImmutabilityPolicyUntilDate"), listed.findtext("ImmutabilityPolicyMode")) == (
        reply[UNTIL],
        "unlocked",
    )
    assert box.blob("PUT", comp="metadata", headers={"x-ms-meta-a": "b"}).answer == BY_POLICY
    assert box.blob("PUT", comp="properties", headers={"x-ms-blob-content-type": "a/b"}).answer == BY_POLICY
    assert box.blob("PUT", comp="tags", body=b"<Tags><TagSet /></Tags>").status == 204
    assert box.blob("PUT", comp="snapshot").status == 201
    box.server.move_clock(DAY + 1)
    assert box.blob("PUT", comp="metadata", headers={"x-ms-meta-a": "b"}).status == 200


def test_an_overwrite_makes_a_version_and_the_protected_one_stays(versions: Box) -> None:
    box = versions
    version = box.put()["x-ms-version-id"]
    assert set_policy(box, DAY, versionid=version).status == 200
    assert box.put(body=b"newer").status == 201
    assert "x-ms-immutability-policy-mode" not in box.head()
    assert box.head(query={"versionid": version})[MODE] == "unlocked"
    assert box.blob("DELETE", query={"versionid": version}).answer == BY_POLICY
    assert box.blob("DELETE").status == 202
    assert box.container("DELETE").answer == (409, "ContainerImmutableStorageWithVersioningEnabled")
    assert box.get(query={"versionid": version}).body == b"hello"
    assert box.blob("DELETE", comp="immutabilityPolicies", query={"versionid": version}).status == 200
    assert box.blob("DELETE", query={"versionid": version}).status == 202


def test_a_locked_policy_can_only_be_extended(versions: Box) -> None:
    box = versions
    box.put()
    assert set_policy(box, DAY).status == 200
    assert set_policy(box, DAY / 2).status == 200
    assert set_policy(box, DAY, "Locked")[MODE] == "locked"
    for reply in (set_policy(box, DAY / 2, "Locked"), set_policy(box, 2 * DAY), box.blob("DELETE", comp="immutabilityPolicies")):
        assert reply.answer == BY_POLICY
    assert set_policy(box, 2 * DAY, "Locked").status == 200
    box.server.move_clock(DAY + 60)
    assert box.blob("PUT", comp="metadata").answer == BY_POLICY
    box.server.move_clock(DAY)
    assert box.blob("PUT", comp="metadata").status == 200


def test_what_a_policy_says_is_checked(versions: Box) -> None:
    box = versions
    box.put()
    assert set_policy(box, DAY, "Mutable").answer == (400, "InvalidHeaderValue")  # seen on Azure
    assert set_policy(box, -60).answer == (400, "InvalidHeaderValue")
    assert box.blob("PUT", comp="immutabilityPolicies").answer == (400, "MissingRequiredHeader")
    assert box.blob("PUT", comp="immutabilityPolicies", headers={UNTIL: "tomorrow"}).answer == (400, "InvalidHeaderValue")
    assert box.put("x", headers={MODE: "Locked"}).answer == (400, "MissingRequiredHeader")
    assert set_hold(box, "maybe").answer == (400, "InvalidHeaderValue")
    assert set_policy(box, DAY, name="absent").answer == (404, "BlobNotFound")
    stale = {UNTIL: box.client.date(DAY), "If-Unmodified-Since": box.client.date(-DAY)}
    assert box.blob("PUT", comp="immutabilityPolicies", headers=stale).answer == (412, "ConditionNotMet")


def test_a_legal_hold_refuses_changes_until_it_is_lifted(versions: Box) -> None:
    box = versions
    version = box.put()["x-ms-version-id"]
    reply = set_hold(box, "true")
    assert (reply.status, reply[HOLD], box.head()[HOLD]) == (200, "true", "true")
    assert box.page({"include": "legalhold"}).xml.findtext("Blobs/Blob/Properties/LegalHold") == "true"
    assert box.blob("PUT", comp="metadata").answer == BY_HOLD
    box.server.move_clock(1000 * DAY)
    assert box.put(body=b"newer").status == 201
    assert box.blob("DELETE", query={"versionid": version}).answer == BY_HOLD
    assert set_hold(box, "false", versionid=version)[HOLD] == "false"
    assert box.blob("DELETE", query={"versionid": version}).status == 202


@pytest.mark.parametrize("kind", ["block", "list", "append", "page", "copy"])
def test_a_new_blob_may_bring_its_policy_and_hold(versions: Box, kind: str) -> None:
    box = versions
    sent = {UNTIL: box.client.date(DAY), MODE: "Unlocked", HOLD: "true"}
    if kind == "block":
        reply = box.put(headers=sent)
    elif kind == "list":
        box.put_block("AAAA")
        reply = box.put_block_list("<Latest>AAAA</Latest>", headers=sent)
    elif kind == "copy":
        box.put("source")
        source = f"http://127.0.0.1:{box.server.port}/{box.server.account}{box.path}/source"
        reply = box.blob("PUT", headers=sent | {"x-ms-copy-source": source})
    else:
        size = {"x-ms-blob-content-length": "512"} if kind == "page" else {}
        reply = box.blob("PUT", headers=sent | size | {"x-ms-blob-type": f"{kind.capitalize()}Blob"})
    assert reply.status in (201, 202)
    assert (box.head()[MODE], box.head()[UNTIL], box.head()[HOLD]) == ("unlocked", sent[UNTIL], "true")
    if kind == "append":
        assert box.blob("PUT", comp="appendblock", body=b"x").answer == BY_HOLD
    if kind == "page":
        write = {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"}
        assert box.blob("PUT", comp="page", headers=write).answer == BY_HOLD


def test_a_policy_of_the_container_protects_each_blob_from_its_making_on(box: Box) -> None:
    box.put("old")
    box.server.move_clock(2 * DAY)
    box.put("new")
    box.blob("PUT", "log", headers={"x-ms-blob-type": "AppendBlob"})
    assert protect(box, immutability_days=2) == (
        200,
        {
            "version_level_immutability": False,
            "immutability_days": 2,
            "locked": False,
            "allow_protected_append_writes": False,
            "legal_holds": [],
        },
    )
    head = box.container("HEAD")
    assert (head["x-ms-has-immutability-policy"], head["x-ms-has-legal-hold"]) == ("true", "false")
    assert box.put("new", b"x").answer == BY_POLICY
    assert box.put_block("AAAA", name="new").status == 201
    assert box.put_block_list("<Latest>AAAA</Latest>", "new").answer == BY_POLICY
    assert box.blob("DELETE", "new").answer == BY_POLICY
    assert box.blob("PUT", "log", "appendblock", body=b"x").answer == BY_POLICY
    assert box.put("another").status == 201
    assert box.put("old", b"x").status == 201
    assert box.container("DELETE").answer == (409, "ContainerImmutableDueToPolicy")
    assert protect(box, allow_protected_append_writes=True)[0] == 200
    assert box.blob("PUT", "log", "appendblock", body=b"x").status == 201
    assert box.blob("DELETE", "log").answer == BY_POLICY
    box.server.move_clock(2 * DAY)
    for name in ("new", "log", "another", "old"):
        assert box.blob("DELETE", name).status == 202
    assert box.container("DELETE").status == 202


def test_a_locked_policy_of_a_container_can_only_be_extended(box: Box) -> None:
    assert protect(box, immutability_days=2, locked=True)[0] == 200
    box.put()
    assert box.container("DELETE").answer == (409, "ContainerImmutabilityPolicyLocked")
    assert protect(box, immutability_days=1)[0] == 409
    assert protect(box, locked=False)[0] == 409
    assert protect(box, immutability_days=3)[0] == 200
    assert protect(box, immutability_days=-1)[0] == 400
    assert protect(box, days=1)[0] == 400
    assert protect(Box(box.client), immutability_days=1)[0] == 404


def test_a_legal_hold_of_a_container_protects_all_of_it(box: Box) -> None:
    box.put()
    assert protect(box, legal_holds=["case1"])[0] == 200
    assert box.put(body=b"x").answer == BY_HOLD
    assert box.blob("DELETE").answer == BY_HOLD
    assert box.container("DELETE").answer == (409, "ContainerHasLegalHold")
    listed = box.client.send("GET", "", {"comp": "list", "prefix": box.name}).xml.find("Containers/Container/Properties")
    assert listed is not None
    assert listed.findtext("HasLegalHold") == "true"
    assert protect(box, legal_holds=[])[0] == 200
    assert box.blob("DELETE").status == 202


def test_the_account_may_enable_version_level_immutability_for_new_containers(box: Box) -> None:
    with settled(box.server, versioning=True, version_level_immutability=True):
        other = Box(box.client).create()
        other.put()
        assert set_policy(other, DAY).status == 200
        assert "BlobOperationNotSupported" in str(set_policy(box, DAY).answer) or set_policy(box, DAY).status == 404

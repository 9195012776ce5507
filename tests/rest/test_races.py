"""Defects of other servers that sequential requests can show. Those that need parallel requests are in tests/simulation."""

import pytest

from tests.rest.client import Box

A = "aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa"
B = "bbbbbbbb-0000-0000-0000-bbbbbbbbbbbb"
HELD = {"x-ms-lease-id": A}


def test_a_lease_that_expired_before_a_write_cannot_be_renewed(box: Box) -> None:
    # race L1
    for comp in ("", "metadata", "properties"):
        box.put()
        box.acquire(15, lease_id=A)
        box.server.move_clock(15)
        assert (box.blob("PUT", comp=comp) if comp else box.put()).status in (200, 201)
        assert box.head()["x-ms-lease-state"] == "available"
        assert box.lease("renew", HELD).answer == (409, "LeaseIdMismatchWithLeaseOperation")


def test_a_lease_that_expired_without_a_write_can_be_renewed(box: Box) -> None:
    # race L1
    box.put()
    box.acquire(15, lease_id=A)
    box.server.move_clock(15)
    box.get()
    assert box.lease("renew", HELD).status == 200
    assert box.put().answer == (412, "LeaseIdMissing")


def test_a_write_with_the_id_of_an_expired_lease_is_told_that_it_is_lost(box: Box) -> None:
    # race L2, contract L3
    before = box.put()["ETag"]
    box.acquire(15, lease_id=A)
    box.server.move_clock(15)
    assert box.put(body=b"late", headers=HELD).answer == (412, "LeaseLost")
    assert box.head()["ETag"] == before
    assert box.head()["x-ms-lease-state"] == "expired"


def test_the_lease_is_looked_at_before_the_condition(box: Box) -> None:
    # race L3
    box.put()
    only_new = {"If-None-Match": "*"}
    assert box.put(headers=only_new).answer == (409, "BlobAlreadyExists")
    box.acquire(-1, lease_id=A)
    assert box.put(headers=only_new).answer == (412, "LeaseIdMissing")
    assert box.put(headers=only_new | {"x-ms-lease-id": B}).answer == (412, "LeaseIdMismatchWithBlobOperation")
    assert box.put(body=b"by the holder", headers=only_new | HELD).status == 201
    assert box.get().body == b"by the holder"


def test_an_expired_lease_is_released_once(box: Box) -> None:
    # race L4
    box.put()
    box.acquire(15, lease_id=A)
    box.server.move_clock(15)
    assert box.lease("release", HELD).status == 200
    assert box.lease("release", HELD).answer == (409, "LeaseIdMismatchWithLeaseOperation")


def test_a_break_with_a_period_does_not_break_at_once(box: Box) -> None:
    # race L5
    box.put()
    box.acquire(-1, lease_id=A)
    box.lease("break", {"x-ms-lease-break-period": "10"})
    assert box.put().answer == (412, "LeaseIdMissing")
    assert box.put(headers=HELD).status == 201
    box.server.move_clock(10)
    assert box.put().status == 201


def test_a_lease_can_be_changed_to_the_id_it_has(box: Box) -> None:
    # race L5
    box.put()
    box.acquire(-1, lease_id=A)
    reply = box.lease("change", {"x-ms-lease-id": A, "x-ms-proposed-lease-id": A})
    assert (reply.status, reply["x-ms-lease-id"]) == (200, A)


def test_a_lease_outlives_every_overwrite_by_its_holder(box: Box) -> None:
    # race L5, contract L7
    box.put()
    box.acquire(-1, lease_id=A)
    box.put(headers=HELD)
    box.put_block("AAAA", headers=HELD)
    assert box.put_block_list("<Latest>AAAA</Latest>", headers=HELD).status == 201
    box.blob("PUT", comp="metadata", headers=HELD)
    reply = box.head()
    assert (reply["x-ms-lease-state"], reply["x-ms-lease-duration"]) == ("leased", "infinite")


def test_writes_do_not_extend_a_lease(box: Box) -> None:
    box.put()
    box.acquire(15, lease_id=A)
    box.server.move_clock(14)
    assert box.put(headers=HELD).status == 201
    box.server.move_clock(1)
    assert box.head()["x-ms-lease-state"] == "expired"


@pytest.mark.parametrize("etag", ["*", '"0x8D0000000000000"'])
def test_if_match_never_creates_a_blob(box: Box, etag: str) -> None:
    # race E1
    condition = {"If-Match": etag}
    assert box.put(headers=condition).answer == (412, "ConditionNotMet")
    box.put_block("AAAA")
    assert box.put_block_list("<Latest>AAAA</Latest>", headers=condition).answer == (412, "ConditionNotMet")
    for comp in ("metadata", "properties", "snapshot"):
        assert box.blob("PUT", comp=comp, headers=condition).answer == (404, "BlobNotFound")
    assert box.lease("acquire", condition).answer == (404, "BlobNotFound")
    assert box.blob("DELETE", headers=condition).answer == (412, "ConditionNotMet")  # the uncommitted blob has no ETag
    assert box.names({"include": "uncommittedblobs"}) == ["blob"]


def test_an_unchanged_blob_is_304_to_readers_and_412_to_writers(box: Box) -> None:
    # race E4
    box.put()
    future = {"If-Modified-Since": box.client.date(3600)}
    assert box.get(headers=future).answer == (304, "ConditionNotMet")
    assert box.head(headers=future).answer == (304, "ConditionNotMet")
    assert box.blob("PUT", comp="metadata", headers=future).answer == (412, "ConditionNotMet")


def test_a_date_that_says_null_is_no_condition(box: Box) -> None:
    # race E4
    box.put()
    for header in ("If-Unmodified-Since", "If-Modified-Since"):
        assert box.get(headers={header: "null"}).status == 200


def test_a_weak_etag_never_matches(box: Box) -> None:
    # race E8
    etag = box.put()["ETag"]
    for weak in (f"W/{etag}", 'W/"wrong"'):
        assert box.put(headers={"If-Match": weak}).answer == (412, "ConditionNotMet")
        assert box.get(headers={"If-None-Match": weak}).status == 200


def test_every_change_has_a_new_etag_and_a_later_date(box: Box) -> None:
    # race E6, race E12
    seen = [box.put()]
    for comp in ("metadata", "properties", "metadata"):
        box.server.move_clock(1)
        seen.append(box.blob("PUT", comp=comp))
    etags = [reply["ETag"] for reply in seen]
    dates = [reply["Last-Modified"] for reply in seen]
    assert etags == sorted(set(etags))
    assert len(set(dates)) == 4


def test_a_commit_honours_its_conditions(box: Box) -> None:
    # race E11
    etag = box.put(body=b"old")["ETag"]
    box.put_block("AAAA", b"new")
    commit = "<Latest>AAAA</Latest>"
    assert box.put_block_list(commit, headers={"If-None-Match": "*"}).answer == (409, "BlobAlreadyExists")
    assert box.put_block_list(commit, headers={"If-Match": '"0x1"'}).answer == (412, "ConditionNotMet")
    assert box.get().body == b"old"
    assert box.put_block_list(commit, headers={"If-Match": etag}).status == 201
    assert box.get().body == b"new"


def test_reads_leave_everything_as_it_is(box: Box) -> None:
    # race G3
    box.put(headers={"x-ms-meta-a": "1", "x-ms-tags": "t=1"})
    box.put_block("AAAA")
    moment = box.blob("PUT", comp="snapshot")["x-ms-snapshot"]
    box.acquire(-1, lease_id=A)
    every = {"include": "metadata,snapshots,uncommittedblobs,tags"}
    before = box.page(every).body
    for method, comp in (("GET", ""), ("HEAD", ""), ("GET", "metadata"), ("GET", "blocklist")):
        box.blob(method, comp=comp)
        box.blob(method, comp=comp, query={"snapshot": moment})
    box.page()
    box.page({"delimiter": "/"})
    box.client.send("GET", "", {"comp": "list"})
    assert box.page(every).body == before

"""The three concurrency strategies: last writer wins, optimistic with an ETag, pessimistic with a lease."""

from tests.rest.client import Box


def test_without_condition_or_lease_the_last_writer_wins(box: Box) -> None:
    # contract G1
    assert box.put(body=b"first").status == 201
    assert box.put(body=b"second").status == 201
    assert box.get().body == b"second"


def test_with_an_etag_the_writer_that_saw_the_latest_version_wins(box: Box) -> None:
    # contract G1, B1
    seen = box.put(body=b"first")["ETag"]
    assert box.put(body=b"second", headers={"If-Match": seen}).status == 201
    assert box.put(body=b"third", headers={"If-Match": seen}).answer == (412, "ConditionNotMet")
    assert box.get().body == b"second"


def test_with_a_lease_its_holder_wins(box: Box) -> None:
    # contract G1, L3
    box.put(body=b"first")
    lease = box.acquire()
    assert box.put(body=b"second").answer == (412, "LeaseIdMissing")
    assert box.put(body=b"third", headers={"x-ms-lease-id": lease}).status == 201
    assert box.get().body == b"third"

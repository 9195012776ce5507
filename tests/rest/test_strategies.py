"""The three ways to write beside others: whoever comes last, whoever saw the latest, whoever holds the lease."""

from tests.rest.client import Box


def test_without_condition_or_lease_the_last_writer_wins(box: Box) -> None:
    # contract G1
    assert box.put(body=b"first").status == 201
    assert box.put(body=b"second").status == 201
    assert box.get().body == b"second"


def test_with_an_etag_whoever_saw_the_latest_version_wins(box: Box) -> None:
    # contract G1, B1
    seen = box.put(body=b"first")["ETag"]
    assert box.put(body=b"second", headers={"If-Match": seen}).status == 201
    assert box.put(body=b"third", headers={"If-Match": seen}).answer == (412, "ConditionNotMet")
    assert box.get().body == b"second"


def test_with_a_lease_whoever_holds_it_wins(box: Box) -> None:
    # contract G1, L3
    box.put(body=b"first")
    lease = box.acquire()
    assert box.put(body=b"second").answer == (412, "LeaseIdMissing")
    assert box.put(body=b"third", headers={"x-ms-lease-id": lease}).status == 201
    assert box.get().body == b"third"

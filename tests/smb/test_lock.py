"""LOCK: which requests are valid, what conflicts, waiting and cancelling."""

import pytest
from smbprotocol.connection import Request

from tests.smb.mounted import CREATE, DIRECTORY_FILE, Mounted, refused
from tests.smb.requests import EXCLUSIVE_LOCK, FAIL_IMMEDIATELY, SHARED_LOCK, UNLOCK, lock, lock_message, send, start, unlock
from verditer.smb.status import Status


def test_exclusive_locks_exclude_and_shared_locks_share(mounted: Mounted, mounted_again: Mounted) -> None:
    handle, other = mounted.make("file", b"0123456789"), mounted_again.open("file")
    lock(handle, 0, 5, EXCLUSIVE_LOCK)
    for flags in (EXCLUSIVE_LOCK, SHARED_LOCK):
        with refused(Status.LOCK_NOT_GRANTED):
            lock(other, 4, 2, flags)
    lock(other, 5, 2, SHARED_LOCK)
    lock(handle, 6, 2, SHARED_LOCK)
    with refused(Status.LOCK_NOT_GRANTED):
        lock(handle, 6, 1, EXCLUSIVE_LOCK)
    unlock(handle, 0, 5)
    lock(other, 4, 1, EXCLUSIVE_LOCK)
    handle.close()
    other.close()


def test_an_own_shared_lock_stacks_on_an_exclusive_one(mounted: Mounted) -> None:
    """So does the Linux client: it unlocks both with one request."""
    handle = mounted.make("file", b"0123456789")
    lock(handle, 0, 5, EXCLUSIVE_LOCK)
    lock(handle, 0, 5, SHARED_LOCK)
    send(handle, lock_message(handle, (0, 5, UNLOCK), (0, 5, UNLOCK)))
    with refused(Status.RANGE_NOT_LOCKED):
        unlock(handle, 0, 5)
    handle.close()


@pytest.mark.parametrize(
    ("elements", "status"),
    [
        ([(0, 1, 0)], Status.INVALID_PARAMETER),
        ([(0, 1, SHARED_LOCK | EXCLUSIVE_LOCK)], Status.INVALID_PARAMETER),
        ([(0, 1, UNLOCK | FAIL_IMMEDIATELY)], Status.INVALID_PARAMETER),
        ([(0, 1, EXCLUSIVE_LOCK), (5, 1, EXCLUSIVE_LOCK)], Status.INVALID_PARAMETER),
        ([(0, 1, EXCLUSIVE_LOCK | FAIL_IMMEDIATELY), (5, 1, UNLOCK)], Status.INVALID_PARAMETER),
        ([(2**64 - 1, 2, EXCLUSIVE_LOCK | FAIL_IMMEDIATELY)], Status.INVALID_LOCK_RANGE),
        ([(3, 3, UNLOCK)], Status.RANGE_NOT_LOCKED),
    ],
)
def test_requests_that_make_no_sense_are_refused(mounted: Mounted, elements: list[tuple[int, int, int]], status: Status) -> None:
    handle = mounted.make("file")
    with refused(status):
        send(handle, lock_message(handle, *elements))
    handle.close()


def test_a_directory_has_no_ranges(mounted: Mounted) -> None:
    handle = mounted.open("dir", disposition=CREATE, options=DIRECTORY_FILE)
    with refused(Status.INVALID_PARAMETER):
        lock(handle, 0, 1, EXCLUSIVE_LOCK)
    handle.close()


def test_unlocks_before_an_element_of_another_kind_are_done(mounted: Mounted) -> None:
    handle = mounted.make("file")
    lock(handle, 0, 1, EXCLUSIVE_LOCK)
    with refused(Status.INVALID_PARAMETER):
        send(handle, lock_message(handle, (0, 1, UNLOCK), (5, 1, EXCLUSIVE_LOCK | FAIL_IMMEDIATELY)))
    with refused(Status.RANGE_NOT_LOCKED):
        unlock(handle, 0, 1)
    handle.close()


def test_a_request_with_several_locks_takes_all_or_none(mounted: Mounted, mounted_again: Mounted) -> None:
    handle, other = mounted.make("file"), mounted_again.open("file")
    lock(other, 10, 1, EXCLUSIVE_LOCK)
    with refused(Status.LOCK_NOT_GRANTED):
        send(handle, lock_message(handle, (0, 1, EXCLUSIVE_LOCK | FAIL_IMMEDIATELY), (10, 1, EXCLUSIVE_LOCK | FAIL_IMMEDIATELY)))
    lock(other, 0, 1, EXCLUSIVE_LOCK)
    handle.close()
    other.close()


def test_a_lock_waits_for_its_turn(mounted: Mounted, mounted_again: Mounted) -> None:
    handle, other = mounted.make("file"), mounted_again.open("file")
    lock(handle, 0, 10, EXCLUSIVE_LOCK)
    waiting: Request = start(other, lock_message(other, (5, 1, EXCLUSIVE_LOCK)))
    unlock(handle, 0, 10)
    other.connection.receive(waiting)
    with refused(Status.LOCK_NOT_GRANTED):
        lock(handle, 5, 1, SHARED_LOCK)
    handle.close()
    other.close()


def test_a_waiting_lock_can_be_cancelled(mounted: Mounted, mounted_again: Mounted) -> None:
    handle, other = mounted.make("file"), mounted_again.open("file")
    lock(handle, 0, 10, EXCLUSIVE_LOCK)
    waiting: Request = start(other, lock_message(other, (5, 1, EXCLUSIVE_LOCK)))
    waiting.cancel()
    with refused(Status.CANCELLED):
        other.connection.receive(waiting)
    handle.close()
    lock(other, 5, 1, EXCLUSIVE_LOCK)
    other.close()


def test_a_waiting_lock_ends_with_its_handle(mounted: Mounted, mounted_again: Mounted) -> None:
    handle, other = mounted.make("file"), mounted_again.open("file")
    lock(handle, 0, 10, EXCLUSIVE_LOCK)
    waiting: Request = start(other, lock_message(other, (5, 1, EXCLUSIVE_LOCK)))
    other.close()
    with refused(Status.RANGE_NOT_LOCKED):
        mounted_again.connection.receive(waiting)
    handle.close()

"""Oplocks: who gets one, what breaks it, and that the breaking request waits for the holder, over SMB and over REST."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from azure.storage.fileshare import ContentSettings, ShareClient, ShareFileClient

from tests.smb.breaks import BATCH, EXCLUSIVE, LEVEL_II, NO_OPLOCK, BreakReceiver, acknowledge
from tests.smb.mounted import ALL_ACCESS, OPEN, OVERWRITE, READ_ATTRIBUTES, READ_DATA, SHARE_ALL, SHARE_NONE, Mounted, refused
from tests.smb.test_interplay import answer
from verditer.smb.status import Status


@pytest.fixture
def breaks(mounted: Mounted) -> BreakReceiver:
    mounted.put("file", b"12345")
    return BreakReceiver(mounted)


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    """Runs requests that wait for a break."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.mark.parametrize("level", [LEVEL_II, EXCLUSIVE, BATCH])
def test_the_only_handle_gets_what_it_asks_for(mounted: Mounted, breaks: BreakReceiver, level: int) -> None:
    handle = mounted.open("file", oplock=level)
    assert handle.oplock_level == level
    handle.close()
    assert breaks.is_empty()


def test_a_lease_is_declined(mounted: Mounted, breaks: BreakReceiver) -> None:
    handle = mounted.open("file", oplock=0xFF)
    assert handle.oplock_level == NO_OPLOCK
    handle.close()


def test_another_open_waits_until_the_holder_has_acknowledged(
    mounted: Mounted, mounted_again: Mounted, breaks: BreakReceiver, beside: ThreadPoolExecutor
) -> None:
    handle = mounted.open("file", oplock=BATCH)
    other = beside.submit(mounted_again.open, "file", oplock=BATCH)
    assert breaks.next() == (LEVEL_II, handle.file_id)
    assert not other.done()
    assert acknowledge(handle, LEVEL_II) == LEVEL_II
    assert other.result().oplock_level == LEVEL_II
    other.result().close()
    handle.close()


def test_a_holder_may_close_instead_of_acknowledging(
    mounted: Mounted, mounted_again: Mounted, breaks: BreakReceiver, beside: ThreadPoolExecutor
) -> None:
    handle = mounted.open("file", share=0, oplock=BATCH)
    other = beside.submit(mounted_again.open, "file")
    breaks.next()
    handle.close()
    other.result().close()


def test_an_overwrite_breaks_to_nothing(
    mounted: Mounted, mounted_again: Mounted, breaks: BreakReceiver, beside: ThreadPoolExecutor
) -> None:
    handle = mounted.open("file", oplock=EXCLUSIVE)
    other = beside.submit(mounted_again.open, "file", disposition=OVERWRITE)
    assert breaks.next() == (NO_OPLOCK, handle.file_id)
    acknowledge(handle, NO_OPLOCK)
    other.result().close()
    handle.close()


def test_a_handle_for_attributes_breaks_nothing(mounted: Mounted, mounted_again: Mounted, breaks: BreakReceiver) -> None:
    handle = mounted.open("file", oplock=BATCH)
    mounted_again.open("file", READ_ATTRIBUTES, SHARE_ALL, OPEN).close()
    assert breaks.is_empty()
    handle.close()


def test_a_write_breaks_what_others_cache(mounted: Mounted, mounted_again: Mounted, breaks: BreakReceiver) -> None:
    handle = mounted.open("file", oplock=LEVEL_II)
    other = mounted_again.open("file")
    other.write(b"x")
    assert breaks.next() == (NO_OPLOCK, handle.file_id)
    other.close()
    handle.close()


def test_an_acknowledgment_of_nothing_is_refused(mounted: Mounted, breaks: BreakReceiver) -> None:
    handle = mounted.open("file", oplock=BATCH)
    with refused(Status.INVALID_OPLOCK_PROTOCOL):
        acknowledge(handle, LEVEL_II)
    handle.close()


def test_a_rest_read_waits_until_the_holder_has_written_back(
    mounted: Mounted, sdk: ShareClient, breaks: BreakReceiver, beside: ThreadPoolExecutor
) -> None:  # contract F5
    handle = mounted.open("file", oplock=BATCH)
    file = sdk.get_file_client("file")
    reading: Future[bytes] = beside.submit(lambda: bytes(file.download_file().readall()))
    assert breaks.next() == (LEVEL_II, handle.file_id)
    assert not reading.done()
    handle.write(b"abcde")  # what the client had cached
    acknowledge(handle, LEVEL_II)
    assert reading.result() == b"abcde"
    assert file.download_file().readall() == b"abcde"
    assert breaks.is_empty()
    handle.close()


def test_a_rest_write_ends_all_caching(
    mounted: Mounted, sdk: ShareClient, breaks: BreakReceiver, beside: ThreadPoolExecutor
) -> None:  # contract F5
    handle = mounted.open("file", oplock=BATCH)
    file = sdk.get_file_client("file")
    writing = beside.submit(file.upload_range, b"abc", 0, 3)
    assert breaks.next() == (NO_OPLOCK, handle.file_id)
    acknowledge(handle, NO_OPLOCK)
    writing.result()
    assert handle.read(0, 5) == b"abc45"
    handle.close()
    reader = mounted.open("file", READ_DATA, oplock=LEVEL_II)
    file.upload_range(b"xyz", 0, 3)
    assert breaks.next() == (NO_OPLOCK, reader.file_id)
    assert reader.read(0, 5) == b"xyz45"
    reader.close()


def test_listing_a_directory_breaks_nothing(mounted: Mounted, sdk: ShareClient, breaks: BreakReceiver) -> None:
    handle = mounted.open("file", ALL_ACCESS, oplock=BATCH)
    assert [entry.name for entry in sdk.list_directories_and_files()] == ["file"]
    assert breaks.is_empty()
    handle.close()


def test_a_holder_in_the_way_may_close_before_a_rest_request_is_refused(
    mounted: Mounted, sdk: ShareClient, breaks: BreakReceiver, beside: ThreadPoolExecutor
) -> None:  # contract F2
    file = sdk.get_file_client("file")
    for closes in (False, True):
        handle = mounted.open("file", ALL_ACCESS, SHARE_NONE, oplock=BATCH)
        asked = beside.submit(answer, lambda: file.download_file().readall())
        assert breaks.next() == (LEVEL_II, handle.file_id)
        assert not asked.done()
        if closes:
            handle.close()
        else:
            acknowledge(handle, LEVEL_II)
        assert asked.result() == ("ok" if closes else "SharingViolation")
        if not closes:
            handle.close()


READS = {EXCLUSIVE: LEVEL_II, BATCH: LEVEL_II}
WRITES = {LEVEL_II: NO_OPLOCK, EXCLUSIVE: NO_OPLOCK, BATCH: NO_OPLOCK}
CLOSES = {BATCH: LEVEL_II}
REST_BREAKS: dict[str, tuple[Callable[[ShareFileClient], object], dict[int, int]]] = {
    "get": (lambda file: file.download_file().readall(), READS),
    "get properties": (lambda file: file.get_file_properties(), READS),
    "list ranges": (lambda file: file.get_ranges(), READS),
    "put range": (lambda file: file.upload_range(b"abc", 0, 3), WRITES),
    "set properties": (lambda file: file.set_http_headers(ContentSettings(content_type="text/plain")), WRITES),
    "set metadata": (lambda file: file.set_file_metadata({"a": "b"}), WRITES),
    "delete": (lambda file: file.delete_file(), CLOSES),
    "list handles": (lambda file: list(file.list_handles()), {}),
}
"""Operation → how the SDK calls it, and the level that each level goes back to before it is answered."""


@pytest.mark.parametrize("operation", REST_BREAKS)
def test_every_rest_operation_breaks_what_microsofts_table_says(
    mounted: Mounted, sdk: ShareClient, breaks: BreakReceiver, beside: ThreadPoolExecutor, operation: str
) -> None:  # contract F5
    call, levels = REST_BREAKS[operation]
    file = sdk.get_file_client("file")
    for level in (LEVEL_II, EXCLUSIVE, BATCH):
        handle = mounted.open("file", oplock=level)
        asked = beside.submit(answer, lambda: call(file))
        if level in levels:
            assert breaks.next() == (levels[level], handle.file_id)
            if level != LEVEL_II:
                assert not asked.done()
                acknowledge(handle, levels[level])
        assert asked.result() == ("SharingViolation" if operation == "delete" else "ok")
        assert breaks.is_empty()
        handle.close()

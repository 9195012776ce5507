"""While a copy from another server into a file is pending, SMB clients read the file and do not change it, as over REST."""

import threading
from collections.abc import Iterator

import pytest
from azure.storage.fileshare import ShareClient, ShareFileClient

from tests.rest.copies import Elsewhere, File, elsewhere, wait_for
from tests.smb.mounted import ALL_ACCESS, DELETE, DELETE_ON_CLOSE, OVERWRITE, READ_DATA, WRITE_DATA, Mounted, refused
from tests.smb.requests import rename, set_disposition, set_end_of_file
from verditer.smb.status import Status

BODY = b"from elsewhere"


@pytest.fixture
def source() -> Iterator[Elsewhere]:
    with elsewhere() as source:
        yield source


@pytest.fixture
def copied(sdk: ShareClient) -> ShareFileClient:
    return sdk.get_file_client("copy")


def begin(copied: ShareFileClient, source: Elsewhere) -> threading.Event:
    """Start a copy that stays pending until the event is set."""
    gate = threading.Event()
    copied.start_copy_from_url(source.add("file", File(BODY, {"ETag": '"one"'}, gate=gate)))
    return gate


def finish(copied: ShareFileClient, gate: threading.Event) -> None:
    gate.set()
    wait_for(lambda: copied.get_file_properties().copy.status == "success")
    assert copied.download_file().readall() == BODY


def test_a_file_is_opened_for_reading_only_while_a_copy_into_it_is_pending(
    mounted: Mounted, copied: ShareFileClient, source: Elsewhere
) -> None:
    gate = begin(copied, source)
    for access, how in ((WRITE_DATA, {}), (DELETE, {"options": DELETE_ON_CLOSE}), (ALL_ACCESS, {"disposition": OVERWRITE})):
        with refused(Status.SHARING_VIOLATION):
            mounted.open("copy", access, **how)
    opened = mounted.open("copy", READ_DATA)
    assert opened.read(0, 100) == bytes(len(BODY))
    opened.close()
    finish(copied, gate)
    mounted.open("copy", WRITE_DATA).close()


def test_a_handle_that_was_open_before_changes_nothing_while_a_copy_is_pending(
    mounted: Mounted, copied: ShareFileClient, source: Elsewhere
) -> None:
    opened, other = mounted.make("copy", b"before"), mounted.make("other")
    gate = begin(copied, source)
    with refused(Status.SHARING_VIOLATION):
        opened.write(b"lost")
    with refused(Status.SHARING_VIOLATION):
        set_end_of_file(opened, 3)
    with refused(Status.SHARING_VIOLATION):
        rename(opened, "moved")
    with refused(Status.SHARING_VIOLATION):
        set_disposition(opened, delete=True)
    opened.close()
    with refused(Status.SHARING_VIOLATION):
        rename(other, "copy", replace=True)
    other.close()
    finish(copied, gate)

"""Files that Samba's smbtorture holds open with every share mode, and what the SDK may do with them over REST meanwhile.

`smb2.hold-sharemode` opens a file for each share mode with full access, and keeps all of them open until it is interrupted.
`tests/smb` has the complete table of access, share modes, locks and deletion with smbprotocol.
"""

import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareClient, ShareFileClient

from tests.smb_judges.target import Target

pytestmark = pytest.mark.verditer

PATIENCE_SECONDS = 60.0
FOLDER = "sharemode_hold_test"
MODES = ("N", "R", "W", "D", "RW", "RD", "WD", "RWD")

OPERATIONS: dict[str, tuple[Callable[[ShareFileClient], object], set[str]]] = {
    "Create File": (lambda file: file.create_file(1024), {"WD", "RWD"}),
    "Get File": (lambda file: file.download_file().readall(), {"R", "RW", "RD", "RWD"}),
    "Set File Properties": (lambda file: file.resize_file(1024), {"W", "RW", "WD", "RWD"}),
    "Set File Metadata": (lambda file: file.set_file_metadata({"a": "b"}), {"W", "RW", "WD", "RWD"}),
    "Put Range": (lambda file: file.upload_range(b"x", 0, 1), {"W", "RW", "WD", "RWD"}),
    "List Ranges": (lambda file: list(file.list_ranges()), {"R", "RW", "RD", "RWD"}),
    "Get File Properties": (lambda file: file.get_file_properties(), set(MODES)),
    "Delete File": (lambda file: file.delete_file(), set()),
    "Lease File": (lambda file: file.acquire_lease(), set()),
}
"""Operation → how the SDK calls it, and the share modes that allow it. The holder has access to read, write and delete."""


@pytest.fixture(scope="module")
def holder(target: Target) -> Iterator[subprocess.Popen[str]]:
    words = ["smbtorture", target.unc, "-p", str(target.port), "-A", str(target.authentication_file()), "--configfile=/dev/null"]
    holder = subprocess.Popen([*words, "smb2.hold-sharemode"], stdout=subprocess.DEVNULL, text=True)
    yield holder
    holder.kill()
    holder.wait()


@pytest.fixture
def folder(holder: subprocess.Popen[str], share: ShareClient) -> str:
    """The folder of the held files, once every one of them is open."""
    assert holder.poll() is None
    wait_for(lambda: len(handles(share)) == len(MODES))
    return FOLDER


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def handles(share: ShareClient) -> set[str]:
    """The paths of the files that are open, as the SDK lists them."""
    found = share.get_directory_client("").list_handles(recursive=True)
    return {handle["path"] for handle in found if handle["path"].startswith(f"{FOLDER}/")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_share_mode_of_a_held_file_decides_about_rest(share: ShareClient, folder: str, operation: str, mode: str) -> None:
    # contract F2
    call, allowing = OPERATIONS[operation]
    file = share.get_file_client(f"{folder}/{mode}")
    if mode in allowing:
        if operation == "Put Range":
            file.resize_file(1024)  # the held files are empty
        call(file)
        return
    with pytest.raises(HttpResponseError) as refused:
        call(file)
    assert (refused.value.status_code, getattr(refused.value, "error_code", "")) == (409, "SharingViolation")


def test_rest_lists_the_held_files_and_their_folder(share: ShareClient, folder: str) -> None:
    assert handles(share) == {f"{folder}/{mode}" for mode in MODES}
    listed = {entry.name for entry in share.get_directory_client(folder).list_directories_and_files()}
    assert set(MODES) <= listed


def test_closing_a_handle_by_force_lets_rest_in(share: ShareClient, folder: str, holder: subprocess.Popen[str]) -> None:
    """The last test of the file: the holder loses its files, one by force and the others with its connection."""
    file = share.get_file_client(f"{folder}/N")
    assert file.close_all_handles()["closed_handles_count"] == 1
    file.delete_file()
    holder.kill()
    wait_for(lambda: handles(share) == set())
    for mode in MODES[1:]:
        share.get_file_client(f"{folder}/{mode}").delete_file()

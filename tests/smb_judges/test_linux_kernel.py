"""The Linux kernel client: a share mounted in a guest, at every dialect and encrypted, and used as a file system."""

from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient

from tests.smb_judges.guest import run_in_guest
from tests.smb_judges.target import Target

SCENARIO = (Path(__file__).parent / "kernel_scenario.sh").read_text()
TWO_MOUNTS = (Path(__file__).parent / "two_mounts_scenario.sh").read_text()
LAST_LINE = "all of it worked"
BOTH_PROTOCOLS = """
[ "$(dd if='from rest' 2>/dev/null)" = "written with REST" ]
printf "written in the guest" > fromkernel
"""


@pytest.mark.parametrize("options", ["vers=2.1", "vers=3.0", "vers=3.0.2", "vers=3.1.1", "vers=3.1.1,seal", "vers=3.0,seal"])
def test_a_mounted_share_is_a_file_system(target: Target, options: str) -> None:
    done = run_in_guest(target, SCENARIO.replace("DIRECTORY", options.replace(",", "-")), options)
    assert (done.status, done.output.rstrip().splitlines()[-1:]) == (0, [LAST_LINE]), done.output


def test_two_mounts_see_each_others_files_and_locks(target: Target) -> None:
    """`nosharesock` gives the second mount a connection of its own, as on another machine. `closetimeo` closes handles at once:
    with the oplock of a handle that the client keeps for later, it would also keep locks to itself."""
    done = run_in_guest(target, TWO_MOUNTS, "vers=3.1.1,closetimeo=0", "vers=3.1.1,nosharesock,closetimeo=0")
    assert (done.status, done.output.rstrip().splitlines()[-1:]) == (0, [LAST_LINE]), done.output


@pytest.mark.verditer
def test_rest_and_a_mount_see_each_others_files(target: Target, share: ShareClient) -> None:
    # contract F5
    share.get_file_client("from rest").upload_file(b"written with REST")
    done = run_in_guest(target, BOTH_PROTOCOLS, "vers=3.1.1")
    assert done.status == 0, done.output
    assert share.get_file_client("fromkernel").download_file().readall() == b"written in the guest"

"""`az storage share`, `directory` and `file` with a connection string. az takes a path without a dot for a directory."""

from pathlib import Path

from azure.storage.fileshare import ShareClient

from tests.clients.conftest import share_contents
from tests.clients.test_az import Az, az, name
from tests.clients.tree import make_share_tree, read_tree

__all__ = ["az", "name"]  # fixtures


def test_a_tree_goes_up_in_a_batch_and_comes_back(az: Az, share: ShareClient, tmp_path: Path) -> None:
    tree = make_share_tree(tmp_path / "tree")
    here = share.share_name
    az("file", "upload-batch", "--source", tmp_path / "tree", "--destination", here, "--no-progress")
    assert share_contents(share.get_directory_client()) == tree
    (tmp_path / "back").mkdir()
    az("file", "download-batch", "--source", here, "--destination", tmp_path / "back", "--no-progress")
    assert read_tree(tmp_path / "back") == tree
    az("file", "delete-batch", "--source", here, "--pattern", "sizes/*")
    left = set(share_contents(share.get_directory_client()))
    assert left == {path for path in tree if not path.startswith("sizes/")}


def test_shares_are_made_described_and_deleted(az: Az, name: str) -> None:
    assert az("share", "create", "--name", name, "--metadata", "colour=green", "--quota", "3") == {"created": True}
    assert az("share", "create", "--name", name) == {"created": False}
    az("share", "update", "--name", name, "--quota", "5")
    assert az("share", "metadata", "show", "--name", name) == {"colour": "green"}
    assert az("share", "show", "--name", name)["properties"]["quota"] == 5
    assert az("share", "stats", "--name", name) == "1"  # az shows gibibytes, and at least one
    assert name in {share["name"] for share in az("share", "list")}
    assert az("share", "delete", "--name", name) == {"deleted": True}
    assert az("share", "exists", "--name", name) == {"exists": False}


def test_directories_and_files_are_made_listed_read_and_deleted(az: Az, share: ShareClient, tmp_path: Path) -> None:
    here = ("--share-name", share.share_name)
    (tmp_path / "file").write_bytes(b"some bytes")
    assert az("directory", "create", *here, "--name", "outer ü") == {"created": True}
    az("file", "upload", *here, "--path", "outer ü/100% #1.txt", "--source", tmp_path / "file", "--no-progress")
    [listed] = az("file", "list", *here, "--path", "outer ü")
    assert (listed["name"], listed["properties"]["contentLength"]) == ("100% #1.txt", 10)
    az("file", "update", *here, "--path", "outer ü/100% #1.txt", "--content-type", "text/plain")
    shown = az("file", "show", *here, "--path", "outer ü/100% #1.txt")
    assert shown["properties"]["contentSettings"]["contentType"] == "text/plain"
    assert az("directory", "exists", *here, "--name", "outer ü") == {"exists": True}
    az("file", "download", *here, "--path", "outer ü/100% #1.txt", "--dest", tmp_path / "back", "--no-progress")
    assert (tmp_path / "back").read_bytes() == b"some bytes"
    az("file", "delete", *here, "--path", "outer ü/100% #1.txt")
    assert az("file", "exists", *here, "--path", "outer ü/100% #1.txt") == {"exists": False}
    assert az("directory", "delete", *here, "--name", "outer ü") == {"deleted": True}


def test_a_share_snapshot_keeps_what_was(az: Az, share: ShareClient, tmp_path: Path) -> None:
    here = ("--share-name", share.share_name)
    file = share.get_file_client("kept")
    file.upload_file(b"before")
    snapshot = az("share", "snapshot", "--name", share.share_name)["snapshot"]
    file.upload_file(b"afterwards")
    az("file", "download", *here, "--path", "kept", "--snapshot", snapshot, "--dest", tmp_path / "kept", "--no-progress")
    assert (tmp_path / "kept").read_bytes() == b"before"
    assert az("share", "delete", "--name", share.share_name, "--delete-snapshots", "include") == {"deleted": True}

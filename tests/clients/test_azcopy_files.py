"""AzCopy with a share and a SAS, with `--from-to` as for blobs.

Between a folder and a share AzCopy itself encodes the characters that a share refuses and decodes them on the way back.
"""

from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient

from tests.clients.conftest import Account, share_contents
from tests.clients.test_azcopy import AzCopy
from tests.clients.tree import make_share_tree, read_tree


@pytest.fixture
def azcopy(account: Account, tmp_path: Path) -> AzCopy:
    return AzCopy(account, tmp_path / "azcopy")


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, bytes]:
    return make_share_tree(tmp_path / "tree")


@pytest.fixture
def uploaded(azcopy: AzCopy, share: ShareClient, tree: dict[str, bytes], tmp_path: Path) -> ShareClient:
    upload = ("copy", tmp_path / "tree/*", azcopy.url(share), "--from-to=LocalFile", "--recursive")
    azcopy(*upload, "--block-size-mb=1", "--put-md5")
    return share


def decoded(tree: dict[str, bytes]) -> dict[str, bytes]:
    """The tree as AzCopy writes it into a folder."""
    return {name.replace("%2F", "/"): content for name, content in tree.items()}


def stored(share: ShareClient) -> dict[str, bytes]:
    return share_contents(share.get_directory_client())


def test_a_tree_goes_up_as_it_is(uploaded: ShareClient, tree: dict[str, bytes]) -> None:
    assert stored(uploaded) == tree


def test_a_tree_comes_back_as_it_was(azcopy: AzCopy, uploaded: ShareClient, tree: dict[str, bytes], tmp_path: Path) -> None:
    back = tmp_path / "back"
    back.mkdir()
    download = ("copy", azcopy.url(uploaded, "/*"), back, "--from-to=FileLocal", "--recursive", "--block-size-mb=1")
    azcopy(*download, "--check-md5=FailIfDifferentOrMissing")
    assert read_tree(back) == decoded(tree)


def test_a_sync_upwards_sends_what_changed_and_deletes_what_is_gone(
    azcopy: AzCopy, uploaded: ShareClient, tree: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "tree/a0").write_bytes(b"changed, and of another length")
    (tmp_path / "tree/new file").write_bytes(b"new")
    (tmp_path / "tree/hash#tag.txt").unlink()
    azcopy("sync", tmp_path / "tree", azcopy.url(uploaded), "--from-to=LocalFile", "--delete-destination=true")
    del tree["hash#tag.txt"]
    assert stored(uploaded) == tree | {"a0": b"changed, and of another length", "new file": b"new"}


def test_a_sync_downwards_mirrors_the_share(
    azcopy: AzCopy, uploaded: ShareClient, tree: dict[str, bytes], tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "not in the share").write_bytes(b"old")
    azcopy("sync", azcopy.url(uploaded), mirror, "--from-to=FileLocal", "--delete-destination=true")
    assert read_tree(mirror) == decoded(tree)


def test_a_folder_is_removed_and_its_neighbours_stay(azcopy: AzCopy, uploaded: ShareClient, tree: dict[str, bytes]) -> None:
    azcopy("remove", azcopy.url(uploaded, "/UPPER"), "--from-to=FileTrash", "--recursive")
    assert set(tree) - set(stored(uploaded)) == {"UPPER/Case"}


@pytest.mark.needs("PutRangeFromUrl")
def test_a_share_is_copied_to_another(azcopy: AzCopy, uploaded: ShareClient, account: Account, tree: dict[str, bytes]) -> None:
    with ShareClient.from_connection_string(
        account.connection_string, f"{uploaded.share_name}-copy", allow_trailing_dot=True
    ) as copy:
        copy.create_share()
        azcopy("copy", azcopy.url(uploaded, "/*"), azcopy.url(copy), "--from-to=FileFile", "--recursive", "--block-size-mb=1")
        assert stored(copy) == tree

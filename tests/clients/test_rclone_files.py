"""rclone's azurefiles backend, which Debian's version does not have yet.

rclone uploads under another name and renames, and the Go library cuts blanks off both ends of the new path.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient

from tests.clients.conftest import Account, run, share_contents
from tests.clients.install import RCLONE
from tests.clients.tree import make_share_tree, read_tree

Rclone = Callable[..., str]


@pytest.fixture
def rclone(account: Account, share: ShareClient, tmp_path: Path) -> Rclone:
    settings = {
        "type": "azurefiles",
        "account": account.name,
        "key": account.key,
        "endpoint": account.file,
        "share_name": share.share_name,
    }
    config = tmp_path / "rclone.conf"
    config.write_text("[v]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    flags = ("--retries=1", "--low-level-retries=1", "--azurefiles-chunk-size=1M")
    return lambda *words: run(RCLONE, "--config", config, *flags, *words)


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, bytes]:
    """Without the names that the Go library cannot rename to."""
    tree = make_share_tree(tmp_path / "tree")
    for name in [name for name in tree if name != name.strip()]:
        (tmp_path / "tree" / name).unlink()
        del tree[name]
    return tree


@pytest.fixture
def uploaded(rclone: Rclone, share: ShareClient, tree: dict[str, bytes], tmp_path: Path) -> ShareClient:
    rclone("copy", tmp_path / "tree", "v:")
    return share


def stored(share: ShareClient) -> dict[str, bytes]:
    return share_contents(share.get_directory_client())


def test_a_tree_goes_up_and_comes_back(rclone: Rclone, uploaded: ShareClient, tree: dict[str, bytes], tmp_path: Path) -> None:
    rclone("check", tmp_path / "tree", "v:", "--download")
    rclone("copy", "v:", tmp_path / "back")
    assert read_tree(tmp_path / "back") == tree


def test_a_sync_makes_the_share_like_the_folder(
    rclone: Rclone, uploaded: ShareClient, tree: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "tree/new file").write_bytes(b"new")
    (tmp_path / "tree/a0").write_bytes(b"changed, and of another length")
    (tmp_path / "tree/hash#tag.txt").unlink()
    rclone("sync", tmp_path / "tree", "v:")
    kept = stored(uploaded)
    assert len(kept) == len(tree)
    assert (kept["new file"], "hash#tag.txt" in kept) == (b"new", False)


def test_files_are_moved_and_removed(rclone: Rclone, uploaded: ShareClient, tree: dict[str, bytes]) -> None:
    rclone("moveto", "v:plain.txt", "v:moved/plain.txt")
    rclone("purge", "v:sizes")
    names = set(stored(uploaded))
    assert "moved/plain.txt" in names
    assert not any(name.startswith("sizes/") or name == "plain.txt" for name in names)

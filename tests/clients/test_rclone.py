"""rclone's azureblob backend, as Debian ships it: in that version `endpoint` needs `use_emulator`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from tests.clients.conftest import Account, contents, run
from tests.clients.tree import make_tree, read_tree

Rclone = Callable[..., str]


@pytest.fixture
def rclone(account: Account, tmp_path: Path) -> Rclone:
    settings = {
        "type": "azureblob",
        "account": account.name,
        "key": account.key,
        "endpoint": account.blob,
        "use_emulator": "true",
    }
    config = tmp_path / "rclone.conf"
    config.write_text("[v]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    # Blocks of 1 MiB, so that small files have several. No retries, so that the first response counts.
    flags = ("--retries=1", "--low-level-retries=1", "--azureblob-chunk-size=1M", "--azureblob-upload-cutoff=1M")
    return lambda *words: run("rclone", "--config", config, *flags, *words)


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, bytes]:
    return make_tree(tmp_path / "tree")


@pytest.fixture
def remote(rclone: Rclone, container: ContainerClient, tree: dict[str, bytes], tmp_path: Path) -> str:
    remote = f"v:{container.container_name}"
    rclone("copy", tmp_path / "tree", remote)
    return remote


def test_a_tree_goes_up_and_comes_back(rclone: Rclone, remote: str, tree: dict[str, bytes], tmp_path: Path) -> None:
    rclone("check", tmp_path / "tree", remote, "--download")
    rclone("copy", remote, tmp_path / "back")
    assert read_tree(tmp_path / "back") == tree


def test_a_check_by_md5_finds_a_difference(rclone: Rclone, remote: str, container: ContainerClient, tmp_path: Path) -> None:
    rclone("check", tmp_path / "tree", remote)
    container.upload_blob("plain.txt", b"content of plain.tXt\n", overwrite=True)
    with pytest.raises(AssertionError, match="1 differences found"):
        rclone("check", tmp_path / "tree", remote)


def test_a_sync_makes_the_container_like_the_folder(
    rclone: Rclone, remote: str, container: ContainerClient, tree: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "tree/new file").write_bytes(b"new")
    (tmp_path / "tree/what?.txt").write_bytes(b"changed")
    (tmp_path / "tree/upper/case").unlink()
    rclone("sync", tmp_path / "tree", remote)
    rclone("check", tmp_path / "tree", remote)
    kept = contents(container)
    assert len(kept) == len(tree)
    assert (kept["new file"], kept["what?.txt"], "upper/case" in kept) == (b"new", b"changed", False)


def test_a_sync_makes_the_folder_like_the_container(
    rclone: Rclone, remote: str, container: ContainerClient, tree: dict[str, bytes], tmp_path: Path
) -> None:
    container.delete_blob("hash#tag.txt")
    container.upload_blob("what?.txt", b"changed", overwrite=True)
    rclone("sync", remote, tmp_path / "tree")
    del tree["hash#tag.txt"]
    assert read_tree(tmp_path / "tree") == tree | {"what?.txt": b"changed"}


def test_a_purge_leaves_nothing(rclone: Rclone, remote: str, container: ContainerClient) -> None:
    rclone("purge", remote)
    assert not container.exists()


@pytest.mark.needs("CopyBlob")
def test_a_container_is_copied_on_the_server(rclone: Rclone, remote: str, tree: dict[str, bytes], tmp_path: Path) -> None:
    rclone("copy", remote, f"{remote}-copy")
    rclone("check", tmp_path / "tree", f"{remote}-copy")
    rclone("copy", f"{remote}-copy", tmp_path / "back")
    assert read_tree(tmp_path / "back") == tree

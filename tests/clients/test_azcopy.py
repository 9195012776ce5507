"""AzCopy with a SAS. It needs `--from-to`, because it recognizes a storage account only by Azure's host names.

`azcopy make` has no such flag and refuses every other host, so the fixture creates the containers.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import ContainerClient
from azure.storage.fileshare import ShareClient

from tests.clients.conftest import Account, contents, run
from tests.clients.install import AZCOPY
from tests.clients.tree import make_tree, read_tree


class AzCopy:
    def __init__(self, account: Account, folder: Path) -> None:
        self._sas = account.sas
        self._environment = {
            "AZCOPY_LOG_LOCATION": str(folder),
            "AZCOPY_JOB_PLAN_LOCATION": str(folder),
            "AZCOPY_CONCURRENCY_VALUE": "8",
            "AZCOPY_DISABLE_SYSLOG": "true",
        }

    def url(self, container: ContainerClient | ShareClient, below: str = "") -> str:
        return f"{container.url}{below}?{self._sas}"

    def __call__(self, *words: str | Path) -> dict[str, Any]:
        """Run a job and return its summary."""
        lines = run(AZCOPY, *words, "--output-type=json", "--log-level=ERROR", environment=self._environment).splitlines()
        summary: dict[str, Any] = json.loads(json.loads(lines[-1])["MessageContent"])
        assert summary["JobStatus"] == "Completed", summary
        return summary


@pytest.fixture
def azcopy(account: Account, tmp_path: Path) -> AzCopy:
    return AzCopy(account, tmp_path / "azcopy")


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, bytes]:
    return make_tree(tmp_path / "tree")


@pytest.fixture
def uploaded(azcopy: AzCopy, container: ContainerClient, tree: dict[str, bytes], tmp_path: Path) -> ContainerClient:
    upload = ("copy", tmp_path / "tree/*", azcopy.url(container), "--from-to=LocalBlob", "--recursive")
    azcopy(*upload, "--block-size-mb=1", "--put-md5")
    return container


def test_a_tree_goes_up_as_it_is(uploaded: ContainerClient, tree: dict[str, bytes]) -> None:
    assert contents(uploaded) == tree


def test_a_tree_comes_back_as_it_was(azcopy: AzCopy, uploaded: ContainerClient, tree: dict[str, bytes], tmp_path: Path) -> None:
    back = tmp_path / "back"
    back.mkdir()
    download = ("copy", azcopy.url(uploaded, "/*"), back, "--from-to=BlobLocal", "--recursive", "--block-size-mb=1")
    azcopy(*download, "--check-md5=FailIfDifferentOrMissing")
    assert read_tree(back) == tree


def test_a_sync_upwards_sends_what_changed_and_deletes_what_is_gone(
    azcopy: AzCopy, uploaded: ContainerClient, tree: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "tree/what?.txt").write_bytes(b"changed, and of another length")
    (tmp_path / "tree/new file").write_bytes(b"new")
    (tmp_path / "tree/hash#tag.txt").unlink()
    summary = azcopy(
        "sync",
        tmp_path / "tree",
        azcopy.url(uploaded),
        "--from-to=LocalBlob",
        "--delete-destination=true",
        "--compare-hash=MD5",
        "--local-hash-storage-mode=HiddenFiles",
        "--hash-meta-dir=" + str(tmp_path),
    )
    assert (summary["TransfersCompleted"], summary["DeleteTransfersCompleted"]) == ("2", "1")
    del tree["hash#tag.txt"]
    assert contents(uploaded) == tree | {"what?.txt": b"changed, and of another length", "new file": b"new"}


def test_a_sync_downwards_mirrors_the_container(
    azcopy: AzCopy, uploaded: ContainerClient, tree: dict[str, bytes], tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "not in the container").write_bytes(b"old")
    azcopy("sync", azcopy.url(uploaded), mirror, "--from-to=BlobLocal", "--delete-destination=true")
    assert read_tree(mirror) == tree


def test_a_folder_is_removed_and_its_neighbours_stay(azcopy: AzCopy, uploaded: ContainerClient, tree: dict[str, bytes]) -> None:
    azcopy("remove", azcopy.url(uploaded, "/upper"), "--from-to=BlobTrash", "--recursive")
    assert set(tree) - set(uploaded.list_blob_names()) == {"upper/case"}
    azcopy("remove", azcopy.url(uploaded), "--from-to=BlobTrash", "--recursive")
    assert list(uploaded.list_blob_names()) == []


@pytest.mark.parametrize("kind", ["AppendBlob", "PageBlob"])
def test_other_kinds_of_blobs_go_up_and_come_back(azcopy: AzCopy, container: ContainerClient, tmp_path: Path, kind: str) -> None:
    data = bytes(range(256)) * 8192
    (tmp_path / "disk.vhd").write_bytes(data)
    url = azcopy.url(container, "/disk.vhd")
    azcopy("copy", tmp_path / "disk.vhd", url, "--from-to=LocalBlob", f"--blob-type={kind}", "--block-size-mb=1")
    assert container.get_blob_client("disk.vhd").get_blob_properties().blob_type == kind
    azcopy("copy", url, tmp_path / "back", "--from-to=BlobLocal")
    assert (tmp_path / "back").read_bytes() == data


@pytest.mark.needs("PutBlobFromUrl", "PutBlockFromUrl")
def test_a_container_is_copied_to_another(
    azcopy: AzCopy, uploaded: ContainerClient, container: ContainerClient, tree: dict[str, bytes]
) -> None:
    with ContainerClient.from_container_url(f"{uploaded.url}-copy", container.credential) as copy:
        copy.create_container()
        azcopy("copy", azcopy.url(uploaded, "/*"), azcopy.url(copy), "--from-to=BlobBlob", "--recursive", "--block-size-mb=1")
        assert contents(copy) == tree

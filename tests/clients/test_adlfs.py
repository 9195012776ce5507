"""adlfs, the filesystem that pandas, Dask and others use: it needs its own interpreter, so the test is a script."""

from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from tests.clients.conftest import Account, contents, run
from tests.clients.install import ADLFS
from tests.clients.tree import make_tree, read_tree

COPY = "import fsspec, sys; fsspec.filesystem('abfs', connection_string=sys.argv[1]).cp_file(*sys.argv[2:])"


def test_files_are_written_read_found_and_removed(account: Account, container: ContainerClient, tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", prefix=len("tree/"))
    scenario = Path(__file__).with_name("adlfs_scenario.py")
    run(ADLFS, scenario, account.connection_string, container.container_name, tmp_path / "tree", tmp_path / "back")
    assert read_tree(tmp_path / "back") == tree
    assert contents(container) == {f"tree/{name}": data for name, data in tree.items()} | {
        "other/x.bin": b"content of other/x.bin"
    }


@pytest.mark.needs("CopyBlob")
def test_a_file_is_copied(account: Account, container: ContainerClient) -> None:
    here = container.container_name
    container.upload_blob("hash # and %2F", b"source")
    run(ADLFS, "-c", COPY, account.connection_string, f"{here}/hash # and %2F", f"{here}/copy")
    assert contents(container)["copy"] == b"source"

"""`az storage` with a connection string. A command takes seconds to start, so each test covers many operations."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

from tests.clients.conftest import Account, contents, run
from tests.clients.install import AZ
from tests.clients.tree import make_tree, read_tree

Az = Callable[..., Any]


@pytest.fixture
def az(account: Account, tmp_path: Path) -> Az:
    environment = {
        "AZURE_CONFIG_DIR": str(tmp_path / "az"),
        "AZURE_CORE_COLLECT_TELEMETRY": "no",
        "AZURE_CORE_ONLY_SHOW_ERRORS": "yes",
        "AZURE_STORAGE_CONNECTION_STRING": account.connection_string,
    }

    def az(*words: str | Path) -> Any:
        """The output of the command."""
        printed = run(AZ, "storage", *words, "--output", "json", environment=environment)
        return json.loads(printed) if printed.strip() else None

    return az


@pytest.fixture
def name() -> str:
    """Valid as the name of a queue and of a table."""
    return f"az{uuid.uuid4().hex[:16]}"


def test_a_tree_goes_up_in_a_batch_and_comes_back(az: Az, container: ContainerClient, tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree")
    here = container.container_name
    az("blob", "upload-batch", "--source", tmp_path / "tree", "--destination", here, "--no-progress")
    assert contents(container) == tree
    assert {blob["name"] for blob in az("blob", "list", "--container-name", here)} == set(tree)
    (tmp_path / "back").mkdir()
    az("blob", "download-batch", "--source", here, "--destination", tmp_path / "back", "--no-progress")
    assert read_tree(tmp_path / "back") == tree
    az("blob", "delete-batch", "--source", here, "--pattern", "sizes/*")
    assert set(container.list_blob_names()) == {name for name in tree if not name.startswith("sizes/")}


def test_containers_are_made_described_and_deleted(az: Az, name: str) -> None:
    assert az("container", "create", "--name", name, "--metadata", "colour=green") == {"created": True}
    assert az("container", "create", "--name", name) == {"created": False}
    assert az("container", "metadata", "show", "--name", name) == {"colour": "green"}
    assert name in {container["name"] for container in az("container", "list")}
    assert az("container", "delete", "--name", name) == {"deleted": True}
    assert az("container", "exists", "--name", name) == {"exists": False}


def test_a_leased_blob_asks_for_its_lease_id(az: Az, container: ContainerClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"first")
    blob = ("--container-name", container.container_name, "--name", "leased? blob")
    upload = ("blob", "upload", *blob, "--file", tmp_path / "file", "--overwrite", "--no-progress")
    az(*upload)
    leased = ("--container-name", container.container_name, "--blob-name", "leased? blob")
    lease_id = az("blob", "lease", "acquire", *leased, "--lease-duration", "60")
    assert az("blob", "show", *blob)["properties"]["lease"] == {"duration": "fixed", "state": "leased", "status": "locked"}
    with pytest.raises(AssertionError, match="LeaseIdMissing"):
        az(*upload)
    (tmp_path / "file").write_bytes(b"second")
    az(*upload, "--lease-id", lease_id)
    assert az("blob", "lease", "renew", *leased, "--lease-id", lease_id) == lease_id
    az("blob", "lease", "break", *leased, "--lease-break-period", "0")
    assert az("blob", "show", *blob)["properties"]["lease"]["state"] == "broken"
    assert contents(container) == {"leased? blob": b"second"}


def test_a_snapshot_keeps_what_was(az: Az, container: ContainerClient, tmp_path: Path) -> None:
    blob = ("--container-name", container.container_name, "--name", "kept")
    container.upload_blob("kept", b"before")
    snapshot = az("blob", "snapshot", *blob)["snapshot"]
    container.upload_blob("kept", b"after", overwrite=True)
    az("blob", "download", *blob, "--snapshot", snapshot, "--file", tmp_path / "kept", "--no-progress")
    assert (tmp_path / "kept").read_bytes() == b"before"
    az("blob", "delete", *blob, "--delete-snapshots", "include")
    assert az("blob", "exists", *blob) == {"exists": False}


def test_a_message_is_put_seen_taken_and_deleted(az: Az, name: str) -> None:
    queue = ("--queue-name", name)
    assert az("queue", "create", "--name", name, "--metadata", "colour=green") == {"created": True}
    put = az("message", "put", *queue, "--content", "a <b> & c ü")
    assert [seen["content"] for seen in az("message", "peek", *queue)] == ["a <b> & c ü"]
    [got] = az("message", "get", *queue, "--visibility-timeout", "60")
    assert (got["id"], got["dequeueCount"]) == (put["id"], 1)
    assert az("message", "get", *queue) == []
    taken = (*queue, "--id", got["id"])
    updated = az(
        "message", "update", *taken, "--pop-receipt", got["popReceipt"], "--visibility-timeout", "60", "--content", "changed"
    )
    with pytest.raises(AssertionError, match="MessageNotFound"):
        az("message", "delete", *taken, "--pop-receipt", got["popReceipt"])
    az("message", "delete", *taken, "--pop-receipt", updated["popReceipt"])
    az("message", "put", *queue, "--content", "another")
    az("message", "clear", *queue)
    assert az("message", "peek", *queue) == []
    assert az("queue", "metadata", "show", "--name", name)["colour"] == "green"
    assert az("queue", "delete", "--name", name) == {"deleted": True}


def test_an_entity_is_inserted_found_merged_replaced_and_deleted(az: Az, name: str) -> None:
    table = ("--table-name", name)
    row = ("PartitionKey=it's", "RowKey=1 %2F")
    keys = (*table, "--partition-key", "it's", "--row-key", "1 %2F")
    assert az("table", "create", "--name", name) == {"created": True}
    az("entity", "insert", *table, "--entity", *row, "Colour=green", "Count=5000000000", "Count@odata.type=Edm.Int64")
    az("entity", "insert", *table, "--entity", "PartitionKey=it's", "RowKey=2", "Colour=blue")
    with pytest.raises(AssertionError, match="already exists"):
        az("entity", "insert", *table, "--entity", *row)
    found = az("entity", "query", *table, "--filter", "PartitionKey eq 'it''s' and Count gt 4999999999L")["items"]
    assert [(entity["RowKey"], entity["Colour"], entity["Count"]["value"]) for entity in found] == [
        ("1 %2F", "green", 5_000_000_000)
    ]
    az("entity", "merge", *table, "--entity", *row, "Shape=round")
    merged = az("entity", "show", *keys)
    assert (merged["Colour"], merged["Shape"]) == ("green", "round")
    az("entity", "replace", *table, "--entity", *row, "Shape=flat")
    assert "Colour" not in az("entity", "show", *keys)
    with pytest.raises(AssertionError, match="update condition"):
        az("entity", "delete", *keys, "--if-match", merged["etag"])
    az("entity", "delete", *keys)
    assert [entity["RowKey"] for entity in az("entity", "query", *table)["items"]] == ["2"]
    assert az("table", "delete", "--name", name) == {"deleted": True}


@pytest.mark.needs("CopyBlob")
def test_a_blob_is_copied(az: Az, container: ContainerClient) -> None:
    """The source is a URL: with names alone, az builds a URL with Azure's host name."""
    container.upload_blob("what? and # and %2F", b"source")
    target = ("--destination-container", container.container_name, "--destination-blob", "copy")
    az("blob", "copy", "start", "--source-uri", container.get_blob_client("what? and # and %2F").url, *target)
    assert contents(container)["copy"] == b"source"
    source = ("--source-container", container.container_name, "--source-blob", "copy")  # az turns it into an Azure URL
    az("blob", "copy", "start", *source, *target[:-1], "by name")
    assert contents(container)["by name"] == b"source"


@pytest.mark.needs("GetBlobTags")
def test_a_blob_is_uploaded_with_tags(az: Az, container: ContainerClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    blob = ("--container-name", container.container_name, "--name", "tagged", "--file", tmp_path / "file")
    az("blob", "upload", *blob, "--tags", "colour=green", "shape=round", "--no-progress")
    assert container.get_blob_client("tagged").get_blob_tags() == {"colour": "green", "shape": "round"}


@pytest.mark.needs("SetBlobTier")
def test_a_tier_is_set(az: Az, container: ContainerClient) -> None:
    blob = ("--container-name", container.container_name, "--name", "tiered")
    container.upload_blob("tiered", b"")
    az("blob", "set-tier", *blob, "--tier", "Cool")
    assert az("blob", "show", *blob)["properties"]["blobTier"] == "Cool"

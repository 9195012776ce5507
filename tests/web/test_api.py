"""The JSON API of the explorer: facts about the server, signatures, and the concurrency view of every kind of object."""

from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueClient, QueueServiceClient

from tests.rest.running import Running
from tests.web.asking import ask, post
from verditer.core.names import FilePath
from verditer.core.records.file_open import FileLock, FileOpen
from verditer.partition.engine import Transaction
from verditer.services.account import DEVELOPMENT_ACCOUNT as ACCOUNT
from verditer.services.file.current import require_entry
from verditer.services.inspection import file_path
from verditer.web.refusals import SENTENCES, refusals


@pytest.fixture
def strings(server: Running) -> str:
    text: str = ask(server, f"/api/connection-string?account={ACCOUNT}").document["connectionString"]
    return text


def inspection(server: Running, service: str, path: str) -> dict[str, Any]:
    answer = ask(server, f"/api/inspect?service={service}&account={ACCOUNT}&path={quote(path, safe='')}")
    assert answer.status == 200, answer.body
    document: dict[str, Any] = answer.document
    return document


def test_the_overview_names_accounts_and_ports(server: Running) -> None:
    document = ask(server, "/api/overview").document
    assert document["accounts"] == [ACCOUNT]
    assert document["endpoints"] == {name: server.app.url(name) for name in ("blob", "queue", "table", "file")}
    assert (document["readOnly"], document["testControl"], document["workers"], document["store"]) == (False, True, 1, "memory")


def test_the_connection_string_works_for_every_service(strings: str) -> None:
    BlobServiceClient.from_connection_string(strings).create_container("strings")
    QueueServiceClient.from_connection_string(strings).create_queue("strings")
    TableServiceClient.from_connection_string(strings).create_table("strings")
    ShareServiceClient.from_connection_string(strings).create_share("strings")


def test_amounts_count_what_is_stored(server: Running, strings: str) -> None:
    before = ask(server, f"/api/amounts?account={ACCOUNT}").document
    container = BlobServiceClient.from_connection_string(strings).create_container("amounts")
    for number in range(3):
        container.upload_blob(str(number), b"12345")
    after = ask(server, f"/api/amounts?account={ACCOUNT}").document
    assert (after["blobs"] - before["blobs"], after["blob_bytes"] - before["blob_bytes"]) == (3, 15)
    assert after["at_least"] is False


@pytest.mark.parametrize("name", ["plain.txt", "folder/with space+and%percent.txt", "ümlaut/日本.txt", "<img src=x>"])
def test_a_signature_for_a_blob_opens_it_and_nothing_else(server: Running, strings: str, name: str) -> None:
    service = BlobServiceClient.from_connection_string(strings)
    container = service.get_container_client("signed")
    if not container.exists():
        container.create_container()
    container.upload_blob(name, b"secret", overwrite=True)
    made = post(
        server, "/api/sas", {"service": "blob", "account": ACCOUNT, "path": f"signed/{name}", "permissions": "r"}
    ).document
    assert BlobClient.from_blob_url(made["url"]).download_blob().readall() == b"secret"
    with pytest.raises(HttpResponseError):
        BlobClient.from_blob_url(made["url"]).delete_blob()
    listing = f"{server.base_url}/signed?{made['sas']}"
    with pytest.raises(HttpResponseError):
        list(ContainerClient.from_container_url(listing).list_blobs())


def test_signatures_work_for_every_service_and_for_the_account(server: Running, strings: str) -> None:
    def url(service: str, path: str, permissions: str) -> str:
        wanted = {"service": service, "account": ACCOUNT, "path": path, "permissions": permissions}
        made: str = post(server, "/api/sas", wanted).document["url"]
        return made

    queue = QueueServiceClient.from_connection_string(strings).create_queue("signed")
    queue.send_message("hello")
    assert [each.content for each in QueueClient.from_queue_url(url("queue", "signed", "rp")).peek_messages()] == ["hello"]
    TableServiceClient.from_connection_string(strings).create_table("Signed").create_entity({"PartitionKey": "p", "RowKey": "r"})
    credential = AzureSasCredential(url("table", "Signed", "r").partition("?")[2])
    table = TableClient(f"{server.app.url('table')}/{ACCOUNT}", "Signed", credential=credential)
    assert len(list(table.list_entities())) == 1
    share = ShareServiceClient.from_connection_string(strings).create_share("signed")
    share.get_file_client("a.txt").upload_file(b"bytes")
    with urlopen(url("file", "signed/a.txt", "r")) as read:
        assert read.read() == b"bytes"
    with urlopen(url("file", "signed", "rl") + "&restype=directory&comp=list") as read:
        assert b"<Name>a.txt</Name>" in read.read()
    sas = post(server, "/api/sas", {"service": "blob", "account": ACCOUNT, "permissions": "rl"}).document["sas"]
    assert list(BlobServiceClient(server.base_url, credential=sas).list_containers())


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"service": "blob"},
        {"service": "nothing", "account": ACCOUNT},
        {"service": "blob", "account": ACCOUNT, "permissions": "r&sp=w"},
        {"service": "blob", "account": ACCOUNT, "permissions": ""},
        {"service": "blob", "account": ACCOUNT, "seconds": 0},
        {"service": "blob", "account": ACCOUNT, "seconds": 1e30},
        {"service": "blob", "account": ACCOUNT, "more": 1},
    ],
    ids=str,
)
def test_a_signature_that_makes_no_sense_is_refused(server: Running, wanted: dict[str, object]) -> None:
    assert post(server, "/api/sas", wanted).status == 400


def test_unknown_accounts_objects_and_services_are_not_found(server: Running) -> None:
    for target in (
        "/api/amounts?account=nobody",
        f"/api/inspect?service=blob&account={ACCOUNT}&path=none",
        f"/api/inspect?service=file&account={ACCOUNT}&path=none/a/b",
        f"/api/inspect?service=table&account={ACCOUNT}&path=none/a/b",
        f"/api/inspect?service=queue&account={ACCOUNT}&path=none",
        "/api/nothing",
        f"/storage/nothing/{ACCOUNT}?comp=list",
        "/static/../admin.py",
        "/static/nothing.js",
    ):
        assert ask(server, target).status == 404, target
    assert ask(server, "/api/overview?" + "&".join(f"a{n}=1" for n in range(50))).status == 400


def test_the_view_of_a_blob_shows_its_lease_with_the_time_that_is_left(server: Running, strings: str) -> None:
    container = BlobServiceClient.from_connection_string(strings).create_container("leased")
    blob = container.upload_blob("a/b.txt", b"x")
    found = inspection(server, "blob", "leased/a/b.txt")
    assert found["etag"] == blob.get_blob_properties().etag
    assert found["lease"] == {"state": "available", "id": None, "duration_seconds": None, "ends": None}
    lease = blob.acquire_lease(30)
    found = inspection(server, "blob", "leased/a/b.txt")
    assert (found["lease"]["state"], found["lease"]["id"], found["lease"]["duration_seconds"]) == ("leased", lease.id, 30)
    assert found["now"] < found["lease"]["ends"]
    server.move_clock(31)
    assert inspection(server, "blob", "leased/a/b.txt")["lease"]["state"] == "expired"


def test_the_view_of_a_blob_shows_its_history_newest_first(server: Running, strings: str) -> None:
    container = BlobServiceClient.from_connection_string(strings).create_container("history")
    blob = container.upload_blob("a", b"x")
    taken = [blob.create_snapshot()["snapshot"] for _ in range(2)]
    found = inspection(server, "blob", "history/a")
    assert [(state["kind"], state["id"], state["size"]) for state in found["history"]] == [
        ("snapshot", taken[1], 1),
        ("snapshot", taken[0], 1),
    ]
    blob.stage_block("MDAx", b"part")
    assert inspection(server, "blob", "history/a")["uncommitted_blocks"] == 1


def test_the_view_of_a_queue_shows_messages_in_flight(server: Running, strings: str) -> None:
    queue = QueueServiceClient.from_connection_string(strings).create_queue("flight")
    for text in ("one", "two", "later"):
        queue.send_message(text, visibility_timeout=60 if text == "later" else 0)
    taken = queue.receive_message(visibility_timeout=30)
    assert taken is not None
    found = inspection(server, "queue", "flight")
    assert found["message_count"] == 3
    assert [(each["id"] == taken.id, each["dequeue_count"]) for each in found["messages"]] == [(True, 1), (False, 0)]
    server.move_clock(31)
    assert [each["dequeue_count"] for each in inspection(server, "queue", "flight")["messages"]] == [0]


def test_the_view_of_an_entity_shows_the_etag_that_clients_send(server: Running, strings: str) -> None:
    table = TableServiceClient.from_connection_string(strings).create_table("Viewed")
    table.create_entity({"PartitionKey": "p q", "RowKey": "r"})
    assert inspection(server, "table", "Viewed/p q/r")["etag"] == table.get_entity("p q", "r").metadata["etag"]
    assert inspection(server, "table", "Viewed")["kind"] == "table"


def test_the_view_of_a_file_shows_handles_with_access_share_mode_and_locks(server: Running, strings: str) -> None:
    share = ShareServiceClient.from_connection_string(strings).create_share("viewed")
    share.create_directory("folder")
    share.get_file_client("folder/a.txt").upload_file(b"bytes")
    store_handle(server, "viewed", "folder/a.txt")
    (handle,) = inspection(server, "file", "viewed/folder/a.txt")["handles"]
    assert (handle["access"], handle["shares"], handle["client"]) == (["read", "write"], ["read"], "10.0.0.1")
    assert handle["locks"] == [{"start": 0, "length": 4, "exclusive": True}]
    assert [each["id"] for each in inspection(server, "file", "viewed")["handles"]] == ["7"]
    assert inspection(server, "file", "viewed/folder")["kind"] == "directory"


def store_handle(server: Running, share: str, path: str) -> None:
    """What an SMB client that opens the file for reading and writing, and locks its first bytes, leaves in the store."""
    target: FilePath = file_path(ACCOUNT, share, path)

    def open_it(tx: Transaction) -> None:
        located, entry = require_entry(tx, target)
        ids: dict[str, Any] = {"share_id": located.share.id, "node_id": entry.node_id, "handle_id": 7}
        tx.put(
            FileOpen(
                **ids,
                account=ACCOUNT,
                share=share,
                owner="test",
                access=3,
                share_mode=1,
                path=target.names,
                folded_path=target.folded,
                parent_id=entry.parent_id,
                session_id=1,
                client="10.0.0.1",
                opened=tx.now,
            ),
            FileLock(**ids, lock_id=1, start=0, length=4, exclusive=True),
        )

    server.run(_write(server, target, open_it))


async def _write(server: Running, target: FilePath, body: Any) -> None:
    await server.app.ctx.engine.write([target.scope], body)


def test_every_refusal_that_another_client_causes_is_explained_in_one_sentence() -> None:
    assert set(SENTENCES) == refusals()
    assert [text for text in SENTENCES.values() if not text.endswith(".") or text.count(". ")] == []

"""A lock across services: a client that holds the lease of a blob may write to a table; other clients wait for the lease.

Tables have no leases. When a change needs several partitions or several steps, clients agree on a blob: acquire its lease, do the
work, release it. The lease expires if its holder crashes.

Start a server, then run:  python examples/blob_lease_guards_table.py
AZURE_STORAGE_CONNECTION_STRING selects the account; the default is the local development account.
"""

import os
import threading
import time
import uuid

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import BlobClient, BlobLeaseClient, BlobServiceClient

DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
)
TELLERS = 5
TRANSFERS = 4


def main() -> None:
    connection = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT)
    blobs, tables = BlobServiceClient.from_connection_string(connection), TableServiceClient.from_connection_string(connection)
    name = f"guarded{uuid.uuid4().hex[:12]}"
    with blobs, tables, blobs.create_container(name) as container, tables.create_table(name) as table:
        try:
            run(container.get_blob_client("lock"), table)
        finally:
            container.delete_container()
            table.delete_table()


def run(lock: BlobClient, table: TableClient) -> None:
    lock.upload_blob(b"")
    for account, balance in (("alice", 100), ("bob", 0)):
        table.create_entity({"PartitionKey": account, "RowKey": "balance", "amount": balance})
    print("Alice has 100 and Bob nothing. Their accounts are two partitions, which no batch can change together.")

    lease = take(lock)
    try:
        BlobLeaseClient(lock).acquire(15)
    except HttpResponseError as error:
        print(f"While one teller holds the lock, another is refused with {error.status_code} {code_of(error)}.")
    lease.release()

    tellers = [threading.Thread(target=work, args=(lock, table)) for _ in range(TELLERS)]
    for teller in tellers:
        teller.start()
    for teller in tellers:
        teller.join()
    amounts = {entity["PartitionKey"]: entity["amount"] for entity in table.list_entities()}
    print(f"{TELLERS} tellers moved {TELLERS * TRANSFERS} coins at once: Alice has {amounts['alice']}, Bob {amounts['bob']}.")


def work(lock: BlobClient, table: TableClient) -> None:
    for _ in range(TRANSFERS):
        lease = take(lock)
        try:
            move_one_coin(table)
        finally:
            lease.release()


def take(lock: BlobClient) -> BlobLeaseClient:
    """Acquire the lease; retry while another client holds it."""
    while True:
        try:
            return lock.acquire_lease(15)
        except HttpResponseError as error:
            if code_of(error) != "LeaseAlreadyPresent":
                raise
            time.sleep(0.01)


def move_one_coin(table: TableClient) -> None:
    """Two reads and two writes without ETags: only the lock makes them atomic."""
    for account, change in (("alice", -1), ("bob", 1)):
        entity = table.get_entity(account, "balance")
        entity["amount"] += change
        table.upsert_entity(entity)


def code_of(error: HttpResponseError) -> str:
    """The blob client adds the error code to its exceptions."""
    return str(getattr(error, "error_code", ""))


if __name__ == "__main__":
    main()

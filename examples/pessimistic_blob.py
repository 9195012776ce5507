"""Pessimistic concurrency: acquire a lease on a blob; clients without the lease cannot write until it is released.

Start a server, then run:  python examples/pessimistic_blob.py
AZURE_STORAGE_CONNECTION_STRING selects the account; the default is the local development account.
"""

import os
import uuid

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, BlobServiceClient

DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)


def main() -> None:
    service = BlobServiceClient.from_connection_string(os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT))
    with service, service.create_container(f"pessimistic-{uuid.uuid4().hex[:12]}") as container:
        try:
            run(container.get_blob_client("ledger.txt"))
        finally:
            container.delete_container()


def run(blob: BlobClient) -> None:
    blob.upload_blob("balance 100")
    lease = blob.acquire_lease(lease_duration=15)
    print(f"We hold the lease {lease.id} for 15 seconds.")

    blob.upload_blob("balance 90", overwrite=True, lease=lease)
    print("With the lease id we write 'balance 90'.")

    try:
        blob.upload_blob("balance 0", overwrite=True)
    except HttpResponseError as error:
        print(f"A writer without it is refused with {error.status_code} {code_of(error)}.")
    print(f"Reading needs no lease: '{blob.download_blob().readall().decode()}'.")

    lease.release()
    blob.upload_blob("balance 80", overwrite=True)
    print(f"The lease is released, and everybody may write again: '{blob.download_blob().readall().decode()}'.")


def code_of(error: HttpResponseError) -> str:
    code = getattr(error, "error_code", "")  # an enum if the library knows the code, otherwise a string
    return str(getattr(code, "value", code))


if __name__ == "__main__":
    main()

"""Optimistic concurrency: read a blob with its ETag, change it, and write it back only if no other client has changed it.

Start a server, then run:  python examples/optimistic_blob.py
AZURE_STORAGE_CONNECTION_STRING selects the account; the default is the local development account.
"""

import os
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.storage.blob import BlobClient, BlobServiceClient

DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)


def main() -> None:
    service = BlobServiceClient.from_connection_string(os.environ.get("AZURE_STORAGE_CONNECTION_STRING", DEVELOPMENT))
    with service, service.create_container(f"optimistic-{uuid.uuid4().hex[:12]}") as container:
        try:
            run(container.get_blob_client("inventory.txt"))
        finally:
            container.delete_container()


def run(blob: BlobClient) -> None:
    blob.upload_blob("10 apples")
    seen = blob.download_blob()
    text, etag = seen.readall().decode(), seen.properties.etag
    print(f"We read '{text}', whose ETag is {etag}.")

    blob.upload_blob("7 apples", overwrite=True)
    print("Somebody else sells three apples and writes '7 apples'.")

    try:
        blob.upload_blob("11 apples", overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)
    except ResourceModifiedError as error:
        print(f"Our '11 apples' is refused with {error.status_code} {code_of(error)}: the blob is not the one we read.")

    latest = blob.download_blob()
    count = int(latest.readall().split()[0]) + 1
    blob.upload_blob(
        f"{count} apples", overwrite=True, etag=latest.properties.etag, match_condition=MatchConditions.IfNotModified
    )
    print(f"We read again, add our apple, and write with the new ETag: '{blob.download_blob().readall().decode()}'.")


def code_of(error: HttpResponseError) -> str:
    code = getattr(error, "error_code", "")  # an enum if the library knows the code, otherwise a string
    return str(getattr(code, "value", code))


if __name__ == "__main__":
    main()

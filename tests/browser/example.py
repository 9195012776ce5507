"""Data and load for the pictures: what a small shop might store."""

import contextlib
import json
import random
import time

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import ContentSettings, StandardBlobTier

from tests.browser.conftest import Azure

CSV = "order,customer,total\n1001,Ada,12.50\n1002,Grace,99.00\n1003,Edsger,7.25\n"


def fill(azure: Azure) -> None:
    with contextlib.suppress(ResourceExistsError):
        _fill(azure)


def _fill(azure: Azure) -> None:
    reports = azure.blobs.create_container("reports")
    for name in ("assets", "backups", "invoices"):
        azure.blobs.create_container(name)
    for month in range(1, 7):
        reports.upload_blob(f"2026/{month:02}/orders.csv", CSV, content_settings=ContentSettings(content_type="text/csv"))
    settings = {"currency": "EUR", "retries": 3, "regions": ["north", "south"]}
    json_type = ContentSettings(content_type="application/json")
    reports.upload_blob("settings.json", json.dumps(settings), content_settings=json_type, metadata={"owner": "billing"})
    reports.upload_blob(
        "summary.txt", b"All orders of the first half of 2026.\n", content_settings=ContentSettings(content_type="text/plain")
    )
    reports.upload_blob("archive.bin", random.randbytes(300_000), standard_blob_tier=StandardBlobTier.COOL)
    for name in ("mail", "thumbnails"):
        queue = azure.queues.create_queue(name)
        for number in range(5):
            queue.send_message(json.dumps({"job": number, "kind": name}))
    orders = azure.tables.create_table("Orders")
    for number in range(30):
        orders.create_entity(
            {
                "PartitionKey": ("north", "south")[number % 2],
                "RowKey": f"{1000 + number}",
                "Customer": ("Ada", "Grace", "Edsger", "Barbara")[number % 4],
                "Total": round(7.25 * (number + 1), 2),
                "Paid": number % 3 == 0,
            }
        )
    share = azure.shares.create_share("team")
    share.create_directory("plans")
    share.get_file_client("plans/roadmap.md").upload_file(b"# Roadmap\n\n- explorer\n- scaling out\n")
    share.get_file_client("readme.txt").upload_file(b"Files of the team.\n")


def write_too_late(azure: Azure, etag: str) -> None:
    with contextlib.suppress(HttpResponseError):
        azure.blobs.get_blob_client("reports", "settings.json").set_blob_metadata(
            {"owner": "nobody"}, etag=etag, match_condition=MatchConditions.IfNotModified
        )


def load(azure: Azure, seconds: float) -> None:
    """Requests of all kinds, some of them refused because another client was faster."""
    blob = azure.blobs.get_blob_client("reports", "settings.json")
    queue = azure.queues.get_queue_client("mail")
    table = azure.tables.get_table_client("Orders")
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        blob.download_blob().readall()
        etag = blob.get_blob_properties().etag
        blob.set_blob_metadata({"owner": "billing", "round": str(number)})
        for message in queue.receive_messages(max_messages=1, visibility_timeout=1):
            queue.update_message(message, visibility_timeout=0)
        list(table.query_entities("PartitionKey eq 'north'"))
        if number % 4 == 0:
            write_too_late(azure, etag)
            with contextlib.suppress(HttpResponseError):
                azure.blobs.get_blob_client("reports", "missing.txt").get_blob_properties()

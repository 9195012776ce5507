"""Duration of a hundred thousand upserts by one azure-data-tables client, in transactions of a hundred.

Most of it is the client's own CPU time, which the progress line shows. Without transactions the SDK itself needs a millisecond
or more per upsert, with every server.
"""

import time

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, UpdateMode

from benchmarks.benchmark import Load, Reading
from benchmarks.cases.entities import IN_BATCH, TABLE
from benchmarks.sas import ACCOUNT, KEY
from benchmarks.servers import HOST, Server

UPSERTS = 100_000
IN_PARTITION = 1_000


def table_client(server: Server) -> TableClient:
    return TableClient(f"http://{HOST}:{server.port}/{ACCOUNT}", TABLE, credential=AzureNamedKeyCredential(ACCOUNT, KEY))


def seconds(server: Server, load: Load) -> Reading:
    started, busy = time.monotonic(), time.process_time()
    with table_client(server) as table:
        for first in range(0, UPSERTS, IN_BATCH):
            table.submit_transaction(
                [("upsert", entity(number), {"mode": UpdateMode.REPLACE}) for number in range(first, first + IN_BATCH)]
            )
    busy = time.process_time() - busy
    return Reading(value=time.monotonic() - started, detail=f"the client was busy for {busy:.1f} s")


def entity(number: int) -> dict[str, str | int | float | bool]:
    return {
        "PartitionKey": f"{number // IN_PARTITION:04d}",
        "RowKey": f"{number % IN_PARTITION:04d}",
        "Name": f"entity number {number}",
        "Text": "v" * 64,
        "Group": number % 10,
        "Score": number / 7,
        "Active": number % 2 == 0,
    }

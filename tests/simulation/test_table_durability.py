"""Acknowledged transactions are durable and never partial (contract G6): servers are killed during transactions."""

import os
import random
import threading
import time
import uuid

from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import AzureError
from azure.data.tables import TableClient, TableServiceClient

from tests.simulation.servers import PATIENCE_SECONDS, Fleet
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY

ROUNDS = int(os.environ.get("VERDITER_KILLS", "4"))
ROWS = 20


class Writer:
    """Writes numbered transactions into its own partition until the server is killed."""

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self.acknowledged = 0
        self.attempted = 0
        self.batches = 0

    def run(self, table: TableClient) -> None:
        try:
            while True:
                self.attempted += 1
                table.submit_transaction([
                    ("upsert", {"PartitionKey": self.partition, "RowKey": f"{row}", "n": self.attempted}) for row in range(ROWS)
                ])  # fmt: skip
                self.acknowledged = self.attempted
                self.batches += 1
        except AzureError:
            return

    def check(self, table: TableClient) -> None:
        found = [entity["n"] for entity in table.query_entities("PartitionKey eq @p", parameters={"p": self.partition})]
        if self.acknowledged == 0 and not found:
            return
        assert len(found) == ROWS
        assert len(set(found)) == 1, found
        assert found[0] in (self.acknowledged, self.attempted)
        self.acknowledged = self.attempted = found[0]


def client(fleet: Fleet, number: int) -> TableServiceClient:
    server = fleet.servers[number % len(fleet.servers)]
    credential = AzureNamedKeyCredential(DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)
    endpoint = f"http://127.0.0.1:{server.ports['table']}/{DEVELOPMENT_ACCOUNT}"
    return TableServiceClient(endpoint, credential=credential, retry_total=0)


def wait_for(writers: list[Writer], batches: int) -> None:
    """Wait until this many transactions are acknowledged in total; the others are then at random points."""
    end = time.monotonic() + PATIENCE_SECONDS
    while sum(writer.batches for writer in writers) < batches:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_kill_leaves_all_or_nothing_of_each_batch(own_fleet: Fleet, chance: random.Random) -> None:
    # contract G6, T4; race D1, T1
    name = f"sim{uuid.uuid4().hex[:16]}"
    client(own_fleet, 0).create_table(name)
    writers = [Writer(f"p{number}") for number in range(6)]
    for _ in range(ROUNDS):
        threads = [
            threading.Thread(target=writer.run, args=(client(own_fleet, number).get_table_client(name),))
            for number, writer in enumerate(writers)
        ]
        for thread in threads:
            thread.start()
        wait_for(writers, sum(writer.batches for writer in writers) + chance.randint(10, 60))
        own_fleet.restart()
        for thread in threads:
            thread.join()
        table = client(own_fleet, chance.randrange(2)).get_table_client(name)
        for writer in writers:
            writer.check(table)

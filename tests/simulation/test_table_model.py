"""Random changes and transactions compared with a small model: the same responses, and the same table after each of them."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient, TableTransactionError

from tests.simulation.client import SAS
from tests.simulation.servers import Fleet
from verditer.services.account import DEVELOPMENT_ACCOUNT

STATUSES = {"EntityAlreadyExists": 409, "ResourceNotFound": 404, "UpdateConditionNotSatisfied": 412}
ROWS = [f"{number}" for number in range(6)]
STALE = "W/\"datetime'2000-01-01T00%3A00%3A00Z'\""
Row = dict[str, int]
Change = tuple[str, str, Row, str]  # verb, row, properties, which ETag: "" none, "any", "right", "stale"


class Refused(Exception):
    def __init__(self, code: str, index: int = 0) -> None:
        super().__init__(code)
        self.code = code
        self.index = index


def change(rows: dict[str, Row], verb: str, row: str, known: Row, match: str) -> None:
    """The effect of one change on a partition."""
    there = row in rows
    if verb == "create" and there:
        raise Refused("EntityAlreadyExists")
    if verb in ("update", "merge", "delete"):
        if not there:
            raise Refused("ResourceNotFound")
        if match == "stale":
            raise Refused("UpdateConditionNotSatisfied")
    if verb == "delete":
        del rows[row]
    elif verb in ("merge", "upsert_merge"):
        rows[row] = rows.get(row, {}) | known
    else:
        rows[row] = known


def changed(rows: dict[str, Row], changes: list[Change]) -> dict[str, Row]:
    """The partition after a transaction, or the error."""
    after, seen = {row: dict(known) for row, known in rows.items()}, set[str]()
    for index, (_, row, _, _) in enumerate(changes):
        if row in seen:
            raise Refused("InvalidDuplicateRow", index)
        seen.add(row)
    for index, (verb, row, known, match) in enumerate(changes):
        try:
            change(after, verb, row, known, match)
        except Refused as refused:
            raise Refused(refused.code, index) from None
    return after


def random_change(chance: random.Random, number: int) -> Change:
    verb = chance.choice(["create", "update", "merge", "upsert", "upsert_merge", "delete"])
    known = {f"p{chance.randrange(3)}": number}
    match = chance.choice(["any", "right", "right", "stale"] if verb in ("update", "merge", "delete") else [""])
    return verb, chance.choice(ROWS), known, match


@pytest.fixture
def tables(fleet: Fleet) -> Iterator[list[TableClient]]:
    """Clients of the same table, one for each server of the fleet."""
    name = f"sim{uuid.uuid4().hex[:16]}"
    credential = AzureSasCredential(SAS)  # other tests move the fleet's clock, and Shared Key signs with the machine's
    services = [
        TableServiceClient(
            f"http://127.0.0.1:{server.ports['table']}/{DEVELOPMENT_ACCOUNT}", credential=credential, retry_total=0
        )
        for server in fleet.servers
    ]
    services[0].create_table(name)
    yield [service.get_table_client(name) for service in services]
    for service in services:
        service.close()


def state(table: TableClient) -> dict[str, Row]:
    return {
        entity["RowKey"]: {name: value for name, value in entity.items() if name not in ("PartitionKey", "RowKey")}
        for entity in table.list_entities()
    }


def sdk_change(etags: dict[str, str | None], change: Change) -> tuple[Any, ...]:
    verb, row, known, match = change
    entity = {"PartitionKey": "p", "RowKey": row, **({} if verb == "delete" else known)}
    options: dict[str, Any] = {}
    if verb in ("update", "merge", "upsert", "upsert_merge"):
        options["mode"] = "merge" if "merge" in verb else "replace"
    if match in ("right", "stale"):
        options["etag"] = etags.get(row, STALE) if match == "right" else STALE
        options["match_condition"] = MatchConditions.IfNotModified
    return ({"merge": "update", "upsert_merge": "upsert"}.get(verb, verb), entity, options)


def submitted(table: TableClient, changes: list[tuple[Any, ...]]) -> tuple[str, int] | None:
    """The code and position of an error."""
    try:
        table.submit_transaction(changes)
    except TableTransactionError as error:
        return error.error_code, error.index  # type: ignore[attr-defined]
    return None


def sent(table: TableClient, verb: str, entity: dict[str, Any], options: dict[str, Any]) -> int | None:
    """The status of an error."""
    try:
        getattr(table, f"{verb}_entity")(entity, **options)
    except HttpResponseError as error:
        return error.status_code
    return None


def test_random_batches_agree_with_the_model(tables: list[TableClient], chance: random.Random) -> None:
    # contract T4, G2, G5, G7; race T1, T2, T3
    model: dict[str, Row] = {}
    outcomes: list[str] = []
    for number in range(60):
        table = chance.choice(tables)
        etags = {entity["RowKey"]: entity.metadata["etag"] for entity in chance.choice(tables).list_entities()}
        changes = [random_change(chance, number) for _ in range(chance.randint(1, 5))]
        expected: Refused | None = None
        try:
            model = changed(model, changes)
        except Refused as refused:
            expected = refused
        refusal = submitted(table, [sdk_change(etags, each) for each in changes])
        assert refusal == (None if expected is None else (expected.code, expected.index)), changes
        assert state(chance.choice(tables)) == model, changes
        outcomes.append(expected.code if expected else "done")
    assert "done" in outcomes
    assert len(set(outcomes)) > 2


def test_random_single_changes_agree_with_the_model(tables: list[TableClient], chance: random.Random) -> None:
    # contract T1, T2, G2
    model: dict[str, Row] = {}
    for number in range(80):
        table = chance.choice(tables)
        etags = {entity["RowKey"]: entity.metadata["etag"] for entity in table.list_entities()}
        one = random_change(chance, number)
        expected: Refused | None = None
        try:
            change(model, *one)
        except Refused as refused:
            expected = refused
        if expected is not None and (one[0], expected.code) == ("delete", "ResourceNotFound"):
            expected = None  # the client ignores it
        assert sent(table, *sdk_change(etags, one)) == (None if expected is None else STATUSES[expected.code]), one
        assert state(chance.choice(tables)) == model, one

"""azure-data-tables, synchronous: typical operations."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    AccountSasPermissions,
    EdmType,
    EntityProperty,
    ResourceTypes,
    TableAccessPolicy,
    TableClient,
    TableCorsRule,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

from tests.rest.running import Running

GUID = uuid.UUID("a455c695-df98-5678-aaaa-81d3367e5a34")


@pytest.fixture(params=["127.0.0.1", "localhost"])
def service(steady: Running, request: pytest.FixtureRequest) -> Iterator[TableServiceClient]:
    """The SDK sends PATCH to an IP address; at `localhost` it assumes Cosmos DB and tunnels MERGE (T903)."""
    credential = AzureNamedKeyCredential(steady.account, steady.key)
    endpoint = f"http://{request.param}:{steady.app.servers['table'].port}/{steady.account}"
    with TableServiceClient(endpoint, credential=credential) as client:
        yield client


@pytest.fixture
def table(service: TableServiceClient) -> Iterator[TableClient]:
    table = service.create_table(f"sdk{uuid.uuid4().hex[:16]}")
    yield table
    table.delete_table()


def test_tables_come_and_go(service: TableServiceClient) -> None:
    name = f"sdk{uuid.uuid4().hex[:16]}"
    service.create_table(name)
    with pytest.raises(ResourceExistsError):
        service.create_table(name.upper())
    assert service.create_table_if_not_exists(name).table_name == name
    assert [table.name for table in service.query_tables("TableName eq @name", parameters={"name": name})] == [name]
    assert name in [table.name for table in service.list_tables(results_per_page=3)]
    service.delete_table(name)
    service.delete_table(name)  # the client ignores a missing table
    with pytest.raises(ValueError, match="alphanumeric"):
        service.create_table("my_table")


def test_every_type_comes_back_as_it_went(table: TableClient) -> None:
    entity = {
        "PartitionKey": "p",
        "RowKey": "r",
        "text": "Grüße 𝄞 '\"",
        "small": 5,
        "big": EntityProperty(2**63 - 1, EdmType.INT64),
        "double": 3.0,
        "nan": float("nan"),
        "inf": float("inf"),
        "yes": True,
        "when": datetime(2021, 6, 8, 2, 5, 9, 123456, tzinfo=UTC),
        "guid": GUID,
        "bytes": b"\x00\xff",
        "empty": "",
        "none": None,
    }
    table.create_entity(entity)
    found = table.get_entity("p", "r")
    assert found["text"] == entity["text"]
    assert (found["small"], type(found["small"])) == (5, int)
    assert found["big"] == (2**63 - 1, EdmType.INT64)
    assert (found["double"], type(found["double"])) == (3.0, float)
    assert found["nan"] != found["nan"]
    assert (found["inf"], found["yes"], found["guid"], found["bytes"], found["empty"]) == (
        float("inf"),
        True,
        GUID,
        b"\x00\xff",
        "",
    )
    assert found["when"] == entity["when"]
    assert "none" not in found
    assert str(found.metadata["etag"]).startswith("W/\"datetime'")
    stamp = found.metadata["timestamp"]
    assert stamp is not None
    assert abs(stamp - datetime.now(UTC)) < timedelta(minutes=5)


def test_optimistic_writes(table: TableClient) -> None:  # T803, T907
    # contract T1, G1
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
    seen = table.get_entity("p", "r")
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "n": 2}, mode=UpdateMode.MERGE)
    seen["n"] = 3
    match: dict[str, Any] = {"etag": seen.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
        with pytest.raises(ResourceModifiedError) as error:
            table.update_entity(seen, mode=mode, **match)
        assert error.value.error_code == "UpdateConditionNotSatisfied"  # type: ignore[attr-defined]
    with pytest.raises(ResourceModifiedError):
        table.delete_entity(seen, **match)
    assert table.get_entity("p", "r")["n"] == 2
    fresh = table.get_entity("p", "r")
    match["etag"] = fresh.metadata["etag"]
    table.update_entity({**fresh, "n": 4}, mode=UpdateMode.REPLACE, **match)
    assert table.get_entity("p", "r")["n"] == 4
    table.delete_entity("p", "r")
    table.delete_entity("p", "r")  # the client ignores a missing entity
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "r")
    with pytest.raises(ResourceNotFoundError):
        table.update_entity({"PartitionKey": "p", "RowKey": "r"})


def test_upserts(table: TableClient) -> None:
    # contract T2
    table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "a": 1}, mode=UpdateMode.MERGE)
    table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "b": 2}, mode=UpdateMode.MERGE)
    assert {"a", "b"} <= set(table.get_entity("p", "r"))
    table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "c": 3}, mode=UpdateMode.REPLACE)
    assert set(table.get_entity("p", "r")) == {"PartitionKey", "RowKey", "c"}
    with pytest.raises(ResourceExistsError):
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})


@pytest.mark.parametrize("key", ["", "o'clock", "a b+c%2F", "ключ", '"', "𝄞", "RK'@*$!%"])
def test_keys_of_all_kinds(table: TableClient, key: str) -> None:  # T142, T144
    table.create_entity({"PartitionKey": key, "RowKey": key, "n": 1})
    table.upsert_entity({"PartitionKey": key, "RowKey": key, "n": 2})
    assert table.get_entity(key, key)["n"] == 2
    assert len(list(table.query_entities("PartitionKey eq @key and RowKey eq @key", parameters={"key": key}))) == 1
    table.delete_entity(key, key)
    assert list(table.list_entities()) == []


def test_queries_with_parameters_of_every_type(table: TableClient) -> None:
    when = datetime(2021, 6, 8, 2, 5, 9, tzinfo=UTC)
    table.create_entity({
        "PartitionKey": "p", "RowKey": "r", "s": "o'clock", "i": 5, "l": EntityProperty(2**40, EdmType.INT64), "d": 1.5,
        "b": True, "w": when, "g": GUID, "x": b"\x01",
    })  # fmt: skip
    for name, value in (
        ("s", "o'clock"),
        ("i", 5),
        ("l", 2**40),
        ("d", 1.5),
        ("b", True),
        ("w", when),
        ("g", GUID),
        ("x", b"\x01"),
    ):
        found = list(table.query_entities(f"{name} eq @value", parameters={"value": value}))
        assert len(found) == 1, name
        assert list(table.query_entities(f"{name} ne @value", parameters={"value": value})) == []


def test_pages_and_selection(table: TableClient) -> None:
    for start in (0, 100):
        table.submit_transaction([
            ("create", {"PartitionKey": "p", "RowKey": f"{number:03}", "n": number, "m": "x"})
            for number in range(start, start + 100)
        ])  # fmt: skip
    pages = [list(page) for page in table.list_entities(results_per_page=30).by_page()]
    assert [len(page) for page in pages] == [30] * 6 + [20]
    assert [entity["n"] for page in pages for entity in page] == list(range(200))
    chosen = next(iter(table.query_entities("n eq 7", select=["RowKey", "n"])))
    assert set(chosen) == {"RowKey", "n"}
    iterator: Any = table.list_entities(results_per_page=50).by_page()
    list(next(iterator))
    rest = [e["n"] for page in table.list_entities(results_per_page=50).by_page(iterator.continuation_token) for e in page]
    assert rest == list(range(50, 200))


def test_transactions(table: TableClient) -> None:
    # contract T4
    table.create_entity({"PartitionKey": "p", "RowKey": "old", "n": 1})
    table.create_entity({"PartitionKey": "p", "RowKey": "gone", "n": 1})
    result = table.submit_transaction([
        ("create", {"PartitionKey": "p", "RowKey": "new", "n": 1}),
        ("update", {"PartitionKey": "p", "RowKey": "old", "m": 2}, {"mode": UpdateMode.MERGE}),
        ("upsert", {"PartitionKey": "p", "RowKey": "up", "m": 2}, {"mode": UpdateMode.REPLACE}),
        ("delete", {"PartitionKey": "p", "RowKey": "gone"}),
    ])  # fmt: skip
    assert [bool(part.get("etag")) for part in result] == [True, True, True, False]
    assert [entity["RowKey"] for entity in table.list_entities()] == ["new", "old", "up"]
    assert table.get_entity("p", "old")["m"] == 2


def test_a_transaction_that_fails_names_its_entity(table: TableClient) -> None:
    # contract T4; race T1, T3
    table.create_entity({"PartitionKey": "p", "RowKey": "1", "n": 1})
    seen = table.get_entity("p", "1")
    table.upsert_entity({"PartitionKey": "p", "RowKey": "1", "n": 2})
    with pytest.raises(TableTransactionError) as error:
        table.submit_transaction([
            ("create", {"PartitionKey": "p", "RowKey": "0"}),
            ("update", {"PartitionKey": "p", "RowKey": "1", "n": 3},
             {"etag": seen.metadata["etag"], "match_condition": MatchConditions.IfNotModified}),
        ])  # fmt: skip
    assert (error.value.index, error.value.error_code) == (1, "UpdateConditionNotSatisfied")  # type: ignore[attr-defined]
    assert [entity["n"] for entity in table.list_entities()] == [2]
    with pytest.raises(TableTransactionError) as error:
        table.submit_transaction([
            ("upsert", {"PartitionKey": "p", "RowKey": "a"}),
            ("upsert", {"PartitionKey": "p", "RowKey": "a"}),
        ])  # fmt: skip
    assert (error.value.index, error.value.error_code) == (1, "InvalidDuplicateRow")  # type: ignore[attr-defined]


def test_shared_access(steady: Running, table: TableClient) -> None:
    credential = AzureNamedKeyCredential(steady.account, steady.key)
    expiry = datetime.now(UTC) + timedelta(hours=1)
    endpoint = f"http://127.0.0.1:{steady.app.servers['table'].port}/{steady.account}"
    for key in ("a1", "b1", "b2", "c1"):
        table.create_entity({"PartitionKey": key[0], "RowKey": key[1]})
    token = generate_table_sas(
        credential, table.table_name, permission="raud", expiry=expiry, start_pk="b", start_rk="1", end_pk="b", end_rk="9"
    )
    with TableClient(endpoint, table.table_name, credential=AzureSasCredential(token)) as limited:
        assert [entity["RowKey"] for entity in limited.list_entities()] == ["1", "2"]
        limited.upsert_entity({"PartitionKey": "b", "RowKey": "3"})
        limited.submit_transaction([("upsert", {"PartitionKey": "b", "RowKey": "4"})])
        for change in (limited.create_entity, limited.upsert_entity):
            with pytest.raises(HttpResponseError) as error:
                change({"PartitionKey": "c", "RowKey": "9"})
            assert error.value.status_code == 403
        with pytest.raises(TableTransactionError):
            limited.submit_transaction([("upsert", {"PartitionKey": "c", "RowKey": "4"})])
    account = generate_account_sas(credential, ResourceTypes(container=True), AccountSasPermissions(list=True), expiry)
    with TableServiceClient(endpoint, credential=AzureSasCredential(account)) as reader:
        assert table.table_name in [each.name for each in reader.list_tables()]
        with pytest.raises(HttpResponseError):
            reader.create_table("notallowed")
    with (
        TableClient(endpoint, table.table_name, credential=AzureNamedKeyCredential(steady.account, "AAAA")) as stranger,
        pytest.raises(ClientAuthenticationError),
    ):
        list(stranger.list_entities())


def test_policies_and_properties(service: TableServiceClient, table: TableClient) -> None:
    expiry = datetime(2031, 1, 2, tzinfo=UTC)
    policy = TableAccessPolicy(start=None, expiry=expiry, permission="raud")
    table.set_table_access_policy({"one": policy, "empty": None})
    found = table.get_table_access_policy()
    assert found["one"] is not None
    assert (found["one"].permission, found["one"].expiry) == ("raud", expiry)
    assert found["empty"] is None
    service.set_service_properties(cors=[TableCorsRule(["http://a"], ["GET", "PATCH"], max_age_in_seconds=5)])
    cors: Any = service.get_service_properties()["cors"]
    assert [rule.allowed_methods for rule in cors] == [["GET", "PATCH"]]
    service.set_service_properties(cors=[])
    assert service.get_service_properties()["cors"] == []

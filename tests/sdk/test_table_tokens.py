"""Microsoft's table client with a bearer token."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, ResourceNotFoundError
from azure.data.tables import TableServiceClient

from tests.rest.running import Running
from tests.sdk.credentials import Credential


@pytest.fixture
def connect(token_server: Running, options: dict[str, Any]) -> Iterator[Any]:
    """A service client with a credential, closed afterwards."""
    opened: list[TableServiceClient] = []

    def connect(credential: Credential) -> TableServiceClient:
        url = f"https://127.0.0.1:{token_server.app.servers['table'].port}/{token_server.account}"
        opened.append(TableServiceClient(url, credential=credential, **options))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


def new_name() -> str:
    return f"sdk{uuid.uuid4().hex[:16]}"


def test_a_token_credential_works_as_on_azure(token_server: Running, connect: Any) -> None:  # T738
    credential = Credential(token_server)
    service = connect(credential)
    table = service.create_table(new_name())
    row = {"PartitionKey": "p", "RowKey": "r", "A": 1}
    table.create_entity(row)
    table.submit_transaction([("upsert", {**row, "RowKey": "s"}), ("update", {**row, "A": 2})])
    assert table.get_entity("p", "r")["A"] == 2
    assert [found["RowKey"] for found in table.query_entities("A ge 1")] == ["r", "s"]
    assert table.table_name in [item.name for item in service.list_tables()]
    table.delete_entity("p", "r")
    service.delete_table(table.table_name)
    assert credential.asked[0][0] == ("https://storage.azure.com/.default",)


def test_a_token_of_another_audience_is_refused(token_server: Running, connect: Any) -> None:
    service = connect(Credential(token_server, audience="https://elsewhere.example"))
    with pytest.raises(ClientAuthenticationError):
        service.create_table(new_name())


def test_policies_are_the_keys_alone(token_server: Running, connect: Any) -> None:
    """Seen on Azure."""
    table = connect(Credential(token_server)).create_table(new_name())
    with pytest.raises(ResourceNotFoundError, match="ErrorCode:ResourceNotFound"):
        table.get_table_access_policy()
    with pytest.raises(ResourceNotFoundError, match="ErrorCode:ResourceNotFound"):
        table.set_table_access_policy({})

"""Fixtures of the Table tests: a client of the table port, and a table for each test. A test file imports both by name."""

from collections.abc import Iterator

import pytest

from tests.rest.running import Running
from tests.rest.tables import TableBox, TableClient


@pytest.fixture
def client(server: Running) -> Iterator[TableClient]:
    client = TableClient(server)
    yield client
    client.close()


@pytest.fixture
def box(client: TableClient) -> TableBox:
    return TableBox(client).create()

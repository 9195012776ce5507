"""Refused requests leave nothing behind: their bodies are freed at once, not at the next garbage collection."""

import gc
import json

import pytest

from tests.rest.client import Client
from tests.rest.running import Running
from verditer.rest.http.body import IncomingBody

XML = b"<StorageServiceProperties>" + b"<a>" * 500
REFUSED = 20


def kept_bodies() -> int:
    """By type: `isinstance` asks what a weak proxy stands for, which may be gone."""
    return sum(type(each) is IncomingBody for each in gc.get_objects())


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "status"),
    [
        ("PUT", "", {"restype": "service", "comp": "properties"}, XML, 400),
        ("PUT", "/box/b", {"comp": "blocklist"}, XML, 400),
        ("PUT", "/box", {"restype": "container", "comp": "acl"}, XML + b"&nothing;", 400),
        ("PUT", "/box", {"restype": "container", "comp": "acl"}, b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", 400),
        ("POST", "/", {"comp": "batch"}, json.dumps([0] * 500).encode(), 400),
        ("GET", "/box/missing", {}, None, 404),
    ],
)
def test_a_refused_request_is_freed_at_once(
    server: Running, method: str, path: str, query: dict[str, str], body: bytes | None, status: int
) -> None:
    client = Client(server)
    client.send("PUT", "/box", {"restype": "container"})
    gc.collect()
    gc.disable()
    try:
        before = kept_bodies()
        for _ in range(REFUSED):
            assert client.send(method, path, query, None, body).status == status
        assert kept_bodies() - before < REFUSED / 2
    finally:
        gc.enable()
        client.close()

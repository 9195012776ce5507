"""List Containers: order, prefix, pages, metadata."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest.client import Box, Client
from tests.rest.running import running


@pytest.fixture
def group(client: Client) -> list[Box]:
    """Five containers with a unique prefix, in the order of their names."""
    prefix = f"g{uuid.uuid4().hex[:12]}-"
    boxes = [Box(client, prefix + name) for name in ("0", "a", "a-b", "b", "z9")]
    for box in reversed(boxes):
        box.create({"x-ms-meta-MyName": box.name})
    return boxes


def prefix_of(group: list[Box]) -> str:
    return group[0].name.partition("-")[0]


def names(client: Client, **query: str) -> tuple[list[str], str]:
    reply = client.send("GET", "", {"comp": "list", **query})
    assert reply.status == 200
    return [node.text or "" for node in reply.xml.iterfind("Containers/Container/Name")], reply.xml.findtext("NextMarker") or ""


def test_containers_are_listed_by_name(client: Client, group: list[Box]) -> None:
    assert names(client, prefix=prefix_of(group)) == ([box.name for box in group], "")
    assert names(client, prefix=f"{prefix_of(group)}-a") == ([group[1].name, group[2].name], "")
    assert names(client, prefix="nobody-has-this") == ([], "")


@pytest.mark.parametrize("size", range(1, 7))
def test_pages_of_every_size_are_complete(client: Client, group: list[Box], size: int) -> None:
    found: list[str] = []
    marker = ""
    for _ in range(6):
        page, marker = names(client, prefix=prefix_of(group), maxresults=str(size), marker=marker)
        assert len(page) <= size
        found += page
        if not marker:
            break
    assert found == [box.name for box in group]


def test_a_container_is_listed_with_its_properties(client: Client, group: list[Box]) -> None:
    box = group[0]
    box.acquire(-1, name=None)
    box.container("PUT", "acl", {"x-ms-blob-public-access": "blob"})
    reply = client.send("GET", "", {"comp": "list", "prefix": box.name, "maxresults": "7"})
    root = reply.xml
    assert reply["Content-Type"] == "application/xml"
    assert root.attrib == {"ServiceEndpoint": f"{client.server.base_url}/"}
    assert (root.findtext("Prefix"), root.findtext("MaxResults"), root.find("Marker")) == (box.name, "7", None)
    properties = root.find("Containers/Container/Properties")
    assert properties is not None
    head = box.container("HEAD")
    assert {node.tag: node.text for node in properties} == {
        "Last-Modified": head["Last-Modified"],
        "Etag": head["ETag"],  # quoted, unlike in a list of blobs
        "LeaseStatus": "locked",
        "LeaseState": "leased",
        "LeaseDuration": "infinite",
        "PublicAccess": "blob",
        "DefaultEncryptionScope": "$account-encryption-key",
        "DenyEncryptionScopeOverride": "false",
        "HasImmutabilityPolicy": "false",
        "HasLegalHold": "false",
        "ImmutableStorageWithVersioningEnabled": "false",
    }
    box.lease("break", {"x-ms-lease-break-period": "0"}, name=None)


def test_metadata_is_listed_when_asked_for_and_a_list_without_it_erases_nothing(client: Client, group: list[Box]) -> None:
    # race G3
    before = [box.container("HEAD").headers for box in group]
    plain = client.send("GET", "", {"comp": "list", "prefix": prefix_of(group)}).xml
    assert plain.find("Containers/Container/Metadata") is None
    full = client.send("GET", "", {"comp": "list", "prefix": prefix_of(group), "include": "metadata"}).xml
    assert [node.text for node in full.iterfind("Containers/Container/Metadata/MyName")] == [box.name for box in group]
    for box, headers in zip(group, before, strict=True):
        volatile = {"Date", "x-ms-request-id"}
        after = box.container("HEAD").headers
        assert [pair for pair in after if pair[0] not in volatile] == [pair for pair in headers if pair[0] not in volatile]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"maxresults": "0"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "-1"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "many"}, "InvalidQueryParameterValue"),
        ({"include": "everything"}, "InvalidQueryParameterValue"),
        ({"marker": "not a marker!"}, "InvalidQueryParameterValue"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_by_name(client: Client, query: dict[str, str], code: str) -> None:
    reply = client.send("GET", "", {"comp": "list", **query})
    assert reply.answer == (400, code)
    assert reply.detail("QueryParameterName") == next(iter(query))
    assert reply.detail("QueryParameterValue") == next(iter(query.values()))


def test_more_than_the_largest_page_is_clipped(client: Client, group: list[Box]) -> None:
    assert names(client, prefix=prefix_of(group), maxresults="100000") == ([box.name for box in group], "")


def test_a_deleted_container_is_listed_no_more(client: Client, group: list[Box]) -> None:
    # contract G2
    group[2].container("DELETE")
    assert names(client, prefix=prefix_of(group))[0] == [box.name for box in group if box is not group[2]]


@pytest.fixture
def new_client(tmp_path: Path) -> Iterator[Client]:
    """Of a server on which nobody has switched logging on."""
    with running(tmp_path, in_memory=True) as server:
        client = Client(server)
        yield client
        client.close()


def test_the_container_of_the_logs_is_made_by_logging_and_listed_on_request(new_client: Client) -> None:
    """Seen on Azure with `include=system`."""
    client = new_client

    def listed(**query: str) -> list[str]:
        reply = client.send("GET", "", {"comp": "list", "prefix": "$logs", **query})
        return [one.findtext("Name") or "" for one in reply.xml.iter("Container")]

    logs, service = Box(client, "$logs"), {"restype": "service", "comp": "properties"}
    assert logs.container("PUT").answer == (400, "InvalidResourceName")
    logging = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>false</Write>{}</Logging>"
    retention = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
    document = f"<StorageServiceProperties>{logging.format(retention)}</StorageServiceProperties>"
    assert client.send("PUT", "", service, body=document.encode()).status == 202
    assert (listed(), listed(include="system"), listed(include="metadata,system")) == ([], ["$logs"], ["$logs"])
    assert logs.container("PUT").answer == (409, "ContainerAlreadyExists")
    assert logs.put("blob/2026/01/01/log").status == 201
    assert logs.container("DELETE").answer == (403, "AuthorizationFailure")
    document = document.replace("<Delete>true", "<Delete>false")
    assert client.send("PUT", "", service, body=document.encode()).status == 202
    assert listed(include="system") == ["$logs"]

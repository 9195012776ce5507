"""Addressing: path style, host style, the root container; methods, versions and queries without an operation."""

from time import gmtime, strftime

import pytest

from tests.rest.client import Box, Client

HOST = "devstoreaccount1.blob.localhost"


def test_the_account_may_be_in_the_host_name(box: Box) -> None:
    client = box.client
    headers = {"x-ms-blob-type": "BlockBlob"}
    assert client.send("PUT", f"{box.path}/by%20host", headers=headers, body=b"x", host=HOST).status == 201
    assert client.send("GET", f"{box.path}/by%20host", host=HOST).body == b"x"
    assert client.send("GET", f"{box.path}/by%20host", host=HOST, auth=box.sas("r")).body == b"x"
    assert box.get("by host").body == b"x"
    listed = client.send("GET", box.path, {"restype": "container", "comp": "list"}, host=HOST)
    assert listed.xml.get("ServiceEndpoint") == f"http://{HOST}:{box.server.port}/"
    service = client.send("GET", "/", {"restype": "service", "comp": "properties"}, host=HOST)
    assert service.status == 200


def test_the_secondary_may_be_in_the_host_name(box: Box) -> None:
    box.put()
    host = "devstoreaccount1-secondary.blob.localhost"
    assert box.client.send("GET", f"{box.path}/blob", host=host).status == 200
    refused = box.client.send("DELETE", f"{box.path}/blob", host=host)
    assert refused.answer == (403, "InsufficientAccountPermissions")


def test_an_account_that_does_not_exist_is_not_found(box: Box) -> None:
    other = Client(box.server, account="someoneelse")
    assert other.send("GET", box.path, {"restype": "container"}).answer == (404, "ResourceNotFound")
    other.close()


def test_a_blob_without_a_container_is_in_the_root_container(client: Client) -> None:
    root = Box(client, "$root")
    root.container("DELETE")
    root.create()
    headers = {"x-ms-blob-type": "BlockBlob"}
    assert client.send("PUT", "/rootblob", headers=headers, body=b"at the root").status == 201
    assert client.send("GET", "/rootblob").body == b"at the root"
    assert root.get("rootblob").body == b"at the root"
    assert root.names() == ["rootblob"]
    assert client.send("DELETE", "/rootblob").status == 202
    assert root.container("DELETE").status == 202


@pytest.mark.parametrize(
    ("method", "level", "query"),
    [
        ("POST", "service", {"comp": "list"}),
        ("DELETE", "service", {"comp": "list"}),
        ("POST", "container", {"restype": "container"}),
        ("PATCH", "container", {"restype": "container"}),
        ("PUT", "container", {"restype": "container", "comp": "list"}),
        ("POST", "blob", {}),
        ("PATCH", "blob", {}),
        ("DELETE", "blob", {"comp": "metadata"}),
        ("HEAD", "blob", {"comp": "blocklist"}),
        ("GET", "blob", {"comp": "lease"}),
    ],
)
def test_a_known_resource_with_a_verb_it_does_not_know(box: Box, method: str, level: str, query: dict[str, str]) -> None:
    path = {"service": "", "container": box.path, "blob": f"{box.path}/blob"}[level]
    assert box.client.send(method, path, query).answer == (405, "UnsupportedHttpVerb")


@pytest.mark.parametrize(
    ("level", "query", "wrong"),
    [
        ("service", {"comp": "nothing"}, "comp"),
        ("service", {"restype": "service", "comp": "nothing"}, "comp"),
        ("container", {"restype": "container", "comp": "nothing"}, "comp"),
        ("container", {"restype": "nothing"}, "restype"),
        ("blob", {"comp": "nothing"}, "comp"),
        ("blob", {"restype": "container"}, "restype"),
    ],
)
def test_a_query_that_names_no_operation_is_refused_by_name(box: Box, level: str, query: dict[str, str], wrong: str) -> None:
    path = {"service": "", "container": box.path, "blob": f"{box.path}/blob"}[level]
    reply = box.client.send("GET", path, query)
    assert reply.answer == (400, "InvalidQueryParameterValue")
    assert (reply.detail("QueryParameterName"), reply.detail("QueryParameterValue")) == (wrong, query[wrong])


def test_comp_and_restype_may_be_written_in_any_case(box: Box) -> None:
    assert box.client.send("GET", box.path, {"RESTYPE": "Container", "Comp": "LIST"}).status == 200


@pytest.mark.parametrize("version", ["2009-09-19", "2015-02-21", "2019-12-12", "2026-10-06", "2027-03-07"])
def test_every_version_is_served_and_said_again(box: Box, version: str) -> None:
    assert box.put(version=version)["x-ms-version"] == version
    assert box.get(version=version).status == 200


@pytest.mark.parametrize("version", ["latest", "2021-8-6", "20210806", "2021-08-06x"])
def test_a_version_that_is_no_date_is_refused(box: Box, version: str) -> None:
    reply = box.get(version=version)
    assert reply.answer == (400, "InvalidHeaderValue")
    assert (reply.detail("HeaderName"), reply.detail("HeaderValue")) == ("x-ms-version", version)


def test_a_request_without_a_version_is_served(box: Box) -> None:
    box.put()
    assert box.get(version=None, auth=box.sas("r")).status == 200


def test_a_path_that_is_no_utf8_is_refused(box: Box) -> None:
    assert box.client.send("GET", f"{box.path}/%ff%fe", auth=box.sas("r")).answer == (400, "InvalidUri")
    assert box.client.send("GET", f"{box.path}/nul%00byte", auth=box.sas("r")).answer == (400, "InvalidUri")


def test_the_bare_service_needs_to_be_told_what_to_do(client: Client) -> None:
    assert client.send("GET", "").answer == (405, "UnsupportedHttpVerb")


def test_a_version_of_the_far_future_is_refused_without_naming_one(box: Box) -> None:
    """Seen on Azure. A year ahead is the limit, so that a newer client works with an older server."""
    reply = box.put(version="2099-11-05")
    assert (reply.answer, reply.detail("HeaderName"), reply.detail("HeaderValue")) == (
        (400, "InvalidHeaderValue"),
        "x-ms-version",
        "2099-11-05",
    )
    assert "x-ms-version" not in reply
    now = box.server.now()
    assert box.put(version=strftime("%Y-%m-%d", gmtime(now + 364 * 86400))).status == 201
    assert box.put(version=strftime("%Y-%m-%d", gmtime(now + 367 * 86400))).status == 400

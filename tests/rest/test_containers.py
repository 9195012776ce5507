"""Create, Get Properties, Get and Set Metadata, Delete Container."""

import re

import pytest

from tests.rest.client import Box, Client

ETAG = re.compile(r'"0x[0-9A-F]+"')
METADATA_LIMIT = 8 * 1024


@pytest.fixture
def absent(client: Client) -> Box:
    """A container that does not exist."""
    return Box(client)


def test_a_new_container_has_an_etag_and_the_date_of_its_creation(absent: Box) -> None:
    reply = absent.container("PUT")
    assert reply.status == 201
    assert ETAG.fullmatch(reply["ETag"])
    assert reply["Last-Modified"].endswith(" GMT")
    assert reply["Content-Length"] == "0"
    assert reply.body == b""


def test_a_container_cannot_be_created_twice(box: Box) -> None:
    before = box.container("HEAD")["ETag"]
    assert box.container("PUT").answer == (409, "ContainerAlreadyExists")
    assert box.container("HEAD")["ETag"] == before


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Upper", "InvalidResourceName"),
        ("under_score", "InvalidResourceName"),
        ("two--dashes", "InvalidResourceName"),
        ("-first", "InvalidResourceName"),
        ("last-", "InvalidResourceName"),
        ("dot.dot", "InvalidResourceName"),
        ("%C3%A4%C3%B6%C3%BC", "InvalidResourceName"),
        ("$other", "InvalidResourceName"),
    ],
)
def test_a_name_that_is_no_container_name_is_refused(client: Client, name: str, code: str) -> None:
    assert client.send("PUT", f"/{name}", {"restype": "container"}).answer == (400, code)


@pytest.mark.parametrize("name", ["abc", "0-1-2", "a" * 63])
def test_the_shortest_and_the_longest_names_are_names(client: Client, name: str) -> None:
    assert client.send("PUT", f"/{name}", {"restype": "container"}).status == 201
    assert client.send("DELETE", f"/{name}", {"restype": "container"}).status == 202


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_properties_show_everything_about_a_container(absent: Box, method: str) -> None:
    created = absent.container("PUT", headers={"x-ms-meta-MyName": "value", "x-ms-blob-public-access": "blob"})
    reply = absent.container(method)
    assert reply.status == 200
    assert reply["ETag"] == created["ETag"]
    assert reply["Last-Modified"] == created["Last-Modified"]
    assert reply.metadata == {"MyName": "value"}
    assert reply["x-ms-lease-status"] == "unlocked"
    assert reply["x-ms-lease-state"] == "available"
    assert "x-ms-lease-duration" not in reply
    assert reply["x-ms-blob-public-access"] == "blob"
    assert reply["x-ms-has-immutability-policy"] == "false"
    assert reply["x-ms-has-legal-hold"] == "false"
    assert reply["x-ms-default-encryption-scope"] == "$account-encryption-key"
    assert reply["x-ms-deny-encryption-scope-override"] == "false"
    assert reply["x-ms-immutable-storage-with-versioning-enabled"] == "false"
    assert reply.body == b""


def test_a_private_container_says_nothing_about_public_access(box: Box) -> None:
    assert "x-ms-blob-public-access" not in box.container("HEAD")


def test_a_public_access_level_that_does_not_exist_is_refused(absent: Box) -> None:
    reply = absent.container("PUT", headers={"x-ms-blob-public-access": "everything"})
    assert reply.answer == (400, "InvalidHeaderValue")
    assert reply.detail("HeaderName") == "x-ms-blob-public-access"
    assert absent.container("HEAD").answer == (404, "ContainerNotFound")  # contract G7


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_metadata_is_replaced_as_a_whole(box: Box, method: str) -> None:
    first = box.container("PUT", "metadata", {"x-ms-meta-one": "1", "x-ms-meta-Two": "2"})
    assert first.status == 200
    assert box.container(method, "metadata").metadata == {"one": "1", "Two": "2"}
    second = box.container("PUT", "metadata", {"x-ms-meta-three": "3"})
    assert box.container(method, "metadata").metadata == {"three": "3"}
    third = box.container("PUT", "metadata")
    assert box.container(method, "metadata").metadata == {}
    assert len({first["ETag"], second["ETag"], third["ETag"]}) == 3  # contract G4
    assert box.container(method, "metadata")["ETag"] == third["ETag"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([("x-ms-meta-", "v")], "EmptyMetadataKey"),
        ([("x-ms-meta-1st", "v")], "InvalidMetadata"),
        ([("x-ms-meta-has-dash", "v")], "InvalidMetadata"),
        ([("x-ms-meta-big", "v" * METADATA_LIMIT)], "MetadataTooLarge"),
        ([(f"x-ms-meta-n{number}", "v" * 1024) for number in range(8)], "MetadataTooLarge"),
    ],
)
def test_metadata_that_is_not_allowed_changes_nothing(box: Box, headers: list[tuple[str, str]], code: str) -> None:
    # contract G7
    before = box.container("PUT", "metadata", {"x-ms-meta-kept": "yes"})["ETag"]
    assert box.container("PUT", "metadata", headers).answer == (400, code)
    after = box.container("HEAD")
    assert (after["ETag"], after.metadata) == (before, {"kept": "yes"})


def test_metadata_may_fill_its_limit_exactly(box: Box) -> None:
    value = "v" * (METADATA_LIMIT - len("name"))
    assert box.container("PUT", "metadata", {"x-ms-meta-name": value}).status == 200
    assert box.container("HEAD").metadata == {"name": value}


@pytest.mark.parametrize(
    ("method", "comp"),
    [
        *[(method, comp) for method in ("GET", "HEAD") for comp in ("", "metadata", "acl")],
        *[("PUT", comp) for comp in ("metadata", "acl", "lease")],
        *[("GET", "list"), ("DELETE", "")],
    ],
)
def test_a_container_that_does_not_exist_is_not_found(absent: Box, method: str, comp: str) -> None:
    lease = {"x-ms-lease-action": "break"} if comp == "lease" else None
    assert absent.container(method, comp, lease).answer == (404, "ContainerNotFound")


def test_deleting_a_container_is_accepted_and_final(box: Box) -> None:
    box.put()
    reply = box.container("DELETE")
    assert (reply.status, reply.body) == (202, b"")
    assert "ETag" not in reply
    assert box.container("DELETE").answer == (404, "ContainerNotFound")
    assert box.get().answer == (404, "ContainerNotFound")
    assert box.put().answer == (404, "ContainerNotFound")


@pytest.mark.parametrize(
    ("header", "seconds", "status"),
    [
        ("If-Modified-Since", -3600, 202),
        ("If-Modified-Since", 3600, 412),
        ("If-Unmodified-Since", -3600, 412),
        ("If-Unmodified-Since", 3600, 202),
    ],
)
def test_delete_looks_at_dates(box: Box, header: str, seconds: int, status: int) -> None:
    # contract B2, B3
    reply = box.container("DELETE", headers={header: box.client.date(seconds)})
    assert reply.answer == (status, None if status == 202 else "ConditionNotMet")


def test_set_metadata_looks_at_if_modified_since_and_at_nothing_else(box: Box) -> None:
    # contract B3
    past, future = box.client.date(-3600), box.client.date(3600)
    assert box.container("PUT", "metadata", {"If-Modified-Since": future}).answer == (412, "ConditionNotMet")
    assert box.container("PUT", "metadata", {"If-Modified-Since": past}).status == 200
    for ignored in ({"If-Unmodified-Since": past}, {"If-Match": '"0x0"'}, {"If-None-Match": "*"}):
        assert box.container("PUT", "metadata", ignored).status == 200


def test_set_acl_looks_at_dates(box: Box) -> None:
    # contract B3
    past, future = box.client.date(-3600), box.client.date(3600)
    assert box.container("PUT", "acl", {"If-Modified-Since": future}).answer == (412, "ConditionNotMet")
    assert box.container("PUT", "acl", {"If-Unmodified-Since": past}).answer == (412, "ConditionNotMet")
    assert box.container("PUT", "acl", {"If-Modified-Since": past}).status == 200


def test_reading_a_container_ignores_conditions(box: Box) -> None:
    # contract B3
    for comp in ("", "metadata", "acl"):
        assert box.container("GET", comp, {"If-None-Match": box.container("HEAD")["ETag"]}).status == 200


def test_blobs_never_change_the_etag_of_their_container(box: Box) -> None:
    before = box.container("HEAD")
    box.put()
    box.blob("PUT", comp="snapshot")
    box.acquire()
    after = box.container("HEAD")
    assert (after["ETag"], after["Last-Modified"]) == (before["ETag"], before["Last-Modified"])


def test_rename_container_is_refused_as_azure_refuses_it(box: Box) -> None:
    reply = Box(box.client).container("PUT", "rename", {"x-ms-source-container-name": box.name})
    assert (reply.answer, reply.detail("QueryParameterName")) == ((400, "InvalidQueryParameterValue"), "comp")

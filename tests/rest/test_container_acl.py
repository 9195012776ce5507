"""Get and Set Container ACL: public access and stored access policies, replaced together."""

import pytest

from tests.rest.client import ANONYMOUS, BOM, Box


def document(*identifiers: str) -> bytes:
    return f"<SignedIdentifiers>{''.join(identifiers)}</SignedIdentifiers>".encode()


def identifier(id: str, policy: str = "") -> str:
    access = f"<AccessPolicy>{policy}</AccessPolicy>" if policy else ""
    return f"<SignedIdentifier><Id>{id}</Id>{access}</SignedIdentifier>"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_container_without_policies_answers_an_empty_document(box: Box, method: str) -> None:
    reply = box.container(method, "acl")
    assert reply.status == 200
    assert reply["ETag"] == box.container("HEAD")["ETag"]
    assert reply["Content-Type"] == "application/xml"
    assert "x-ms-blob-public-access" not in reply
    if method == "GET":
        assert reply.body == BOM + b'<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers />'
    else:
        assert reply.body == b""


def test_policies_come_back_with_seven_digits_of_a_second(box: Box) -> None:
    policy = "<Start>2026-01-02</Start><Expiry>2099-12-31T23:59:58.1234567Z</Expiry><Permission>rwd</Permission>"
    reply = box.container("PUT", "acl", body=document(identifier("first", policy), identifier("bare")))
    assert (reply.status, reply.body) == (200, b"")
    answer = box.container("GET", "acl")
    assert answer["ETag"] == reply["ETag"]
    first, bare = answer.xml
    assert [node.text for node in first.iter() if node.text] == [
        "first",
        "2026-01-02T00:00:00.0000000Z",
        "2099-12-31T23:59:58.1234567Z",
        "rwd",
    ]
    assert (bare.findtext("Id"), bare.find("AccessPolicy")) == ("bare", None)


def test_setting_replaces_level_and_policies(box: Box) -> None:
    first = box.container("PUT", "acl", {"x-ms-blob-public-access": "container"}, body=document(identifier("one")))
    assert box.container("GET", "acl")["x-ms-blob-public-access"] == "container"
    second = box.container("PUT", "acl")
    assert second["ETag"] != first["ETag"]
    answer = box.container("GET", "acl")
    assert len(answer.xml) == 0
    assert "x-ms-blob-public-access" not in answer


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (document(*[identifier(f"policy{number}") for number in range(6)]), "InvalidXmlDocument"),
        (document(identifier("x" * 65)), "InvalidXmlDocument"),
        (document(identifier("same"), identifier("same")), "InvalidXmlDocument"),
        (document("<SignedIdentifier></SignedIdentifier>"), "MissingRequiredXmlNode"),
        (document("<Other></Other>"), "InvalidXmlDocument"),
        (document(identifier("x", "<Expiry>tomorrow</Expiry>")), "InvalidXmlNodeValue"),
        (b"<SignedIdentifiers>", "InvalidXmlDocument"),
        (b"<AccessPolicies />", "InvalidXmlDocument"),
    ],
)
def test_policies_that_are_not_allowed_change_nothing(box: Box, body: bytes, code: str) -> None:
    # contract G7
    box.container("PUT", "acl", body=document(identifier("kept")))
    assert box.container("PUT", "acl", body=body).answer == (400, code)
    assert [node.findtext("Id") for node in box.container("GET", "acl").xml] == ["kept"]


def test_five_policies_with_ids_of_64_characters_are_allowed(box: Box) -> None:
    ids = [f"{number}" * 64 for number in range(5)]
    assert box.container("PUT", "acl", body=document(*map(identifier, ids))).status == 200
    assert [node.findtext("Id") for node in box.container("GET", "acl").xml] == ids


def test_nobody_without_the_key_sees_or_sets_an_acl(box: Box) -> None:
    box.container("PUT", "acl", {"x-ms-blob-public-access": "container"})
    for auth in (box.client.account_sas("racwdl"), box.sas("racwdl")):
        assert box.container("GET", "acl", auth=auth).answer == (403, "AuthorizationFailure")
        assert box.container("PUT", "acl", auth=auth).answer == (403, "AuthorizationFailure")
    assert box.container("GET", "acl", auth=ANONYMOUS).answer == (401, "NoAuthenticationInformation")

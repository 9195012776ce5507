"""Copies between two accounts of one server: the URL or a token authorizes reading the source."""

import copy as copies_of
from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.client import Box, Client
from tests.rest.copies import copy, copy_now, url
from tests.rest.running import Running, running
from tests.rest.test_tokens import token
from verditer.config import OAuth
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, parse_accounts

OTHER = "otheraccount"
ACCOUNTS = parse_accounts(f"{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY};{OTHER}:{DEVELOPMENT_KEY}")


@pytest.fixture(scope="module")
def two_accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    oauth = OAuth(mode="development")
    with running(tmp_path_factory.mktemp("two"), in_memory=True, accounts=ACCOUNTS, oauth=oauth) as server:
        yield server


@pytest.fixture
def server(two_accounts: Running) -> Iterator[Running]:
    yield from watched(two_accounts)


@pytest.fixture
def other(server: Running) -> Iterator[Box]:
    """A container of the other account, with a source blob."""
    view = copies_of.copy(server)
    view.account = OTHER
    client = Client(view)
    box = Box(client).create()
    box.put("source", b"theirs")
    yield box
    client.close()


def test_the_key_of_one_account_does_not_open_another(box: Box, other: Box) -> None:
    for form in (copy, copy_now):
        reply = form(box, url(other))
        assert reply.answer == (401, "CannotVerifyCopySource")
        assert reply["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
    assert box.names() == []


def test_a_signature_in_the_url_does(box: Box, other: Box) -> None:
    assert copy(box, url(other, query=other.sas("r")))["x-ms-copy-status"] == "success"
    assert box.get("copy").body == b"theirs"
    expired = other.sas("r", se=other.client.moment(-60))
    assert copy(box, url(other, query=expired)).answer == (403, "CannotVerifyCopySource")
    missing = copy(box, url(other, "absent", other.sas("r")))
    assert (missing.answer, missing["x-ms-copy-source-error-code"]) == ((404, "CannotVerifyCopySource"), "BlobNotFound")


def test_public_access_does(box: Box, other: Box) -> None:
    other.container("PUT", "acl", {"x-ms-blob-public-access": "blob"})
    assert copy(box, url(other)).status == 202


def test_the_host_may_name_the_other_account(box: Box, other: Box) -> None:
    address = f"http://{OTHER}.blob.localhost:{box.server.port}{other.path}/source?{other.sas('r')}"
    assert copy(box, address)["x-ms-copy-status"] == "success"


def test_a_token_for_the_source_does(box: Box, other: Box, server: Running) -> None:
    shown = {"x-ms-copy-source-authorization": f"Bearer {token(server)}"}
    assert copy_now(box, url(other), headers=shown).status == 202
    assert copy_now(box, url(other), headers={"x-ms-copy-source-authorization": "Bearer no"}).answer == (
        401,
        "CannotVerifyCopySource",
    )


def test_an_archived_source_of_another_account_stays_where_it_is(box: Box, other: Box) -> None:
    other.put("source", headers={"x-ms-access-tier": "Archive"})
    reply = copy(box, url(other, query=other.sas("r")), headers={"x-ms-access-tier": "Hot"})
    assert reply.answer == (409, "CannotVerifyCopySource")
    assert reply["x-ms-copy-source-error-code"] == "BlobArchived"

"""Copies of files between two accounts of one server, and the host names and tokens by which a source is reached."""

import copy as copies_of
from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.client import Box, Client
from tests.rest.copies import copy_now
from tests.rest.files import FileClient, ShareBox
from tests.rest.running import Running
from tests.rest.test_copy_accounts import OTHER, two_accounts
from tests.rest.test_file_copy import blob_url, copy, put_from
from tests.rest.test_tokens import token

__all__ = ["two_accounts"]  # a fixture
INTENT = {"x-ms-file-request-intent": "backup"}


@pytest.fixture
def server(two_accounts: Running) -> Iterator[Running]:
    yield from watched(two_accounts)


@pytest.fixture
def other(server: Running) -> Iterator[ShareBox]:
    """A share of the other account, with a source file."""
    view = copies_of.copy(server)
    view.account = OTHER
    client = FileClient(view)
    share = ShareBox(client).create()
    share.fill(b"theirs", "source")
    yield share
    client.close()


def test_a_file_of_another_account_is_read_by_its_signature_only(share: ShareBox, other: ShareBox) -> None:
    reply = copy(share, other.url("source"))
    assert reply.answer == (401, "CannotVerifyCopySource")
    assert reply["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
    address = f"{other.url('source')}?{other.sas('r')}"
    assert copy(share, address)["x-ms-copy-status"] == "success"
    assert share.get("copy").body == b"theirs"
    share.put("file", 6)
    assert put_from(share, address, 0, 0, 6).status == 201
    missing = copy(share, f"{other.url('absent')}?{other.sas('r')}")
    assert (missing.answer, missing["x-ms-copy-source-error-code"]) == ((404, "CannotVerifyCopySource"), "ResourceNotFound")


def test_a_token_for_a_file_says_what_it_is_meant_for(share: ShareBox, other: ShareBox, box: Box, server: Running) -> None:
    shown = {"x-ms-copy-source-authorization": f"Bearer {token(server)}"}
    share.put("file", 6)
    assert put_from(share, other.url("source"), 0, 0, 6, shown | INTENT).status == 201
    assert put_from(share, other.url("source"), 0, 0, 6, shown).answer == (400, "CannotVerifyCopySource")
    assert share.get("file").body == b"theirs"
    assert copy_now(box, other.url("source"), headers=shown | INTENT).status == 202
    assert copy_now(box, other.url("source"), headers=shown).answer == (400, "CannotVerifyCopySource")
    assert box.get("copy").body == b"theirs"
    box.put("source", b"a blob")
    assert put_from(share, blob_url(box), 0, 0, 6, shown).status == 201
    assert share.get("file").body == b"a blob"


def test_the_host_may_name_account_and_service(share: ShareBox, other: ShareBox, client: Client, box: Box) -> None:
    port, sas = share.client.port, other.sas("r")
    assert copy(share, f"http://{OTHER}.file.localhost:{port}{other.path}/source?{sas}").status == 202
    source = f"http://{OTHER}.file.example.com:{client.port}{other.path}/source?{sas}"
    host = f"{client.account}.blob.example.com"
    reply = client.send("PUT", f"{box.path}/copy", headers={"x-ms-copy-source": source}, host=host)
    assert (reply.status, reply["x-ms-copy-status"]) == (202, "success")
    assert box.get("copy").body == b"theirs"

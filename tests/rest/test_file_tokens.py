"""The File service with bearer tokens, which need an intent, and with user delegation SAS."""

from collections.abc import Iterator
from urllib.parse import urlencode
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import watched
from tests.rest import signing
from tests.rest.client import ANONYMOUS, Reply
from tests.rest.files import FileClient, ShareBox
from tests.rest.history import ask_admin
from tests.rest.running import Running, running
from verditer.config import OAuth

DAY = 86400
INTENT = "x-ms-file-request-intent"
KEY_QUERY = {"restype": "service", "comp": "userdelegationkey"}
SIGNED = ("sp", "st", "se", "resource", "skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid", "sduoid", "sip", "spr", "sv")
OVERRIDES = ("rscc", "rscd", "rsce", "rscl", "rsct")


@pytest.fixture(scope="module")
def with_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("tokens"), oauth=OAuth(mode="development")) as server:
        yield server


@pytest.fixture
def server(with_tokens: Running) -> Iterator[Running]:
    yield from watched(with_tokens)


def bearer(server: Running, intent: str | None = "backup") -> dict[str, str]:
    status, document = ask_admin(server, "POST", "/control/token", {})
    assert status == 200
    return {"Authorization": f"Bearer {document['access_token']}", **({INTENT: intent} if intent is not None else {})}


def ask_key(client: FileClient, extra: str = "", start: float = 0) -> Reply:
    document = f"<KeyInfo><Start>{client.moment(start)}</Start><Expiry>{client.moment(DAY)}</Expiry>{extra}</KeyInfo>"
    return client.send("POST", "", KEY_QUERY, bearer(client.server), document.encode(), auth=ANONYMOUS)


def delegation_sas(client: FileClient, key: Element, resource: str, **fields: str) -> str:
    said = {child.tag: child.text or "" for child in key}
    values = {"sv": "2026-02-06", "se": client.moment(3600), "skoid": said["SignedOid"], "sktid": said["SignedTid"]}
    values |= {"skt": said["SignedStart"], "ske": said["SignedExpiry"], "sks": said["SignedService"]}
    values |= {"skv": said["SignedVersion"]} | fields
    signed = values | {"resource": f"/file/{client.account}/{resource}"}
    signature = signing.signature(said["Value"], "\n".join(signed.get(name, "") for name in (*SIGNED, *OVERRIDES)))
    return urlencode(values | {"sig": signature})


def test_a_token_with_the_intent_opens_every_level(share: ShareBox) -> None:
    shown = bearer(share.server)
    assert share.put(headers={**shown}, size=5, auth=ANONYMOUS).status == 201
    assert share.write(b"hello", headers=shown, auth=ANONYMOUS).status == 201
    assert share.get(headers=shown, auth=ANONYMOUS).body == b"hello"
    assert share.page(headers=shown, auth=ANONYMOUS).status == 200
    assert share.share("GET", headers=shown, auth=ANONYMOUS).status == 200
    assert share.share("GET", "acl", shown, auth=ANONYMOUS).status == 200
    assert share.client.send("GET", "", {"comp": "list"}, shown, auth=ANONYMOUS).status == 200
    assert share.get(headers=bearer(share.server, "BackUp"), auth=ANONYMOUS).status == 200


def test_a_token_without_the_intent_is_refused(share: ShareBox) -> None:
    share.fill(b"hello")
    missing = share.get(headers=bearer(share.server, None), auth=ANONYMOUS)
    assert missing.answer == (400, "MissingRequiredHeader")
    assert missing.detail("HeaderName") == INTENT
    wrong = share.get(headers=bearer(share.server, "restore"), auth=ANONYMOUS)
    assert wrong.answer == (400, "InvalidHeaderValue")
    assert (wrong.detail("HeaderName"), wrong.detail("HeaderValue")) == (INTENT, "restore")
    assert share.share("DELETE", headers=bearer(share.server, None), auth=ANONYMOUS).status == 400
    assert share.get(headers={INTENT: "anything"}).status == 200  # other callers need none


def test_a_delegation_key_is_for_files(files: FileClient) -> None:
    reply = ask_key(files)
    assert reply.status == 200
    assert (reply.xml.findtext("SignedService"), reply.xml.findtext("SignedVersion")) == ("f", "2026-02-06")
    assert files.send("POST", "", KEY_QUERY, body=b"<KeyInfo />").status == 403


def test_a_delegation_key_needs_no_intent(files: FileClient) -> None:
    """It opens no file, and Microsoft's clients send no intent with it."""
    document = f"<KeyInfo><Expiry>{files.moment(DAY)}</Expiry></KeyInfo>".encode()
    shown = bearer(files.server, None)
    assert files.send("POST", "", KEY_QUERY, shown, document, auth=ANONYMOUS).status == 200


def test_the_same_start_and_expiry_give_the_same_key(files: FileClient) -> None:
    shown = bearer(files.server)
    document = f"<KeyInfo><Start>{files.moment(0)}</Start><Expiry>{files.moment(DAY)}</Expiry></KeyInfo>".encode()
    first, second = (files.send("POST", "", KEY_QUERY, shown, document, auth=ANONYMOUS).xml.findtext("Value") for _ in range(2))
    assert first == second
    assert ask_key(files, start=-60).xml.findtext("Value") != first


def test_a_delegation_sas_opens_one_file(share: ShareBox) -> None:
    share.fill(b"hello")
    share.fill(b"other", "other")
    key = ask_key(share.client).xml
    reading = delegation_sas(share.client, key, f"{share.name}/file", sr="f", sp="r")
    assert share.get(auth=reading).body == b"hello"
    assert share.get("other", auth=reading).answer == (403, "AuthenticationFailed")
    assert share.file("DELETE", auth=reading).answer == (403, "AuthorizationPermissionMismatch")
    assert share.page(auth=reading).status == 403


def test_a_delegation_sas_opens_a_share(share: ShareBox) -> None:
    key = ask_key(share.client).xml
    sas = delegation_sas(share.client, key, share.name, sr="s", sp="rcwl")
    assert share.put("new", 5, auth=sas).status == 201
    assert share.write(b"hello", name="new", auth=sas).status == 201
    assert share.get("new", auth=sas).body == b"hello"
    assert share.page(auth=sas).status == 200
    assert share.file("DELETE", "new", auth=sas).answer == (403, "AuthorizationPermissionMismatch")
    assert ShareBox(share.client).create().page(auth=sas).answer == (403, "AuthenticationFailed")


def test_a_delegation_sas_ends_with_its_key(share: ShareBox) -> None:
    share.fill(b"hello")
    key = ask_key(share.client).xml
    long = delegation_sas(share.client, key, share.name, sr="s", sp="r", se=share.client.moment(2 * DAY))
    assert share.get(auth=long).status == 200
    share.server.move_clock(DAY + 60)
    assert share.get(auth=long).answer == (403, "AuthenticationFailed")


def test_a_key_of_another_service_signs_nothing_for_files(share: ShareBox) -> None:
    share.fill(b"hello")
    key = ask_key(share.client).xml
    sas = delegation_sas(share.client, key, f"{share.name}/file", sr="f", sp="r", sks="b")
    assert share.get(auth=sas).answer == (403, "AuthenticationFailed")


def test_an_older_version_has_no_delegation_sas_for_files(share: ShareBox) -> None:
    share.fill(b"hello")
    key = ask_key(share.client).xml
    sas = delegation_sas(share.client, key, f"{share.name}/file", sr="f", sp="r", sv="2025-11-05")
    assert share.get(auth=sas).status == 403

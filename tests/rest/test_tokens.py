"""Bearer tokens and user delegation keys over HTTP: what they permit, and the errors."""

import base64
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element

import pytest

from tests.conftest import watched
from tests.contract.postgres import running_server
from tests.rest import signing
from tests.rest.client import ANONYMOUS, Box, Client, Reply
from tests.rest.running import ADMIN, PATIENCE_SECONDS, Running, running
from verditer import cli
from verditer.config import OAuth
from verditer.flag_parser import parser
from verditer.flags import config_from
from verditer.rest.auth.issuer import ISSUER, TENANT, USER, DevelopmentIssuer

DEVELOPMENT = OAuth(mode="development")
DAY = 86400


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("tokens"), oauth=DEVELOPMENT) as server:
        yield server


@pytest.fixture(scope="module")
def on_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Running]]:
    """Two servers on one database."""
    with running_server() as database:
        url, folder = database.make_database(), tmp_path_factory.mktemp("tokens")
        with running(folder, database=url, oauth=DEVELOPMENT) as one, running(folder, database=url, oauth=DEVELOPMENT) as other:
            yield one, other


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    if request.param == "sqlite":
        yield from watched(request.getfixturevalue("on_sqlite"))
    else:
        yield from watched(request.getfixturevalue("on_postgres")[0])


def ask_admin(server: Running, method: str, path: str, document: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.admin_port, timeout=PATIENCE_SECONDS)
    connection.request(method, path, None if document is None else json.dumps(document), ADMIN)
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


def token(server: Running, **wanted: Any) -> str:
    status, document = ask_admin(server, "POST", "/control/token", wanted)
    assert status == 200
    return str(document["access_token"])


def bearer(server: Running, **wanted: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(server, **wanted)}"}


def test_a_token_opens_the_data_of_the_account(box: Box) -> None:
    shown = bearer(box.server)
    assert box.put(headers=shown, auth=ANONYMOUS).status == 201
    assert box.get(headers=shown, auth=ANONYMOUS).body == b"hello"
    assert box.page(headers=shown, auth=ANONYMOUS).status == 200
    assert box.container("GET", "acl", shown, auth=ANONYMOUS).status == 200
    assert box.client.send("GET", "", {"comp": "list"}, shown, auth=ANONYMOUS).status == 200
    assert box.blob("DELETE", headers=shown, auth=ANONYMOUS).status == 202


@pytest.mark.parametrize(
    ("wanted", "detail"),
    [
        ({"seconds": -1}, "Lifetime validation failed. The token expired"),
        ({"audience": "https://vault.azure.net"}, "Audience validation failed."),
    ],
)
def test_a_token_that_does_not_count_is_answered_with_a_challenge(box: Box, wanted: dict[str, Any], detail: str) -> None:
    reply = box.get(headers=bearer(box.server, **wanted), auth=ANONYMOUS)
    assert reply.answer == (401, "InvalidAuthenticationInfo")
    assert (reply.detail("AuthenticationErrorDetail") or "").startswith(detail)
    challenge = f"Bearer authorization_uri={ISSUER}/oauth2/authorize resource_id=https://storage.azure.com"
    assert reply["WWW-Authenticate"] == challenge
    assert box.get(auth=ANONYMOUS)["WWW-Authenticate"] == challenge  # no credentials at all


def test_old_versions_are_refused_their_way(box: Box) -> None:
    stale = bearer(box.server, seconds=-1)
    assert box.get(headers=stale, auth=ANONYMOUS, version="2019-07-07").answer == (403, "AuthenticationFailed")
    shown = bearer(box.server)
    assert box.get(headers=shown, auth=ANONYMOUS, version="2017-07-29").answer == (403, "AuthenticationFailed")
    assert box.get(headers=shown, auth=ANONYMOUS, version=None).answer == (403, "AuthenticationFailed")


def test_a_token_expires_by_the_servers_clock(box: Box) -> None:
    box.put()
    shown = bearer(box.server, seconds=60)
    assert box.get(headers=shown, auth=ANONYMOUS).status == 200
    box.server.move_clock(61)
    assert box.get(headers=shown, auth=ANONYMOUS).answer == (401, "InvalidAuthenticationInfo")


def test_the_admin_port_shows_the_public_key_and_hands_out_tokens(server: Running) -> None:
    status, keys = ask_admin(server, "GET", "/oauth/jwks")
    assert status == 200
    assert "d" not in keys["keys"][0]
    status, document = ask_admin(server, "POST", "/control/token", {"oid": "me", "tid": "here", "seconds": 90})
    assert (status, document["token_type"], document["expires_in"]) == (200, "Bearer", 90)
    claims = json.loads(base64.urlsafe_b64decode(document["access_token"].split(".")[1] + "=="))
    assert (claims["oid"], claims["tid"], claims["exp"]) == ("me", "here", document["expires_on"])


@pytest.mark.parametrize("wrong", [{"oid": 1}, {"seconds": "soon"}, {"seconds": 1e99}, {"unknown": "x"}])
def test_a_token_for_something_else_is_refused(server: Running, wrong: dict[str, Any]) -> None:
    assert ask_admin(server, "POST", "/control/token", wrong)[0] == 400


def test_only_the_development_issuer_has_pages(sqlite: Running) -> None:
    assert ask_admin(sqlite, "GET", "/oauth/jwks")[0] == 404
    assert ask_admin(sqlite, "POST", "/control/token", {})[0] == 404


def test_tokens_are_handed_out_only_with_test_control(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True, oauth=DEVELOPMENT, test_control=False) as server:
        assert ask_admin(server, "GET", "/oauth/jwks")[0] == 200
        assert ask_admin(server, "POST", "/control/token", {})[0] == 404


def test_a_server_without_an_issuer_refuses_tokens(sqlite: Running) -> None:
    client = Client(sqlite)
    shown = {"Authorization": f"Bearer {DevelopmentIssuer(None).token(sqlite.app.ctx.now())}"}
    assert client.send("GET", "", {"comp": "list"}, shown, auth=ANONYMOUS).answer == (403, "AuthenticationFailed")
    client.close()


@contextmanager
def account_of(location: Path, oauth: OAuth, **settings: Any) -> Iterator[Client]:
    with running(location, in_memory=True, oauth=oauth, **settings) as server:
        client = Client(server)
        yield client
        client.close()


def listed(client: Client, shown: str) -> Reply:
    return client.send("GET", "", {"comp": "list"}, {"Authorization": f"Bearer {shown}"}, auth=ANONYMOUS)


def test_a_configured_issuer_is_trusted_by_its_keys(tmp_path: Path) -> None:
    issuer, stranger = DevelopmentIssuer(None), DevelopmentIssuer(None)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(issuer.jwks))
    oauth = OAuth(mode="issuer", issuers=(ISSUER,), jwks=str(keys), audiences=("api://ours",), allow_http=True)
    with account_of(tmp_path, oauth) as client:
        now = client.server.app.ctx.now()
        assert listed(client, issuer.token(now)).status == 200
        assert listed(client, issuer.token(now, audience="api://ours")).status == 200
        assert listed(client, stranger.token(now)).answer == (401, "InvalidAuthenticationInfo")


def test_plain_http_is_refused_unless_it_is_allowed(tmp_path: Path) -> None:
    issuer = DevelopmentIssuer(None)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(issuer.jwks))
    with account_of(tmp_path, OAuth(mode="issuer", issuers=(ISSUER,), jwks=str(keys))) as client:
        reply = listed(client, issuer.token(client.server.app.ctx.now()))
        assert reply.answer == (403, "AuthenticationFailed")
        assert reply.detail("AuthenticationErrorDetail") == "Authentication scheme Bearer is not allowed with HTTP."


def test_basic_looks_at_claims_only(tmp_path: Path) -> None:
    def unsigned(**claims: Any) -> str:
        said = {"iss": "https://sts.windows.net/x/", "aud": "https://storage.azure.com", "exp": 4_000_000_000} | claims
        parts = ({"alg": "none"}, said)
        return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."

    with account_of(tmp_path, OAuth(mode="basic", allow_http=True)) as client:
        assert listed(client, unsigned()).status == 200
        assert listed(client, unsigned(exp=1)).answer == (401, "InvalidAuthenticationInfo")
        assert listed(client, unsigned(iss="https://elsewhere/")).answer == (401, "InvalidAuthenticationInfo")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--oauth-issuer", "https://x/"], "needs --oauth-jwks"),
        (["--oauth-jwks", "keys.json"], "need --oauth"),
        (["--oauth", "development", "--oauth-issuer", "https://x/"], "exclude each other"),
        (["--oauth", "basic", "--blobHost", "0.0.0.0"], "accepts every token"),
        (["--oauth", "basic", "--blobHost", "files.example"], "accepts every token"),
    ],
)
def test_flags_that_cannot_work_are_named_at_the_start(
    capsys: pytest.CaptureFixture[str], flags: list[str], problem: str
) -> None:
    assert cli.main(flags) == 1
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--blobHost", "0.0.0.0", "--development-tls"], ["--blobHost", "localhost"]])
def test_basic_is_accepted_where_others_do_not_reach(more: list[str]) -> None:
    assert config_from(parser().parse_args(["--oauth", "basic", *more])).oauth == OAuth(mode="basic")


# --- user delegation keys ---------------------------------------------------------------------------------------------------


def key_info(client: Client, start: float | None = 0, expiry: float = DAY, extra: str = "") -> bytes:
    begin = "" if start is None else f"<Start>{client.moment(start)}</Start>"
    return f"<KeyInfo>{begin}<Expiry>{client.moment(expiry)}</Expiry>{extra}</KeyInfo>".encode()


def ask_key(client: Client, document: bytes, **more: Any) -> Reply:
    query = {"restype": "service", "comp": "userdelegationkey"}
    shown = more.pop("headers", None) or bearer(client.server)
    return client.send("POST", "", query, shown, document, auth=more.pop("auth", ANONYMOUS), **more)


def delegation_sas(client: Client, key: Element, resource: str, **fields: str) -> str:
    """A user delegation SAS of version 2020-12-06, built by hand."""
    said = {child.tag: child.text or "" for child in key}
    values = {"sv": "2020-12-06", "se": client.moment(3600), "skoid": said["SignedOid"], "sktid": said["SignedTid"]}
    values |= {"skt": said["SignedStart"], "ske": said["SignedExpiry"], "sks": said["SignedService"]}
    values |= {"skv": said["SignedVersion"]} | fields
    names = ["sp", "st", "se", "res", "skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "sip", "spr"]
    names += ["sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"]
    all_values = values | {"res": f"/blob/{client.account}/{resource}"}
    sig = signing.signature(said["Value"], "\n".join(all_values.get(name, "") for name in names))
    return urlencode(values | {"sig": sig})


def test_a_key_shows_what_it_is_for(client: Client) -> None:
    start, expiry = client.moment(-60), client.moment(DAY)
    document = f"<KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>".encode()
    reply = ask_key(client, document, headers=bearer(client.server, oid="me", tid="here"))
    assert (reply.status, reply["Content-Type"]) == (200, "application/xml")
    shown = [(child.tag, child.text) for child in reply.xml]
    assert shown[:-1] == [
        ("SignedOid", "me"),
        ("SignedTid", "here"),
        ("SignedStart", start),
        ("SignedExpiry", expiry),
        ("SignedService", "b"),
        ("SignedVersion", "2026-02-06"),
    ]
    name, value = shown[-1]
    assert name == "Value"
    assert len(base64.b64decode(value or "")) == 32


def test_the_same_question_gives_the_same_key_and_another_another(client: Client) -> None:
    document = key_info(client)
    first = ask_key(client, document).xml.findtext("Value")
    assert ask_key(client, document).xml.findtext("Value") == first
    others = [
        ask_key(client, document, headers=bearer(client.server, oid="another")),
        ask_key(client, document, headers=bearer(client.server, tid="another")),
        ask_key(client, document, version="2025-11-05"),
        ask_key(client, document.replace(b"</KeyInfo>", b"<DelegatedUserTid>t</DelegatedUserTid></KeyInfo>")),
        ask_key(client, key_info(client, expiry=DAY + 10)),
    ]
    assert [reply.status for reply in others] == [200] * len(others)
    values = {reply.xml.findtext("Value") for reply in others}
    assert len(values | {first}) == len(others) + 1


def test_the_tenant_of_a_delegated_user_is_reported_back(client: Client) -> None:
    reply = ask_key(client, key_info(client, extra="<DelegatedUserTid>there</DelegatedUserTid>"))
    assert reply.xml.findtext("SignedDelegatedUserTid") == "there"


@pytest.mark.parametrize(
    ("start", "expiry", "node"),
    [(0, 8 * DAY, "Expiry"), (0, -1, "Expiry"), (3600, 1800, "Expiry"), (8 * DAY, 9 * DAY, "Start"), (-8 * DAY, DAY, "Start")],
)
def test_a_key_lives_within_seven_days_from_now(client: Client, start: float, expiry: float, node: str) -> None:
    reply = ask_key(client, key_info(client, start, expiry))
    assert reply.answer == (400, "InvalidXmlNodeValue")
    assert reply.detail("XmlNodeName") == node


def test_a_key_may_begin_now_and_last_seven_days(client: Client) -> None:
    assert ask_key(client, key_info(client, -60, 7 * DAY - 5)).status == 200
    assert ask_key(client, key_info(client, None, DAY)).status == 200


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"", "InvalidXmlDocument"),
        (b"<KeyInfo></KeyInfo>", "MissingRequiredXmlNode"),
        (b"<Other></Other>", "InvalidXmlDocument"),
        (b"<KeyInfo><Expiry>soon</Expiry></KeyInfo>", "InvalidXmlNodeValue"),
    ],
)
def test_a_document_that_asks_for_no_key_is_refused(client: Client, document: bytes, code: str) -> None:
    assert ask_key(client, document).answer == (400, code)


def test_only_a_token_gets_a_key(client: Client) -> None:
    document = key_info(client)
    query = {"restype": "service", "comp": "userdelegationkey"}
    with_key = client.send("POST", "", query, body=document)
    assert with_key.answer == (403, "AuthenticationFailed")
    assert with_key.detail("AuthenticationErrorDetail") == "Only authentication scheme Bearer is supported"
    sas = client.account_sas("rwdlacup", ss="b", srt="sco")
    assert client.send("POST", "", query, body=document, auth=sas).answer == (403, "AuthenticationFailed")
    assert client.send("POST", "", query, body=document, auth=ANONYMOUS).answer == (401, "NoAuthenticationInformation")


def test_a_key_signs_what_its_letters_say(box: Box) -> None:
    box.put()
    key = ask_key(box.client, key_info(box.client)).xml
    reading = delegation_sas(box.client, key, f"{box.name}/blob", sr="b", sp="r")
    assert box.get(auth=reading).body == b"hello"
    assert box.put(auth=reading).answer == (403, "AuthorizationPermissionMismatch")
    assert box.get("other", auth=reading).answer == (403, "AuthenticationFailed")
    listing = delegation_sas(box.client, key, box.name, sr="c", sp="l")
    assert box.page(auth=listing).status == 200
    creating = delegation_sas(box.client, key, box.name, sr="c", sp="c")
    assert box.put("new", auth=creating).status == 201
    assert box.put("new", auth=creating).answer == (403, "UnauthorizedBlobOverwrite")


def test_a_signature_ends_with_its_key(box: Box) -> None:
    box.put()
    key = ask_key(box.client, key_info(box.client, 0, 600)).xml
    long = delegation_sas(box.client, key, f"{box.name}/blob", sr="b", sp="r", se=box.client.moment(DAY))
    assert box.get(auth=long).status == 200
    box.server.move_clock(601)
    assert box.get(auth=long).answer == (403, "AuthenticationFailed")


def test_a_signature_with_a_key_nobody_issued_is_refused(box: Box) -> None:
    box.put()
    key = ask_key(box.client, key_info(box.client)).xml
    value = key.find("Value")
    assert value is not None
    value.text = base64.b64encode(bytes(32)).decode()
    assert box.get(auth=delegation_sas(box.client, key, f"{box.name}/blob", sr="b", sp="r")).answer == (
        403,
        "AuthenticationFailed",
    )


def test_another_server_of_the_store_knows_the_key(on_postgres: tuple[Running, Running]) -> None:
    one, other = (Client(server) for server in on_postgres)
    box = Box(one).create()
    box.put()
    key = ask_key(one, key_info(one, -DAY)).xml  # since yesterday: the other server may not have seen the moved clock yet
    sas = delegation_sas(one, key, f"{box.name}/blob", sr="b", sp="r")
    assert other.send("GET", f"{box.path}/blob", auth=sas).body == b"hello"
    one.close()
    other.close()


def test_a_key_outlives_the_process(tmp_path: Path) -> None:
    with running(tmp_path, oauth=DEVELOPMENT) as server:
        client = Client(server)
        box = Box(client).create()
        box.put()
        shown = bearer(server)
        key = ask_key(client, key_info(client)).xml
        client.close()
    with running(tmp_path, oauth=DEVELOPMENT) as server:
        client = Client(server)
        sas = delegation_sas(client, key, f"{box.name}/blob", sr="b", sp="r")
        assert client.send("GET", f"{box.path}/blob", auth=sas).body == b"hello"
        assert client.send("GET", f"{box.path}/blob", None, shown, auth=ANONYMOUS).body == b"hello"  # and so does the issuer
        client.close()
    assert (tmp_path / "oauth" / "development.key").exists()


def test_the_names_of_the_development_issuer_are_reported_when_none_is_asked_for(client: Client) -> None:
    key = ask_key(client, key_info(client)).xml
    assert (key.findtext("SignedOid"), key.findtext("SignedTid")) == (USER, TENANT)

"""Bearer tokens: signature, audience and expiry; forged tokens; and key sets."""

import asyncio
import base64
import hashlib
import hmac
import json
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.unit.signed import ACCOUNT, NOW, PATH_STYLE, ROWS, NoBody
from verditer.core.dates import seconds
from verditer.core.errors import StorageError, TokenIssuer
from verditer.core.grant import AUTHORIZATION_URI, Grant, Scheme, User
from verditer.rest.address import parse_address
from verditer.rest.auth import authenticate, jwks
from verditer.rest.auth.issuer import ISSUER, DevelopmentIssuer
from verditer.rest.auth.jwks import FixedKeys, KeySet, keys_from
from verditer.rest.auth.oauth import Trust, authorization_uri_of, basic_trust
from verditer.rest.errors import challenge
from verditer.rest.http.message import Request
from verditer.rest.outbound.client import HttpClient, RequestFailed
from verditer.rest.outbound.urls import parse_url
from verditer.rest.statuses import STATUS

UNIX_NOW = 1772600767  # NOW in the unit of tokens
OURS = "https://sts.windows.net/our-tenant/"
STORAGE = "https://storage.azure.com"
VERSION = "2026-02-06"
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
HASHES: dict[str, hashes.HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def text(data: bytes | dict[str, Any]) -> str:
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def row(key: PrivateKey, **more: Any) -> dict[str, Any]:
    """The key in the form of a key set."""
    if isinstance(key, rsa.RSAPrivateKey):
        public = key.public_key().public_numbers()
        return {"kty": "RSA", "n": number(public.n), "e": number(public.e), **more}
    point = key.public_key().public_numbers()
    return {"kty": "EC", "crv": "P-256", "x": number(point.x), "y": number(point.y), **more}


def key_set(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"keys": rows}).encode()


def signature(key: PrivateKey, algorithm: str, signed: bytes) -> bytes:
    digest = HASHES[algorithm[2:]]
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(signed, padding.PKCS1v15(), digest)
    r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(digest)))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def token(key: PrivateKey = RSA_KEY, algorithm: str = "RS256", header: dict[str, Any] | None = None, **claims: Any) -> str:
    """Signed by hand. A claim that is None is omitted."""
    said = {"iss": OURS, "aud": STORAGE, "exp": UNIX_NOW + 3600, "nbf": UNIX_NOW - 60, "oid": "me", "tid": "here"} | claims
    head = {"typ": "JWT", "alg": algorithm, "kid": "one"} | (header or {})
    signed = f"{text(head)}.{text({name: value for name, value in said.items() if value is not None})}"
    return f"{signed}.{text(signature(key, algorithm, signed.encode()))}"


KEYS = KeySet.parse(key_set(row(RSA_KEY, kid="one", use="sig"), row(EC_KEY, kid="curve"), row(OTHER_RSA_KEY, kid="two")))
TRUST = Trust(keys=FixedKeys(KEYS), issuers=(OURS,), authorization_uri=authorization_uri_of(OURS))


def grant_for(bearer: str, *, trust: Trust | None = TRUST, now: int = NOW, secure: bool = True, **more: Any) -> Grant:
    headers = {"x-ms-version": VERSION, "authorization": f"Bearer {bearer}"} | more.pop("headers", {})
    request = Request(
        method="GET",
        target="/acct/c/b",
        headers={name: value for name, value in headers.items() if value is not None},
        raw_headers=[],
        body=NoBody(),
        peer=more.pop("peer", "127.0.0.1"),
        secure=secure,
    )

    async def no_policy(account: str, container: str) -> None:
        raise AssertionError("a bearer token needs no look at the container")

    service = more.pop("service", "blob")
    address = parse_address(request.target, PATH_STYLE, accounts=())
    return asyncio.run(authenticate(request, address, ROWS[service], ACCOUNT, now, no_policy, trust))


def refusal_of(bearer: str, **circumstances: Any) -> tuple[int, str, str]:
    with pytest.raises(StorageError) as refused:
        grant_for(bearer, **circumstances)
    error = refused.value
    assert isinstance(error.details, TokenIssuer) == (STATUS[error.code.error_class] == 401)
    return STATUS[error.code.error_class], error.code.azure_code, error.reason


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [
        (RSA_KEY, "RS256", "one"),
        (RSA_KEY, "RS384", "one"),
        (RSA_KEY, "RS512", "one"),
        (OTHER_RSA_KEY, "RS256", "two"),
        (EC_KEY, "ES256", "curve"),
        (EC_KEY, "ES256", None),
        (OTHER_RSA_KEY, "RS256", None),
    ],
)
def test_a_token_that_a_trusted_key_signed_is_let_in(key: PrivateKey, algorithm: str, kid: str | None) -> None:
    grant = grant_for(token(key, algorithm, {"kid": kid}))
    assert (grant.scheme, grant.user) == (Scheme.BEARER, User(oid="me", tid="here"))


def test_a_token_without_an_object_id_is_its_subjects() -> None:
    assert grant_for(token(oid=None, tid=None, sub="subject")).user == User(oid="subject", tid="")


def forged(header: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    body = token().split(".")[1]
    signed = f"{text(header)}.{body}"
    return f"{signed}.{text(sign(signed.encode()))}"


PUBLIC_PEM = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def hmac_with(key: bytes) -> Callable[[bytes], bytes]:
    return lambda signed: hmac.new(key, signed, hashlib.sha256).digest()


SIGNATURE_FAILED = (401, "InvalidAuthenticationInfo", "Signature validation failed.")


@pytest.mark.parametrize(
    "bearer",
    [
        pytest.param(forged({"alg": "none", "kid": "one"}, lambda signed: b""), id="no signature"),
        pytest.param(forged({"alg": "None"}, lambda signed: b"x"), id="none in another case"),
        pytest.param(forged({"alg": "HS256", "kid": "one"}, hmac_with(PUBLIC_PEM)), id="HMAC with the public key"),
        pytest.param(forged({"alg": "RS256", "kid": "one"}, hmac_with(PUBLIC_PEM)), id="HMAC that calls itself RSA"),
        pytest.param(forged({"alg": "ES256", "kid": "curve"}, lambda signed: bytes(64)), id="zeros on the curve"),
        pytest.param(forged({"alg": "ES256", "kid": "curve"}, lambda signed: b"short"), id="a short signature"),
        pytest.param(token(OTHER_RSA_KEY), id="the key of another kid"),
        pytest.param(token(rsa.generate_private_key(65537, 2048), header={"kid": None}), id="a key nobody knows"),
        pytest.param(token(EC_KEY, "ES256", {"kid": "one"}), id="a curve where RSA is expected"),
        pytest.param(token(RSA_KEY, "RS256", {"kid": "nobody"}), id="an unknown kid"),
        pytest.param(token(header={"alg": "PS256"}), id="an algorithm we do not take"),
    ],
)
def test_a_forged_token_is_refused(bearer: str) -> None:
    status, code, detail = refusal_of(bearer)
    assert (status, code) == SIGNATURE_FAILED[:2]
    assert detail.startswith(SIGNATURE_FAILED[2])


def test_changed_claims_do_not_keep_their_signature() -> None:
    head, _, signature = token().split(".")
    changed = {"iss": OURS, "aud": STORAGE, "exp": UNIX_NOW + 10**6, "oid": "somebody else"}
    assert refusal_of(f"{head}.{text(changed)}.{signature}")[2].startswith(SIGNATURE_FAILED[2])


@pytest.mark.parametrize(
    ("bearer", "detail"),
    [
        (token(exp=UNIX_NOW), "Lifetime validation failed. The token expired"),
        (token(exp=UNIX_NOW - 1), "Lifetime validation failed. The token expired"),
        (token(nbf=UNIX_NOW + 1), "Lifetime validation failed. The token is not valid before"),
        (token(exp=1e300), "Lifetime validation failed. A time is out of range."),
        (token(exp=-1), "Lifetime validation failed. A time is out of range."),
        (token(exp=None), "The token is not a JSON Web Token."),
        (token(exp="tomorrow"), "The token is not a JSON Web Token."),
        (token(iss="https://sts.windows.net/another-tenant/"), "Issuer validation failed."),
        (token(iss=OURS + "more"), "Issuer validation failed."),
        (token(iss=None), "The token is not a JSON Web Token."),
        (token(aud="https://vault.azure.net"), "Audience validation failed."),
        (token(aud="https://other.blob.core.windows.net"), "Audience validation failed."),
        (token(aud="https://acct.queue.core.windows.net"), "Audience validation failed."),
        (token(aud="acct.blob.core.windows.net"), "Audience validation failed."),
        (token(aud=STORAGE + ".evil.example"), "Audience validation failed."),
        (token(aud=[]), "Audience validation failed."),
        (token(aud=None), "The token is not a JSON Web Token."),
        (token(header={"crit": ["exp"]}), "The token asks for extensions"),
        ("a.b", "The token is not a JSON Web Token."),
        ("a.b.c.d", "The token is not a JSON Web Token."),
        (f"{text(b'[' * 9000)}.{text(b'{}')}.x", "The token is not a JSON Web Token."),
        (f"{text(b'not json')}.{text(b'{}')}.x", "The token is not a JSON Web Token."),
        ("ä.ö.ü", "The token is not a JSON Web Token."),
        ("x" * 40_000, "The token is not a JSON Web Token."),
    ],
)
def test_a_token_that_is_not_for_us_or_not_for_now_is_refused(bearer: str, detail: str) -> None:
    status, code, said = refusal_of(bearer)
    assert (status, code) == (401, "InvalidAuthenticationInfo")
    assert said.startswith(detail)


@pytest.mark.parametrize(
    "audience",
    [
        STORAGE,
        STORAGE + "/",
        "https://acct.blob.core.windows.net",
        "https://acct.blob.core.usgovcloudapi.net/",
        "e406a681-f3d4-42a8-90b6-c2b029497af1",
        ["https://graph.microsoft.com", STORAGE],
    ],
)
def test_storage_and_this_account_are_audiences(audience: str | list[str]) -> None:
    assert grant_for(token(aud=audience)).scheme is Scheme.BEARER


def test_the_operator_may_name_more_audiences() -> None:
    more = Trust(keys=TRUST.keys, issuers=(OURS,), audiences=frozenset({"api://ours"}), authorization_uri="https://x/y")
    assert grant_for(token(aud="api://ours"), trust=more).scheme is Scheme.BEARER
    assert refusal_of(token(aud="api://ours/"), trust=more)[2].startswith("Audience")


def test_a_token_that_was_proven_once_expires_all_the_same() -> None:
    bearer = token()
    assert grant_for(bearer).scheme is Scheme.BEARER
    assert grant_for(bearer, now=NOW + seconds(3599)).scheme is Scheme.BEARER
    assert refusal_of(bearer, now=NOW + seconds(3600))[2].startswith("Lifetime")


def test_an_old_version_is_refused_without_a_challenge() -> None:
    old = {"x-ms-version": "2019-07-07"}
    assert grant_for(token(), headers=old).scheme is Scheme.BEARER
    assert refusal_of(token(exp=1), headers=old)[:2] == (403, "AuthenticationFailed")


@pytest.mark.parametrize("version", [None, "2017-07-29"])
def test_a_version_before_bearer_tokens_does_not_take_them(version: str | None) -> None:
    expected = (403, "AuthenticationFailed", "Authentication scheme Bearer is not supported in this version.")
    assert refusal_of(token(), headers={"x-ms-version": version}) == expected


def test_a_server_without_an_issuer_takes_no_token() -> None:
    assert refusal_of(token(), trust=None)[:2] == (403, "AuthenticationFailed")


def test_an_empty_token_is_malformed() -> None:
    assert refusal_of("")[:2] == (400, "InvalidAuthenticationInfo")


@pytest.mark.parametrize(
    ("allow_http", "peer", "allowed"),
    [
        (False, "127.0.0.1", False),
        (True, "127.0.0.1", True),
        (True, "::1", True),
        (True, "::ffff:127.0.0.1", True),
        (True, "192.0.2.1", False),
        (True, "", False),
    ],
)
def test_plain_http_is_for_this_machine_and_only_when_allowed(allow_http: bool, peer: str, allowed: bool) -> None:
    trust = Trust(keys=TRUST.keys, issuers=(OURS,), authorization_uri="https://x/y", allow_http=allow_http)
    if allowed:
        assert grant_for(token(), trust=trust, secure=False, peer=peer).scheme is Scheme.BEARER
    else:
        expected = (403, "AuthenticationFailed", "Authentication scheme Bearer is not allowed with HTTP.")
        assert refusal_of(token(), trust=trust, secure=False, peer=peer) == expected


@pytest.mark.parametrize(
    ("issuer", "uri"),
    [
        (OURS, "https://login.microsoftonline.com/our-tenant/oauth2/authorize"),
        ("https://login.microsoftonline.com/our-tenant/v2.0", "https://login.microsoftonline.com/our-tenant/oauth2/authorize"),
        ("https://keycloak.example/realms/x", "https://keycloak.example/realms/x/oauth2/authorize"),
    ],
)
def test_the_challenge_shows_where_to_get_a_token(issuer: str, uri: str) -> None:
    trust = Trust(keys=TRUST.keys, issuers=(issuer,), authorization_uri=authorization_uri_of(issuer))
    assert challenge(trust.authorization_uri) == f"Bearer authorization_uri={uri} resource_id=https://storage.azure.com"


def test_the_challenge_for_azurites_mode_is_the_common_one() -> None:
    assert basic_trust(frozenset(), allow_http=False).authorization_uri == AUTHORIZATION_URI


def test_basic_believes_what_looks_right() -> None:
    trust = basic_trust(frozenset(), allow_http=False)
    unsigned = forged({"alg": "none"}, lambda signed: b"")
    assert grant_for(unsigned, trust=trust).user == User(oid="me", tid="here")
    other = token(iss="https://sts.windows.net/any/", aud="https://anyone.blob.core.windows.net/")
    assert grant_for(other, trust=trust).scheme is Scheme.BEARER
    assert refusal_of(token(iss="https://evil.example/"), trust=trust)[2].startswith("Issuer")
    assert refusal_of(token(aud="https://vault.azure.net"), trust=trust)[2].startswith("Audience")
    assert refusal_of(token(exp=1), trust=trust)[2].startswith("Lifetime")


# --- key sets ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        key_set(),
        key_set(row(RSA_KEY, use="enc")),
        key_set({"kty": "oct", "k": "AAAA"}),
        key_set({"kty": "RSA", "n": number(2**1023 + 1), "e": "AQAB"}),
        key_set({"kty": "EC", "crv": "P-256", "x": number(1), "y": number(1)}),
        key_set({"kty": "RSA", "n": "!", "e": "AQAB"}),
        b'{"keys": [' + b"[" * 5000,
    ],
)
def test_a_key_set_without_a_usable_key_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"(?i)key set"):
        KeySet.parse(document)


def test_a_key_is_good_only_for_the_algorithm_it_names() -> None:
    trust = Trust(
        keys=FixedKeys(KeySet.parse(key_set(row(RSA_KEY, kid="one", alg="RS512")))), issuers=(OURS,), authorization_uri=""
    )
    assert grant_for(token(RSA_KEY, "RS512"), trust=trust).scheme is Scheme.BEARER
    assert refusal_of(token(RSA_KEY, "RS256"), trust=trust)[2].startswith("Signature")


def loaded(source: str) -> Trust:
    return Trust(keys=keys_from(source), issuers=(OURS,), authorization_uri="https://x/y")


def test_a_key_file_that_changes_is_read_again_when_a_token_names_a_new_key(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(key_set(row(RSA_KEY, kid="one")))
    trust = loaded(str(path))
    assert grant_for(token(), trust=trust).scheme is Scheme.BEARER
    path.write_bytes(key_set(row(OTHER_RSA_KEY, kid="two")))
    new = token(OTHER_RSA_KEY, header={"kid": "two"})
    assert refusal_of(new, trust=trust, now=NOW + jwks.RETRY - 1)[0] == 401  # not fetched again so soon
    assert grant_for(new, trust=trust, now=NOW + jwks.RETRY).scheme is Scheme.BEARER
    assert refusal_of(token(), trust=trust, now=NOW + jwks.RETRY)[0] == 401  # verified before; its key no longer exists


def test_a_withdrawn_key_is_forgotten_after_an_hour(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(key_set(row(RSA_KEY, kid="one")))
    trust = loaded(str(path))
    long = token(exp=UNIX_NOW + 10**6)
    assert grant_for(long, trust=trust).scheme is Scheme.BEARER
    path.write_bytes(key_set(row(OTHER_RSA_KEY, kid="two")))
    assert grant_for(long, trust=trust, now=NOW + jwks.MAX_AGE - 1).scheme is Scheme.BEARER
    assert refusal_of(long, trust=trust, now=NOW + jwks.MAX_AGE)[0] == 401


def test_keys_that_cannot_be_loaded_again_stay_in_use(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(key_set(row(RSA_KEY, kid="one")))
    trust = loaded(str(path))
    long = token(exp=UNIX_NOW + 10**6)
    assert grant_for(long, trust=trust).scheme is Scheme.BEARER
    path.unlink()
    assert grant_for(long, trust=trust, now=NOW + 2 * jwks.MAX_AGE).scheme is Scheme.BEARER


@pytest.mark.parametrize(
    ("source", "problem"),
    [("nowhere.json", "cannot be read"), ("http://issuer.example/keys", "https"), ("empty.json", "not a JSON Web Key Set")],
)
def test_a_source_of_keys_that_cannot_work_is_reported_at_the_start(
    source: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.json").touch()
    with pytest.raises(ValueError, match=problem):
        keys_from(source)


@contextmanager
def issuer_site(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[str]]]:
    """A web server that publishes keys and records the requested paths."""
    asked: list[str] = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer(self)

        def log_message(self, *arguments: Any) -> None:
            pass

    site = HTTPServer(("127.0.0.1", 0), Site)
    thread = Thread(target=site.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{site.server_port}/keys", asked
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def test_keys_are_fetched_once_for_many_tokens() -> None:
    document = key_set(row(RSA_KEY, kid="one"), row(EC_KEY, kid="curve"))
    with issuer_site(lambda handler: send(handler, 200, document)) as (url, asked):
        trust = loaded(url)
        assert asked == []
        assert grant_for(token(), trust=trust).scheme is Scheme.BEARER
        assert grant_for(token(EC_KEY, "ES256", {"kid": "curve"}), trust=trust).scheme is Scheme.BEARER
        for attempt in range(5):
            assert refusal_of(token(header={"kid": f"unknown-{attempt}"}), trust=trust, now=NOW + attempt)[0] == 401
        assert asked == ["/keys"]
        assert refusal_of(token(header={"kid": "unknown"}), trust=trust, now=NOW + jwks.RETRY)[0] == 401
        assert asked == ["/keys", "/keys"]


def test_without_keys_the_client_is_asked_to_come_again() -> None:
    with issuer_site(lambda handler: send(handler, 500, b"")) as (url, asked):
        trust = loaded(url)
        for _ in range(3):
            assert refusal_of(token(), trust=trust)[:2] == (503, "ServerBusy")
        assert len(asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler: send(handler, 302, b"", Location="/elsewhere"),
        lambda handler: send(handler, 200, b" " * (jwks.MAX_JWKS_BYTES + 1)),
        lambda handler: send(handler, 200, b"<html>"),
        lambda handler: handler.wfile.write(b"not HTTP\r\n\r\n"),
    ],
)
def test_an_answer_that_is_no_key_set_is_not_followed(answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
    with issuer_site(answer) as (url, asked):
        assert refusal_of(token(), trust=loaded(url))[0] == 503
        assert asked == ["/keys"]


def test_an_issuer_that_drips_its_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks, "FETCH_SECONDS", 0.2)
    gone = Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(2000):
                handler.wfile.write(b" ")
                sleep(0.01)
        except OSError:
            gone.set()

    with issuer_site(drip) as (url, _):
        parsed = parse_url(url)
        assert parsed is not None
        with pytest.raises(RequestFailed) as failed:
            asyncio.run(jwks.fetch(HttpClient(concurrency=1), parsed))
        assert failed.value.timed_out
        assert gone.wait(10)


# --- the development issuer -------------------------------------------------------------------------------------------------


def test_a_development_token_is_let_in_over_http_from_this_machine() -> None:
    issuer = DevelopmentIssuer(None)
    bearer = issuer.token(NOW, oid="somebody", tid="somewhere", seconds=60)
    assert grant_for(bearer, trust=issuer.trust(), secure=False).user == User(oid="somebody", tid="somewhere")
    assert refusal_of(bearer, trust=issuer.trust(), now=NOW + seconds(60))[2].startswith("Lifetime")
    assert refusal_of(bearer)[2].startswith("Signature")  # no other issuer trusts it
    assert refusal_of(DevelopmentIssuer(None).token(NOW), trust=issuer.trust())[2].startswith("Signature")


def test_a_token_that_has_ended_already_can_be_had() -> None:
    issuer = DevelopmentIssuer(None)
    assert refusal_of(issuer.token(NOW, seconds=-5), trust=issuer.trust())[2].startswith("Lifetime")


def test_the_key_of_the_development_issuer_is_kept_and_private(tmp_path: Path) -> None:
    first, again = DevelopmentIssuer(tmp_path / "oauth"), DevelopmentIssuer(tmp_path / "oauth")
    assert first.jwks == again.jwks
    assert grant_for(first.token(NOW), trust=again.trust()).scheme is Scheme.BEARER
    key = tmp_path / "oauth" / "development.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [path.name for path in key.parent.iterdir()] == [key.name]


def test_a_damaged_key_of_the_development_issuer_is_reported(tmp_path: Path) -> None:
    (tmp_path / "development.key").write_text("not a key")
    with pytest.raises(ValueError, match="remove it"):
        DevelopmentIssuer(tmp_path)


def test_a_key_set_shows_nothing_private() -> None:
    (shown,) = DevelopmentIssuer(None).jwks["keys"]
    assert shown.keys() == {"kty", "crv", "x", "y", "kid", "use", "alg"}


def test_the_challenge_of_the_development_issuer_names_its_tenant() -> None:
    assert challenge(DevelopmentIssuer(None).trust().authorization_uri).startswith(
        f"Bearer authorization_uri={ISSUER}/oauth2/authorize "
    )

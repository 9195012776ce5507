"""Shared access signatures: tokens of the SDK, the layout of every version built by hand, and every reason for a refusal."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    ResourceTypes,
    Services,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.signed import HOST_STYLE, KEY_1, KEY_2, NOW, grant_for, refusal_of, signature
from verditer.core.dates import parse_iso, seconds
from verditer.core.grant import ContainerAccess, Scheme
from verditer.core.records.container import AccessPolicy
from verditer.rest.auth import sas

NOW_DATE = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
EXPIRY = NOW_DATE + timedelta(hours=1)
SE = "2026-03-04T06:06:07Z"


def encoded(fields: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())


def account_token(**changes: str) -> str:
    """An account SAS built by hand; an empty change omits the field."""
    fields = {"sv": "2026-02-06", "ss": "b", "srt": "sco", "sp": "rl", "se": SE} | changes
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv", *(["ses"] if fields["sv"] >= "2020-12-06" else [])]
    text = "acct\n" + "".join(f"{fields.get(name, '')}\n" for name in names)
    return encoded({name: value for name, value in fields.items() if value} | {"sig": signature(text)})


def blob_token(resource: str, snapshot: str = "", key: str = KEY_1, **changes: str) -> str:
    """A service SAS of the newest layout built by hand."""
    fields = {"sv": "2026-02-06", "sr": "b", "sp": "r", "se": SE} | changes
    values = fields | {"res": f"/blob/acct/{resource}", "snapshot": snapshot}
    names = ["sp", "st", "se", "res", "si", "sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"]
    text = "\n".join(values.get(name, "") for name in names)
    return encoded({name: value for name, value in fields.items() if value} | {"sig": signature(text, key)})


def test_an_account_sas_of_the_sdk_is_let_in() -> None:
    token = generate_account_sas(
        "acct",
        KEY_1,
        ResourceTypes(container=True, object=True),
        AccountSasPermissions(read=True, write=True, list=True),
        EXPIRY,
        start=NOW_DATE - timedelta(minutes=1),
        ip="127.0.0.1-127.0.0.9",
        protocol="https,http",
        services=Services(blob=True, queue=True),
        encryption_scope="scope",
    )
    grant = grant_for(f"/acct/c/b?{token}")
    assert (grant.scheme, grant.letters, grant.resource_types) == (Scheme.ACCOUNT_SAS, "rwl", "co")
    assert grant_for(f"/c/b?{token}", host=HOST_STYLE) == grant
    assert grant_for(f"/acct/q/messages?{token}", service="queue") == grant


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\\"), min_size=1, max_size=20)


@settings(max_examples=150, deadline=None)
@given(blob=names, snapshot=st.sampled_from([None, "2026-01-02T03:04:05.1234567Z"]), header=st.sampled_from(["", "a b; c=é"]))
def test_a_blob_sas_of_the_sdk_is_let_in(blob: str, snapshot: str | None, header: str) -> None:
    token = generate_blob_sas(
        "acct", "c", blob, snapshot=snapshot, account_key=KEY_2, permission="r", expiry=EXPIRY, content_type=header or None
    )
    suffix = f"&snapshot={quote(snapshot)}" if snapshot else ""
    grant = grant_for(f"/acct/c/{quote(blob, safe='~/')}?{token}{suffix}")
    assert (grant.scheme, grant.letters, grant.reach) == (Scheme.SERVICE_SAS, "r", "b")
    assert grant.overrides == ({"content_type": header} if header else {})


def test_a_version_sas_of_the_sdk_is_let_in() -> None:
    version = "2026-01-02T03:04:05.1234567Z"
    token = generate_blob_sas("acct", "c", "b", version_id=version, account_key=KEY_1, permission="r", expiry=EXPIRY)
    assert grant_for(f"/acct/c/b?{token}&versionid={version}").reach == "b"
    assert refusal_of(f"/acct/c/b?{token}&versionid=2026-01-02T03:04:05.7654321Z")[0] == "AuthenticationFailed"


@pytest.mark.parametrize(
    "target", ["/acct/c?restype=container&comp=list&", "/acct/c/b?", "/acct/c/deep/er?", "/acct-secondary/c/b?"]
)
def test_a_container_sas_of_the_sdk_reaches_the_container_and_its_blobs(target: str) -> None:
    token = generate_container_sas("acct", "c", account_key=KEY_1, permission="rl", expiry=EXPIRY)
    grant = grant_for(target + token)
    assert (grant.scheme, grant.letters, grant.reach) == (Scheme.SERVICE_SAS, "rl", "c")


def test_a_name_with_a_backslash_is_signed_as_it_is_or_as_it_is_stored() -> None:
    for name in ("a\\b", "a/b"):
        token = generate_blob_sas("acct", "c", name, account_key=KEY_1, permission="r", expiry=EXPIRY)
        assert grant_for(f"/acct/c/a%5Cb?{token}").reach == "b"
        assert grant_for(f"/c/a%5cb?{token}", host=HOST_STYLE).reach == "b"


def test_all_response_headers_can_be_overridden() -> None:
    token = blob_token("c/b", rscc="no-store", rscd="attachment", rsce="gzip", rscl="de", rsct="text/plain; charset=utf-8")
    assert grant_for(f"/acct/c/b?{token}").overrides == {
        "cache_control": "no-store",
        "content_disposition": "attachment",
        "content_encoding": "gzip",
        "content_language": "de",
        "content_type": "text/plain; charset=utf-8",
    }


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("", f"r\n\n{SE}\n/acct/c/b\n"),
        ("2012-02-12", f"r\n\n{SE}\n/acct/c/b\n\n2012-02-12"),
        ("2013-08-15", f"r\n\n{SE}\n/acct/c/b\n\n2013-08-15\nno-store\n\n\n\n"),
        ("2014-02-14", f"r\n\n{SE}\n/acct/c/b\n\n2014-02-14\nno-store\n\n\n\n"),
        ("2015-02-21", f"r\n\n{SE}\n/blob/acct/c/b\n\n2015-02-21\nno-store\n\n\n\n"),
        ("2015-04-05", f"r\n\n{SE}\n/blob/acct/c/b\n\n\n\n2015-04-05\nno-store\n\n\n\n"),
        ("2017-11-09", f"r\n\n{SE}\n/blob/acct/c/b\n\n\n\n2017-11-09\nno-store\n\n\n\n"),
        ("2018-11-09", f"r\n\n{SE}\n/blob/acct/c/b\n\n\n\n2018-11-09\nb\n\nno-store\n\n\n\n"),
        ("2020-10-02", f"r\n\n{SE}\n/blob/acct/c/b\n\n\n\n2020-10-02\nb\n\nno-store\n\n\n\n"),
        ("2020-12-06", f"r\n\n{SE}\n/blob/acct/c/b\n\n\n\n2020-12-06\nb\n\n\nno-store\n\n\n\n"),
        ("2026-10-06", f"r\n\n{SE}\n/blob/acct/c/b\n\n\n\n2026-10-06\nb\n\n\nno-store\n\n\n\n"),
    ],
)
def test_each_version_signs_by_its_own_layout(version: str, text: str) -> None:
    fields = {"sr": "b", "sp": "r", "se": SE, "rscc": "no-store", "sig": signature(text)}
    grant = grant_for(f"/acct/c/b?{encoded(fields | ({'sv': version} if version else {}))}")
    assert (grant.letters, grant.version) == ("r", version)


@pytest.mark.parametrize("version", ["2015-04-05", "2020-10-02", "2020-12-06", "2027-01-01"])
def test_an_account_sas_signs_the_encryption_scope_since_2020(version: str) -> None:
    assert grant_for(f"/acct/c/b?{account_token(sv=version)}").letters == "rl"


@pytest.mark.parametrize(("depth", "directory"), [("0", ""), ("1", "/a"), ("2", "/a/b")])
def test_a_directory_sas_reaches_what_lies_below(depth: str, directory: str) -> None:
    token = blob_token(f"c{directory}", sr="d", sdd=depth)
    assert grant_for(f"/acct/c/a/b/f?{token}").reach == "d"
    if directory:
        assert refusal_of(f"/acct/c/x/b/f?{token}")[0] == "AuthenticationFailed"


@pytest.mark.parametrize("depth", ["", "4", "-1", "²"])
def test_a_directory_sas_needs_a_depth_the_path_has(depth: str) -> None:
    token = blob_token("c/a", sr="d", sdd=depth)
    assert refusal_of(f"/acct/c/a/b/f?{token}") == ("AuthenticationFailed", "Signed Directory Depth Invalid")


@pytest.mark.parametrize(
    ("token", "target"),
    [
        (blob_token("c/b"), "/acct/c/other?"),
        (blob_token("c/b"), "/acct/other/b?"),
        (blob_token("c/b"), "/acct/c?restype=container&comp=list&"),
        (blob_token("c", sr="c"), "/acct/other/b?"),
        (blob_token("c", sr="c"), "/acct/c?"),  # without restype: the blob `c` of the root container
        (blob_token("c", sr="c"), "/acct?comp=list&"),
        (blob_token("c/b", sr="bs", snapshot="2026-01-02T03:04:05.1234567Z"), "/acct/c/b?"),
        (blob_token("c/b", sr="bs"), "/acct/c/b?"),
        (blob_token("c/b", sr="bs", snapshot="2026-01-02T03:04:05.1234567Z"), "/acct/c/b?snapshot=2026-01-02T03:04:05.0000000Z&"),
    ],
)
def test_a_sas_reaches_nothing_but_its_resource(token: str, target: str) -> None:
    assert refusal_of(target + token)[0] == "AuthenticationFailed"


def test_a_blob_in_the_root_container_is_signed_with_it() -> None:
    assert grant_for(f"/acct/picture?{blob_token('$root/picture')}").reach == "b"
    assert grant_for(f"/acct/picture?{blob_token('$root', sr='c')}").reach == "c"
    assert grant_for(f"/acct/picture?restype=&{blob_token('$root/picture')}").reach == "b"
    assert refusal_of(f"/acct/picture?restype=container&{blob_token('$root', sr='c')}")[0] == "AuthenticationFailed"


@pytest.mark.parametrize("field", ["sp", "se", "sv", "sr", "rsct", "sip", "spr"])
def test_a_changed_field_breaks_the_signature(field: str) -> None:
    values = {
        "sp": "rw",
        "se": "2030-01-01",
        "sv": "2025-01-05",
        "sr": "c",
        "rsct": "text/html",
        "sip": "1.2.3.4",
        "spr": "https",
    }
    token = blob_token("c/b", sip="127.0.0.1", spr="https,http", rsct="text/plain")
    changed = "&".join(
        f"{field}={quote(values[field])}" if pair.partition("=")[0] == field else pair for pair in token.split("&")
    )
    code, detail = refusal_of(f"/acct/c/b?{changed}", secure=True)
    assert code == "AuthenticationFailed"
    assert detail.startswith("Signature did not match. String to sign used was")


def test_a_line_break_does_not_let_a_token_be_read_by_an_older_layout() -> None:
    # Without `sv` only five lines are signed; the rest of a 2012 token would fit into `si`.
    text = f"r\n\n{SE}\n/acct/c/b\npolicy\n2012-02-12"
    fields = {"sr": "b", "sp": "r", "se": SE, "si": "policy\n2012-02-12", "sig": signature(text)}
    assert refusal_of(f"/acct/c/b?{encoded(fields)}") == ("AuthenticationFailed", "Signature fields not well formed.")


def test_an_old_token_does_not_become_a_directory_sas() -> None:
    # That version did not sign `sr`: the token for the blob `c/a` would permit everything below `c/a/`.
    text = f"r\n\n{SE}\n/blob/acct/c/a\n\n\n\n2017-11-09\n\n\n\n\n"
    fields = {"sv": "2017-11-09", "sr": "d", "sdd": "1", "sp": "r", "se": SE, "sig": signature(text)}
    assert refusal_of(f"/acct/c/a/b?{encoded(fields)}")[0] == "AuthenticationFailed"
    assert grant_for(f"/acct/c/a?{encoded(fields | {'sr': 'b'})}").letters == "r"


@pytest.mark.parametrize(
    ("token", "word"),
    [
        (account_token(ss=""), "ss is mandatory"),
        (account_token(srt=""), "srt is mandatory"),
        (account_token(sp=""), "sp is mandatory"),
        (account_token(se=""), "se is mandatory"),
        (account_token(se="tomorrow"), "se is not"),
        (account_token(st="2026-13-01"), "st is not"),
        (account_token(sv="2014-02-14"), "sv 2015-04-05"),
        (account_token(sv="latest"), "sv is not"),
        (account_token(spr="http"), "spr is not"),
        (account_token(sip="localhost"), "sip is not"),
        (account_token(sip="10.0.0.9-10.0.0.1"), "sip is not"),
        (account_token(sip="10.0.0.9-::1"), "sip is not"),
        (blob_token("c/b", sr=""), "sr is mandatory"),
        (blob_token("c/b", sr="x"), "sr is not"),
        (blob_token("c/b", sp=""), "sp is mandatory"),
        (blob_token("c/b", se=""), "se is mandatory"),
        (blob_token("c/b", skoid="00000000-0000-0000-0000-000000000000"), "User delegation"),
    ],
)
def test_a_malformed_token_is_refused_with_its_reason(token: str, word: str) -> None:
    code, detail = refusal_of(f"/acct/c/b?{token}")
    assert code == "AuthenticationFailed"
    assert word in detail


def test_a_service_sas_for_another_service_is_refused() -> None:
    assert refusal_of(f"/acct/c/b?{blob_token('c/b')}", service="queue")[0] == "AuthenticationFailed"


@pytest.mark.parametrize(
    ("start", "expiry", "valid"),
    [
        ("", "2026-03-04T05:06:07.0000001Z", True),
        ("", "2026-03-04T05:06:07Z", False),
        ("", "2026-03-04T05:06Z", False),
        ("", "2026-03-05", True),
        ("2026-03-04T05:06:07Z", SE, True),
        ("2026-03-04T05:06:08Z", SE, False),
        ("2026-03-04", SE, True),
        ("2026-03-05", "2026-03-06", False),
    ],
)
def test_a_token_is_good_from_start_until_expiry(start: str, expiry: str, valid: bool) -> None:
    target = f"/acct/c/b?{blob_token('c/b', st=start, se=expiry)}"
    if valid:
        assert grant_for(target).letters == "r"
    else:
        code, detail = refusal_of(target)
        assert code == "AuthenticationFailed"
        assert "not valid in the specified time frame" in detail
        assert "Current [Wed, 04 Mar 2026 05:06:07 GMT]" in detail


@pytest.mark.parametrize(
    ("allowed", "peer", "valid"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("10.0.0.1-10.0.1.0", "10.0.0.255", True),
        ("10.0.0.1-10.0.1.0", "10.0.1.1", False),
        ("10.0.0.1-10.0.1.0", "::ffff:10.0.0.9", True),
        ("fd00::1-fd00::ff", "fd00::10", True),
        ("fd00::1-fd00::ff", "fd00::1:10", False),
        ("0.0.0.0-255.255.255.255", "fd00::1", False),
        ("10.0.0.1", "not an address", False),
    ],
)
def test_a_token_may_be_bound_to_addresses(allowed: str, peer: str, valid: bool) -> None:
    target = f"/acct/c/b?{account_token(sip=allowed)}"
    if valid:
        assert grant_for(target, peer=peer).letters == "rl"
    else:
        assert refusal_of(target, peer=peer)[0] == "AuthorizationSourceIPMismatch"


@pytest.mark.parametrize(
    ("protocols", "secure", "valid"), [("https", True, True), ("https", False, False), ("https,http", False, True)]
)
def test_a_token_may_be_bound_to_https(protocols: str, secure: bool, valid: bool) -> None:
    target = f"/acct/c/b?{blob_token('c/b', spr=protocols)}"
    if valid:
        assert grant_for(target, secure=secure).letters == "r"
    else:
        assert refusal_of(target, secure=secure)[0] == "AuthorizationProtocolMismatch"


@pytest.mark.parametrize(
    ("services", "service", "valid"), [("b", "blob", True), ("bqtf", "file", True), ("qtf", "blob", False), ("b", "table", False)]
)
def test_an_account_sas_names_its_services(services: str, service: str, valid: bool) -> None:
    target = f"/acct/c/b?{account_token(ss=services)}"
    if valid:
        assert grant_for(target, service=service).letters == "rl"
    else:
        assert refusal_of(target, service=service)[0] == "AuthorizationServiceMismatch"


def access(*, start: str = "", expiry: str = "", permission: str | None = None) -> ContainerAccess:
    policy = AccessPolicy(id="p", start=parse_iso(start), expiry=parse_iso(expiry), permission=permission)
    return ContainerAccess(policies=(AccessPolicy(id="other", permission="rwdl"), policy))


@pytest.mark.parametrize(
    ("changes", "stored", "letters"),
    [
        ({"sp": "", "se": ""}, access(start="2026-03-04", expiry=SE, permission="rw"), "rw"),
        ({"sp": "r", "se": ""}, access(expiry=SE), "r"),
        ({"sp": "", "se": SE}, access(permission="l"), "l"),
        ({"sp": "r", "se": SE}, access(), "r"),
        ({"sp": "r", "se": SE}, access(start="2026-03-04", permission=""), "r"),
    ],
)
def test_token_and_policy_complete_each_other(changes: dict[str, str], stored: ContainerAccess, letters: str) -> None:
    asked: list[str] = []
    token = blob_token("c", **{"sr": "c", "si": "p"} | changes)
    assert grant_for(f"/acct/c/b?{token}", access=stored, asked=asked).letters == letters
    assert asked == ["c"]


@pytest.mark.parametrize(
    ("changes", "stored", "word"),
    [
        ({}, None, "not found"),
        ({}, ContainerAccess(), "not found"),
        ({"si": "P"}, access(), "not found"),
        ({}, access(permission="r"), "not both"),
        ({}, access(expiry=SE), "not both"),
        ({"st": "2026-03-04"}, access(start="2026-03-04"), "not both"),
        ({"sp": ""}, access(), "sp is mandatory"),
        ({"se": ""}, access(), "se is mandatory"),
        ({"se": ""}, access(expiry="2026-03-04"), "time frame"),
        ({}, access(start="2026-03-05"), "time frame"),
    ],
)
def test_a_policy_that_does_not_fit_refuses_the_token(changes: dict[str, str], stored: ContainerAccess | None, word: str) -> None:
    code, detail = refusal_of(f"/acct/c/b?{blob_token('c/b', **{'si': 'p'} | changes)}", access=stored)
    assert code == "AuthenticationFailed"
    assert word in detail


def test_the_sdks_token_for_a_policy_is_let_in_until_the_policy_is_gone() -> None:
    token = generate_container_sas("acct", "c", account_key=KEY_1, policy_id="p")
    target = f"/acct/c/b?{token}"
    assert grant_for(target, access=access(expiry=SE, permission="r")).letters == "r"
    assert grant_for(target, access=access(expiry=SE, permission="w")).letters == "w"
    assert refusal_of(target, access=ContainerAccess())[0] == "AuthenticationFailed"


def test_without_a_policy_the_container_is_not_asked() -> None:
    asked: list[str] = []
    grant_for(f"/acct/c/b?{blob_token('c/b')}", asked=asked)
    grant_for(f"/acct/c/b?{account_token()}", asked=asked)
    assert asked == []


@pytest.mark.parametrize(
    ("target", "container"), [("/acct/c/b", "c"), ("/acct/b", "$root"), ("/acct/c?restype=container&comp=list", "c")]
)
def test_an_anonymous_caller_gets_the_containers_public_access(target: str, container: str) -> None:
    asked: list[str] = []
    stored = ContainerAccess(public_access="blob")
    grant = grant_for(target, headers={"x-ms-version": "2026-02-06"}, access=stored, asked=asked)
    assert (grant.scheme, grant.reach, grant.version, asked) == (Scheme.ANONYMOUS, "blob", "2026-02-06", [container])


@pytest.mark.parametrize(("target", "service"), [("/acct?comp=list", "blob"), ("/acct/q/messages", "queue")])
def test_an_anonymous_caller_of_anything_else_reaches_nothing(target: str, service: str) -> None:
    asked: list[str] = []
    grant = grant_for(target, service=service, access=ContainerAccess(public_access="container"), asked=asked)
    assert (grant.reach, asked) == ("", [])


def test_a_verified_token_is_kept_but_not_beyond_its_expiry() -> None:
    target = f"/acct/c/b?{blob_token('c/b', rscc='kept')}"
    sas.PROOFS.clear()
    first = grant_for(target)
    assert grant_for(target) is first
    assert len(sas.PROOFS) == 1
    assert refusal_of(target, now=NOW + seconds(3600))[0] == "AuthenticationFailed"
    assert len(sas.PROOFS) == 1


def test_a_refused_token_is_not_kept() -> None:
    sas.PROOFS.clear()
    for _ in range(2):
        assert refusal_of(f"/acct/c/b?{blob_token('c/other')}")[0] == "AuthenticationFailed"
    assert not sas.PROOFS


def test_nobody_fills_the_memory_with_what_a_token_does_not_sign() -> None:
    sas.PROOFS.clear()
    grant_for(f"/acct/c/b?{account_token()}&rscc={'x' * 3000}")
    assert not sas.PROOFS
    for number in range(5000):
        grant_for(f"/acct/c/b?{account_token()}&rscc={number}")
    assert 0 < len(sas.PROOFS) <= 4096


def test_a_container_token_is_kept_once_for_all_its_blobs() -> None:
    sas.PROOFS.clear()
    for name in ("a", "b", "c"):
        grant_for(f"/acct/c/{name}?{blob_token('c', sr='c')}")
        grant_for(f"/acct/c/{name}?{account_token()}")
    assert len(sas.PROOFS) == 2


def test_a_token_signed_with_a_key_of_another_account_is_refused() -> None:
    token = blob_token("c/b", key="YW5vdGhlciBrZXk=")
    assert refusal_of(f"/acct/c/b?{token}")[0] == "AuthenticationFailed"

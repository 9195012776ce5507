"""User delegation SAS: tokens of the SDK, the layout of every version built by hand, and every reason for a refusal."""

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from azure.storage.blob import UserDelegationKey, generate_blob_sas, generate_container_sas

from tests.unit.signed import ACCOUNT, NOW, PATH_STYLE, ROWS, NoBody, signature
from verditer.core.dates import parse_iso, seconds
from verditer.core.errors import StorageError
from verditer.core.grant import Grant, Scheme
from verditer.rest.address import parse_address
from verditer.rest.auth import authenticate
from verditer.rest.auth.issuer import DevelopmentIssuer
from verditer.rest.http.message import Request
from verditer.services.delegation import DelegationKey

NOW_DATE = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SE = "2026-03-04T06:06:07Z"
SKT, SKE = "2026-03-04T05:00:00Z", "2026-03-05T05:00:00Z"
ISSUER = DevelopmentIssuer(None)
TRUST = ISSUER.trust()
RESPONSES = ["rscc", "rscd", "rsce", "rscl", "rsct"]
LAYOUTS = {
    "2018-11-09": ["sip", "spr", "sv", "sr", "snapshot", *RESPONSES],
    "2020-02-10": ["saoid", "suoid", "scid", "sip", "spr", "sv", "sr", "snapshot", *RESPONSES],
    "2020-12-06": ["saoid", "suoid", "scid", "sip", "spr", "sv", "sr", "snapshot", "ses", *RESPONSES],
    "2025-07-05": ["saoid", "suoid", "scid", "skdutid", "sduoid", "sip", "spr", "sv", "sr", "snapshot", "ses", *RESPONSES],
    "2026-04-06": [
        *("saoid", "suoid", "scid", "skdutid", "sduoid", "sip", "spr", "sv", "sr", "snapshot", "ses", "headers", "query"),
        *RESPONSES,
    ],
}
FIRST = ["sp", "st", "se", "res", "skoid", "sktid", "skt", "ske", "sks", "skv"]


async def key_value(key: DelegationKey) -> bytes:
    """A substitute for the key derivation with the store's secret."""
    return base64.b64decode(value_of(key))


def value_of(key: DelegationKey) -> str:
    return signature(repr(key))


def key(**changes: Any) -> DelegationKey:
    fields: dict[str, Any] = {
        "account": "acct",
        "oid": "the-user",
        "tid": "the-tenant",
        "start": parse_iso(SKT),
        "expiry": parse_iso(SKE),
        "service": "b",
        "version": "2026-02-06",
        "delegated_tid": "",
    }
    return DelegationKey(**(fields | changes))


def token(
    resource: str,
    snapshot: str = "",
    signed: dict[str, str] | None = None,
    signing_key: DelegationKey | None = None,
    **changes: str,
) -> str:
    """Built by hand. An empty change omits a field; `signed` are values that are signed and not in the query."""
    fields = {"sv": "2026-02-06", "sr": "b", "sp": "r", "se": SE, "sks": "b", "skv": "2026-02-06"}
    fields |= {"skoid": "the-user", "sktid": "the-tenant", "skt": SKT, "ske": SKE}
    fields |= changes
    layout = next((names for first, names in reversed(LAYOUTS.items()) if fields["sv"] >= first), LAYOUTS["2018-11-09"])
    values = fields | {"res": f"/blob/acct/{resource}", "snapshot": snapshot} | (signed or {})
    text = "\n".join(values.get(name, "") for name in FIRST + layout)
    sig = signature(text, value_of(signing_key or key()))
    shown = {name: value for name, value in fields.items() if value} | {"sig": sig}
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in shown.items())


def grant_for(target: str, *, now: int = NOW, headers: dict[str, str] | None = None, **more: Any) -> Grant:
    async def no_policy(account: str, container: str) -> None:
        raise AssertionError("a user delegation SAS names no stored access policy")

    request = Request(
        method="GET",
        target=target,
        headers={"x-ms-version": "2026-02-06"} | (headers or {}),
        raw_headers=[],
        body=NoBody(),
        peer=more.get("peer", "127.0.0.1"),
        secure=more.get("secure", False),
    )
    address = parse_address(target, PATH_STYLE, accounts=())
    service = ROWS[more.get("service", "blob")]
    return asyncio.run(authenticate(request, address, service, ACCOUNT, now, no_policy, more.get("trust", TRUST), key_value))


def refusal_of(target: str, **circumstances: Any) -> tuple[str, str]:
    with pytest.raises(StorageError) as refused:
        grant_for(target, **circumstances)
    error = refused.value
    assert value_of(key()) not in f"{error.message} {error.reason} {error.details}"
    return error.code.azure_code, error.reason


@pytest.mark.parametrize("sv", [*LAYOUTS, "2019-12-12", "2023-11-03", "2026-10-06"])
def test_every_versions_layout_is_let_in(sv: str) -> None:
    grant = grant_for(f"/acct/c/b?{token('c/b', sv=sv)}")
    assert (grant.scheme, grant.letters, grant.reach, grant.version) == (Scheme.SERVICE_SAS, "r", "b", sv)


@pytest.mark.parametrize(
    ("sv", "field"),
    [
        *(("2020-02-10", name) for name in ("saoid", "suoid", "scid")),
        ("2020-12-06", "ses"),
        *((sv, name) for sv in LAYOUTS for name in ("sip", "st", "rscc")),
    ],
)
def test_a_field_counts_from_its_version_on_and_is_signed(sv: str, field: str) -> None:
    value = {"sip": "127.0.0.1", "st": SKT}.get(field, "value")
    extra: dict[str, Any] = {field: value}
    with_it = token("c/b", sv=sv, **extra)
    assert grant_for(f"/acct/c/b?{with_it}").letters == "r"
    without = "&".join(pair for pair in with_it.split("&") if not pair.startswith(f"{field}="))
    assert refusal_of(f"/acct/c/b?{without}")[0] == "AuthenticationFailed"


@pytest.mark.parametrize(
    ("sv", "field"),
    [
        ("2018-11-09", "saoid"),
        ("2020-02-10", "ses"),
        ("2020-12-06", "sduoid"),
        ("2020-12-06", "skdutid"),
        ("2025-07-05", "srh"),
        ("2025-07-05", "srq"),
        ("2026-02-06", "si"),
    ],
)
def test_a_field_that_would_not_be_signed_is_refused(sv: str, field: str) -> None:
    extra: dict[str, Any] = {field: "value"}
    code, detail = refusal_of(f"/acct/c/b?{token('c/b', sv=sv, **extra)}")
    assert (code, detail) == ("AuthenticationFailed", f"{field} is not valid in a user delegation SAS of version '{sv}'.")


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"sv": "2018-03-28"}, "A user delegation SAS needs"),
        ({"sv": "soon"}, "sv is not a valid version"),
        ({"sp": ""}, "sp is mandatory"),
        ({"se": ""}, "se is mandatory"),
        ({"skt": ""}, "skt is mandatory"),
        ({"ske": ""}, "ske is mandatory"),
        ({"sks": ""}, "sks is mandatory"),
        ({"skv": ""}, "skv is mandatory"),
        ({"skt": "yesterday"}, "skt and ske"),
        ({"sks": "q"}, "sks=q"),
        ({"sr": "x"}, "sr is not valid"),
        ({"sr": "d", "sv": "2019-12-12"}, "sr=d is not valid"),
        ({"skoid": "another-user"}, "Signature did not match"),
        ({"sktid": "another-tenant"}, "Signature did not match"),
        ({"ske": "2026-03-06T05:00:00Z"}, "Signature did not match"),
        ({"skv": "2020-02-10"}, "Signature did not match"),
        ({"sp": "r\nw"}, "Signature fields not well formed"),
    ],
)
def test_a_token_of_another_form_or_key_is_refused(changes: dict[str, Any], detail: str) -> None:
    code, said = refusal_of(f"/acct/c/b?{token('c/b', **changes)}")
    assert code == "AuthenticationFailed"
    assert said.startswith(detail)


def test_a_token_is_for_its_own_resource() -> None:
    assert refusal_of(f"/acct/c/other?{token('c/b')}")[0] == "AuthenticationFailed"
    assert grant_for(f"/acct/c/any?{token('c', sr='c')}").reach == "c"
    assert refusal_of(f"/acct/d/any?{token('c', sr='c')}")[0] == "AuthenticationFailed"
    snapshot = "2026-01-02T03:04:05.1234567Z"
    assert grant_for(f"/acct/c/b?{token('c/b', snapshot, sr='bs')}&snapshot={snapshot}").reach == "b"


def test_the_key_of_another_account_signs_nothing_here() -> None:
    stranger = token("c/b", signing_key=key(account="other"))
    assert refusal_of(f"/acct/c/b?{stranger}")[1].startswith("Signature did not match")


@pytest.mark.parametrize("moment", [SKT, SKE])
def test_a_token_lives_no_longer_than_its_key(moment: str) -> None:
    long = token("c/b", se="2026-04-01T00:00:00Z")
    at = parse_iso(moment) or 0
    inside, outside = (at, at - 1) if moment == SKT else (at - 1, at)
    assert grant_for(f"/acct/c/b?{long}", now=inside).letters == "r"
    assert refusal_of(f"/acct/c/b?{long}", now=outside)[1].startswith("The user delegation key is valid from")


def test_circumstances_count_as_for_any_sas() -> None:
    assert refusal_of(f"/acct/c/b?{token('c/b')}", now=NOW + seconds(3600))[1].startswith("Signature not valid in")
    assert refusal_of(f"/acct/c/b?{token('c/b', sip='10.0.0.1')}")[0] == "AuthorizationSourceIPMismatch"
    assert refusal_of(f"/acct/c/b?{token('c/b', spr='https')}")[0] == "AuthorizationProtocolMismatch"


@pytest.mark.parametrize("service", ["queue", "table", "file"])
def test_other_services_do_not_take_it(service: str) -> None:
    assert refusal_of(f"/acct/c/b?{token('c/b')}", service=service)[0] == "AuthenticationFailed"


# --- signed headers and parameters ------------------------------------------------------------------------------------------

TIED: dict[str, Any] = {"sv": "2026-04-06", "srh": "x-ms-meta-a,X-Other", "srq": "prefix"}
TIED_VALUES = {"headers": "x-ms-meta-a:1\nX-Other:two: 2\n", "query": "\nprefix:p q"}


def test_headers_and_parameters_are_signed_with_their_values() -> None:
    tied = token("c/b", signed=TIED_VALUES, **TIED)
    headers = {"x-ms-meta-a": "1", "x-other": "two: 2"}
    assert grant_for(f"/acct/c/b?{tied}&prefix=p%20q", headers=headers).letters == "r"
    assert refusal_of(f"/acct/c/b?{tied}&prefix=x", headers=headers)[1].startswith("Signature did not match")
    assert refusal_of(f"/acct/c/b?{tied}", headers=headers)[0] == "AuthenticationFailed"
    assert refusal_of(f"/acct/c/b?{tied}&prefix=p%20q", headers=headers | {"x-ms-meta-a": "2"})[0] == "AuthenticationFailed"


@pytest.mark.parametrize("extra", ["prefix=p%0Aq", "prefix=p%20q%0A"])
def test_a_line_break_in_a_signed_value_is_refused(extra: str) -> None:
    tied = token("c/b", signed=TIED_VALUES, **TIED)
    assert refusal_of(f"/acct/c/b?{tied}&{extra}")[1] == "Signature fields not well formed."


def test_a_value_cannot_be_freed_by_making_its_beginning_part_of_the_name() -> None:
    tied = token("c/b", signed={"query": "\nprefix:a:b"}, sv="2026-04-06", srq="prefix")
    assert grant_for(f"/acct/c/b?{tied}&prefix=a%3Ab").letters == "r"
    freed = tied.replace("srq=prefix", "srq=prefix%3Aa")
    assert refusal_of(f"/acct/c/b?{freed}&prefix%3Aa=b&prefix=anything")[1] == "Signature fields not well formed."


# --- for one user -----------------------------------------------------------------------------------------------------------


def shown(oid: str, tid: str = "delegate-tenant") -> dict[str, str]:
    return {"authorization": f"Bearer {ISSUER.token(NOW, oid=oid, tid=tid)}"}


def test_a_token_for_one_user_asks_for_that_users_bearer_token() -> None:
    personal = f"/acct/c/b?{token('c/b', sv='2026-02-06', sduoid='delegate')}"
    assert grant_for(personal, headers=shown("delegate")).letters == "r"
    assert refusal_of(personal, headers=shown("somebody-else"))[0] == "AuthenticationFailed"
    stale = {"authorization": f"Bearer {ISSUER.token(NOW, oid='delegate', seconds=-1)}"}
    assert refusal_of(personal, headers=stale)[0] == "InvalidAuthenticationInfo"
    assert refusal_of(personal)[0] == "AuthenticationFailed"
    assert refusal_of(personal, headers={"authorization": "SharedKey acct:x"})[0] == "AuthenticationFailed"


def test_the_tenant_of_that_user_is_in_the_key() -> None:
    made_for = key(delegated_tid="delegate-tenant")
    personal = token("c/b", signing_key=made_for, sduoid="delegate", skdutid="delegate-tenant")
    assert grant_for(f"/acct/c/b?{personal}", headers=shown("delegate")).letters == "r"
    assert refusal_of(f"/acct/c/b?{personal}", headers=shown("delegate", "elsewhere"))[0] == "AuthenticationFailed"


def test_a_bearer_token_beside_an_ordinary_signature_is_refused() -> None:
    assert "not both" in refusal_of(f"/acct/c/b?{token('c/b')}", headers=shown("the-user"))[1]


# --- the SDK's own ----------------------------------------------------------------------------------------------------------


def sdk_key(**changes: Any) -> UserDelegationKey:
    made = key(version="2026-10-06", **changes)
    user_key = UserDelegationKey()  # type: ignore[no-untyped-call]
    user_key.signed_oid, user_key.signed_tid = made.oid, made.tid
    user_key.signed_start, user_key.signed_expiry = SKT, SKE
    user_key.signed_service, user_key.signed_version = "b", "2026-10-06"
    user_key.signed_delegated_user_tid = made.delegated_tid or None
    user_key.value = value_of(made)
    return user_key


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"start": NOW_DATE - timedelta(minutes=1), "ip": "127.0.0.1", "protocol": "https,http"},
        {"cache_control": "no-store", "content_type": "text/plain; x=é", "encryption_scope": "scope"},
        {"correlation_id": "c-1", "preauthorized_agent_object_id": "agent"},
        {"snapshot": "2026-01-02T03:04:05.1234567Z"},
        {"version_id": "2026-01-02T03:04:05.1234567Z"},
        {"request_headers": {"x-ms-meta-a": "1", "foo": "b:c"}, "request_query_params": {"hello": "wor ld"}},
        {"user_delegation_oid": "delegate"},
    ],
)
def test_a_blob_sas_of_the_sdk_is_let_in(options: dict[str, Any]) -> None:
    expiry = NOW_DATE + timedelta(hours=1)
    name = "a folder/ä b+c.txt"
    made = generate_blob_sas("acct", "c", name, user_delegation_key=sdk_key(), permission="rw", expiry=expiry, **options)
    extra = {"snapshot": options.get("snapshot"), "versionid": options.get("version_id")}
    query = "".join(f"&{each}={value}" for each, value in (extra | options.get("request_query_params", {})).items() if value)
    headers = options.get("request_headers", {}) | (shown("delegate") if "user_delegation_oid" in options else {})
    grant = grant_for(f"/acct/c/{quote(name)}?{made}{query.replace(' ', '%20')}", headers=headers)
    assert (grant.scheme, grant.letters, grant.reach) == (Scheme.SERVICE_SAS, "rw", "b")


def test_a_container_sas_of_the_sdk_is_let_in() -> None:
    expiry = NOW_DATE + timedelta(hours=1)
    delegated = sdk_key(delegated_tid="delegate-tenant")
    made = generate_container_sas(
        "acct", "c", user_delegation_key=delegated, permission="rl", expiry=expiry, user_delegation_oid="delegate"
    )
    grant = grant_for(f"/acct/c?restype=container&comp=list&{made}", headers=shown("delegate"))
    assert (grant.letters, grant.reach) == ("rl", "c")

"""Shared Key: correctly signed requests are accepted, all others are refused."""

import string
from functools import cmp_to_key
from urllib.parse import quote, urlsplit

import pytest
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.pipeline.transport import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy, compare
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.signed import HOST_STYLE, KEY_1, KEY_2, NOW, NOW_TEXT, grant_for, refusal_of, signature
from verditer.core.dates import rfc1123, seconds
from verditer.core.grant import Scheme
from verditer.rest.auth.shared_key import azure_order

VERSION = "2026-02-06"
DATED = {"x-ms-date": NOW_TEXT, "x-ms-version": VERSION}


def signed(text: str, *, key: str = KEY_1, scheme: str = "SharedKey", name: str = "acct", **headers: str) -> dict[str, str]:
    """`headers` with `_` for `-`."""
    sent = {header.replace("_", "-"): value for header, value in headers.items()}
    return sent | {"Authorization": f"{scheme} {name}:{signature(text, key)}"}


DATES = {"x_ms_date": NOW_TEXT, "x_ms_version": VERSION}
HEADERS = f"x-ms-date:{NOW_TEXT}\nx-ms-version:{VERSION}\n"


@pytest.mark.parametrize("key", [KEY_1, KEY_2])
def test_either_account_key_signs(key: str) -> None:
    text = "GET" + "\n" * 12 + HEADERS + "/acct/acct/c/b"
    assert grant_for("/acct/c/b", headers=signed(text, key=key, **DATES)).scheme is Scheme.KEY


def test_the_host_style_names_the_account_once() -> None:
    text = "GET" + "\n" * 12 + HEADERS + "/acct/c/b"
    assert grant_for("/c/b", host=HOST_STYLE, headers=signed(text, **DATES)).scheme is Scheme.KEY


def test_every_standard_header_has_its_line() -> None:
    values = {
        "content_encoding": "gzip",
        "content_language": "en",
        "content_length": "11",
        "content_md5": "Q2h1Y2sgSW50ZWdyaXR5IQ==",
        "content_type": "text/plain; charset=UTF-8",
        "if_modified_since": "Tue, 03 Mar 2026 05:06:07 GMT",
        "if_match": '"0x1"',
        "if_none_match": "*",
        "if_unmodified_since": "Thu, 05 Mar 2026 05:06:07 GMT",
        "range": "bytes=0-10",
    }
    lines = list(values.values())
    text = "\n".join(["PUT", *lines[:5], "", *lines[5:], ""]) + HEADERS + "/acct/acct/c/b"
    assert grant_for("/acct/c/b", method="PUT", headers=signed(text, **values, **DATES)).scheme is Scheme.KEY


def test_the_date_header_is_signed_when_it_is_the_only_date() -> None:
    text = "GET" + "\n" * 6 + NOW_TEXT + "\n" * 6 + f"x-ms-version:{VERSION}\n/acct/acct/c/b"
    headers = signed(text, date=NOW_TEXT, x_ms_version=VERSION)
    assert grant_for("/acct/c/b", headers=headers).scheme is Scheme.KEY


def test_query_names_are_sorted_in_lower_case_and_values_decoded() -> None:
    query = "timeout=20&RESTYPE=container&comp=list&prefix=a%2Fb%20%C3%A9&include=snapshots&include=metadata"
    resource = "/acct/acct/c\ncomp:list\ninclude:metadata,snapshots\nprefix:a/b é\nrestype:container\ntimeout:20"
    text = "GET" + "\n" * 12 + HEADERS + resource
    assert grant_for(f"/acct/c?{query}", headers=signed(text, **DATES)).scheme is Scheme.KEY


@pytest.mark.parametrize(
    ("version", "length"), [("2026-02-06", ""), ("2015-02-21", ""), ("2014-02-14", "0"), ("2009-09-19", "0")]
)
def test_an_empty_body_has_no_length_line_since_2015(version: str, length: str) -> None:
    text = f"PUT\n\n\n{length}" + "\n" * 9 + f"x-ms-date:{NOW_TEXT}\nx-ms-version:{version}\n/acct/acct/c\nrestype:container"
    headers = signed(text, content_length="0", x_ms_date=NOW_TEXT, x_ms_version=version)
    assert grant_for("/acct/c?restype=container", method="PUT", headers=headers).scheme is Scheme.KEY


@pytest.mark.parametrize(("version", "line"), [("2016-05-31", "x-ms-meta-empty:\n"), ("2015-12-11", "")])
def test_empty_headers_are_signed_since_2016(version: str, line: str) -> None:
    text = "GET" + "\n" * 12 + f"x-ms-date:{NOW_TEXT}\n{line}x-ms-version:{version}\n/acct/acct/c/b"
    headers = signed(text, x_ms_date=NOW_TEXT, x_ms_version=version, x_ms_meta_empty="")
    assert grant_for("/acct/c/b", headers=headers).scheme is Scheme.KEY


@pytest.mark.parametrize("signed_path", ["/acct-secondary/c/b", "/acct/c/b"])
def test_the_secondary_may_be_signed_with_or_without_its_suffix(signed_path: str) -> None:
    text = "GET" + "\n" * 12 + HEADERS + "/acct" + signed_path
    assert grant_for("/acct-secondary/c/b", headers=signed(text, **DATES)).scheme is Scheme.KEY


def test_the_primary_is_not_read_as_the_secondary() -> None:
    text = "GET" + "\n" * 12 + HEADERS + "/acct/acct-secondary/c/b"
    assert refusal_of("/acct/c/b", headers=signed(text, **DATES))[0] == "AuthenticationFailed"


@pytest.mark.parametrize("names", [("a-b", "a_b"), ("a_b", "a-b")])
def test_header_names_may_be_sorted_by_code_point_or_as_azure_does(names: tuple[str, str]) -> None:
    meta = "".join(f"x-ms-meta-{name}:v\n" for name in names)
    text = "GET" + "\n" * 12 + f"x-ms-date:{NOW_TEXT}\n{meta}x-ms-version:{VERSION}\n/acct/acct/c/b"
    headers = DATED | {"x-ms-meta-a-b": "v", "x-ms-meta-a_b": "v", "Authorization": f"SharedKey acct:{signature(text)}"}
    assert grant_for("/acct/c/b", headers=headers).scheme is Scheme.KEY


@pytest.mark.parametrize(("query", "suffix"), [("", ""), ("?comp=metadata&timeout=5", "?comp=metadata")])
def test_lite_signs_fewer_headers_and_of_the_query_only_comp(query: str, suffix: str) -> None:
    text = f"PUT\nbWQ1\ntext/plain\n\n{HEADERS}/acct/acct/c/b{suffix}"
    headers = signed(text, scheme="SharedKeyLite", content_md5="bWQ1", content_type="text/plain", content_length="4", **DATES)
    assert grant_for(f"/acct/c/b{query}", method="PUT", headers=headers).scheme is Scheme.KEY


def test_the_table_service_has_its_own_form() -> None:
    full = f"GET\n\napplication/json\n{NOW_TEXT}\n/acct/acct/people(PartitionKey='a')?comp=acl"
    headers = signed(full, content_type="application/json", **DATES)
    target = "/acct/people(PartitionKey='a')?comp=acl&timeout=3"
    assert grant_for(target, service="table", headers=headers).scheme is Scheme.KEY
    lite = f"{NOW_TEXT}\n/acct/acct/people"
    assert grant_for("/acct/people", service="table", headers=signed(lite, scheme="SharedKeyLite", **DATES)).scheme is Scheme.KEY


def test_utf_8_in_a_header_is_signed_as_text() -> None:
    text = "GET" + "\n" * 12 + f"x-ms-date:{NOW_TEXT}\nx-ms-meta-a:naïve\nx-ms-version:{VERSION}\n/acct/acct/c/b"
    headers = signed(text, x_ms_meta_a="naïve".encode().decode("latin-1"), **DATES)
    assert grant_for("/acct/c/b", headers=headers).scheme is Scheme.KEY


@pytest.mark.parametrize("minutes", [-15, 0, 15])
def test_a_clock_may_differ_by_a_quarter_of_an_hour(minutes: int) -> None:
    date = rfc1123(NOW + seconds(minutes * 60))
    text = "GET" + "\n" * 12 + f"x-ms-date:{date}\n/acct/acct/c/b"
    assert grant_for("/acct/c/b", headers=signed(text, x_ms_date=date)).scheme is Scheme.KEY


@pytest.mark.parametrize(("shift", "word"), [(-901, "too old"), (901, "too new")])
def test_a_clock_further_off_is_refused(shift: int, word: str) -> None:
    date = rfc1123(NOW + seconds(shift))
    text = "GET" + "\n" * 12 + f"x-ms-date:{date}\n/acct/acct/c/b"
    code, detail = refusal_of("/acct/c/b", headers=signed(text, x_ms_date=date))
    assert code == "AuthenticationFailed"
    assert word in detail


@pytest.mark.parametrize("headers", [{}, {"x_ms_date": "yesterday"}, {"date": "2026-03-04T05:06:07Z"}])
def test_a_request_without_a_readable_date_is_refused(headers: dict[str, str]) -> None:
    code, detail = refusal_of("/acct/c/b", headers=signed("", **headers))
    assert code == "AuthenticationFailed"
    assert "date" in detail


def test_a_refusal_shows_the_string_to_sign_but_not_the_signature_expected() -> None:
    text = "GET" + "\n" * 12 + HEADERS + "/acct/acct/c/b"
    code, detail = refusal_of("/acct/c/b", headers=DATED | {"Authorization": "SharedKey acct:bm90IGl0"})
    assert code == "AuthenticationFailed"
    assert text in detail
    assert "bm90IGl0" in detail
    assert not {signature(text), signature(text, KEY_2)} & set(detail.split("'"))


def test_another_account_is_refused() -> None:
    text = "GET" + "\n" * 12 + HEADERS + "/other/acct/c/b"
    assert refusal_of("/acct/c/b", headers=signed(text, name="other", **DATES))[0] == "AuthenticationFailed"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("Bearer abc", "AuthenticationFailed"),
        ("Basic dXNlcjpwYXNz", "InvalidAuthenticationInfo"),
        ("", "InvalidAuthenticationInfo"),
        ("SharedKey", "InvalidAuthenticationInfo"),
        ("SharedKey acct", "InvalidAuthenticationInfo"),
        ("SharedKey :sig", "InvalidAuthenticationInfo"),
        ("SharedKey acct:\xe9", "AuthenticationFailed"),
    ],
)
def test_an_authorization_header_that_cannot_be_used_is_refused(header: str, code: str) -> None:
    assert refusal_of("/acct/c/b", headers=DATED | {"Authorization": header})[0] == code


def test_a_key_and_a_sas_together_are_refused() -> None:
    text = "GET" + "\n" * 12 + HEADERS + "/acct/acct/c/b\nsig:x"
    assert refusal_of("/acct/c/b?sig=x", headers=signed(text, **DATES))[0] == "AuthenticationFailed"


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def refuse(expected: bytes, sent: bytes) -> bool:
        compared.append((expected, sent))
        return False

    monkeypatch.setattr("verditer.rest.auth.signature.hmac.compare_digest", refuse)
    text = "GET" + "\n" * 12 + HEADERS + "/acct/acct/c/b"
    assert refusal_of("/acct/c/b", headers=signed(text, **DATES))[0] == "AuthenticationFailed"
    assert (signature(text).encode(), signature(text).encode()) in compared


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
token = st.text(string.ascii_letters + string.digits + "_-!#$%&*.^`|~+'", max_size=8)
printable = st.text(string.ascii_letters + string.digits + " ,;:=/\"'", max_size=12).map(str.strip)


@settings(max_examples=300, deadline=None)
@given(
    blob=names,
    query=st.dictionaries(st.sampled_from(["comp", "prefix", "snapshot", "timeout", "where", "x"]), names, max_size=4),
    metadata=st.dictionaries(token.map(lambda name: f"x-ms-meta-{name}"), printable, max_size=5),
    length=st.sampled_from(["0", "1", "10485760"]),
    host=st.sampled_from(["http://127.0.0.1:10000/acct", "http://acct.blob.example.org"]),
)
def test_what_the_sdk_signs_is_let_in(blob: str, query: dict[str, str], metadata: dict[str, str], length: str, host: str) -> None:
    url = f"{host}/c/{quote(blob, safe='~/')}"
    if query:
        url += "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    request = HttpRequest("PUT", url, headers=metadata | DATED | {"Content-Length": length, "Content-Type": "text/plain"})
    policy = SharedKeyCredentialPolicy("acct", KEY_1)  # type: ignore[no-untyped-call]
    policy.on_request(PipelineRequest(request, PipelineContext(None)))  # type: ignore[no-untyped-call]
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = dict(request.headers.items())
    assert grant_for(target, method="PUT", headers=headers, host=parts.netloc).scheme is Scheme.KEY


@settings(max_examples=500, deadline=None)
@given(st.lists(token.map(str.lower), max_size=6))
def test_our_order_of_header_names_is_the_sdks(found: list[str]) -> None:
    assert sorted(found, key=azure_order) == sorted(found, key=cmp_to_key(compare))

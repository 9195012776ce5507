"""Cross-origin rules: the first rule that matches origin and method applies, and an ordinary request is never refused."""

import pytest

from verditer.core.errors import Code, StorageError
from verditer.core.records.account import CorsRule
from verditer.rest.headers.cors import preflight, response_headers

A = "https://a.example"
STRICT = CorsRule(
    allowed_origins=(A, "https://*.contoso.com"),
    allowed_methods=("GET", "PUT"),
    allowed_headers=("x-ms-meta-*", "Content-Type"),
    exposed_headers=("ETag", "x-ms-meta-*"),
    max_age_seconds=200,
)
OPEN = CorsRule(allowed_origins=("*",), allowed_methods=("GET", "PUT", "DELETE"), allowed_headers=("*",), exposed_headers=("*",))


def refusal(rules: tuple[CorsRule, ...], origin: str | None, method: str | None, headers: str | None = None) -> Code | None:
    try:
        preflight(rules, origin, method, headers)
    except StorageError as error:
        return error.code
    return None


def test_a_preflight_is_told_what_it_asked_for() -> None:
    assert preflight((STRICT,), A, "PUT", "X-MS-Meta-Colour, content-type") == [
        ("Access-Control-Allow-Origin", A),
        ("Access-Control-Allow-Methods", "PUT"),
        ("Access-Control-Allow-Headers", "X-MS-Meta-Colour,content-type"),
        ("Access-Control-Max-Age", "200"),
        ("Access-Control-Allow-Credentials", "true"),
    ]


def test_a_preflight_without_headers_is_answered_without_them() -> None:
    assert "Access-Control-Allow-Headers" not in dict(preflight((STRICT,), A, "GET", None))


@pytest.mark.parametrize(("origin", "method"), [(None, "GET"), (A, None), ("", "GET"), (A, "")])
def test_a_preflight_needs_origin_and_method(origin: str | None, method: str | None) -> None:
    assert refusal((STRICT,), origin, method) is Code.InvalidHeaderValue


@pytest.mark.parametrize(
    ("rules", "origin", "method", "headers"),
    [
        ((), A, "GET", None),
        ((STRICT,), "https://b.example", "GET", None),
        ((STRICT,), A.upper(), "GET", None),
        ((STRICT,), A, "DELETE", None),
        ((STRICT,), A, "PUT", "x-ms-date"),
        ((STRICT, OPEN), A, "PUT", "x-ms-date"),  # T241: the first match applies; OPEN is not tried
    ],
)
def test_a_preflight_no_rule_answers_for_is_refused(
    rules: tuple[CorsRule, ...], origin: str, method: str, headers: str | None
) -> None:
    assert refusal(rules, origin, method, headers) is Code.CorsPreflightFailure


def test_a_rule_for_another_method_is_passed_over() -> None:
    assert refusal((STRICT, OPEN), A, "DELETE", "x-ms-date") is None


@pytest.mark.parametrize(
    ("origin", "matches"),
    [
        ("https://www.contoso.com", True),
        ("https://a.b.contoso.com", True),
        ("https://contoso.com", False),
        ("https://.contoso.com", False),
        ("http://www.contoso.com", False),
        ("https://evilcontoso.com", False),
        ("https://evil.example/.contoso.com", False),
        ("https://www.contoso.com:8080", False),
    ],
)
def test_a_wildcard_stands_for_sub_domains(origin: str, matches: bool) -> None:
    assert (refusal((STRICT,), origin, "GET") is None) is matches


def test_an_answer_to_a_named_origin_varies_and_allows_credentials() -> None:
    assert response_headers((STRICT,), "GET", A, ["ETag", "Date", "x-ms-meta-b"]) == [
        ("Access-Control-Allow-Origin", A),
        ("Access-Control-Expose-Headers", "ETag,x-ms-meta-b"),
        ("Access-Control-Allow-Credentials", "true"),
        ("Vary", "Origin"),
    ]


def test_an_answer_through_the_star_is_the_same_for_all() -> None:
    assert response_headers((OPEN,), "GET", A, ["ETag"]) == [
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Expose-Headers", "ETag"),
    ]


def test_an_origin_named_beside_a_star_counts_as_named() -> None:
    both = CorsRule(allowed_origins=("*", A), allowed_methods=("GET",))
    assert dict(response_headers((both,), "GET", A, []))["Access-Control-Allow-Origin"] == A


@pytest.mark.parametrize(
    ("rules", "method", "origin", "expected"),
    [
        ((), "GET", A, []),
        ((STRICT,), "GET", None, [("Vary", "Origin")]),
        ((STRICT,), "HEAD", "https://b.example", [("Vary", "Origin")]),
        ((STRICT,), "PUT", "https://b.example", []),
        ((OPEN,), "GET", None, []),
        ((OPEN,), "HEAD", None, [("Vary", "Origin")]),
    ],
)
def test_an_answer_no_rule_matches_says_at_most_that_it_varies(
    rules: tuple[CorsRule, ...], method: str, origin: str | None, expected: list[tuple[str, str]]
) -> None:
    assert response_headers(rules, method, origin, ["ETag"]) == expected

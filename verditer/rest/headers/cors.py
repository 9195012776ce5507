"""Cross-origin rules: the answer to a browser's preflight, and the headers that other answers gain. Browsers do the refusing.

The first rule that matches origin and method counts; later rules are not tried, even if its headers do not suffice.
"""

import re
from collections.abc import Iterable, Sequence

from verditer.core.errors import Code, StorageError
from verditer.core.records.account import CorsRule

_HOST = re.compile(r"[A-Za-z0-9.-]+")


def preflight(rules: Sequence[CorsRule], origin: str | None, method: str | None, headers: str | None) -> list[tuple[str, str]]:
    """Answer OPTIONS. `headers` is Access-Control-Request-Headers as sent."""
    if not origin or not method:
        raise StorageError(Code.InvalidHeaderValue, message="A required CORS header is not present.")
    requested = [name.strip() for name in (headers or "").split(",") if name.strip()]
    rule = _rule_for(rules, origin, method)
    if rule is None or not all(_covers(rule.allowed_headers, name) for name in requested):
        raise StorageError(Code.CorsPreflightFailure)
    answer = [("Access-Control-Allow-Origin", origin), ("Access-Control-Allow-Methods", method)]
    if requested:
        answer.append(("Access-Control-Allow-Headers", ",".join(requested)))
    answer.append(("Access-Control-Max-Age", str(rule.max_age_seconds)))
    answer.append(("Access-Control-Allow-Credentials", "true"))
    return answer


def response_headers(rules: Sequence[CorsRule], method: str, origin: str | None, names: Iterable[str]) -> list[tuple[str, str]]:
    """The headers that an ordinary answer gains. `names` are the names of the headers that it has."""
    if not rules:
        return []
    rule = _rule_for(rules, origin, method) if origin else None
    if rule is None or not origin:
        return [("Vary", "Origin")] if method in ("GET", "HEAD") and not _open_to_all(rules, method) else []
    named = _names_origin(rule, origin)
    answer = [("Access-Control-Allow-Origin", origin if named else "*")]
    exposed = ",".join(name for name in names if _covers(rule.exposed_headers, name))
    if exposed:
        answer.append(("Access-Control-Expose-Headers", exposed))
    if named:
        answer += [("Access-Control-Allow-Credentials", "true"), ("Vary", "Origin")]
    return answer


def _rule_for(rules: Sequence[CorsRule], origin: str, method: str) -> CorsRule | None:
    matching = (
        rule for rule in rules if method in rule.allowed_methods and ("*" in rule.allowed_origins or _names_origin(rule, origin))
    )
    return next(matching, None)


def _names_origin(rule: CorsRule, origin: str) -> bool:
    return origin in rule.allowed_origins or any(_is_subdomain(origin, pattern) for pattern in rule.allowed_origins)


def _is_subdomain(origin: str, pattern: str) -> bool:
    """`https://*.contoso.com` means every host below contoso.com."""
    before, star, after = pattern.partition("*.")
    if not star or not origin.startswith(before) or not origin.endswith(f".{after}"):
        return False
    return _HOST.fullmatch(origin[len(before) : -len(after) - 1]) is not None


def _open_to_all(rules: Sequence[CorsRule], method: str) -> bool:
    return any("*" in rule.allowed_origins and method in rule.allowed_methods for rule in rules)


def _covers(patterns: Sequence[str], name: str) -> bool:
    """A pattern is a header name, or a prefix with `*` behind it. The case does not matter."""
    name = name.lower()
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in map(str.lower, patterns)
    )

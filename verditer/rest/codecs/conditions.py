"""Conditional headers → the guard of a request. The rules are in `core/guard.py`, `conditions.py` and `tier_conditions.py`."""

from collections.abc import Callable, Mapping
from typing import Any

from verditer.core import conditions as cond
from verditer.core.conditions import IM, IMS, INM, IUS, TAGS, ConditionRule, Conditions, EtagCondition
from verditer.core.dates import parse_rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.guard import NO_GUARD, NONE, Guard, GuardRule, LeaseRule
from verditer.core.tags import TagCondition, parse_condition
from verditer.core.tier_conditions import TierGuard
from verditer.rest.codecs import etag
from verditer.rest.codecs.leases import parse_lease_id
from verditer.rest.wire_errors import invalid_header

_TIER_SINCE = "x-ms-access-tier-if-modified-since"
_TIER_UNTIL = "x-ms-access-tier-if-unmodified-since"


def guard_of(rule: GuardRule, headers: Mapping[str, str], *, create_only: bool = False) -> Guard:
    """The rule with the conditions and the lease id of a request, from lower-case headers. Malformed headers and illegal
    combinations are refused here."""
    if rule is NONE and not create_only:
        return NO_GUARD  # every operation on queues and tables
    conditions = cond.NONE
    if rule.conditions is not ConditionRule.NOT_USED:
        conditions = parse_conditions(rule, headers)
        if conditions is not cond.NONE:
            conditions = cond.legal(rule.conditions, conditions)
    lease_id = parse_lease_id(headers) if rule.lease is not LeaseRule.NOT_USED else None
    if rule.tier_conditions and (_TIER_SINCE in headers or _TIER_UNTIL in headers):
        return _tier_guard(rule, headers, conditions, lease_id, create_only)
    return Guard(rule=rule, conditions=conditions, lease_id=lease_id, create_only=create_only)


def _tier_guard(
    rule: GuardRule, headers: Mapping[str, str], conditions: Conditions, lease_id: str | None, create_only: bool
) -> Guard:
    since, until = (_date(name, headers[name]) if name in headers else None for name in (_TIER_SINCE, _TIER_UNTIL))
    if since is not None and until is not None:
        raise StorageError(Code.MultipleConditionHeadersNotSupported)
    return TierGuard(
        rule=rule, conditions=conditions, lease_id=lease_id, create_only=create_only, tier_since=since, tier_until=until
    )


def parse_conditions(rule: GuardRule, headers: Mapping[str, str]) -> Conditions:
    """The conditions among the headers that the rule evaluates."""
    if _SPELLINGS[rule.conditions_on].isdisjoint(headers):
        return cond.NONE
    sent = [(field, name) for field, name in _names_of(rule) if name in headers]
    asked: dict[str, Any] = {field: _PARSERS[field](name, headers[name]) for field, name in sent}
    conditions = Conditions(**asked)
    return cond.NONE if conditions == cond.NONE else conditions


def condition_headers(rule: GuardRule, headers: Mapping[str, str]) -> dict[str, str]:
    """The conditions on a copy source that the rule evaluates, with the names under which the source expects them."""
    return {_SENT_AS[field]: headers[name] for field, name in _names_of(rule) if name in headers}


def _names_of(rule: GuardRule) -> list[tuple[str, str]]:
    names = _NAMES[rule.conditions_on]
    return [(field, names[field]) for field in rule.conditions.applicable]


def _etags(name: str, text: str) -> EtagCondition:
    condition = etag.parse_condition(text)
    if condition is None:
        raise invalid_header(name, text)
    return condition


def _date(name: str, text: str) -> int | None:
    if text == "null":  # some clients print an absent date this way, and Azure accepts it
        return None
    ticks = parse_rfc1123(text)
    if ticks is None:
        raise invalid_header(name, text)
    return ticks


def _tags(name: str, text: str) -> TagCondition:
    condition = parse_condition(text)
    if condition is None:
        raise invalid_header(name, text)
    return condition


_PARSERS: dict[str, Callable[[str, str], Any]] = {IM: _etags, INM: _etags, IMS: _date, IUS: _date, TAGS: _tags}
_SENT_AS = {
    IM: "If-Match",
    INM: "If-None-Match",
    IMS: "If-Modified-Since",
    IUS: "If-Unmodified-Since",
    TAGS: "x-ms-if-tags",
}


def _names(prefix: str, tags: str) -> dict[str, str]:
    return {field: prefix + field.replace("_", "-") for field in (IM, INM, IMS, IUS)} | {TAGS: tags}


_NAMES = {
    "resource": _names("", "x-ms-if-tags"),
    "blob": _names("x-ms-blob-", "x-ms-if-tags"),  # Get Blob Tags, Set Blob Tags
    "source": _names("x-ms-source-", "x-ms-source-if-tags"),
}
_SPELLINGS = {subject: frozenset(names.values()) for subject, names in _NAMES.items()}

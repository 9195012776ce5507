"""Conditional headers: If-Match and its family, tag conditions, and what each kind of operation makes of them.

`parse` reads the headers of a request once; `check` compares them with the record as it is, inside the transaction that
writes (contract G5). `guard.py` calls it after the lease. Every version gets the behaviour of 2013-08-15 and later: before
that, reads were combined the way writes are. Microsoft's page: Specifying conditional headers for Blob service operations.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum, unique
from typing import Any, Protocol

import msgspec

from verditer.core.dates import parse_rfc1123, rfc1123, truncate
from verditer.core.errors import Code, StorageError, invalid_header
from verditer.core.etag import Etag, bare, show
from verditer.core.lease import Lease
from verditer.core.tags import TagCondition, parse_condition

ANY = "*"


class Guarded(Protocol):
    """What conditions and leases look at: a blob's record, a container's."""

    @property
    def etag(self) -> Etag:
        """Also Last-Modified: the whole second of this tick."""

    @property
    def lease(self) -> Lease | None: ...

    @property
    def tags(self) -> Mapping[str, str] | None: ...

    @property
    def copy_pending(self) -> bool:
        """Bytes are still being fetched into it."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """ETags without quotes, dates in ticks; None where the request says nothing."""

    if_match: tuple[str, ...] | None = None
    if_none_match: tuple[str, ...] | None = None
    if_modified_since: int | None = None
    if_unmodified_since: int | None = None
    if_tags: TagCondition | None = None


NONE = Conditions()  # most requests: compared by identity, so they pay for one comparison

IM, INM, IMS, IUS, TAGS = Conditions.__struct_fields__

UNMET = Code.ConditionNotMet
SOURCE = Code.SourceConditionNotMet
TARGET = Code.TargetConditionNotMet
EXISTS = Code.BlobAlreadyExists


@unique
class Kind(Enum):
    """One row per family of operations.

    looks_at     the conditions that count; others are ignored
    mixes        any mixture is legal, with lists of ETags (reads); writes take one header or one of two pairs
    unmet        the refusal
    unchanged    the refusal when If-None-Match or If-Modified-Since is not met
    exists       the refusal of `If-None-Match: *` when there is something; None ignores the header (measured for Delete)
    """

    # fmt: off
    #                     looks_at                   mixes  unmet   unchanged         exists
    READ               = (IM, INM, IMS, IUS, TAGS),  True,  UNMET,  Code.NotModified, Code.UnsatisfiableCondition
    CREATE             = (IM, INM, IMS, IUS, TAGS),  False, UNMET,  UNMET,            EXISTS
    UPDATE             = (IM, INM, IMS, IUS, TAGS),  False, UNMET,  UNMET,            None
    SEAL               = (IM, INM, IMS, IUS),        False, UNMET,  UNMET,            None
    COPY_TARGET        = (IM, INM, IMS, IUS, TAGS),  False, TARGET, TARGET,           EXISTS
    COPY_SOURCE        = (IM, INM, IMS, IUS, TAGS),  False, SOURCE, SOURCE,           SOURCE
    PART_SOURCE        = (IM, INM, IMS, IUS),        False, SOURCE, SOURCE,           SOURCE
    CONTAINER          = (IMS, IUS),                 False, UNMET,  UNMET,            None
    CONTAINER_METADATA = (IMS,),                     False, UNMET,  UNMET,            None
    TAGS_ONLY          = (TAGS,),                    False, UNMET,  UNMET,            None
    NOT_USED           = (),                         False, UNMET,  UNMET,            None
    # fmt: on

    def __init__(self, looks_at: tuple[str, ...], mixes: bool, unmet: Code, unchanged: Code, exists: Code | None) -> None:
        self.looks_at = looks_at
        self.mixes = mixes
        self.unmet = unmet
        self.unchanged = unchanged
        self.exists = exists


# The headers a write may carry together → the one that decides. Tags are a further condition beside any of them.
_DECIDES = {
    frozenset({IM}): IM,
    frozenset({INM}): INM,
    frozenset({IMS}): IMS,
    frozenset({IUS}): IUS,
    frozenset({INM, IMS}): INM,
    frozenset({IM, IUS}): IM,
}


def check(kind: Kind, conditions: Conditions, current: Guarded | None, *, holder: bool = False) -> None:
    """Refuse with StorageError what the conditions forbid. None as `current` means that nothing exists yet.

    `holder` says that the caller holds the lease: Put Blob with `If-None-Match: *` then overwrites (measured on Azure).
    """
    if conditions is NONE:
        return
    conditions = legal(kind, conditions)
    refusal = _missing(kind, conditions) if current is None else _existing(kind, conditions, current, holder)
    if refusal is Code.NotModified and current is not None:
        raise StorageError(refusal, headers={"ETag": show(current.etag), "Last-Modified": rfc1123(current.etag)})
    if refusal is not None:
        raise StorageError(refusal)


def legal(kind: Kind, conditions: Conditions) -> Conditions:
    """The conditions that decide. What may not be asked of this kind is refused here, before any record is looked at."""
    asked: dict[str, Any] = {name: value for name in kind.looks_at if (value := getattr(conditions, name)) is not None}
    if not kind.mixes:
        asked = _deciding(asked)
    elif ANY in asked.get(INM, ()):
        raise StorageError(Code.UnsatisfiableCondition)
    return Conditions(**asked) if asked else NONE


def _deciding(asked: dict[str, Any]) -> dict[str, Any]:
    headers = frozenset(asked) - {TAGS}
    if not headers:
        return asked
    decides = _DECIDES.get(headers)
    if decides is None or any(len(asked.get(name, ())) > 1 for name in (IM, INM)):
        raise StorageError(Code.MultipleConditionHeadersNotSupported)
    return {name: asked[name] for name in (decides, TAGS) if name in asked}


def _missing(kind: Kind, conditions: Conditions) -> Code | None:
    """Nothing has no ETag and no tags to match, differs from every ETag, and has no date to compare."""
    return kind.unmet if conditions.if_match is not None or conditions.if_tags is not None else None


def _existing(kind: Kind, conditions: Conditions, current: Guarded, holder: bool) -> Code | None:
    """Match ∧ Unmodified ∧ (None-Match ∨ Modified) ∧ Tags; for a write at most one of the first four is left by now."""
    etag, modified = bare(current.etag), truncate(current.etag)
    match, none_match = conditions.if_match, conditions.if_none_match
    since, until = conditions.if_modified_since, conditions.if_unmodified_since
    if match is not None and etag not in match and ANY not in match:
        return kind.unmet
    if until is not None and modified > until:
        return kind.unmet
    if none_match is not None and ANY in none_match:
        if kind.exists is not None and not holder:
            return kind.exists
    elif not _changed(etag, modified, none_match, since):
        return kind.unchanged
    if conditions.if_tags is not None and not conditions.if_tags.holds(current.tags or {}):
        return kind.unmet
    return None


def _changed(etag: str, modified: int, none_match: tuple[str, ...] | None, since: int | None) -> bool:
    """Whether one of the two says so; of two that are absent nobody says no."""
    if none_match is None and since is None:
        return True
    return (none_match is not None and etag not in none_match) or (since is not None and modified > since)


def parse(headers: Mapping[str, str], prefix: str = "", looks_at: tuple[str, ...] = Conditions.__struct_fields__) -> Conditions:
    """The conditions in lower-case headers; `prefix` names another family: "x-ms-source-", "x-ms-blob-"."""
    if _SPELLINGS[prefix].isdisjoint(headers):
        return NONE
    names = _NAMES[prefix]
    asked: dict[str, Any] = {
        field: _PARSERS[field](names[field], headers[names[field]]) for field in looks_at if names[field] in headers
    }
    conditions = Conditions(**asked)
    return NONE if conditions == NONE else conditions


_ETAG = re.compile(r'(?:[^,"]|"[^"]*"?)+')  # between commas, but a comma inside quotes belongs to the ETag


def _etags(name: str, text: str) -> tuple[str, ...]:
    """A weak `W/"…"` stays as it is and so equals no ETag of ours, which are all strong."""
    etags = tuple(_unquoted(part.strip()) for part in _ETAG.findall(text) if part.strip())
    if not etags:
        raise invalid_header(name, text)
    return etags


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text


def parse_date(name: str, text: str) -> int | None:
    if text == "null":  # some clients print an absent date this way, and Azure lets them
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


_PARSERS: dict[str, Callable[[str, str], Any]] = {IM: _etags, INM: _etags, IMS: parse_date, IUS: parse_date, TAGS: _tags}


def _names(prefix: str, tags: str) -> dict[str, str]:
    return {field: prefix + field.replace("_", "-") for field in (IM, INM, IMS, IUS)} | {TAGS: tags}


_NAMES = {
    "": _names("", "x-ms-if-tags"),
    "x-ms-source-": _names("x-ms-source-", "x-ms-source-if-tags"),
    "x-ms-blob-": _names("x-ms-blob-", "x-ms-if-tags"),  # Get and Set Blob Tags
}
_SPELLINGS = {prefix: frozenset(names.values()) for prefix, names in _NAMES.items()}

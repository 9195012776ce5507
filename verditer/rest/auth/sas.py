"""Shared access signatures: a query string that an account key has signed, for the whole account or for one resource.

The same token comes with request after request, so what a valid signature proves is kept (`PROOFS`); time, address,
protocol and stored access policies are looked at each time. A token that fails is never kept.
"""

import ipaddress
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from verditer.core.caches import Kept
from verditer.core.dates import parse_iso, rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.grant import ContainerAccess, EntityReach, Grant, Scheme
from verditer.rest.address import Address
from verditer.rest.auth.signature import authentication_failed, matches
from verditer.rest.auth.target import target_of
from verditer.rest.message import Request
from verditer.services.account import Account

_FIELDS = (
    *("sv", "sp", "st", "se", "si", "sip", "spr", "sr", "ses", "ss", "srt", "sig"),
    *("rscc", "rscd", "rsce", "rscl", "rsct"),
)
_OVERRIDES = {
    "rscc": "Cache-Control",
    "rscd": "Content-Disposition",
    "rsce": "Content-Encoding",
    "rscl": "Content-Language",
    "rsct": "Content-Type",
}
# (first version, what is signed): the last line whose version is not newer than sv. "resource" and "snapshot" are the target's.
_SERVICE_LAYOUTS = (
    ("", "sp st se resource si"),
    ("2012-02-12", "sp st se resource si sv"),
    ("2013-08-15", "sp st se resource si sv rscc rscd rsce rscl rsct"),
    ("2015-04-05", "sp st se resource si sip spr sv rscc rscd rsce rscl rsct"),
    ("2018-11-09", "sp st se resource si sip spr sv sr snapshot rscc rscd rsce rscl rsct"),
    ("2020-12-06", "sp st se resource si sip spr sv sr snapshot ses rscc rscd rsce rscl rsct"),
)
_QUEUE_LAYOUTS = (
    ("", "sp st se resource si"),
    ("2012-02-12", "sp st se resource si sv"),
    ("2015-04-05", "sp st se resource si sip spr sv"),
)
_TABLE_LAYOUTS = (
    ("", "sp st se resource si sv spk srk epk erk"),
    ("2015-04-05", "sp st se resource si sip spr sv spk srk epk erk"),
)
_KEYS = ("spk", "srk", "epk", "erk")
_ACCOUNT_LAYOUTS = (
    ("2015-04-05", "account sp ss srt st se sip spr sv"),
    ("2020-12-06", "account sp ss srt st se sip spr sv ses"),
)
# Before 2018-11-09 `sr` was not signed; kinds that came later must not be had by writing them into an old token.
_RESOURCE_SINCE = {"c": "", "b": "", "bs": "2018-11-09", "bv": "2018-11-09", "d": "2020-02-10"}
_SERVICE_LETTERS = {"blob": "b", "queue": "q", "table": "t", "file": "f"}
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """What a valid signature proves. `addresses` is (IP version, first, last)."""

    grant: Grant
    start: int | None
    expiry: int | None
    policy: str
    services: str
    https_only: bool
    addresses: tuple[int, int, int] | None


class Target(NamedTuple):
    """What of the request a service SAS signs. More than one spelling where clients differ. A tuple, as it is a cache key."""

    resources: tuple[str, ...]  # account/container[/blob], account/queue
    snapshot: str = ""
    service: str = "blob"
    keys: tuple[str | None, ...] = ()  # table: the values of `_KEYS`


_WHOLE_ACCOUNT = Target(resources=())
Values = tuple[str | None, ...]


def token_of(address: Address, service: str, account: Account) -> Token:
    """What the signature in a request's query proves. A token that names a stored policy says the rest only `with_policy`."""
    token: Token | None = address.proof
    if token is None:
        query = address.query
        target = _WHOLE_ACCOUNT if "srt" in query or "ss" in query else signed_target(address, service, query.get("sr", ""))
        proof = tuple(map(query.get, _FIELDS)), target, account
        token = address.proof = PROOFS.get(proof) or _proven(proof)
    return token


Proof = tuple[Values, Target, Account]
PROOFS = Kept[Proof, Token](4096)
LONGEST_KEPT = 2048  # characters: what a token does not sign may be anything, and of any length


def _proven(proof: Proof) -> Token:
    token = verify(*proof)
    values, target, _ = proof
    if sum(map(len, filter(None, (*values, *target.resources, *target.keys)))) <= LONGEST_KEPT:
        PROOFS.keep(proof, token)
    return token


def verify(values: Values, target: Target, account: Account) -> Token:
    """Read the token's fields, in the order of `_FIELDS`, and check its signature."""
    fields = {name: value or "" for name, value in zip(_FIELDS, values, strict=True)}
    check_form(fields)
    whole_account = target is _WHOLE_ACCOUNT
    texts = [_account_text(fields, account.name)] if whole_account else _service_texts(fields, target)
    if not any(matches(account.keys, text, fields["sig"]) for text in texts):
        raise authentication_failed(f"Signature did not match. String to sign used was {texts[0]}")
    if whole_account:
        return _account_token(fields)
    token = service_token(fields, target.service)
    return replace(token, grant=replace(token.grant, entities=_entity_reach(target))) if target.keys else token


def check_form(fields: dict[str, str]) -> None:
    if fields["sv"] and _VERSION.fullmatch(fields["sv"]) is None:
        raise authentication_failed("sv is not a valid version.")
    # A line break inside a field would let a token be read by another version's layout, dropping what it restricts.
    if any("\n" in value for value in fields.values()):
        raise authentication_failed("Signature fields not well formed.")


def _account_text(fields: dict[str, str], account: str) -> str:
    if fields["sv"] < _ACCOUNT_LAYOUTS[0][0]:
        raise authentication_failed("An account SAS needs sv 2015-04-05 or later.")
    for name in ("ss", "srt", "sp", "se"):
        if not fields[name]:
            raise authentication_failed(f"{name} is mandatory. Cannot be empty")
    return "".join(f"{line}\n" for line in _lines(_ACCOUNT_LAYOUTS, fields | {"account": account}))


def _service_texts(fields: dict[str, str], target: Target) -> list[str]:
    prefix = f"/{target.service}/" if fields["sv"] >= "2015-02-21" else "/"
    if target.service == "queue":
        return ["\n".join(_lines(_QUEUE_LAYOUTS, fields | {"resource": prefix + target.resources[0]}))]
    if target.service == "table":
        keys = {name: key or "" for name, key in zip(_KEYS, target.keys, strict=True)}
        return ["\n".join(_lines(_TABLE_LAYOUTS, fields | keys | {"resource": prefix + target.resources[0]}))]
    if fields["sv"] < _RESOURCE_SINCE[fields["sr"]]:
        raise authentication_failed(f"sr={fields['sr']} is not valid in version '{fields['sv']}'.")
    return [
        "\n".join(_lines(_SERVICE_LAYOUTS, fields | {"resource": prefix + resource, "snapshot": target.snapshot}))
        for resource in target.resources
    ]


def _lines(layouts: tuple[tuple[str, str], ...], fields: dict[str, str]) -> list[str]:
    layout = next(names for first, names in reversed(layouts) if fields["sv"] >= first)
    return [fields[name] for name in layout.split()]


def _account_token(fields: dict[str, str]) -> Token:
    grant = Grant(scheme=Scheme.ACCOUNT_SAS, letters=fields["sp"], resource_types=fields["srt"], version=fields["sv"])
    return _token(fields, grant, policy="", services=fields["ss"])


def service_token(fields: dict[str, str], service: str) -> Token:
    """What only blobs sign (the kind of resource, response headers) counts only for blobs."""
    overrides, reach = dict[str, str](), "c"
    if service == "blob":
        overrides = {header: fields[name] for name, header in _OVERRIDES.items() if fields[name]}
        reach = fields["sr"] if fields["sr"] in ("c", "d") else "b"
    grant = Grant(scheme=Scheme.SERVICE_SAS, letters=fields["sp"], reach=reach, version=fields["sv"], overrides=overrides)
    if not fields["si"]:
        for name in ("sp", "se"):
            if not fields[name]:
                raise authentication_failed(f"{name} is mandatory. Cannot be empty")
    return _token(fields, grant, policy=fields["si"], services="")


def _token(fields: dict[str, str], grant: Grant, *, policy: str, services: str) -> Token:
    if fields["spr"] not in ("", "https", "https,http", "http,https"):
        raise authentication_failed("spr is not valid: https or https,http.")
    return Token(
        grant=grant,
        start=_moment("st", fields),
        expiry=_moment("se", fields),
        policy=policy,
        services=services,
        https_only=fields["spr"] == "https",
        addresses=_address_range(fields["sip"]) if fields["sip"] else None,
    )


def _moment(name: str, fields: dict[str, str]) -> int | None:
    if not fields[name]:
        return None
    ticks = parse_iso(fields[name])
    if ticks is None:
        raise authentication_failed(f"{name} is not an ISO 8601 time in UTC: '{fields[name]}'.")
    return ticks


def _address_range(text: str) -> tuple[int, int, int]:
    first, _, last = text.partition("-")
    low, high = _ip(first), _ip(last or first)
    if low is None or high is None or low[0] != high[0] or low > high:
        raise authentication_failed(f"sip is not an IP address or a range of them: '{text}'.")
    return low[0], low[1], high[1]


@lru_cache(maxsize=1024)
def _ip(text: str) -> tuple[int, int] | None:
    """(4 or 6, the address as a number). IPv4 clients of a dual-stack socket appear as ::ffff:a.b.c.d."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.version, int(address)


def signed_target(address: Address, service: str, kind: str) -> Target:
    """What the request addresses, as a SAS of this kind would have signed it."""
    if service == "queue":
        if not address.segments:
            raise authentication_failed("A service SAS for a queue does not reach this resource.")
        return Target(resources=(f"{address.account}/{address.segments[0]}",), service=service)
    if service == "table":
        return _table_target(address)
    if service != "blob":
        raise authentication_failed(f"Service SAS is not accepted for the {service} service by this server yet.")
    if kind not in _RESOURCE_SINCE:
        raise authentication_failed(f"sr is not valid: '{kind}'." if kind else "sr is mandatory. Cannot be empty")
    container, blob = target_of(address)
    if not container or (not blob and kind in ("b", "bs", "bv")):
        raise authentication_failed(f"A SAS with sr={kind} does not reach this resource.")
    root = f"{address.account}/{container}"
    if kind == "c":
        return Target(resources=(root,))
    names = [blob, _unchanged_name(address)] if "%5" in address.path or "\\" in address.path else [blob]
    if kind == "d":
        names = [_directory(name, address.query.get("sdd", "")) for name in names]
    return Target(
        resources=tuple(f"{root}/{name}" if name else root for name in dict.fromkeys(names)),
        snapshot=_snapshot(address, kind),
    )


def _table_target(address: Address) -> Target:
    """The table is the one the token names; the operation checks that it is the one it works on."""
    table = address.query.get("tn", "").lower()
    keys = tuple(address.query.get(name) or None for name in _KEYS)  # one that is empty is signed as one that is not there
    start_partition, start_row, end_partition, end_row = keys
    if not table:
        raise authentication_failed("tn is mandatory. Cannot be empty")
    if (start_row is not None and start_partition is None) or (end_row is not None and end_partition is None):
        raise authentication_failed("srk needs spk, and erk needs epk.")
    if any("\n" in value for value in (table, *filter(None, keys))):
        raise authentication_failed("Signature fields not well formed.")
    return Target(resources=(f"{address.account}/{table}",), service="table", keys=keys)


def _entity_reach(target: Target) -> EntityReach:
    start_partition, start_row, end_partition, end_row = target.keys
    return EntityReach(
        table=target.resources[0].partition("/")[2],
        start_partition=start_partition,
        start_row=start_row,
        end_partition=end_partition,
        end_row=end_row,
    )


def _unchanged_name(address: Address) -> str:
    """The blob's name with its backslashes, which Azure stores as slashes and which its SDKs sign as they are."""
    path = unquote(address.path)
    skipped = 1 + address.path_style + (len(address.segments) == 2)
    return path.split("/", skipped)[-1]


def _directory(name: str, depth: str) -> str:
    segments = name.split("/") if name else []
    if not (depth.isascii() and depth.isdigit()) or int(depth) > len(segments):
        raise authentication_failed("Signed Directory Depth Invalid")
    return "/".join(segments[: int(depth)])


def _snapshot(address: Address, kind: str) -> str:
    parameter = {"bs": "snapshot", "bv": "versionid"}.get(kind)
    if parameter is None:
        return ""
    if not address.query.get(parameter):
        raise authentication_failed(f"A SAS with sr={kind} needs the query parameter {parameter}.")
    return address.query[parameter]


def with_policy(token: Token, access: ContainerAccess | None) -> Token:
    """Each of start, expiry and permission comes from the token or from the policy it names, never from both."""
    policy = next((policy for policy in access.policies if policy.id == token.policy), None) if access else None
    if policy is None:
        raise authentication_failed(f"The stored access policy '{token.policy}' was not found.")
    pairs = ((token.start, policy.start), (token.expiry, policy.expiry), (token.grant.letters, policy.permission))
    if any(mine and stored for mine, stored in pairs):
        raise authentication_failed("Access policy fields can be associated with signature or SAS identifier but not both.")
    letters, expiry = token.grant.letters or policy.permission or "", token.expiry or policy.expiry
    if not letters:
        raise authentication_failed("sp is mandatory. Cannot be empty")
    if expiry is None:
        raise authentication_failed("se is mandatory. Cannot be empty")
    return replace(token, grant=replace(token.grant, letters=letters), start=token.start or policy.start, expiry=expiry)


def check_circumstances(token: Token, request: Request, service: str, now: int) -> None:
    """What may differ from one request to the next although the token is the same."""
    assert token.expiry is not None
    if now >= token.expiry or (token.start is not None and now < token.start):
        start = rfc1123(token.start) if token.start is not None else ""
        raise authentication_failed(
            f"Signature not valid in the specified time frame: Start [{start}] - Expiry [{rfc1123(token.expiry)}] - "
            f"Current [{rfc1123(now)}]"
        )
    if token.addresses is not None and not _within(token.addresses, _ip(request.peer)):
        raise StorageError(Code.AuthorizationSourceIPMismatch, details={"SourceIP": request.peer})
    if token.https_only and not request.secure:
        raise StorageError(Code.AuthorizationProtocolMismatch)
    if token.services and _SERVICE_LETTERS[service] not in token.services:
        raise StorageError(Code.AuthorizationServiceMismatch)


def _within(addresses: tuple[int, int, int], peer: tuple[int, int] | None) -> bool:
    version, low, high = addresses
    return peer is not None and peer[0] == version and low <= peer[1] <= high

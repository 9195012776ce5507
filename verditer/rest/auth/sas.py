"""Shared access signatures: a query string that an account key has signed, for the whole account or for one resource.

What a service signs is its row (`sas_layouts.py`). A client sends the same token with every request, so what a valid signature
proves is cached; time, address, protocol and stored access policies are checked each time. A token that fails is never cached.
"""

import ipaddress
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from verditer.core.caches import AnswerCache
from verditer.core.dates import parse_iso, rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.grant import ContainerAccess, Grant, Scheme
from verditer.rest.address import Address
from verditer.rest.auth.sas_layouts import ACCOUNT_LAYOUTS
from verditer.rest.auth.signature import authentication_failed, matches
from verditer.rest.http.message import Request
from verditer.rest.service import Layouts, Service, SignedResource
from verditer.services.account import Account

_FIELDS = (
    *("sv", "sp", "st", "se", "si", "sip", "spr", "sr", "ses", "ss", "srt", "sig"),
    *("rscc", "rscd", "rsce", "rscl", "rsct"),
)
_OVERRIDES = {
    "rscc": "cache_control",
    "rscd": "content_disposition",
    "rsce": "content_encoding",
    "rscl": "content_language",
    "rsct": "content_type",
}
_SERVICE_IN_RESOURCE_SINCE = "2015-02-21"  # the canonical name of a resource begins with the service
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


class SignedToken(NamedTuple):
    """Everything that decides whether a signature is valid."""

    values: tuple[str | None, ...]  # in the order of _FIELDS
    resource: SignedResource | None  # None: the token is for the whole account
    service: Service
    account: str
    keys: tuple[bytes, ...]


MAX_CACHED = 4096
MAX_CACHED_CHARACTERS = 2048  # a query may be of any length, and so may what a token does not sign


def token_of(address: Address, service: Service, account: Account) -> Token:
    """What the signature in a request's query proves. A token that names a stored policy is complete only `with_policy`."""
    query = address.query
    whole_account = "srt" in query or "ss" in query
    resource = None if whole_account else signed_resource(address, service, query.get("sr", ""))
    return PROOFS[SignedToken(tuple(map(query.get, _FIELDS)), resource, service, account.name, account.keys)]


def signed_resource(address: Address, service: Service, kind: str) -> SignedResource:
    """What the request addresses, as a SAS of this kind would have signed it."""
    if service.service_sas is None:
        raise authentication_failed(f"Service SAS is not accepted for the {service.name} service by this server yet.")
    return service.service_sas.resource(address, kind)


def _characters(token: SignedToken) -> int:
    resource = token.resource
    texts = token.values if resource is None else (*token.values, *resource.names, *[value for _, value in resource.fields])
    return sum(map(len, filter(None, texts)))


def verify(token: SignedToken) -> Token:
    """Check the signature and read the fields of the token."""
    values, resource, service, account, keys = token
    fields = {name: value or "" for name, value in zip(_FIELDS, values, strict=True)}
    check_form(fields)
    texts = [account_text(fields, account)] if resource is None else service_texts(fields, resource, service)
    if not any(matches(keys, text, fields["sig"]) for text in texts):
        raise authentication_failed(f"Signature did not match. String to sign used was {texts[0]}")
    return _account_token(fields) if resource is None else service_token(fields, service, resource)


PROOFS = AnswerCache(verify, MAX_CACHED, MAX_CACHED_CHARACTERS, _characters)


def check_form(fields: dict[str, str]) -> None:
    if fields["sv"] and _VERSION.fullmatch(fields["sv"]) is None:
        raise authentication_failed("sv is not a valid version.")
    # A line break inside a field would let a token be read by another version's layout, dropping what it restricts.
    if any("\n" in value for value in fields.values()):
        raise authentication_failed("Signature fields not well formed.")


def account_text(fields: dict[str, str], account: str) -> str:
    if fields["sv"] < ACCOUNT_LAYOUTS[0][0]:
        raise authentication_failed("An account SAS needs sv 2015-04-05 or later.")
    for name in ("ss", "srt", "sp", "se"):
        if not fields[name]:
            raise authentication_failed(f"{name} is mandatory. Cannot be empty")
    return "".join(f"{line}\n" for line in _lines(ACCOUNT_LAYOUTS, fields | {"account": account}))


def service_texts(fields: dict[str, str], resource: SignedResource, service: Service) -> list[str]:
    sas = service.service_sas
    assert sas is not None  # the row made the resource
    check_kind(fields, service)
    prefix = f"/{service.name}/" if fields["sv"] >= _SERVICE_IN_RESOURCE_SINCE else "/"
    values = fields | dict(resource.fields)
    return ["\n".join(_lines(sas.layouts, values | {"resource": prefix + name})) for name in resource.names]


def check_kind(fields: dict[str, str], service: Service) -> None:
    kind = service.service_sas.kinds.get(fields["sr"]) if service.service_sas is not None else None
    if kind is not None and fields["sv"] < kind.since:
        raise authentication_failed(f"sr={fields['sr']} is not valid in version '{fields['sv']}'.")


def _lines(layouts: Layouts, fields: dict[str, str]) -> list[str]:
    layout = next(names for first, names in reversed(layouts) if fields["sv"] >= first)
    return [fields[name] for name in layout.split()]


def _account_token(fields: dict[str, str]) -> Token:
    grant = Grant(scheme=Scheme.ACCOUNT_SAS, letters=fields["sp"], resource_types=fields["srt"], version=fields["sv"])
    return _token(fields, grant, policy="", services=fields["ss"])


def service_token(fields: dict[str, str], service: Service, resource: SignedResource) -> Token:
    """The kind of resource and the response headers count only for a service that signs them."""
    sas = service.service_sas
    assert sas is not None  # the row made the resource
    grant = Grant(
        scheme=Scheme.SERVICE_SAS,
        letters=fields["sp"],
        reach=sas.kinds[fields["sr"]].reach if sas.kinds else "c",
        version=fields["sv"],
        overrides={header: fields[name] for name, header in _OVERRIDES.items() if fields[name]} if sas.overrides else {},
        entities=sas.entities(resource) if sas.entities is not None else None,
    )
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


def check_circumstances(token: Token, request: Request, service: Service, now: int) -> None:
    """Check what may differ between requests with the same token."""
    assert token.expiry is not None
    if now >= token.expiry or (token.start is not None and now < token.start):
        start = rfc1123(token.start) if token.start is not None else ""
        raise authentication_failed(
            f"Signature not valid in the specified time frame: Start [{start}] - Expiry [{rfc1123(token.expiry)}] - "
            f"Current [{rfc1123(now)}]"
        )
    if token.addresses is not None and not _within(token.addresses, _ip(request.peer)):
        raise StorageError(Code.AuthorizationSourceIPMismatch, value=request.peer)
    if token.https_only and not request.secure:
        raise StorageError(Code.AuthorizationProtocolMismatch)
    if token.services and service.letter not in token.services:
        raise StorageError(Code.AuthorizationServiceMismatch)


def _within(addresses: tuple[int, int, int], peer: tuple[int, int] | None) -> bool:
    version, low, high = addresses
    return peer is not None and peer[0] == version and low <= peer[1] <= high

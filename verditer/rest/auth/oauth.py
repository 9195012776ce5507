"""Bearer tokens: a JSON Web Token that a trusted issuer has signed for storage. `Trust` says which issuers and audiences.

`Keys` verifies signatures: by a key set from a file or URL (`jwks.py`), by the key of the development issuer (`issuer.py`), or
not at all (`Unverified`, Azurite's `--oauth basic`). Roles are not modelled: a valid token permits every data operation.
"""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from verditer.core.dates import rfc1123
from verditer.core.errors import Code, StorageError, TokenIssuer
from verditer.core.grant import AUTHORIZATION_URI, Grant, Scheme, User
from verditer.rest.address import Address
from verditer.rest.auth import jwt
from verditer.rest.auth.jwt import Claims, InvalidToken
from verditer.rest.auth.signature import authentication_failed, stated_version
from verditer.rest.http.message import Request
from verditer.rest.service import Service
from verditer.services.account import Account

RESOURCE = "https://storage.azure.com"
_APPLICATION = "e406a681-f3d4-42a8-90b6-c2b029497af1"  # Azure Storage, as Entra ID numbers it
_CLOUDS = ("windows.net", "chinacloudapi.cn", "usgovcloudapi.net", "cloudapi.de")
_CLOUD_ISSUERS = (
    "https://sts.windows.net/",
    "https://sts.microsoftonline.de/",
    "https://sts.chinacloudapi.cn/",
    "https://sts.windows-ppe.net/",
)
_ENTRA = re.compile(r"https://(?:sts\.windows\.net|login\.microsoftonline\.com)/([^/]+)/(?:v2\.0/?)?")
_BEARER_SINCE = "2017-11-09"
_CHALLENGE_SINCE = "2019-12-12"


class Keys(Protocol):
    async def claims_of(self, token: str, now: int) -> Claims:
        """The claims of the token if its signature is valid; otherwise InvalidToken."""


class Unverified:
    """Accepts every token, as Azurite does with `--oauth basic`. Every client that reaches the port can write one."""

    async def claims_of(self, token: str, now: int) -> Claims:
        return jwt.parse(token).claims


@dataclass(frozen=True, kw_only=True)
class Trust:
    keys: Keys
    issuers: tuple[str, ...]
    as_azurite: bool = False  # `issuers` are beginnings, whatever tenant follows; an audience may be any account
    audiences: frozenset[str] = frozenset()  # beside Azure's own
    authorization_uri: str
    allow_http: bool = False  # from this machine, that is


def basic_trust(audiences: frozenset[str], *, allow_http: bool) -> Trust:
    """Azurite's meaning of `--oauth basic`: the claims are checked and the signature is not."""
    return Trust(
        keys=Unverified(),
        issuers=_CLOUD_ISSUERS,
        as_azurite=True,
        audiences=audiences,
        authorization_uri=AUTHORIZATION_URI,
        allow_http=allow_http,
    )


def authorization_uri_of(issuer: str) -> str:
    """Where a client asks for a token. Entra ID issues tokens under one host name and is asked under another."""
    entra = _ENTRA.fullmatch(issuer)
    root = f"https://login.microsoftonline.com/{entra[1]}" if entra is not None else issuer.rstrip("/")
    return f"{root}/oauth2/authorize"


async def authenticate(
    request: Request, address: Address, service: Service, account: Account, now: int, trust: Trust | None
) -> Grant:
    claims = await claims_of(request, address, service, account, now, trust)
    return Grant(scheme=Scheme.BEARER, user=User(oid=claims.oid, tid=claims.tid))


async def claims_of(
    request: Request, address: Address, service: Service, account: Account, now: int, trust: Trust | None
) -> Claims:
    """The claims of the request's token, or an error."""
    if trust is None:
        raise authentication_failed("This server trusts no issuer of bearer tokens: see --oauth and --oauth-issuer.")
    version = stated_version(request, address)
    if version < _BEARER_SINCE:
        raise authentication_failed("Authentication scheme Bearer is not supported in this version.")
    if not request.secure and not (trust.allow_http and _is_loopback(request.peer)):
        raise authentication_failed("Authentication scheme Bearer is not allowed with HTTP.")
    token = request.headers["authorization"].partition(" ")[2].strip()
    if not token:
        raise StorageError(Code.InvalidAuthenticationInfo)
    try:
        claims = await trust.keys.claims_of(token, now)
        _check(claims, trust, service.name, account.name, now)
    except InvalidToken as problem:
        raise _refusal(str(problem), version, trust) from None
    return claims


def _check(claims: Claims, trust: Trust, service: str, account: str, now: int) -> None:
    if now >= claims.expiry:
        raise InvalidToken(f"Lifetime validation failed. The token expired at {rfc1123(claims.expiry)}.")
    if claims.not_before is not None and now < claims.not_before:
        raise InvalidToken(f"Lifetime validation failed. The token is not valid before {rfc1123(claims.not_before)}.")
    if not (claims.issuer.startswith(trust.issuers) if trust.as_azurite else claims.issuer in trust.issuers):
        raise InvalidToken("Issuer validation failed. Issuer did not match.")
    if not any(_is_for_storage(audience, trust, service, account) for audience in claims.audiences):
        raise InvalidToken("Audience validation failed. Audience did not match.")


def _is_for_storage(audience: str, trust: Trust, service: str, account: str) -> bool:
    """The audience is storage in general, this account, or one that the operator named."""
    name = audience.removesuffix("/")
    if name in (RESOURCE, _APPLICATION) or audience in trust.audiences:
        return True
    host = name.removeprefix("https://")
    own, _, rest = host.partition(".")
    return host != name and (own == account or trust.as_azurite) and rest in [f"{service}.core.{cloud}" for cloud in _CLOUDS]


def _refusal(detail: str, version: str, trust: Trust) -> StorageError:
    if version < _CHALLENGE_SINCE:
        return authentication_failed(detail)
    return StorageError(Code.InvalidToken, reason=detail, details=TokenIssuer(trust.authorization_uri))


@lru_cache(maxsize=1024)
def _is_loopback(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback

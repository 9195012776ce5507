"""x-ms-copy-source → what a copy reads from, and whether the caller may read it.

A URL of this server is read through the services. It is authorized like a GET, by the SAS in the URL or the token in
x-ms-copy-source-authorization; Copy Blob and Copy File read within their account and service by the permission of the request
itself. A blob that is copied to a file, and a file that is copied to a blob, always bring their own authorization, as the pages
Copy Blob and Copy File say. Every other URL is fetched over HTTP later.
"""

import ipaddress
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import SplitResult, parse_qsl, urlencode

import msgspec

from verditer.core.caches import bounded_cache
from verditer.core.dates import parse_iso
from verditer.core.errors import Code, StorageError
from verditer.core.grant import Allow, Grant, Scheme, admit, sas
from verditer.core.guard import GuardRule
from verditer.core.names import BlobName, FilePath
from verditer.rest.address import Address, account_in_host, parse_address, parse_query
from verditer.rest.codecs.conditions import condition_headers, guard_of
from verditer.rest.headers.fields import KEY
from verditer.rest.http.message import Request
from verditer.rest.operation import Level
from verditer.rest.outbound.urls import parse_url
from verditer.rest.service import Service
from verditer.rest.stages import Authorized
from verditer.rest.wire_errors import invalid_header, missing_header
from verditer.services.blob.encryption import NO_ENCRYPTION, EncryptionRequest
from verditer.services.copying.sources import BlobSource, CopySource, FileSource, RemoteSource, unverified_by

HEADER = "x-ms-copy-source"
_AUTHORIZATION = "x-ms-copy-source-authorization"
_READ: Allow = sas("r", public=("blob", "container"))
_STATES = ("snapshot", "versionid", "sharesnapshot")
_PASSED_ON = {  # headers about the source → what the request that reads it says
    "x-ms-source-allow-trailing-dot": "x-ms-allow-trailing-dot",
    "x-ms-file-request-intent": "x-ms-file-request-intent",
    "x-ms-source-encryption-key": "x-ms-encryption-key",
    "x-ms-source-encryption-key-sha256": "x-ms-encryption-key-sha256",
    "x-ms-source-encryption-algorithm": "x-ms-encryption-algorithm",
}
_SECRETS = ("sig", "token", "credential", "key")  # a parameter with one of these in its name is not shown to readers of the copy

GrantOf = Callable[[Service, Request, Address], Awaitable[Grant]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoints:
    """The endpoints of this server, by which a URL of its own is recognized."""

    product_style: bool
    accounts: Collection[str]
    own: Service  # of the port that the request arrived at
    by_port: Mapping[int, Service]  # every storage port of this server


async def copy_source(call: Authorized, rule: GuardRule, endpoints: Endpoints, grant_of: GrantOf) -> CopySource:
    """`grant_of` authenticates a request; it refuses accounts that do not exist."""
    text = call.request.headers.get(HEADER)
    if text is None:  # of an operation whose route does not ask for it
        raise missing_header(HEADER)
    url = parse_url(text)
    if url is None:
        raise invalid_header(HEADER, text)
    guard = guard_of(rule, call.request.headers)  # malformed conditions are refused whatever the source is
    by_name = _is_own_by_name(url, call, endpoints.own)
    service = endpoints.own if by_name else _service_at(url, call, endpoints)
    if service is None:
        return _remote(url, call, rule)
    inner = _inner_request(url, call)
    product_style = endpoints.product_style or by_name
    address = parse_address(inner.target, url.netloc, accounts=endpoints.accounts, product_style=product_style)
    level, name = service.locate(address, inner.headers)
    same_account = address.account == call.address.account
    reads_own = same_account and service is endpoints.own
    if level is Level.BLOB and isinstance(name, BlobName):
        grant = await _granted(call, inner, address, partial(grant_of, service), rule, reads_own=reads_own)
        return BlobSource(
            name=name,
            snapshot=_state(address, "snapshot"),
            version_id=_state(address, "versionid"),
            guard=guard,
            shown=_shown(url),
            same_account=reads_own,
            may_read_tags=grant.scheme in (Scheme.KEY, Scheme.BEARER) or "t" in grant.letters,
            encryption=_encryption(call.request.headers),
        )
    if level is Level.PATH and isinstance(name, FilePath) and "restype" not in address.query:
        await _granted(call, inner, address, partial(grant_of, service), rule, reads_own=reads_own)
        snapshot = _state(address, "sharesnapshot")
        return FileSource(path=name, snapshot=snapshot, guard=guard, shown=_shown(url), same_account=reads_own)
    raise invalid_header(HEADER, text)


async def _granted(
    call: Authorized,
    inner: Request,
    address: Address,
    grant_of: Callable[[Request, Address], Awaitable[Grant]],
    rule: GuardRule,
    *,
    reads_own: bool,
) -> Grant:
    """`reads_own`: the source is in the account and the service of the request."""
    outer = call.grant
    brings_its_own = "sig" in address.query or "authorization" in inner.headers
    if call.op.reads_own_account and reads_own and not brings_its_own and outer.scheme in (Scheme.KEY, Scheme.BEARER):
        return outer
    try:
        grant = await grant_of(inner, address)
        admit(_READ, grant)
    except StorageError as error:
        raise unverified_by(error, rule) from None
    return grant


def _inner_request(url: SplitResult, call: Authorized) -> Request:
    """The GET that would read the source."""
    outer = call.request
    headers = {"host": url.netloc, "x-ms-version": call.version}
    headers |= {inner: outer.headers[name] for name, inner in _PASSED_ON.items() if name in outer.headers}
    if _AUTHORIZATION in outer.headers:
        headers["authorization"] = _bearer(outer)
    return Request(
        method="GET",
        target=f"{url.path or '/'}?{url.query}",
        headers=headers,
        raw_headers=[],
        body=outer.body,
        peer=outer.peer,
        secure=url.scheme == "https",
    )


def _encryption(headers: Mapping[str, str]) -> EncryptionRequest:
    """The key of the source."""
    sent = {param.field: param.parse(name, headers[name]) for name, param in _SOURCE_KEY.items() if name in headers}
    return msgspec.convert(sent, EncryptionRequest, builtin_types=(bytes,)) if sent else NO_ENCRYPTION


_SOURCE_KEY = {param.wire.replace("x-ms-", "x-ms-source-"): param for param in KEY.params}


def _bearer(request: Request) -> str:
    """Only tokens are accepted: a Shared Key signature would be for another URL."""
    value = request.headers[_AUTHORIZATION]
    if not value.lower().startswith("bearer "):
        raise invalid_header(_AUTHORIZATION, value.partition(" ")[0])
    return value


def _remote(url: SplitResult, call: Authorized, rule: GuardRule) -> RemoteSource:
    request = call.request
    access = {"x-ms-version": call.version}
    access |= {inner: request.headers[name] for name, inner in _PASSED_ON.items() if name in request.headers}
    if _AUTHORIZATION in request.headers:
        access["Authorization"] = _bearer(request)
    return RemoteSource(
        url=_as_utf8(url.geturl()),
        shown=_as_utf8(_shown(url)),
        rule=rule,
        access=access,
        conditions=condition_headers(rule, request.headers),
    )


def _as_utf8(text: str) -> str:
    """Header text arrives as Latin-1; clients that skip percent-encoding send UTF-8."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def _state(address: Address, name: str) -> int | None:
    text = address.query.get(name)
    if text is None:
        return None
    ticks = parse_iso(text)
    if ticks is None:
        raise unverified_by(StorageError(Code.InvalidQueryParameterValue, message=f"{name} of the copy source is not a time."))
    return ticks


def _service_at(url: SplitResult, call: Authorized, endpoints: Endpoints) -> Service | None:
    """The service of this server that the URL leads to. The host is the one of the request, apart from the account and from the
    name of the service. The port is that of the request, or a port at which this server listens for the service."""
    mine = parse_url(f"{'https' if call.request.secure else 'http'}://{call.request.headers.get('host', '')}")
    if mine is None:
        return None
    names_account = endpoints.product_style and account_in_host(url.netloc, url.path, endpoints.accounts) is not None
    theirs = _endpoint(url.hostname or "", names_account=names_account)
    ours = _endpoint(mine.hostname or "", names_account=not call.address.path_style)
    at_port = endpoints.by_port.get(url.port or 0)
    if theirs == ours:
        return endpoints.own if url.port == mine.port else at_port
    label, _, domain = ours.partition(".")
    if label != endpoints.own.name:
        return None
    named = next((service for service in endpoints.by_port.values() if theirs == f"{service.name}.{domain}"), None)
    return named if url.port == mine.port or at_port is named else None


def _is_own_by_name(url: SplitResult, call: Authorized, own: Service) -> bool:
    """Whether the URL has Azure's host name for the account that is written to, without credentials. Clients that know only the
    name of an account write a source in it so. A URL with a SAS or a token is meant for Azure, and is fetched there."""
    azure = f"{call.address.account}.{own.name}.core.windows.net"
    if url.hostname != azure or call.grant.scheme not in (Scheme.KEY, Scheme.BEARER):
        return False
    return "sig" not in parse_query(url.query) and _AUTHORIZATION not in call.request.headers


def _endpoint(host: str, *, names_account: bool) -> str:
    """What a host name has behind the account; the same text for all names of the machine itself."""
    host = host.lower()
    if host == "localhost" or (names_account and host.endswith(".localhost")) or _is_loopback(host):
        return "localhost"
    return host.partition(".")[2] if names_account else host


@bounded_cache(256, 256)
def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(url: SplitResult) -> str:
    """The URL as readers of the copy see it, without credentials."""
    return url._replace(query=_shown_query(url.query), fragment="").geturl()


@bounded_cache(256, 1024)
def _shown_query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(secret in name.lower() for name, _ in pairs for secret in _SECRETS):
        return query
    return urlencode([(name, value) for name, value in pairs if name.lower() in _STATES], safe=":")

"""x-ms-copy-source → what a copy reads from, and whether the caller may read it.

A URL of this very server is read through the services, by what the URL or x-ms-copy-source-authorization brings, as if it were a
GET of its own; Copy Blob reads within the account by the right of the request itself. Every other URL is asked over HTTP, later.
"""

import ipaddress
from collections.abc import Awaitable, Callable
from urllib.parse import SplitResult, parse_qsl, urlencode

from verditer.core.caches import remember
from verditer.core.dates import parse_iso
from verditer.core.errors import Code, StorageError, invalid_header
from verditer.core.grant import Allow, Grant, Scheme, admit, sas
from verditer.core.guard import GuardRule
from verditer.core.names import BlobName
from verditer.rest.address import Address, parse_address, parse_query
from verditer.rest.exchange import Exchange
from verditer.rest.message import Request
from verditer.rest.operation import Level
from verditer.services.blob.sources import CopySource, LocalSource, RemoteSource, unverified, unverified_by
from verditer.services.fetch import parse_url

HEADER = "x-ms-copy-source"
AZURE = ".blob.core.windows.net"
_AUTHORIZATION = "x-ms-copy-source-authorization"
_READ: Allow = sas("r", public=("blob", "container"))
_CONDITIONS = {
    "if_match": "If-Match",
    "if_none_match": "If-None-Match",
    "if_modified_since": "If-Modified-Since",
    "if_unmodified_since": "If-Unmodified-Since",
    "if_tags": "x-ms-if-tags",
}
_STATES = ("snapshot", "versionid")
_SECRETS = ("sig", "token", "credential", "key")  # a parameter whose name says so is not shown to readers of the copy

Locate = Callable[[Address], tuple[Level, object]]
Authorize = Callable[[Request, Address], Awaitable[Grant]]


async def copy_source(
    exchange: Exchange, rule: GuardRule, *, product_style: bool, locate: Locate, authorize: Authorize
) -> CopySource:
    """`authorize` says who a request is from; it refuses accounts that are not here."""
    text = exchange.request.headers[HEADER]
    url = parse_url(text)
    if url is None:
        raise invalid_header(HEADER, text)
    guard = rule.guard(exchange.request.headers)  # malformed conditions are refused whatever the source is
    by_name = _is_own_by_name(url, exchange)
    if not by_name and not _is_own(url, exchange.request, product_style=product_style):
        return _remote(url, exchange, rule)
    inner = _inner_request(url, exchange)
    address = parse_address(inner.target, url.netloc, product_style=product_style or by_name)
    level, name = locate(address)
    if level is not Level.BLOB or not isinstance(name, BlobName):
        raise invalid_header(HEADER, text)
    assert exchange.address is not None
    same_account = address.account == exchange.address.account
    grant = await _granted(exchange, inner, address, authorize, same_account=same_account)
    return LocalSource(
        name=name,
        snapshot=_state(address, "snapshot"),
        version_id=_state(address, "versionid"),
        guard=guard,
        url=_shown(url),
        same_account=same_account,
        may_read_tags=grant.scheme in (Scheme.KEY, Scheme.BEARER) or "t" in grant.letters,
    )


async def _granted(exchange: Exchange, inner: Request, address: Address, authorize: Authorize, *, same_account: bool) -> Grant:
    outer = exchange.grant
    assert outer is not None
    assert exchange.op is not None
    brings_its_own = "sig" in address.query or "authorization" in inner.headers
    if exchange.op.opens_own and same_account and not brings_its_own and outer.scheme in (Scheme.KEY, Scheme.BEARER):
        return outer
    try:
        grant = await authorize(inner, address)
        admit(_READ, grant)
    except StorageError as error:
        raise unverified_by(error) from None
    return grant


def _inner_request(url: SplitResult, exchange: Exchange) -> Request:
    """The GET that the source would be asked with."""
    outer = exchange.request
    headers = {"host": url.netloc, "x-ms-version": exchange.version}
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


def _bearer(request: Request) -> str:
    """Only tokens are taken: a Shared Key would not be for this URL."""
    value = request.headers[_AUTHORIZATION]
    if not value.lower().startswith("bearer "):
        raise invalid_header(_AUTHORIZATION, value.partition(" ")[0])
    return value


def _remote(url: SplitResult, exchange: Exchange, rule: GuardRule) -> RemoteSource:
    request = exchange.request
    headers = {"x-ms-version": exchange.version}
    if _AUTHORIZATION in request.headers:
        headers["Authorization"] = _bearer(request)
    return RemoteSource(
        url=_as_utf8(url.geturl()),
        shown=_as_utf8(_shown(url)),
        headers=headers,
        conditions=_conditions(request, rule),
    )


def _conditions(request: Request, rule: GuardRule) -> dict[str, str]:
    """Those that the operation takes, as the source spells them."""
    sent = {field: request.headers.get(f"{rule.prefix}{field.replace('_', '-')}") for field in rule.conditions.looks_at}
    return {_CONDITIONS[field]: value for field, value in sent.items() if value is not None}


def _as_utf8(text: str) -> str:
    """Header text arrives as Latin-1; clients that skip percent-encoding send UTF-8."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def _state(address: Address, name: str) -> int | None:
    text = address.query.get(name)
    if text is None:
        return None
    ticks = parse_iso(text)
    if ticks is None:
        raise unverified(400, Code.InvalidQueryParameterValue.wire, f"{name} of the copy source is not a time.")
    return ticks


def _is_own(url: SplitResult, request: Request, *, product_style: bool) -> bool:
    """Whether the URL leads to where the request came in: the same port, and the same host but for the account in its name."""
    mine = parse_url(f"{'https' if request.secure else 'http'}://{request.headers.get('host', '')}")
    if mine is None or url.port != mine.port:
        return False
    return _endpoint(url.hostname or "", product_style) == _endpoint(mine.hostname or "", product_style)


def _is_own_by_name(url: SplitResult, exchange: Exchange) -> bool:
    """Azure's host name for the account that is written to, and nothing that would open it there: clients that know an account by
    its name alone spell a source in the same account so. With a SAS or a token it is meant for Azure, and asked there."""
    address, grant = exchange.address, exchange.grant
    assert address is not None
    assert grant is not None
    if url.hostname != address.account + AZURE or grant.scheme not in (Scheme.KEY, Scheme.BEARER):
        return False
    return "sig" not in parse_query(url.query) and _AUTHORIZATION not in exchange.request.headers


def _endpoint(host: str, product_style: bool) -> str:
    host = host.lower()
    if host == "localhost" or (product_style and host.endswith(".localhost")):
        return "localhost"
    is_loopback = _is_loopback(host)
    if is_loopback is None:
        return host.partition(".")[2] or host if product_style else host
    return "localhost" if is_loopback else host


@remember(256, 256)
def _is_loopback(host: str) -> bool | None:
    """None where the host is a name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return None


def _shown(url: SplitResult) -> str:
    """What readers of the copy are told: the URL without what opens it."""
    return url._replace(query=_shown_query(url.query), fragment="").geturl()


@remember(256, 1024)
def _shown_query(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(secret in name.lower() for name, _ in pairs for secret in _SECRETS):
        return query
    return urlencode([(name, value) for name, value in pairs if name.lower() in _STATES], safe=":")

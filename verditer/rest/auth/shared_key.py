"""Shared Key and Shared Key Lite: the caller holds an account key and signs each request with it.

The string to sign is rebuilt from the request as it was sent, in the form that the row of the service names. Clients differ
in two respects, so a request has up to four readings: see `_header_orders` and `_paths`.
"""

from collections.abc import Iterator

from verditer.core.dates import parse_rfc1123, rfc1123, seconds
from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant, Scheme
from verditer.core.limits import CLOCK_SKEW_SECONDS
from verditer.rest.address import Address
from verditer.rest.auth.signature import authentication_failed, matches
from verditer.rest.http.message import Request
from verditer.rest.service import Service
from verditer.services.account import Account

_SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
_SIGNED_HEADERS_LITE = ("content-md5", "content-type", "date")
_EVERYTHING = Grant(scheme=Scheme.KEY)

# Azure sorts header names without hyphens and apostrophes first, and ranks the other characters in this order.
_RANKS = "!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz"
_RANK_OF = {ord(character): rank + 1 for rank, character in enumerate(_RANKS)} | {ord("-"): None, ord("'"): None}


def authenticate(request: Request, address: Address, service: Service, account: Account, now: int) -> Grant:
    lite, name, signature = _authorization(request.headers["authorization"])
    if name != account.name:
        raise authentication_failed(f"The Authorization header names the account '{name}', the request '{account.name}'.")
    _check_date(request.headers, now)
    readings = list[str]()
    for text in strings_to_sign(request, address, service, lite=lite):
        if matches(account.keys, text, signature):
            return _EVERYTHING
        readings.append(text)
    raise authentication_failed(
        f"The MAC signature found in the HTTP request '{signature}' is not the same as any computed signature. "
        f"Server used following string to sign: '{readings[0]}'."
    )


def strings_to_sign(request: Request, address: Address, service: Service, *, lite: bool) -> Iterator[str]:
    """Every reading of the request, the likeliest first."""
    for path in _paths(address):
        yield from service.strings_to_sign(request, address, f"/{address.account}{path}", lite)


def standard_strings(request: Request, address: Address, root: str, lite: bool) -> Iterator[str]:
    """The form of Blob, Queue and File."""
    version = request.headers.get("x-ms-version", request.outer_version)
    lines = [request.method, *_signed_headers(request.headers, version, lite=lite)]
    resource = _with_comp(root, address) if lite else _with_query(root, address)
    for names in _header_orders(request.headers, version):
        yield "\n".join([*lines, *(f"{name}:{_as_sent(request.headers[name])}" for name in names), resource])


def table_strings(request: Request, address: Address, root: str, lite: bool) -> Iterator[str]:
    """Table signs no x-ms headers, and its date line is never empty."""
    headers = request.headers
    signed = [headers.get("x-ms-date") or headers.get("date", ""), _with_comp(root, address)]
    if not lite:
        signed = [request.method, headers.get("content-md5", ""), headers.get("content-type", ""), *signed]
    yield "\n".join(signed)


def _authorization(header: str) -> tuple[bool, str, str]:
    scheme, _, credentials = header.partition(" ")
    name, _, signature = credentials.strip().partition(":")
    if not name or not signature:
        raise StorageError(Code.InvalidAuthenticationInfo)
    return scheme.lower() == "sharedkeylite", name, signature


def _check_date(headers: dict[str, str], now: int) -> None:
    text = headers.get("x-ms-date") or headers.get("date")
    if not text:
        raise authentication_failed("A Shared Key request needs an x-ms-date or Date header.")
    date = parse_rfc1123(text)
    if date is None:
        raise authentication_failed(f"The date header is not an RFC 1123 date: '{text}'.")
    if abs(now - date) > seconds(CLOCK_SKEW_SECONDS):
        age = "old" if date < now else "new"
        raise authentication_failed(f"Request date header too {age}: '{text}'. The server's time is '{rfc1123(now)}'.")


def _paths(address: Address) -> Iterator[str]:
    """The path as sent; for a secondary in path style, also as if sent to the primary: some clients sign that."""
    path = _as_sent(address.path)
    yield path
    if address.secondary and address.path_style:
        account, slash, rest = path[1:].partition("/")
        yield f"/{account.removesuffix('-secondary')}{slash}{rest}"


def _signed_headers(headers: dict[str, str], version: str, *, lite: bool) -> list[str]:
    signed = {name: _as_sent(headers.get(name, "")) for name in (_SIGNED_HEADERS_LITE if lite else _SIGNED_HEADERS)}
    if "x-ms-date" in headers:
        signed["date"] = ""
    if signed.get("content-length") == "0" and version >= "2015-02-21":
        signed["content-length"] = ""
    return list(signed.values())


def _header_orders(headers: dict[str, str], version: str) -> Iterator[list[str]]:
    """The names of the x-ms headers by code point, as most clients sort them; then in Azure's order, where that differs."""
    keep_empty = version >= "2016-05-31"
    names = sorted(name for name, value in headers.items() if name.startswith("x-ms-") and (value or keep_empty))
    yield names
    as_azure = sorted(names, key=azure_order)
    if as_azure != names:
        yield as_azure


def azure_order(name: str) -> tuple[str, str]:
    """A sort key: the ranked characters decide first; among equals, the name whose hyphen or apostrophe comes later is first."""
    ignored = "".join("2" if character == "'" else "3" if character == "-" else "0" for character in name)
    return name.translate(_RANK_OF), ignored + "1"


def _with_query(root: str, address: Address) -> str:
    return root + "".join(f"\n{name}:{value}" for name, value in sorted(address.query.items()))


def _with_comp(root: str, address: Address) -> str:
    return f"{root}?comp={address.query['comp']}" if "comp" in address.query else root


def _as_sent(text: str) -> str:
    """Text of the request head arrives as Latin-1; clients that go beyond ASCII sign, and mostly send, UTF-8."""
    text = text.strip()
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text

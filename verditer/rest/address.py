"""Which account and resource a request names: path style or host style, primary or secondary, `$root` or a container.

The raw path is kept as it was sent, because signatures cover it; names are decoded from it exactly once.
"""

import ipaddress
from collections.abc import Collection, Mapping
from urllib.parse import unquote

import msgspec

from verditer.core.caches import bounded_cache
from verditer.core.errors import Code, StorageError
from verditer.core.names import ROOT_CONTAINER
from verditer.rest.http.message import Request

SECONDARY = "-secondary"
_BARE_HOSTS = frozenset({"localhost", "host.docker.internal"})


class Address(msgspec.Struct, frozen=True, kw_only=True):
    account: str
    secondary: bool
    path_style: bool
    path: str  # the raw path as sent, percent-encoded, with the account in path style
    segments: tuple[str, ...]  # decoded: at most container and blob
    query: Mapping[str, str]  # names in lower case, values decoded; repeated names joined by a comma, sorted


def parse_address(target: str, host: str, *, accounts: Collection[str], product_style: bool = True) -> Address:
    """Read the request target. Without `product_style` the account is always in the path."""
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        path = _origin_form(path)
    account = account_in_host(host, path, accounts) if product_style else None
    rest = path[1:]
    path_style = account is None
    if account is None:
        account, _, rest = rest.partition("/")
        if "%" in account:
            account = unquote(account)
    return _address(account, path, rest, query, path_style=path_style)


def address_in_account(target: str, account: str) -> Address:
    """Read a request target whose path begins with the container."""
    path, _, query = target.partition("?")
    return _address(account, path, path[1:], query, path_style=False)


def _address(account: str, path: str, rest: str, query: str, *, path_style: bool) -> Address:
    return Address(
        account=account.removesuffix(SECONDARY),
        secondary=account.endswith(SECONDARY),
        path_style=path_style,
        path=path,
        segments=_segments(rest),
        query=parse_query(query) if query else {},
    )


def account_in_host(host: str, path: str, accounts: Collection[str]) -> str | None:
    """None where the path names the account. It does so also where it names one of `accounts` and the host name names none of
    them: `storage.default.svc.cluster.local` is just the name of a machine."""
    account = _account_of_host(host)
    if account is None or account.removesuffix(SECONDARY) in accounts:
        return account
    first = unquote(path[1:].partition("/")[0]).removesuffix(SECONDARY)
    return None if first in accounts else account


def requested_version(request: Request, address: Address) -> str | None:
    """The version that a request names: in its header, in its query, or as the version of its SAS."""
    query = address.query
    return request.headers.get("x-ms-version") or query.get("api-version") or query.get("sv")


def _origin_form(path: str) -> str:
    """`http://host/path` is legal in a request line; every other target begins with a slash."""
    scheme, separator, rest = path.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        raise StorageError(Code.InvalidUri)
    return "/" + rest.partition("/")[2]


@bounded_cache(1024, 256)
def _account_of_host(host: str) -> str | None:
    """The first label of a host name with dots. None for IP addresses and bare names, for which the path names the account."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.strip("[]").lower()
    if name in _BARE_HOSTS or "." not in name:
        return None
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.partition(".")[0]
    return None


def _segments(rest: str) -> tuple[str, ...]:
    """Container and blob, decoded once. A backslash in a blob name is stored as a slash, as Azure does."""
    if not rest:
        return ()
    container, separator, blob = rest.partition("/")
    if not separator or not blob:
        return (decoded(container),)
    return (decoded(container), decoded(blob).replace("\\", "/"))


def decoded(text: str) -> str:
    """A part of a path without its percent-encoding, which is UTF-8."""
    if "%" not in text:
        if text.isascii():
            return text
        # Clients that skip percent-encoding send UTF-8 bytes; they arrive as Latin-1.
        return text.encode("latin-1").decode("utf-8", "replace")
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise StorageError(Code.InvalidUri) from None


@bounded_cache(1024, 1024)  # a client repeats its SAS; no caller modifies the mapping
def parse_query(query: str) -> Mapping[str, str]:
    found: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            found.setdefault(unquote(name).lower(), []).append(unquote(value.replace("+", " ")))
    return {name: values[0] if len(values) == 1 else ",".join(sorted(values)) for name, values in found.items()}


def is_root_blob(segments: tuple[str, ...]) -> bool:
    """`/name` without a container addresses `$root/name`, where the operation is one of a blob."""
    return len(segments) == 1 and segments[0] != ROOT_CONTAINER

"""Who may use the admin port. Any page that a developer visits can send requests to it, so every request has to prove itself.

A script sends the token in an Authorization header. A browser gets a cookie from the start link; a cookie counts only for
requests of the explorer's own pages. The Host header is checked, so that a foreign name that resolves to this machine (DNS
rebinding) reaches nothing.
"""

import hashlib
import hmac
import json
import re
import socket
from collections.abc import Iterable
from enum import Enum
from urllib.parse import parse_qs, urlsplit

from verditer.rest.http.message import Request, Response
from verditer.serving.sockets import is_ip_address

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
OWN_HEADER = "x-verditer-explorer"  # a page of another origin cannot send it without a preflight, which is never granted


class Proof(Enum):
    """What shows that a request is allowed. The value says what it may do."""

    AUTHORIZATION = "everything: the caller knows the token"
    OWN_PAGE = "everything: a script of the explorer sent it"
    COOKIE = "reads: the browser has the cookie, but does not say which page sent the request"
    START_LINK = "the first page, which stores the cookie"


class Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status

    def response(self) -> Response:
        headers = [("Content-Type", "application/json")]
        if self.status == 401:
            headers.append(("WWW-Authenticate", 'Bearer realm="verditer admin"'))
        return Response(status=self.status, headers=headers, body=json.dumps({"error": str(self)}).encode() + b"\n")


class Access:
    """`names` are host names by which the admin port may be addressed, besides localhost and IP addresses."""

    def __init__(self, token: str, names: Iterable[str] = ()) -> None:
        self._token = token.encode()
        self._session = hashlib.sha256(b"verditer session " + self._token).hexdigest()
        self._names = {name.lower() for name in (*names, socket.gethostname())}

    def check(self, request: Request) -> Proof:
        """How the request is allowed, or `Refused`."""
        self.check_host(request)
        if self._is_authorized(request):
            return Proof.AUTHORIZATION
        from_start_link = self._has_start_token(request)
        _check_origin(request, is_navigation_allowed=from_start_link)
        if from_start_link:
            return Proof.START_LINK
        if not self._has_cookie(request):
            raise Refused(401, "open the link that the server printed when it started, or send Authorization: Bearer <token>")
        return Proof.OWN_PAGE if _is_own_page(request) else Proof.COOKIE

    def check_host(self, request: Request) -> None:
        name = _host_name(request.headers.get("host", ""))
        if not (name == "localhost" or name.endswith(".localhost") or name in self._names or is_ip_address(name)):
            raise Refused(421, f"the host name {name[:255]!r} is not served here; --adminNames adds names")

    def cookie(self, request: Request) -> str:
        """The Set-Cookie header. Browsers share cookies between the ports of a host, so the name contains the port."""
        return f"{_cookie_name(request)}={self._session}; Path=/; HttpOnly; SameSite=Strict"

    def _is_authorized(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token)

    def _has_start_token(self, request: Request) -> bool:
        path, _, query = request.target.partition("?")
        if request.method != "GET" or path != "/" or "token=" not in query:
            return False
        return hmac.compare_digest(parse_qs(query).get("token", [""])[0].encode(), self._token)

    def _has_cookie(self, request: Request) -> bool:
        pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").replace(",", ";").split(";"))
        found = [value for name, _, value in pairs if name == _cookie_name(request)]
        return any(hmac.compare_digest(value.encode(), self._session.encode()) for value in found)


def _check_origin(request: Request, *, is_navigation_allowed: bool) -> None:
    headers = request.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    navigates = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        raise Refused(403, "requests of pages of another origin are refused")
    if site not in (None, "same-origin", "none") and not (is_navigation_allowed and navigates):
        raise Refused(403, "requests of pages of another origin are refused")


def _is_own_page(request: Request) -> bool:
    """`_check_origin` has refused every other origin, so it is enough that the request names one."""
    headers = request.headers
    return "origin" in headers or OWN_HEADER in headers


def _cookie_name(request: Request) -> str:
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"verditer-{port}" if port.isascii() and port.isdigit() else "verditer"


def _host_name(host: str) -> str:
    """Without the port. The header becomes a part of the policy of pages, so nothing else may be in it."""
    found = _HOST.fullmatch(host)
    return found[1].strip("[]").rstrip(".").lower() if found is not None else ""

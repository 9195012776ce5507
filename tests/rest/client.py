"""A client based on http.client: it sends and signs requests as given, and preserves the case of response headers."""

import http.client
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from time import gmtime, strftime
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree.ElementTree import Element, fromstring

from tests.rest import signing
from tests.rest.running import PATIENCE_SECONDS, Running

VERSION = "2026-02-06"
BOM = b"\xef\xbb\xbf"
KEY, ANONYMOUS = "key", ""  # how a request is signed; any other text is a SAS
Headers = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass
class Reply:
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str:
        value = self.header(name)
        assert value is not None, f"{name} is missing from {self.headers}"
        return value

    def __contains__(self, name: str) -> bool:
        return self.header(name) is not None

    def header(self, name: str) -> str | None:
        values = [value for each, value in self.headers if each.lower() == name.lower()]
        assert len(values) <= 1, f"{name} came more than once: {values}"
        return values[0] if values else None

    @property
    def answer(self) -> tuple[int, str | None]:
        """The status, and the error code or None."""
        return self.status, self.header("x-ms-error-code")

    @property
    def metadata(self) -> dict[str, str]:
        prefix = "x-ms-meta-"
        return {name[len(prefix) :]: value for name, value in self.headers if name.lower().startswith(prefix)}

    @property
    def xml(self) -> Element:
        return fromstring(self.body.removeprefix(BOM))

    def detail(self, name: str) -> str | None:
        return self.xml.findtext(name)


class Client:
    def __init__(self, server: Running, *, account: str | None = None) -> None:
        self.server = server
        self.port = server.port
        self.account = account or server.account
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)

    def close(self) -> None:
        self._connection.close()

    def send(
        self,
        method: str,
        path: str = "",
        query: Mapping[str, str] | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
        *,
        auth: str = KEY,
        version: str | None = VERSION,
        host: str | None = None,
        chunked: bool = False,
    ) -> Reply:
        """`path` follows the account and is percent-encoded. With `host` the account is in the host name instead."""
        path = path if host is not None else f"/{self.account}{path}"
        text = urlencode(query or {}, quote_via=quote)
        sent = list(headers.items() if isinstance(headers, Mapping) else headers or ())
        if version is not None and not any(name.lower() == "x-ms-version" for name, _ in sent):
            sent.append(("x-ms-version", version))
        if chunked:
            sent.append(("Transfer-Encoding", "chunked"))
        elif body is not None or method == "PUT":
            sent.append(("Content-Length", str(len(body or b""))))
        if auth == KEY:
            sent.append(("x-ms-date", formatdate(self.server.now(), usegmt=True)))
            account = self.server.account
            sent.append(("Authorization", signing.shared_key(account, self.server.key, method, path, text, sent)))
        elif auth:
            text = "&".join(filter(None, (text, auth)))
        return self.exchange(method, f"{path}?{text}" if text else path, sent, body, host=host, chunked=chunked)

    def exchange(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None = None,
        *,
        host: str | None = None,
        chunked: bool = False,
    ) -> Reply:
        """Send exactly these headers and the host."""
        connection = self._connection
        connection.putrequest(method, target or "/", skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", f"{host or '127.0.0.1'}:{self.port}")
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders(body if body is None or not chunked else [body] if body else [], encode_chunked=chunked)
        response = connection.getresponse()
        reply = Reply(response.status, response.reason, response.getheaders(), response.read())
        if response.will_close:
            connection.close()
        return reply

    def account_sas(self, sp: str, **fields: str) -> str:
        fields.setdefault("se", self.moment(3600))
        return signing.account_sas(self.server.account, self.server.key, sp=sp, **fields)

    def moment(self, seconds: float = 0) -> str:
        """A time from now, as SAS tokens and policies spell it."""
        return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(self.server.now() + seconds))

    def date(self, seconds: float = 0) -> str:
        """A time from now, as conditional headers spell it."""
        return formatdate(self.server.now() + seconds, usegmt=True)


class Box:
    """A container of one test, and the requests that most tests begin with."""

    def __init__(self, client: Client, name: str | None = None) -> None:
        self.client = client
        self.server = client.server
        self.name = name or f"box-{uuid.uuid4().hex[:16]}"
        self.path = f"/{self.name}"

    def create(self, headers: Headers | None = None) -> "Box":
        assert self.container("PUT", headers=headers).status == 201
        return self

    def container(self, method: str, comp: str = "", headers: Headers | None = None, **more: Any) -> Reply:
        query = {"restype": "container"} | ({"comp": comp} if comp else {}) | more.pop("query", {})
        return self.client.send(method, self.path, query, headers, **more)

    def blob(
        self,
        method: str,
        name: str = "blob",
        comp: str = "",
        headers: Headers | None = None,
        body: bytes | None = None,
        **more: Any,
    ) -> Reply:
        query = ({"comp": comp} if comp else {}) | more.pop("query", {})
        return self.client.send(method, f"{self.path}/{quote(name, safe='/')}", query, headers, body, **more)

    def put(self, name: str = "blob", body: bytes = b"hello", headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
        return self.blob("PUT", name, headers={"x-ms-blob-type": "BlockBlob", **(headers or {})}, body=body, **more)

    def get(self, name: str = "blob", headers: Headers | None = None, **more: Any) -> Reply:
        return self.blob("GET", name, headers=headers, **more)

    def head(self, name: str = "blob", headers: Headers | None = None, **more: Any) -> Reply:
        return self.blob("HEAD", name, headers=headers, **more)

    def put_block(self, block_id: str, body: bytes = b"block", name: str = "blob", headers: Headers | None = None) -> Reply:
        return self.blob("PUT", name, "block", headers, body, query={"blockid": block_id})

    def put_block_list(self, xml: str, name: str = "blob", headers: Headers | None = None) -> Reply:
        return self.blob("PUT", name, "blocklist", headers, f"<BlockList>{xml}</BlockList>".encode())

    def lease(self, action: str, headers: Mapping[str, str] | None = None, name: str | None = "blob", **more: Any) -> Reply:
        """A lease operation on a blob; `name=None` leases the container."""
        sent = {"x-ms-lease-action": action, **({"x-ms-lease-duration": "15"} if action == "acquire" else {}), **(headers or {})}
        if name is None:
            return self.container("PUT", "lease", sent, **more)
        return self.blob("PUT", name, "lease", sent, **more)

    def acquire(self, seconds: int = 15, name: str | None = "blob", lease_id: str = "") -> str:
        proposed = {"x-ms-proposed-lease-id": lease_id} if lease_id else {}
        reply = self.lease("acquire", {"x-ms-lease-duration": str(seconds), **proposed}, name)
        assert reply.status == 201
        return reply["x-ms-lease-id"]

    def page(self, query: Mapping[str, str] | None = None, **more: Any) -> Reply:
        return self.container("GET", "list", query=dict(query or {}), **more)

    def names(self, query: Mapping[str, str] | None = None) -> list[str]:
        """The names of one page, prefixes included."""
        reply = self.page(query)
        assert reply.status == 200
        return [item.findtext("Name") or "" for item in reply.xml.find("Blobs") or ()]

    def sas(self, sp: str = "", blob: str = "", **fields: str) -> str:
        """A service SAS for this container or one of its blobs, valid for an hour unless a stored policy sets the expiry."""
        if sp:
            fields["sp"] = sp
        if "si" not in fields:
            fields.setdefault("se", self.client.moment(3600))
        return signing.service_sas(self.server.account, self.server.key, self.name, blob, **fields)

"""A file share of one test, and the requests that most tests of the File service begin with."""

import http.client
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree.ElementTree import Element

from tests.rest.client import Client, Headers, Reply
from tests.rest.running import PATIENCE_SECONDS, Running
from tests.rest.signing import SAS_VERSION, signature

DIRECTORY = {"restype": "directory"}
SAS_FIELDS = ("sp", "st", "se", "", "si", "sip", "spr", "sv", "rscc", "rscd", "rsce", "rscl", "rsct")


class FileClient(Client):
    def __init__(self, server: Running, *, account: str | None = None) -> None:
        super().__init__(server, account=account)
        self.port = server.app.servers["file"].port
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)

    def account_sas(self, sp: str, **fields: str) -> str:
        return super().account_sas(sp, **{"ss": "f", **fields})

    def shares(self, query: Mapping[str, str] | None = None) -> list[Element]:
        """The entries of one page of List Shares."""
        reply = self.send("GET", "", {"comp": "list", **(query or {})})
        assert reply.status == 200
        return list(reply.xml.find("Shares") or ())


class ShareBox:
    def __init__(self, client: FileClient, name: str | None = None) -> None:
        self.client = client
        self.server = client.server
        self.name = name or f"share-{uuid.uuid4().hex[:16]}"
        self.path = f"/{self.name}"

    def create(self, headers: Headers | None = None) -> "ShareBox":
        assert self.share("PUT", headers=headers).status == 201
        return self

    def share(self, method: str, comp: str = "", headers: Headers | None = None, body: bytes | None = None, **more: Any) -> Reply:
        query = {"restype": "share"} | ({"comp": comp} if comp else {}) | more.pop("query", {})
        return self.client.send(method, self.path, query, headers, body, **more)

    def directory(self, method: str, name: str = "", comp: str = "", headers: Headers | None = None, **more: Any) -> Reply:
        return self.file(method, name, comp, headers, query=DIRECTORY | more.pop("query", {}), **more)

    def file(
        self,
        method: str,
        name: str = "file",
        comp: str = "",
        headers: Headers | None = None,
        body: bytes | None = None,
        **more: Any,
    ) -> Reply:
        query = ({"comp": comp} if comp else {}) | more.pop("query", {})
        path = f"{self.path}/{quote(name, safe='/')}" if name else self.path
        return self.client.send(method, path, query, headers, body, **more)

    def make(self, *names: str) -> None:
        """Make directories."""
        for name in names:
            assert self.directory("PUT", name).status == 201

    def put(self, name: str = "file", size: int = 0, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
        """Create File."""
        return self.file("PUT", name, headers={"x-ms-type": "file", "x-ms-content-length": str(size), **(headers or {})}, **more)

    def write(
        self, data: bytes, start: int = 0, name: str = "file", headers: Mapping[str, str] | None = None, **more: Any
    ) -> Reply:
        """Put Range."""
        sent = {"x-ms-write": "update", "x-ms-range": f"bytes={start}-{start + len(data) - 1}", **(headers or {})}
        return self.file("PUT", name, "range", sent, data, **more)

    def clear(self, start: int, end: int, name: str = "file", headers: Mapping[str, str] | None = None) -> Reply:
        """Put Range that clears the bytes before `end`."""
        sent = {"x-ms-write": "clear", "x-ms-range": f"bytes={start}-{end - 1}", **(headers or {})}
        return self.file("PUT", name, "range", sent)

    def fill(self, data: bytes, name: str = "file") -> None:
        """Make a file with this content."""
        assert self.put(name, len(data)).status == 201
        assert not data or self.write(data, name=name).status == 201

    def get(self, name: str = "file", headers: Headers | None = None, **more: Any) -> Reply:
        return self.file("GET", name, headers=headers, **more)

    def head(self, name: str = "file", headers: Headers | None = None, **more: Any) -> Reply:
        return self.file("HEAD", name, headers=headers, **more)

    def snapshot(self, headers: Headers | None = None) -> str:
        reply = self.share("PUT", "snapshot", headers)
        assert reply.status == 201
        return reply["x-ms-snapshot"]

    def page(self, name: str = "", query: Mapping[str, str] | None = None, headers: Headers | None = None, **more: Any) -> Reply:
        """List Directories and Files."""
        return self.directory("GET", name, "list", headers, query=dict(query or {}), **more)

    def names(self, name: str = "", query: Mapping[str, str] | None = None) -> list[str]:
        reply = self.page(name, query)
        assert reply.status == 200
        return [item.findtext("Name") or "" for item in reply.xml.find("Entries") or ()]

    def ranges(
        self, name: str = "file", query: Mapping[str, str] | None = None, headers: Headers | None = None
    ) -> list[tuple[str, int, int]]:
        """The ranges of a file: kind, first byte, last byte."""
        reply = self.file("GET", name, "rangelist", headers, query=dict(query or {}))
        assert reply.status == 200
        return [(item.tag, int(item[0].text or ""), int(item[1].text or "")) for item in reply.xml if len(item)]

    def rename(self, source: str, target: str, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
        """Rename File; with `query=DIRECTORY` Rename Directory."""
        sent = {"x-ms-file-rename-source": self.url(source), **(headers or {})}
        return self.file("PUT", target, "rename", sent, **more)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.client.port}/{self.client.account}{self.path}/{quote(name, safe='/')}"

    def lease(self, action: str, headers: Mapping[str, str] | None = None, name: str | None = "file", **more: Any) -> Reply:
        """A lease operation on a file; `name=None` leases the share."""
        sent = {"x-ms-lease-action": action, **({"x-ms-lease-duration": "-1"} if action == "acquire" else {}), **(headers or {})}
        if name is None:
            return self.share("PUT", "lease", sent, **more)
        return self.file("PUT", name, "lease", sent, **more)

    def acquire(self, name: str | None = "file", seconds: int = -1, **more: Any) -> str:
        reply = self.lease("acquire", {"x-ms-lease-duration": str(seconds)}, name, **more)
        assert reply.status == 201
        return reply["x-ms-lease-id"]

    def permission(self, permission: str, form: str | None = None) -> Reply:
        """Create Permission."""
        named = "" if form is None else f',"format":"{form}"'
        return self.share("PUT", "filepermission", body=f'{{"permission":"{permission}"{named}}}'.encode())

    def sas(self, sp: str = "", file: str = "", **fields: str) -> str:
        """A service SAS for this share or one of its files, valid for an hour unless a stored policy sets the expiry."""
        if sp:
            fields["sp"] = sp
        if "si" not in fields:
            fields.setdefault("se", self.client.moment(3600))
        return file_sas(self.server.account, self.server.key, self.name, file, **fields)


def file_sas(account: str, key: str, share: str, file: str = "", **fields: str) -> str:
    fields.setdefault("sv", SAS_VERSION)
    fields.setdefault("sr", "f" if file else "s")
    resource = f"/file/{account}/{share}" + (f"/{file}" if file else "")
    text = "\n".join(resource if not name else fields.get(name, "") for name in SAS_FIELDS)
    return urlencode(fields | {"sig": signature(key, text)})

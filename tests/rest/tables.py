"""A table of one test, and the requests that most tests of the Table service begin with."""

import http.client
import json
import uuid
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any
from urllib.parse import quote, urlencode

from tests.rest.client import KEY, VERSION, Client, Headers, Reply
from tests.rest.running import PATIENCE_SECONDS, Running
from tests.rest.signing import SAS_VERSION, signature

MINIMAL = "application/json;odata=minimalmetadata"
NONE = "application/json;odata=nometadata"
FULL = "application/json;odata=fullmetadata"


class TableClient(Client):
    """Signs for the Table service. Sends and accepts JSON unless the headers say otherwise; "" omits a header."""

    def __init__(self, server: Running, *, account: str | None = None) -> None:
        super().__init__(server, account=account)
        self.port = server.app.servers["table"].port
        self.base = f"http://127.0.0.1:{self.port}/{server.account}"  # links repeat the Host header
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)

    def send(  # type: ignore[override]
        self,
        method: str,
        path: str = "",
        query: Mapping[str, str] | None = None,
        headers: Headers | None = None,
        body: bytes | Mapping[str, Any] | None = None,
        *,
        auth: str = KEY,
        version: str | None = VERSION,
        lite: bool = False,
    ) -> Reply:
        data = json.dumps(body).encode() if isinstance(body, Mapping) else body
        defaults = {
            "Accept": MINIMAL,
            "Content-Type": "application/json" if data is not None else "",
            "x-ms-version": version or "",
        }
        given = list(headers.items() if isinstance(headers, Mapping) else headers or ())
        names = {name.lower() for name, _ in given}
        sent = [*given, *((name, value) for name, value in defaults.items() if name.lower() not in names)]
        sent = [(name, value) for name, value in sent if value]
        if data is not None:
            sent.append(("Content-Length", str(len(data))))
        target = f"/{self.account}{path}"
        text = urlencode(query or {}, quote_via=quote)
        if auth == KEY:
            sent.append(("x-ms-date", formatdate(self.server.now(), usegmt=True)))
            sent.append(("Authorization", self._authorization(method, target, query or {}, dict(sent), lite=lite)))
        elif auth:
            text = "&".join(filter(None, (text, auth)))
        return self.exchange(method, f"{target}?{text}" if text else target, sent, data)

    def _authorization(self, method: str, path: str, query: Mapping[str, str], headers: dict[str, str], *, lite: bool) -> str:
        resource = f"/{self.server.account}{path}" + (f"?comp={query['comp']}" if "comp" in query else "")
        lines = [headers["x-ms-date"], resource]
        if not lite:
            lines = [method, headers.get("Content-MD5", ""), headers.get("Content-Type", ""), *lines]
        scheme = "SharedKeyLite" if lite else "SharedKey"
        return f"{scheme} {self.server.account}:{signature(self.server.key, chr(10).join(lines))}"

    def account_sas(self, sp: str, **fields: str) -> str:
        return super().account_sas(sp, **{"ss": "t", **fields})


class TableBox:
    def __init__(self, client: TableClient, name: str | None = None) -> None:
        self.client = client
        self.server = client.server
        self.name = name or f"TableBox{uuid.uuid4().hex[:16]}"

    def create(self) -> "TableBox":
        assert self.client.send("POST", "/Tables", body={"TableName": self.name}).status == 201
        return self

    def table(self, method: str, query: Mapping[str, str] | None = None, **more: Any) -> Reply:
        return self.client.send(method, f"/{self.name}", query, **more)

    def entity(self, method: str, partition_key: str = "p", row_key: str = "r", **more: Any) -> Reply:
        return self.client.send(method, entity_path(self.name, partition_key, row_key), **more)

    def insert(self, partition_key: str = "p", row_key: str = "r", known: Mapping[str, Any] | None = None, **more: Any) -> Reply:
        return self.table("POST", body={"PartitionKey": partition_key, "RowKey": row_key, **(known or {})}, **more)

    def get(self, partition_key: str = "p", row_key: str = "r", **more: Any) -> Reply:
        return self.entity("GET", partition_key, row_key, **more)

    def put(self, known: Mapping[str, Any] | None = None, etag: str | None = None, **more: Any) -> Reply:
        return self._write("PUT", known, etag, **more)

    def merge(self, known: Mapping[str, Any] | None = None, etag: str | None = None, **more: Any) -> Reply:
        return self._write(more.pop("verb", "MERGE"), known, etag, **more)

    def delete(self, partition_key: str = "p", row_key: str = "r", etag: str | None = "*", **more: Any) -> Reply:
        headers = {} if etag is None else {"If-Match": etag}
        return self.entity("DELETE", partition_key, row_key, headers=headers | more.pop("headers", {}), **more)

    def _write(self, method: str, known: Mapping[str, Any] | None, etag: str | None, **more: Any) -> Reply:
        headers = {} if etag is None else {"If-Match": etag}
        return self.entity(method, body=known or {}, headers=headers | more.pop("headers", {}), **more)

    def query(self, filter: str = "", **options: Any) -> Reply:
        """`top=5` becomes `$top`; `NextRowKey` and similar names are unchanged."""
        more = {name: options.pop(name) for name in ("headers", "auth") if name in options}
        query = {(name if name[0].isupper() else f"${name}"): str(value) for name, value in options.items()}
        return self.client.send("GET", f"/{self.name}()", ({"$filter": filter} if filter else {}) | query, **more)

    def rows(self, filter: str = "", **options: Any) -> list[str]:
        """The row keys of all pages of a query."""
        found: list[str] = []
        while True:
            reply = self.query(filter, **options)
            assert reply.status == 200, reply.body
            found += [item["RowKey"] for item in json_of(reply)["value"]]
            if "x-ms-continuation-NextPartitionKey" not in reply:
                return found
            options["NextPartitionKey"] = reply["x-ms-continuation-NextPartitionKey"]
            options["NextRowKey"] = reply["x-ms-continuation-NextRowKey"]

    def sas(self, sp: str = "", **fields: str) -> str:
        """A service SAS for this table, valid for an hour unless a stored policy sets the expiry."""
        if sp:
            fields["sp"] = sp
        if "si" not in fields:
            fields.setdefault("se", self.client.moment(3600))
        return table_sas(self.server.account, self.server.key, self.name, **fields)

    def batch(self, *parts: str | bytes, **more: Any) -> Reply:
        return send_batch(self.client, *parts, **more)

    def part(
        self, method: str, row_key: str = "r", known: Mapping[str, Any] | None = None, *, partition_key: str = "p", **headers: str
    ) -> str:
        """One change of a batch; keyword arguments become headers."""
        sent = {"Accept": MINIMAL, "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        body = "" if method == "DELETE" else json.dumps(known or {})
        path = entity_path(self.name, partition_key, row_key)
        if method == "POST":
            path = f"/{self.name}"
            body = json.dumps({"PartitionKey": partition_key, "RowKey": row_key, **(known or {})})
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return f"{method} {self.client.base}{path} HTTP/1.1\r\n{head}\r\n{body}"


def entity_path(table: str, partition_key: str, row_key: str) -> str:
    keys = [quote(key.replace("'", "''"), safe="") for key in (partition_key, row_key)]
    return f"/{table}(PartitionKey='{keys[0]}',RowKey='{keys[1]}')"


def send_batch(client: TableClient, *parts: str | bytes, **more: Any) -> Reply:
    body = changeset(*[part if isinstance(part, bytes) else part.encode() for part in parts])
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1", "Accept": MINIMAL}
    return client.send("POST", "/$batch", headers=headers, body=body, **more)


def changeset(*parts: bytes) -> bytes:
    opening = b"--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    inner = b"".join(opening + part + b"\r\n" for part in parts)
    return (
        b"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
        + inner
        + b"--changeset_1--\r\n--batch_1--\r\n"
    )


def answers(reply: Reply) -> list[Reply]:
    """The responses inside the response to a batch."""
    assert reply.status == 202, reply.body
    found = []
    for piece in reply.body.split(b"Content-Transfer-Encoding: binary\r\n\r\n")[1:]:
        head, _, body = piece.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        found.append(Reply(int(status.split()[1]), status.split(" ", 2)[2], headers, body.partition(b"\r\n--")[0]))
    return found


def json_of(reply: Reply) -> Any:
    return json.loads(reply.body)


def refusal(reply: Reply) -> tuple[int, str]:
    """The status, and the code in the JSON body."""
    return reply.status, json_of(reply)["odata.error"]["code"]


def message(reply: Reply) -> str:
    text: str = json_of(reply)["odata.error"]["message"]["value"]
    return text.partition("\n")[0]


def table_sas(account: str, key: str, table: str, **fields: str) -> str:
    fields = {"sv": SAS_VERSION, "tn": table, **fields}
    values = fields | {"": f"/table/{account}/{table.lower()}"}
    order = ("sp", "st", "se", "", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk")
    text = "\n".join(values.get(name, "") for name in order)
    return urlencode(fields | {"sig": signature(key, text)})

"""A queue of one test, and the requests that most tests of the Queue service begin with."""

import http.client
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from xml.sax.saxutils import escape

from tests.rest.client import Client, Headers, Reply
from tests.rest.running import PATIENCE_SECONDS, Running
from tests.rest.signing import SAS_VERSION, signature


class QueueClient(Client):
    def __init__(self, server: Running, *, account: str | None = None) -> None:
        super().__init__(server, account=account)
        self.port = server.app.servers["queue"].port
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)

    def account_sas(self, sp: str, **fields: str) -> str:
        return super().account_sas(sp, **{"ss": "q", **fields})


class QueueBox:
    def __init__(self, client: QueueClient, name: str | None = None) -> None:
        self.client = client
        self.server = client.server
        self.name = name or f"box-{uuid.uuid4().hex[:16]}"
        self.path = f"/{self.name}"

    def create(self, headers: Headers | None = None) -> "QueueBox":
        assert self.queue("PUT", headers=headers).status == 201
        return self

    def queue(self, method: str, comp: str = "", headers: Headers | None = None, **more: Any) -> Reply:
        return self.client.send(method, self.path, {"comp": comp} if comp else {}, headers, **more)

    def messages(self, method: str, query: Mapping[str, str] | None = None, **more: Any) -> Reply:
        return self.client.send(method, f"{self.path}/messages", query, **more)

    def put(self, text: str = "hello", query: Mapping[str, str] | None = None, **more: Any) -> Reply:
        return self.messages("POST", query, body=document(text), **more)

    def get(self, query: Mapping[str, str] | None = None, **more: Any) -> Reply:
        return self.messages("GET", query, **more)

    def peek(self, query: Mapping[str, str] | None = None, **more: Any) -> Reply:
        return self.messages("GET", {"peekonly": "true", **(query or {})}, **more)

    def update(self, message: Mapping[str, str], seconds: int | None = 0, text: str | None = None, **more: Any) -> Reply:
        query = {"popreceipt": message["PopReceipt"], **({} if seconds is None else {"visibilitytimeout": str(seconds)})}
        body = None if text is None else document(text)
        return self.client.send("PUT", f"{self.path}/messages/{message['MessageId']}", query, body=body, **more)

    def delete(self, message: Mapping[str, str], **more: Any) -> Reply:
        query = {"popreceipt": message["PopReceipt"]}
        return self.client.send("DELETE", f"{self.path}/messages/{message['MessageId']}", query, **more)

    def taken(self, count: int = 1, seconds: int = 30) -> list[dict[str, str]]:
        reply = self.get({"numofmessages": str(count), "visibilitytimeout": str(seconds)})
        assert reply.status == 200
        return found(reply)

    def texts(self) -> list[str]:
        """The visible messages, in order."""
        reply = self.peek({"numofmessages": "32"})
        assert reply.status == 200
        return [message["MessageText"] for message in found(reply)]

    def count(self) -> int:
        return int(self.queue("GET", "metadata")["x-ms-approximate-messages-count"])

    def sas(self, sp: str = "", **fields: str) -> str:
        """A service SAS for this queue, valid for an hour unless a stored policy sets the expiry."""
        if sp:
            fields["sp"] = sp
        if "si" not in fields:
            fields.setdefault("se", self.client.moment(3600))
        return queue_sas(self.server.account, self.server.key, self.name, **fields)


def document(text: str) -> bytes:
    return f"<QueueMessage><MessageText>{escape(text)}</MessageText></QueueMessage>".encode()


def found(reply: Reply) -> list[dict[str, str]]:
    """The messages of a list, each as a mapping of its elements."""
    return [{child.tag: child.text or "" for child in message} for message in reply.xml]


def queue_sas(account: str, key: str, queue: str, **fields: str) -> str:
    fields.setdefault("sv", SAS_VERSION)
    signed = (fields.get(name, "") for name in ("sp", "st", "se", "", "si", "sip", "spr", "sv"))
    text = "\n".join(value or (f"/queue/{account}/{queue}" if place == 3 else "") for place, value in enumerate(signed))
    return urlencode(fields | {"sig": signature(key, text)})

"""A client of the admin port that sends exactly the headers it is given."""

import http.client
import json
from typing import Any, NamedTuple

from tests.rest.running import ADMIN, PATIENCE_SECONDS, Running


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]  # lower-case names
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


def ask(
    server: Running, target: str, method: str = "GET", *, headers: dict[str, str] | None = None, body: bytes | None = None
) -> Answer:
    """`headers` replace the Authorization that is sent otherwise."""
    connection = http.client.HTTPConnection("127.0.0.1", server.admin_port, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, target, body, ADMIN if headers is None else headers)
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, named, response.read())
    finally:
        connection.close()


def post(server: Running, target: str, document: object) -> Answer:
    return ask(server, target, "POST", body=json.dumps(document).encode())

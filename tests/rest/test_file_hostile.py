"""Every file operation with missing and senseless values: the answer is an error of the client, never one of the server."""

from collections.abc import Iterator

import pytest

from tests.rest.client import Reply
from tests.rest.files import ShareBox
from verditer.rest.operation import Level, Op
from verditer.rest.operations.file import OPERATIONS

JUNK = ("junk", "-1", "99999999999999999999999", "%00", '"', "bytes=5-2", "2020-13-01T00:00:00Z", "*")
PATHS = {Level.SERVICE: [""], Level.SHARE: [""], Level.PATH: ["file", "d", "missing", "missing/x", ""]}


def requests(op: Op) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Query and headers: none, then each parameter of the operation with each senseless value."""
    query = {name: value for name, value in (("restype", op.route.restype), ("comp", op.route.comp)) if value}
    headers: dict[str, str] = {}
    for name, value in op.route.when:
        (headers if "-" in name else query)[name] = value or "junk"
    yield query, headers
    for param in op.takes.params:
        for junk in JUNK:
            if param.query:
                yield query | {param.wire: junk}, headers
            else:
                yield query, headers | {param.wire: junk}


def send(share: ShareBox, op: Op, name: str, query: dict[str, str], headers: dict[str, str], body: bytes | None) -> Reply:
    if op.route.level is Level.SERVICE:
        return share.client.send(op.route.methods[0], "", query, headers, body)
    return share.file(op.route.methods[0], name, "", headers, body, query=query)


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_no_value_is_an_error_of_the_server(share: ShareBox, op: Op) -> None:
    share.make("d")
    share.put(size=10)
    paths = PATHS[op.route.level]
    for number, (query, headers) in enumerate(requests(op)):
        body = b"<junk/>" if op.route.methods[0] in ("PUT", "POST") and number % 2 else None
        reply = send(share, op, paths[number % len(paths)], query, headers, body)
        assert (reply.status < 500, query, headers) == (True, query, headers), reply.answer
        if op.name == "DeleteShare" and reply.status == 202:
            share.create()
        if reply.status in (200, 201, 202):
            share.directory("PUT", "d")
            share.put(size=10)

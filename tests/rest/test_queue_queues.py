"""Queues: create, delete, list, metadata, access policies, service properties and stats."""

import http.client
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import watched
from tests.rest.client import ANONYMOUS, BOM, VERSION
from tests.rest.queues import QueueBox, QueueClient
from tests.rest.running import ADMIN, Running, running
from verditer.core.records.container import Tombstone
from verditer.core.records.queue import Message, Queue
from verditer.core.records.record import Record, Span, span_of

EVERYTHING = Span(b"", b"\xff" * 64)
KINDS: tuple[type[Record], ...] = (Message, Tombstone)


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


@pytest.fixture
def client(server: Running) -> Iterator[QueueClient]:
    client = QueueClient(server)
    yield client
    client.close()


@pytest.fixture
def queue(client: QueueClient) -> QueueBox:
    return QueueBox(client).create()


# Create and delete


def test_a_new_queue_is_created_and_the_same_one_again_is_fine(client: QueueClient) -> None:
    queue = QueueBox(client)
    reply = queue.queue("PUT", headers={"x-ms-meta-Colour": "blue"})
    assert (reply.status, reply.body, reply["Content-Length"]) == (201, b"", "0")
    assert reply["x-ms-version"] == VERSION
    assert "ETag" not in reply
    assert queue.queue("PUT", headers={"x-ms-meta-colour": "blue"}).status == 204
    for other in ({}, {"x-ms-meta-colour": "Blue"}, {"x-ms-meta-colour": "blue", "x-ms-meta-size": "1"}):
        assert queue.queue("PUT", headers=other).answer == (409, "QueueAlreadyExists")
    assert queue.queue("GET", "metadata").metadata == {"Colour": "blue"}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("Upper", "InvalidResourceName"),
        ("-begin", "InvalidResourceName"),
        ("end-", "InvalidResourceName"),
        ("two--dashes", "InvalidResourceName"),
        ("under_score", "InvalidResourceName"),
        ("$root", "InvalidResourceName"),
        ("a%20b", "InvalidResourceName"),
    ],
)
def test_a_name_is_three_to_63_letters_digits_and_single_dashes(client: QueueClient, name: str, code: str) -> None:
    assert client.send("PUT", f"/{name}").answer == (400, code)


@pytest.mark.parametrize("name", ["a1b", "0-0", "x" * 63])
def test_names_at_the_limits_are_taken(client: QueueClient, name: str) -> None:
    assert client.send("PUT", f"/{name}").status == 201
    assert client.send("DELETE", f"/{name}").status == 204


def test_a_deleted_queue_takes_its_messages_along_and_may_come_back_empty(queue: QueueBox) -> None:
    queue.put()
    assert queue.queue("DELETE").status == 204
    assert queue.queue("DELETE").answer == (404, "QueueNotFound")
    assert queue.queue("GET", "metadata").answer == (404, "QueueNotFound")
    queue.create()
    assert (queue.texts(), queue.count()) == ([], 0)


def test_the_collector_leaves_nothing_of_deleted_cleared_and_expired_messages(queue: QueueBox) -> None:
    app, deleted, cleared = queue.server.app, QueueBox(queue.client).create(), QueueBox(queue.client).create()

    async def ids() -> list[int]:
        names = [box.name for box in (queue, deleted, cleared)]
        return await app.engine.read(
            (), lambda tx: [each.id for each in tx.scan(Queue, EVERYTHING) if each.name in names], long=True
        )

    async def collect() -> int:
        """The remaining messages, tombstones and counters."""
        await app.collector.collect()
        spans = [span_of(id) for id in known]
        return await app.engine.read(
            (), lambda tx: sum(len(list(tx.scan(kind, span))) for kind in KINDS for span in spans), long=True
        )

    known = queue.server.run(ids())
    for number in range(3):
        queue.put("kept", {"messagettl": "-1"})
        for ttl in ("10", "20", "30"):
            queue.put(f"short {number}", {"messagettl": ttl})
    for box in (deleted, cleared):
        for _ in range(120):
            box.put()
    assert deleted.queue("DELETE").status == 204
    assert cleared.messages("DELETE").status == 204
    queue.server.move_clock(21)
    assert queue.server.run(collect()) == 6
    assert queue.count() == 6
    queue.server.move_clock(10)
    assert queue.server.run(collect()) == 3
    assert (queue.count(), queue.texts()) == (3, ["kept"] * 3)


# Metadata and count


def test_metadata_is_replaced_as_a_whole_and_keeps_its_case(queue: QueueBox) -> None:
    # contract Q3
    assert queue.queue("PUT", "metadata", {"x-ms-meta-One": "1", "x-ms-meta-two": "Zwei"}).status == 204
    for method in ("GET", "HEAD"):
        reply = queue.queue(method, "metadata")
        assert (reply.status, reply.body, reply["Content-Length"]) == (200, b"", "0")
        assert reply.metadata == {"One": "1", "two": "Zwei"}
    assert queue.queue("PUT", "metadata", {"x-ms-meta-three": "3"}).status == 204
    assert queue.queue("GET", "metadata").metadata == {"three": "3"}
    assert queue.queue("PUT", "metadata").status == 204
    assert queue.queue("GET", "metadata").metadata == {}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-ms-meta-": "x"}, "EmptyMetadataKey"),
        ({"x-ms-meta-1st": "x"}, "InvalidMetadata"),
        ({"x-ms-meta-a-b": "x"}, "InvalidMetadata"),
        ({"x-ms-meta-big": "x" * 8190}, "MetadataTooLarge"),
    ],
)
def test_metadata_that_breaks_a_rule_is_refused(queue: QueueBox, headers: dict[str, str], code: str) -> None:
    assert queue.queue("PUT", "metadata", headers).answer == (400, code)
    assert QueueBox(queue.client).queue("PUT", headers=headers).answer == (400, code)
    assert queue.queue("GET", "metadata").metadata == {}


def test_the_count_includes_hidden_messages_and_is_never_too_low(queue: QueueBox) -> None:
    for _ in range(7):
        queue.put()
    queue.put(query={"visibilitytimeout": "60"})
    taken = queue.taken(3)
    assert queue.count() == 8
    assert queue.delete(taken[0]).status == 204
    assert queue.delete(taken[0]).status == 404
    assert queue.count() == 7
    assert queue.update(taken[1], 0).status == 204
    assert queue.count() == 7


# Lists


def test_queues_are_listed_by_name_page_by_page(client: QueueClient) -> None:
    prefix = f"p{uuid.uuid4().hex[:8]}-"
    names = [f"{prefix}{letter}" for letter in "abcde"]
    for name in reversed(names):
        QueueBox(client, name).create({"x-ms-meta-last": name[-1]})
    found, marker, pages = list[str](), "", 0
    while True:
        reply = client.send("GET", "", {"comp": "list", "prefix": prefix, "maxresults": "2", "marker": marker})
        found += [item.findtext("Name") or "" for item in reply.xml.find("Queues") or ()]
        marker, pages = reply.xml.findtext("NextMarker") or "", pages + 1
        if not marker:
            break
        assert marker == f"/{client.account}/{names[2 * pages]}"
    assert (found, pages) == (names, 3)


def test_a_list_echoes_what_was_asked_and_shows_metadata_on_request(client: QueueClient) -> None:
    prefix = f"p{uuid.uuid4().hex[:8]}-"
    QueueBox(client, prefix + "a").create({"x-ms-meta-Colour": "a<b"})
    QueueBox(client, prefix + "b").create()
    reply = client.send("GET", "", {"comp": "list", "prefix": prefix, "include": "metadata", "maxresults": "9"})
    base = f"http://127.0.0.1:{client.port}/{client.account}/"
    assert (
        reply.body
        == BOM
        + (
            f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="{base}"><Prefix>{prefix}</Prefix>'
            f"<MaxResults>9</MaxResults><Queues><Queue><Name>{prefix}a</Name><Metadata><Colour>a&lt;b</Colour></Metadata></Queue>"
            f"<Queue><Name>{prefix}b</Name><Metadata /></Queue></Queues><NextMarker /></EnumerationResults>"
        ).encode()
    )
    bare = client.send("GET", "", {"comp": "list", "prefix": prefix})
    assert b"Metadata" not in bare.body
    assert b"<Queues /><NextMarker />" in client.send("GET", "", {"comp": "list", "prefix": prefix + "nothing"}).body


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"maxresults": "0"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "-1"}, "OutOfRangeQueryParameterValue"),
        ({"maxresults": "x"}, "InvalidQueryParameterValue"),
        ({"include": "everything"}, "InvalidQueryParameterValue"),
        ({"marker": "junk"}, "InvalidMarker"),
        ({"marker": "/another/name"}, "InvalidMarker"),
    ],
)
def test_a_list_refuses_what_it_cannot_use(client: QueueClient, query: dict[str, str], code: str) -> None:
    assert client.send("GET", "", {"comp": "list", **query}).answer == (400, code)


# Routes


@pytest.mark.parametrize(
    ("method", "path", "query", "answer"),
    [
        ("GET", "/some-queue", {}, (405, "UnsupportedHttpVerb")),
        ("POST", "/some-queue", {}, (405, "UnsupportedHttpVerb")),
        ("PUT", "/some-queue/messages", {}, (405, "UnsupportedHttpVerb")),
        ("GET", "/some-queue/messages/id", {}, (405, "UnsupportedHttpVerb")),
        ("GET", "/some-queue", {"comp": "nonsense"}, (400, "InvalidQueryParameterValue")),
        ("GET", "/some-queue/elsewhere", {}, (400, "InvalidUri")),
        ("POST", "", {"restype": "service", "comp": "userdelegationkey"}, (403, "AuthenticationFailed")),  # by the account key
    ],
)
def test_what_is_no_operation_is_refused(
    client: QueueClient, method: str, path: str, query: dict[str, str], answer: tuple[int, str]
) -> None:
    body = b"<KeyInfo/>" if method == "POST" else None
    assert client.send(method, path, query, body=body).answer == answer


def test_an_error_has_its_code_in_a_header_and_its_words_in_a_document(queue: QueueBox) -> None:
    queue.queue("DELETE")
    reply = queue.queue("GET", "metadata", {"x-ms-client-request-id": "mine"})
    assert reply.body.startswith(BOM + b'<?xml version="1.0" encoding="utf-8"?><Error><Code>QueueNotFound</Code><Message>')
    assert (reply.detail("Message") or "").startswith("The specified queue does not exist.\nRequestId:")
    assert reply["x-ms-client-request-id"] == "mine"
    head = queue.queue("HEAD", "metadata")
    assert (head.answer, head.body) == ((404, "QueueNotFound"), b"")


# The service


def test_service_properties_are_kept_section_by_section_and_have_nothing_of_blobs(client: QueueClient) -> None:
    query = {"restype": "service", "comp": "properties"}
    rule = (
        "<CorsRule><AllowedOrigins>http://a.example</AllowedOrigins><AllowedMethods>GET,POST</AllowedMethods>"
        "<AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-request-id</ExposedHeaders>"
        "<MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
    )
    document = f"<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>".encode()
    assert client.send("PUT", "", query, body=document).status == 202
    reply = client.send("GET", "", query)
    assert [child.tag for child in reply.xml] == ["Logging", "HourMetrics", "MinuteMetrics", "Cors"]
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "POST"}
    preflight = client.send("OPTIONS", "/some-queue/messages", headers=asked, auth=ANONYMOUS)
    assert (preflight.status, preflight["Access-Control-Allow-Origin"]) == (200, "http://a.example")
    other = client.send("OPTIONS", "/some-queue", headers={**asked, "Origin": "http://b.example"}, auth=ANONYMOUS)
    assert other.answer == (403, "CorsPreflightFailure")
    listed = client.send("GET", "", {"comp": "list"}, {"Origin": "http://a.example"})
    assert listed["Access-Control-Allow-Origin"] == "http://a.example"
    empty = b"<StorageServiceProperties><Cors /></StorageServiceProperties>"
    assert client.send("PUT", "", query, body=empty).status == 202


def test_statistics_are_reported_by_the_secondary_endpoint_only(client: QueueClient) -> None:
    query = {"restype": "service", "comp": "stats"}
    assert client.send("GET", "", query).answer == (400, "InvalidQueryParameterValue")
    reply = QueueClient(client.server, account=f"{client.account}-secondary").send("GET", "", query)
    assert (reply.status, reply.xml.findtext("GeoReplication/Status")) == (200, "live")


def test_a_reset_account_has_no_queues(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server:
        client = QueueClient(server)
        queue = QueueBox(client).create()
        queue.put()
        admin = http.client.HTTPConnection("127.0.0.1", server.admin_port)
        admin.request("POST", "/control/reset", json.dumps({"account": client.account}), ADMIN)
        assert admin.getresponse().status == 200
        admin.close()
        assert b"<Queues />" in client.send("GET", "", {"comp": "list"}).body
        assert queue.create().texts() == []
        client.close()

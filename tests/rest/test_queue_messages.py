"""Put, Get, Peek, Update, Delete, Clear: all message operations, on every engine. Tests move the clock instead of waiting."""

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import pytest

from tests.conftest import watched
from tests.rest.client import BOM
from tests.rest.queues import QueueBox, QueueClient, document, found
from tests.rest.running import Running

GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


@pytest.fixture
def queue(server: Running) -> Iterator[QueueBox]:
    client = QueueClient(server)
    yield QueueBox(client).create()
    client.close()


def seconds_between(message: dict[str, str], first: str, second: str) -> float:
    return (parsedate_to_datetime(message[second]) - parsedate_to_datetime(message[first])).total_seconds()


# Responses


def test_put_shows_what_it_stored_and_nothing_of_the_text(queue: QueueBox) -> None:
    reply = queue.put("hello", {"visibilitytimeout": "20", "messagettl": "100"})
    assert reply.status == 201
    assert reply["Content-Type"] == "application/xml"
    assert reply.body.startswith(BOM + b'<?xml version="1.0" encoding="utf-8"?><QueueMessagesList><QueueMessage>')
    (message,) = found(reply)
    assert list(message) == ["MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible"]
    assert GUID.fullmatch(message["MessageId"])
    assert seconds_between(message, "InsertionTime", "ExpirationTime") == 100
    assert seconds_between(message, "InsertionTime", "TimeNextVisible") == 20


def test_get_and_peek_show_the_text_and_only_get_a_receipt(queue: QueueBox) -> None:
    queue.put("a < b & c")
    peeked = queue.peek()
    assert list(found(peeked)[0]) == ["MessageId", "InsertionTime", "ExpirationTime", "DequeueCount", "MessageText"]
    got = queue.get()
    assert list(found(got)[0]) == [
        *("MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible", "DequeueCount", "MessageText"),
    ]
    assert [found(reply)[0]["MessageText"] for reply in (peeked, got)] == ["a < b & c"] * 2
    assert [found(reply)[0]["DequeueCount"] for reply in (peeked, got)] == ["0", "1"]
    assert [reply["Cache-Control"] for reply in (peeked, got)] == ["no-cache"] * 2


def test_nothing_to_return_is_an_empty_list(queue: QueueBox) -> None:
    for reply in (queue.get(), queue.peek()):
        assert reply.status == 200
        assert reply.body.endswith(b"?><QueueMessagesList />")


def test_before_2016_put_answered_without_a_body(queue: QueueBox) -> None:
    reply = queue.put(version="2015-12-11")
    assert (reply.status, reply.body, reply["Content-Length"]) == (201, b"", "0")


@pytest.mark.parametrize(
    "text", ["", " two  blanks ", "line\nbreak\ttab", "carriage\rreturn", "ünï ✓ \U0001f600", "]]>&amp;<b/>"]
)
def test_a_text_comes_back_as_it_was_sent(queue: QueueBox, text: str) -> None:
    body = document(text).replace(b"\r", b"&#13;")  # XML parsers turn a plain one into a line feed
    assert queue.messages("POST", body=body).status == 201
    assert queue.texts() == [text]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (BOM + document("bom"), "bom"),
        (b"<?xml version='1.0' encoding='utf-8'?>\n" + document("declared"), "declared"),
        (b"<QueueMessage>\n  <MessageText />\n</QueueMessage>", ""),
        (b"<QueueMessage><MessageText><![CDATA[<raw>]]></MessageText></QueueMessage>", "<raw>"),
        (b"<QueueMessage><MessageText>a<b>c</b>d</MessageText></QueueMessage>", "acd"),
    ],
)
def test_a_document_may_be_written_in_several_ways(queue: QueueBox, body: bytes, text: str) -> None:
    assert queue.messages("POST", body=body).status == 201
    assert queue.texts() == [text]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"plain text",
        b"<QueueMessage></QueueMessage>",
        b"<Other><MessageText>x</MessageText></Other>",
        b"<QueueMessage><MessageText>x</QueueMessage>",
        b"<QueueMessage><MessageText>x</MessageText><MessageText>y</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>\x00</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>\xff</MessageText></QueueMessage>",
        b'<!DOCTYPE q [<!ENTITY e "x">]><QueueMessage><MessageText>&e;</MessageText></QueueMessage>',
    ],
)
def test_what_is_no_message_document_is_refused(queue: QueueBox, body: bytes) -> None:
    assert queue.messages("POST", body=body).answer == (400, "InvalidXmlDocument")
    assert queue.count() == 0


def test_a_text_has_up_to_64_kib_of_utf8(queue: QueueBox) -> None:
    assert queue.put("ü" * 32768).status == 201
    assert queue.put("&" * 65536).status == 201
    reply = queue.put("ü" * 32768 + "x")
    assert reply.answer == (413, "RequestBodyTooLarge")
    assert reply.detail("MaxLimit") == "65536"
    assert queue.count() == 2


# Parameters


@pytest.mark.parametrize(
    ("query", "code", "details"),
    [
        ({"visibilitytimeout": "-1"}, "OutOfRangeQueryParameterValue", ("visibilitytimeout", "-1", "0", "604800")),
        ({"visibilitytimeout": "604801"}, "OutOfRangeQueryParameterValue", ("visibilitytimeout", "604801", "0", "604800")),
        ({"visibilitytimeout": "soon"}, "InvalidQueryParameterValue", ("visibilitytimeout", "soon", None, None)),
        ({"messagettl": "0"}, "InvalidQueryParameterValue", ("messagettl", "0", None, None)),
        ({"messagettl": "-2"}, "InvalidQueryParameterValue", ("messagettl", "-2", None, None)),
        ({"messagettl": "2147483648"}, "InvalidQueryParameterValue", ("messagettl", "2147483648", None, None)),
        ({"messagettl": "x"}, "InvalidQueryParameterValue", ("messagettl", "x", None, None)),
        ({"messagettl": "9", "visibilitytimeout": "9"}, "InvalidQueryParameterValue", ("visibilitytimeout", "9", None, None)),
    ],
)
def test_put_refuses_times_that_make_no_sense(
    queue: QueueBox, query: dict[str, str], code: str, details: tuple[str, ...]
) -> None:
    reply = queue.put(query=query)
    assert reply.answer == (400, code)
    names = ("QueryParameterName", "QueryParameterValue", "MinimumAllowed", "MaximumAllowed")
    assert tuple(reply.detail(name) for name in names) == details
    assert queue.count() == 0


@pytest.mark.parametrize("query", [{"messagettl": "604801"}, {"messagettl": "-1"}, {"messagettl": "0"}])
def test_before_2017_a_message_lived_a_week_at_most(queue: QueueBox, query: dict[str, str]) -> None:
    reply = queue.put(query=query, version="2016-05-31")
    assert reply.answer == (400, "OutOfRangeQueryParameterValue")
    assert (reply.detail("MinimumAllowed"), reply.detail("MaximumAllowed")) == ("1", "604800")


@pytest.mark.parametrize(
    "query",
    [
        {"numofmessages": "0"},
        {"numofmessages": "33"},
        {"visibilitytimeout": "0"},
        {"visibilitytimeout": "604801"},
    ],
)
def test_get_refuses_numbers_out_of_range(queue: QueueBox, query: dict[str, str]) -> None:
    assert queue.get(query).answer == (400, "OutOfRangeQueryParameterValue")


@pytest.mark.parametrize("query", [{"numofmessages": "x"}, {"peekonly": "maybe"}, {"numofmessages": "1.5"}])
def test_get_refuses_what_is_no_number(queue: QueueBox, query: dict[str, str]) -> None:
    assert queue.get(query).answer == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize("number", ["0", "33"])
def test_peek_refuses_the_same_numbers(queue: QueueBox, number: str) -> None:
    assert queue.peek({"numofmessages": number}).answer == (400, "OutOfRangeQueryParameterValue")


def test_update_and_delete_ask_for_what_they_need(queue: QueueBox) -> None:
    queue.put()
    (message,) = queue.taken()
    path = f"{queue.path}/messages/{message['MessageId']}"
    receipt = {"popreceipt": message["PopReceipt"]}
    for method, query, missing in (
        ("DELETE", {}, "popreceipt"),
        ("PUT", {"visibilitytimeout": "0"}, "popreceipt"),
        ("PUT", receipt, "visibilitytimeout"),
    ):
        reply = queue.client.send(method, path, query)
        assert reply.answer == (400, "MissingRequiredQueryParameter")
        assert reply.detail("QueryParameterName") == missing


def test_an_infinite_message_expires_at_the_end_of_time(queue: QueueBox) -> None:
    (message,) = found(queue.put(query={"messagettl": "-1"}))
    assert message["ExpirationTime"] == "Fri, 31 Dec 9999 23:59:59 GMT"
    (message,) = found(queue.put(query={"messagettl": "2147483647"}))
    assert seconds_between(message, "InsertionTime", "ExpirationTime") == 2147483647


def test_a_message_lives_a_week_unless_told_otherwise(queue: QueueBox) -> None:
    (message,) = found(queue.put())
    assert seconds_between(message, "InsertionTime", "ExpirationTime") == 604800


# Delivery


def test_a_message_is_hidden_for_its_time_and_then_returns(queue: QueueBox) -> None:
    # contract Q1; race Q1
    queue.put("work")
    (message,) = queue.taken(seconds=30)
    assert 29 <= seconds_between(message, "InsertionTime", "TimeNextVisible") <= 32
    assert queue.taken() == []
    assert queue.texts() == []
    queue.server.move_clock(29)
    assert queue.taken() == []
    queue.server.move_clock(2)
    assert queue.texts() == ["work"]
    (again,) = queue.taken()
    assert (message["DequeueCount"], again["DequeueCount"]) == ("1", "2")
    assert again["MessageId"] == message["MessageId"]
    assert again["PopReceipt"] != message["PopReceipt"]


def test_a_message_put_for_later_appears_later(queue: QueueBox) -> None:
    queue.put("later", {"visibilitytimeout": "60"})
    queue.put("now")
    assert queue.texts() == ["now"]
    assert queue.count() == 2
    queue.server.move_clock(61)
    assert queue.texts() == ["now", "later"]


def test_messages_come_in_the_order_they_were_put(queue: QueueBox) -> None:
    for number in range(40):
        queue.put(str(number))
    first = [message["MessageText"] for message in queue.taken(32)]
    rest = [message["MessageText"] for message in queue.taken(32)]
    assert [int(text) for text in first + rest] == list(range(40))


def test_every_message_of_a_reply_has_a_receipt_of_its_own(queue: QueueBox) -> None:
    # contract Q2; race Q5
    for number in range(5):
        queue.put(str(number))
    taken = queue.taken(5)
    assert len({message["PopReceipt"] for message in taken}) == 5
    crossed = {"MessageId": taken[0]["MessageId"], "PopReceipt": taken[1]["PopReceipt"]}
    assert queue.delete(crossed).answer == (404, "MessageNotFound")
    assert [queue.delete(message).status for message in taken] == [204] * 5
    assert queue.count() == 0


def test_an_old_receipt_works_until_somebody_else_gets_the_message(queue: QueueBox) -> None:
    # contract Q2; race Q2
    queue.put()
    (first,) = queue.taken(seconds=1)
    queue.server.move_clock(2)
    assert queue.texts() == ["hello"]
    assert queue.update(first, 0).status == 204
    (second,) = queue.taken(seconds=1)
    queue.server.move_clock(2)
    (third,) = queue.taken()
    for stale in (first, second):
        assert queue.delete(stale).answer == (404, "MessageNotFound")
        assert queue.update(stale, 10).answer == (404, "MessageNotFound")
    assert queue.delete(third).status == 204


def test_the_receipt_of_a_put_is_good_at_once(queue: QueueBox) -> None:
    (message,) = found(queue.put())
    assert queue.delete(message).status == 204
    assert queue.texts() == []


def test_an_update_hides_the_message_anew_and_replaces_its_receipt(queue: QueueBox) -> None:
    # race Q3
    queue.put("old")
    (message,) = queue.taken(seconds=30)
    queue.server.move_clock(20)
    reply = queue.update(message, 30, "new")
    assert (reply.status, reply.body) == (204, b"")
    moved = parsedate_to_datetime(reply["x-ms-time-next-visible"]).timestamp() - queue.server.now()
    assert 28 <= moved <= 31
    assert queue.delete(message).answer == (404, "MessageNotFound")
    queue.server.move_clock(20)
    assert queue.texts() == []
    queue.server.move_clock(11)
    (again,) = queue.taken()
    assert (again["MessageText"], again["DequeueCount"]) == ("new", "2")
    assert again["ExpirationTime"] == message["ExpirationTime"]


def test_an_update_without_a_body_keeps_the_text_and_may_show_it_at_once(queue: QueueBox) -> None:
    queue.put("stay")
    (message,) = queue.taken()
    reply = queue.update(message, 0)
    assert queue.texts() == ["stay"]
    assert queue.delete({**message, "PopReceipt": reply["x-ms-popreceipt"]}).status == 204


def test_an_update_cannot_hide_a_message_past_its_end(queue: QueueBox) -> None:
    (message,) = found(queue.put(query={"messagettl": "100"}))
    reply = queue.update(message, 101)
    assert reply.answer == (400, "OutOfRangeQueryParameterValue")
    assert reply.detail("MaximumAllowed") in ("98", "99", "100")
    assert queue.update(message, 90).status == 204


def test_a_refused_update_changes_nothing(queue: QueueBox) -> None:
    # contract G7
    queue.put("text")
    (message,) = queue.taken()
    assert queue.update(message, -1, "other").answer == (400, "OutOfRangeQueryParameterValue")
    assert queue.update(message, 10, "x" * 65537).answer == (413, "RequestBodyTooLarge")
    assert queue.update({**message, "PopReceipt": "junk"}, 10, "other").answer == (400, "InvalidQueryParameterValue")
    assert queue.update(message, 0).status == 204
    assert queue.texts() == ["text"]


@pytest.mark.parametrize("receipt", ["junk", "AgAAAAMAAAAAAAAAtbYMAy8Q0wE=", "AQ==", "ü", "AQAA"])
def test_what_never_was_a_receipt_is_called_so(queue: QueueBox, receipt: str) -> None:
    (message,) = found(queue.put())
    reply = queue.delete({**message, "PopReceipt": receipt})
    assert reply.answer == (400, "InvalidQueryParameterValue")
    assert reply.detail("QueryParameterName") == "popreceipt"
    assert reply.detail("Reason") == "Invalid pop receipt format."


@pytest.mark.parametrize("id", ["junk", "00000000-0000-0000-0000-000000000000", "ü", "08df4366-bc9d-2680-0009-3a80bc9c0ec0"])
def test_an_unknown_message_is_not_found_whatever_its_receipt(queue: QueueBox, id: str) -> None:
    (message,) = found(queue.put())
    for receipt in ("junk", message["PopReceipt"]):
        path = f"{queue.path}/messages/{id.encode().hex() if not id.isascii() else id}"
        assert queue.client.send("DELETE", path, {"popreceipt": receipt}).answer == (404, "MessageNotFound")


def test_a_message_id_counts_in_its_own_queue_only(queue: QueueBox) -> None:
    (message,) = found(queue.put())
    other = QueueBox(queue.client).create()
    assert other.delete(message).answer == (404, "MessageNotFound")
    assert queue.delete(message).status == 204


# Expiry


def test_an_expired_message_is_gone_for_everyone(queue: QueueBox) -> None:
    # race Q4
    (message,) = found(queue.put("short", {"messagettl": "10"}))
    queue.put("long", {"messagettl": "100"})
    queue.server.move_clock(9)
    assert queue.texts() == ["short", "long"]
    queue.server.move_clock(2)
    assert queue.texts() == ["long"]
    assert queue.update(message, 0).answer == (404, "MessageNotFound")
    assert queue.delete(message).answer == (404, "MessageNotFound")
    assert [taken["MessageText"] for taken in queue.taken(32)] == ["long"]
    assert queue.count() == 1  # Get removed the expired messages it met


def test_a_message_may_expire_while_it_is_held(queue: QueueBox) -> None:
    queue.put(query={"messagettl": "10"})
    (message,) = queue.taken(seconds=604800)
    queue.server.move_clock(11)
    assert queue.delete(message).answer == (404, "MessageNotFound")


@pytest.mark.parametrize("wanted", [1, 5, 32])
def test_many_expired_messages_hide_no_live_one(queue: QueueBox, wanted: int) -> None:
    for number in range(3):
        for _ in range(130):
            assert queue.put("gone", {"messagettl": "5"}).status == 201
        queue.put(f"live {number}")
    queue.server.move_clock(6)
    live = [f"live {number}" for number in range(3)]
    assert queue.texts() == live
    taken: list[str] = []
    while some := queue.taken(wanted):
        taken += [message["MessageText"] for message in some]
    assert taken == live
    assert queue.count() == 3


# Clear


def test_clear_removes_held_and_visible_messages_at_once(queue: QueueBox) -> None:
    for number in range(3):
        queue.put(str(number))
    (held,) = queue.taken()
    assert queue.messages("DELETE").status == 204
    assert queue.texts() == []
    assert queue.count() == 0
    assert queue.delete(held).answer == (404, "MessageNotFound")
    queue.put("after")
    assert (queue.texts(), queue.count()) == (["after"], 1)


def test_operations_on_messages_need_their_queue(queue: QueueBox) -> None:
    (message,) = found(queue.put())
    assert queue.queue("DELETE").status == 204
    replies = (queue.put(), queue.get(), queue.peek(), queue.update(message), queue.delete(message), queue.messages("DELETE"))
    assert {reply.answer for reply in replies} == {(404, "QueueNotFound")}
    queue.create()
    assert queue.texts() == []
    assert queue.delete(message).answer == (404, "MessageNotFound")


def test_the_secondary_endpoint_peeks_and_changes_nothing(queue: QueueBox) -> None:
    queue.put()
    secondary = QueueBox(QueueClient(queue.server, account=f"{queue.server.account}-secondary"), queue.name)
    assert secondary.texts() == ["hello"]
    assert secondary.get().answer == (403, "InsufficientAccountPermissions")
    assert secondary.put().answer == (403, "InsufficientAccountPermissions")
    assert queue.count() == 1

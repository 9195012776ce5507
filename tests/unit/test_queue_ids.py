"""Message ids, pop receipts and the message document: their forms, and invalid ones."""

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as some

from verditer.core.dates import MAX_TICKS, seconds
from verditer.core.records.queue import FOREVER, Message, due, parse_message_id, show_message_id
from verditer.core.records.record import key_of
from verditer.rest.codecs.queue.queues import (
    USUAL_HEADS,
    parse_changed_message,
    parse_message,
    parsed_text,
    plain_text,
    render_got,
)
from verditer.rest.codecs.queue.receipts import parse_receipt, show_receipt
from verditer.services.queue.current import PopReceipt

TICKS = some.integers(1, MAX_TICKS)
SECONDS = some.integers(0, 2**31 - 1)
XML_TEXT = some.text(some.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | some.sampled_from("\t\n\r&<>]\"'"))


def message(**fields: object) -> Message:
    values = {"queue_id": 7, "ttl_seconds": 60, "sequence": 5, "inserted": 5, "visible": 5, "receipt": 5}
    return Message(**{**values, "dequeue_count": 0, "text": "", **fields})  # type: ignore[arg-type]


@given(TICKS, SECONDS, TICKS)
def test_a_message_id_is_a_guid_that_finds_its_message(queue_id: int, ttl_seconds: int, sequence: int) -> None:
    id = show_message_id(queue_id, ttl_seconds, sequence)
    assert str(uuid.UUID(id)) == id
    assert parse_message_id(queue_id, id) == (ttl_seconds, sequence)
    assert parse_message_id(queue_id, id.upper()) == (ttl_seconds, sequence)
    assert parse_message_id(queue_id + 1, id) is None


@pytest.mark.parametrize("text", ["", "x", "0" * 32, "00000000-0000-0000-0000-00000000000", "{0}", "ü"])
def test_what_is_no_guid_finds_no_message(text: str) -> None:
    assert parse_message_id(0, text) is None


@given(TICKS)
def test_a_receipt_needs_no_escaping_and_says_its_tick(tick: int) -> None:
    receipt = show_receipt(tick)
    assert all(character.isalnum() or character in "-_" for character in receipt)
    assert parse_receipt("popreceipt", receipt).tick == tick


@pytest.mark.parametrize("text", ["", "x", "AAAAAAAAAAAA", "AQ", "AQAAAAAAAAA=", "ü", "AgAAAAMAAAAAAAAAtbYMAy8Q0wE="])
def test_what_is_no_receipt_names_no_tick(text: str) -> None:
    assert parse_receipt("popreceipt", text) == PopReceipt(text=text, tick=None)


def test_a_message_expires_its_seconds_after_it_was_put_or_never() -> None:
    assert message(inserted=100).expires == 100 + seconds(60)
    assert message(ttl_seconds=FOREVER).expires == MAX_TICKS


@given(TICKS, TICKS)
def test_due_are_the_messages_visible_up_to_now(visible: int, now: int) -> None:
    low, high = due(7, now)
    assert (low <= message(visible=visible).rank() < high) == (visible <= now)
    assert not low <= message(queue_id=8, visible=visible).rank() < high


@given(XML_TEXT)
def test_a_text_survives_the_way_out_and_in(text: str) -> None:
    document = render_got([message(text=text)], None).decode("utf-8-sig")
    inner = document[document.index("<MessageText") : document.index("</QueueMessage>")]
    assert parse_message(f"<QueueMessage>{inner}</QueueMessage>".encode()) == {"text": text}


@pytest.mark.parametrize("head", sorted(USUAL_HEADS))
@given(some.text(some.sampled_from("aZ0 +/=&<>;\"'!]\t\n\r\x00\x1f\x7f\x80ü\ud800")))
def test_aplain_text_is_read_as_a_parser_reads_it(head: bytes, inner: str) -> None:
    document = head + b"<QueueMessage><MessageText>" + inner.encode("utf-8", "surrogatepass") + b"</MessageText></QueueMessage>"
    text = plain_text(document)
    assert text is None or text == parsed_text(document)
    assert text is not None or not re.fullmatch("[ -%'-;=?-~]*", inner)


@pytest.mark.parametrize(
    "document",
    [
        b"<QueueMessage><MessageText>a</MessageText></QueueMessage><QueueMessage><MessageText>b</MessageText></QueueMessage>",
        b"<x/><QueueMessage><MessageText>a</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>a</MessageText></QueueMessage> ",
        b"<QueueMessage><MessageText></QueueMessage>",
        b"</MessageText></QueueMessage>",
        b"",
    ],
)
def test_what_is_written_differently_is_left_to_the_parser(document: bytes) -> None:
    assert plain_text(document) is None


@given(TICKS, SECONDS, TICKS, TICKS)
def test_keys_and_ranks_are_made_as_all_keys_are(queue_id: int, ttl_seconds: int, sequence: int, visible: int) -> None:
    one = message(queue_id=queue_id, ttl_seconds=ttl_seconds, sequence=sequence, visible=visible)
    assert (one.key(), one.rank()) == (key_of(queue_id, ttl_seconds, sequence), key_of(queue_id, visible, sequence))


def test_no_document_keeps_the_text_and_an_empty_text_replaces_it() -> None:
    assert parse_changed_message(b"") == {}
    assert parse_changed_message(b"<QueueMessage><MessageText/></QueueMessage>") == {"text": ""}

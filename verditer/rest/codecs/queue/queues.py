"""Queues and messages as XML: pages of List Queues, message lists, and the document of Put Message and Update Message."""

from xml.parsers import expat

from verditer.core.dates import rfc1123
from verditer.core.errors import Code, Limit, StorageError
from verditer.core.limits import MAX_MESSAGE_TEXT
from verditer.core.records.queue import Message, Queue
from verditer.rest.codecs.listings import service_endpoint
from verditer.rest.codecs.policies import render_policy_list
from verditer.rest.codecs.queue.receipts import show_receipt
from verditer.rest.codecs.xml import BOM, DECLARATION, element, render
from verditer.rest.operation import StreamedContent
from verditer.rest.stages import Decoded
from verditer.services.queue.queues import QueuePage

_ECHOES = (("prefix", "Prefix"), ("marker", "Marker"), ("maxresults", "MaxResults"))
_OPENING, _CLOSING = b"<QueueMessage><MessageText>", b"</MessageText></QueueMessage>"
USUAL_HEADS = frozenset(
    (
        b"",
        b"<?xml version='1.0' encoding='utf-8'?>\n",
        DECLARATION,
        BOM + DECLARATION,
        b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>',
    )
)
_RECEIPTS_SINCE = "2016-05-31"  # before this version Put Message answered without a body


def parse_message(document: bytes) -> dict[str, object]:
    text = plain_text(document)
    if text is None:
        text = parsed_text(document)
    size = len(text) if text.isascii() else len(text.encode())
    if size > MAX_MESSAGE_TEXT:
        raise StorageError(Code.RequestBodyTooLarge, details=Limit(MAX_MESSAGE_TEXT))
    return {"text": text}


def parse_changed_message(document: bytes) -> dict[str, object]:
    """Without a body the text of the message stays."""
    return parse_message(document) if document else {}


def plain_text(document: bytes) -> str | None:
    """The text of a document that has a usual form and needs no unescaping, such as Base64; None for any other document. Every
    Put Message runs this, and a parser takes five times as long."""
    head, _, rest = document.partition(_OPENING)
    if head not in USUAL_HEADS or not rest.endswith(_CLOSING):
        return None
    text = rest[: -len(_CLOSING)].decode("latin-1")
    plain = text.isascii() and text.isprintable() and "<" not in text and "&" not in text and ">" not in text
    return text if plain else None


def parsed_text(document: bytes) -> str:
    """The complete text of MessageText, including blanks at its ends."""
    reader = _MessageTextReader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        parser.Parse(document.removeprefix(BOM), True)
    except (expat.ExpatError, ValueError, LookupError):
        raise StorageError(Code.InvalidXmlDocument) from None
    if reader.pieces is None:
        raise StorageError(Code.InvalidXmlDocument)
    return "".join(reader.pieces)


class _MessageTextReader:
    """Collects the text of QueueMessage/MessageText. Markup inside is dropped, its text is kept."""

    def __init__(self) -> None:
        self.pieces: list[str] | None = None
        self._path: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        if self._path == ["QueueMessage", "MessageText"]:
            if self.pieces is not None:
                raise StorageError(Code.InvalidXmlDocument)
            self.pieces = []

    def end(self, name: str) -> None:
        self._path.pop()

    def characters(self, data: str) -> None:
        if self._path[:2] == ["QueueMessage", "MessageText"] and self.pieces is not None:
            self.pieces.append(data)

    def doctype(self, *_: object) -> None:
        """DTDs are refused, so only the predefined entities of XML exist."""
        raise StorageError(Code.InvalidXmlDocument)


def render_put(message: Message, decoded: Decoded) -> bytes | StreamedContent:
    if decoded.version < _RECEIPTS_SINCE:
        return StreamedContent(b"", 0, 201)
    return _list([_identity(message) + _receipt(message)])


def render_got(messages: list[Message], decoded: object) -> bytes:
    return _list([_identity(message) + _receipt(message) + _content(message) for message in messages])


def render_peeked(messages: list[Message], decoded: object) -> bytes:
    return _list([_identity(message) + _content(message) for message in messages])


def _list(rows: list[str]) -> bytes:
    if not rows:
        return render("<QueueMessagesList />")
    inner = "</QueueMessage><QueueMessage>".join(rows)
    return render(f"<QueueMessagesList><QueueMessage>{inner}</QueueMessage></QueueMessagesList>")


def _identity(message: Message) -> str:
    return (
        f"<MessageId>{message.id}</MessageId><InsertionTime>{rfc1123(message.inserted)}</InsertionTime>"
        f"<ExpirationTime>{rfc1123(message.expires)}</ExpirationTime>"
    )


def _receipt(message: Message) -> str:
    return (
        f"<PopReceipt>{show_receipt(message.receipt)}</PopReceipt><TimeNextVisible>{rfc1123(message.visible)}</TimeNextVisible>"
    )


def _content(message: Message) -> str:
    return f"<DequeueCount>{message.dequeue_count}</DequeueCount>{_element('MessageText', message.text)}"


def _element(name: str, text: str) -> str:
    """A carriage return is written as a reference: a parser would read a plain one as a line feed."""
    return element(name, text).replace("\r", "&#xD;")


def render_queues(page: QueuePage, decoded: Decoded) -> bytes:
    query = decoded.address.query
    echoes = "".join([element(name, query[key]) for key, name in _ECHOES if query.get(key)])
    metadata = _metadata if "metadata" in query.get("include", "").lower() else _nothing
    rows = "".join([f"<Queue>{element('Name', queue.name)}{metadata(queue)}</Queue>" for queue in page.queues])
    return render(
        f'<EnumerationResults ServiceEndpoint="{service_endpoint(decoded)}">{echoes}'
        f"{f'<Queues>{rows}</Queues>' if rows else '<Queues />'}{element('NextMarker', page.next_marker)}</EnumerationResults>"
    )


def _metadata(queue: Queue) -> str:
    pairs = "".join([element(name, value) for name, value in queue.metadata.items()])
    return f"<Metadata>{pairs}</Metadata>" if pairs else "<Metadata />"


def _nothing(queue: Queue) -> str:
    return ""


def render_acl(queue: Queue, decoded: object) -> bytes:
    return render_policy_list(queue.policies)

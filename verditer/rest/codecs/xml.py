"""XML: parsing refuses DTDs and entities, writing escapes all text."""

import re
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from verditer.core.errors import Code, StorageError
from verditer.rest.wire_errors import invalid_node, missing_node

BOM = b"\xef\xbb\xbf"  # Azure sends it at the start of every document
DECLARATION = b'<?xml version="1.0" encoding="utf-8"?>'

_SPECIAL = re.compile(r"[&<>\"\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}  # a bare \r is read back as \n


def escape(text: str) -> str:
    """Text for an element or attribute. Characters that XML 1.0 does not allow become U+FFFD."""
    if _SPECIAL.search(text) is None:
        return text
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], "\ufffd"), text)


def is_plain(text: str) -> bool:
    """Whether the text needs no escaping."""
    return _SPECIAL.search(text) is None


def is_representable(text: str) -> bool:
    return _ILLEGAL.search(text) is None


def render(body: str) -> bytes:
    return BOM + DECLARATION + body.encode()


def element(name: str, text: str | None) -> str:
    """An element with text; an empty element for an empty text."""
    return f"<{name}>{escape(text)}</{name}>" if text else f"<{name} />"


def parse(document: bytes, root: str) -> Element:
    """The root element, which has to have the name `root`."""
    parser = DefusedXMLParser(target=TreeBuilder(), forbid_dtd=True)
    try:
        parser.feed(document.removeprefix(BOM))
        found: Element = parser.close()
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        # The parser and the frame that raised refer to themselves: the partial tree and the request would stay in memory until
        # a garbage collection, 100 MB of them after some thousand refused documents.
        vars(parser).clear()
        error.__traceback__ = None
        raise StorageError(Code.InvalidXmlDocument) from None
    if found.tag != root:
        raise StorageError(Code.InvalidXmlDocument)
    return found


def text_of(parent: Element, name: str) -> str | None:
    child = parent.find(name)
    return None if child is None else (child.text or "").strip()


def required(parent: Element, name: str) -> str:
    text = text_of(parent, name)
    if text is None:
        raise missing_node(name)
    return text


def boolean(parent: Element, name: str) -> bool:
    return truth(name, required(parent, name))


def truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise invalid_node(name, text)
    return text.lower() == "true"

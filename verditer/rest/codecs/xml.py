"""XML without surprises: documents are parsed with entities and DTDs refused, and written with everything escaped."""

import re
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from verditer.core.errors import Code, StorageError

BOM = b"\xef\xbb\xbf"  # Azure's classic front end begins every document with it
DECLARATION = b'<?xml version="1.0" encoding="utf-8"?>'

_SPECIAL = re.compile(r"[&<>\"\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}  # a bare \r is read back as \n


def escape(text: str) -> str:
    """Text for an element or attribute. What XML 1.0 cannot carry at all becomes U+FFFD."""
    if _SPECIAL.search(text) is None:
        return text
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], "\ufffd"), text)


def is_plain(text: str) -> bool:
    """Text that XML carries as it is."""
    return _SPECIAL.search(text) is None


def is_representable(text: str) -> bool:
    return _ILLEGAL.search(text) is None


def render(body: str) -> bytes:
    return BOM + DECLARATION + body.encode()


def element(name: str, text: str | None) -> str:
    """An element with text; empty when there is none."""
    return f"<{name}>{escape(text)}</{name}>" if text else f"<{name} />"


def parse(document: bytes, root: str) -> Element:
    """The root element, which has to have the name `root`."""
    try:
        found: Element = fromstring(document.removeprefix(BOM), forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
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
        raise StorageError(Code.MissingRequiredXmlNode, details={"XmlNodeName": name})
    return text


def boolean(parent: Element, name: str) -> bool:
    return truth(name, required(parent, name))


def truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise StorageError(Code.InvalidXmlNodeValue, details={"XmlNodeName": name, "XmlNodeValue": text})
    return text.lower() == "true"

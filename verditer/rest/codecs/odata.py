"""OData as Table speaks it: paths with keys, continuation tokens, and which JSON a client wants.

What an entity looks like in JSON is `codecs/entities.py`.
"""

import base64
import binascii
import re
from functools import lru_cache
from typing import NoReturn
from urllib.parse import quote

import msgspec

from verditer.core.caches import remember
from verditer.core.errors import Code, StorageError, missing_header
from verditer.core.limits import MAX_TABLE_PAGE
from verditer.rest.exchange import Exchange
from verditer.services.table.filter import Node, parse_filter

JSON = "application/json;odata={};streaming=true;charset=utf-8"
MINIMAL, NONE, FULL = "minimalmetadata", "nometadata", "fullmetadata"
MAX_SELECT = 255
_UPSERTS_SINCE = "2011-08-18"  # before this version a change said what it replaces

_RESOURCE = re.compile(r"([^()]*)(?:\((.*)\))?", re.DOTALL)
_ENTITY = re.compile(
    r"\s*(PartitionKey|RowKey)\s*=\s*'((?:[^']|'')*)'\s*,\s*(PartitionKey|RowKey)\s*=\s*'((?:[^']|'')*)'\s*", re.DOTALL
)
_TABLE = re.compile(r"\s*'((?:[^']|'')*)'\s*")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.~-]*")
_TOKEN = re.compile(r"1!([0-9]{1,9})!([A-Za-z0-9+/_-]*)")


def parse_resource(path: str) -> tuple[str, str | None]:
    """`name` or `name(arguments)` of a decoded path; None where there are no parentheses."""
    if "(" not in path and ")" not in path:
        return path, None
    match = _RESOURCE.fullmatch(path)
    if match is None:
        raise StorageError(Code.InvalidInput)
    return match[1], match[2]


def parse_keys(arguments: str) -> tuple[str, str]:
    """PartitionKey and RowKey, in either order. Quotes inside a key are doubled."""
    match = _ENTITY.fullmatch(arguments)
    if match is None or match[1] == match[3]:
        message = "The number of keys specified in the URI does not match number of key properties for the resource."
        raise StorageError(Code.InvalidInput, message=message)
    keys = {match[1]: match[2].replace("''", "'"), match[3]: match[4].replace("''", "'")}
    return keys["PartitionKey"], keys["RowKey"]


def parse_table(arguments: str) -> str:
    match = _TABLE.fullmatch(arguments)
    if match is None:
        raise StorageError(Code.InvalidInput)
    return match[1].replace("''", "'")


def entity_path(table: str, partition_key: str, row_key: str) -> str:
    return f"{table}(PartitionKey='{_quoted(partition_key)}',RowKey='{_quoted(row_key)}')"


def _quoted(key: str) -> str:
    if (key.isalnum() and key.isascii()) or _PLAIN_KEY.fullmatch(key):
        return key
    return quote(key.replace("'", "''"), safe="!$&'()*+,;=:@~")


def show_token(key: str) -> str:
    """A continuation: the key to begin with, in Azure's form."""
    text = base64.b64encode(key.encode()).decode().replace("=", "-")
    return f"1!{len(text)}!{text}"


def parse_token(name: str, token: str) -> str:
    match = _TOKEN.fullmatch(token)
    if match is None or int(match[1]) != len(match[2]):
        raise StorageError(Code.InvalidInput)
    try:
        return base64.b64decode(match[2].replace("-", "="), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise StorageError(Code.InvalidInput) from None


_WEAK_ETAG = re.compile(r'[wW]/("[^"]*")')


def entity_tag(name: str, value: str) -> str:
    """`*`, or one weak ETag; a colon in it may come bare or escaped."""
    value = value.strip()
    match = _WEAK_ETAG.fullmatch(value)
    if value != "*" and match is None:
        message = f"The etag value '{value}' specified in one of the request headers is not valid."
        raise StorageError(Code.InvalidInput, message=message)
    return value if match is None else "W/" + match[1].replace(":", "%3A").replace("%3a", "%3A")


def refused(name: str, value: str) -> NoReturn:
    raise StorageError(Code.InvalidInput)


def not_implemented(name: str, value: str) -> NoReturn:
    raise StorageError(Code.NotImplemented)


def filter_text(name: str, value: str) -> Node | None:
    return parse_filter(value)


def page_size(name: str, value: str) -> int:
    if re.fullmatch(r"[0-9]{1,9}", value) is None or int(value) > MAX_TABLE_PAGE:
        raise StorageError(Code.InvalidInput)
    return int(value)


def length(name: str, value: str) -> int:
    return len(value)


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer looks: how much metadata, and of which properties. `select` is None for all of them."""

    level: str
    select: tuple[str, ...] | None = None
    select_text: str | None = None  # as the context of the answer repeats it
    content: bool = True  # what was created is answered with


def accept_json(exchange: Exchange) -> Form:
    """For answers with content: the client has to want JSON."""
    _check_protocol(exchange)
    level = _wanted(exchange)
    if isinstance(level, Code):
        raise StorageError(level)
    assert exchange.address is not None
    text = exchange.address.query.get("$select")
    return _form(level) if text is None else Form(level=level, select=_select(text), select_text=text)


def accept_created(exchange: Exchange) -> Form:
    """For inserts: the client has to send JSON, and to want it unless it wants nothing."""
    accept_sent(exchange)
    return accept_json(exchange) if preference(exchange) != NO_CONTENT else _WITHOUT_CONTENT


def accept_sent(exchange: Exchange) -> None:
    """For answers without content: what the client sends has to be JSON, and no more of it than it says."""
    _check_protocol(exchange)
    headers = exchange.request.headers
    if "content-length" not in headers and "transfer-encoding" not in headers:
        raise StorageError(Code.MissingContentLengthHeader)
    if _is_atom(headers.get("content-type", "")):
        raise StorageError(Code.AtomFormatNotSupported)


def accept_upsert(exchange: Exchange) -> None:
    if exchange.version < _UPSERTS_SINCE:
        raise missing_header("If-Match")
    accept_sent(exchange)


def _check_protocol(exchange: Exchange) -> None:
    """The version of OData that a client speaks, or the highest it understands, which counts if both are told. JSON is of 3.0;
    that older ones had none is overlooked."""
    headers = exchange.request.headers
    version = headers.get("maxdataserviceversion") or headers.get("dataserviceversion")
    if version and not _is_odata(version):
        raise StorageError(Code.InvalidInput, message=f"The data service version '{version}' is not supported.")


@remember(64, 64)
def _is_odata(version: str) -> bool:
    return version.partition(";")[0].strip() in ("1.0", "2.0", "3.0")


@remember(256, 256)
def _is_atom(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/atom+xml"


NO_CONTENT = "return-no-content"


def preference(exchange: Exchange) -> str | None:
    """Whether the client wants to be shown what it creates, if it says so."""
    sent = exchange.request.headers.get("prefer")
    return _PREFERENCES.get(sent.lower()) if sent is not None else None


_PREFERENCES = {text: text for text in ("return-content", NO_CONTENT)}
_WITHOUT_CONTENT = Form(level=MINIMAL, content=False)


def level_of_error(exchange: Exchange) -> str | None:
    """The level in which to tell an error; None where the client asked for no JSON."""
    level = _wanted(exchange)
    if isinstance(level, Code):
        return MINIMAL if level is Code.JsonVerboseFormatNotSupported else None
    return level


def _wanted(exchange: Exchange) -> str | Code:
    wanted = exchange.address.query.get("$format") if exchange.address is not None else None
    return _level(wanted or exchange.request.headers.get("accept", ""))


@remember(256, 256)
def _level(accept: str) -> str | Code:
    """The first kind of JSON in the list; otherwise what is wrong with it. Nothing in particular means Atom, as it always did."""
    kinds = [part.replace(" ", "").lower().split(";") for part in accept.split(",") if part.strip()]
    refusals = []
    for media, *parameters in kinds:
        if media in ("application/json", "json"):
            levels = [value for name, _, value in (parameter.partition("=") for parameter in parameters) if name == "odata"]
            level = levels[0] if levels else MINIMAL
            if level in (MINIMAL, NONE, FULL):
                return level
            refusals.append(Code.JsonVerboseFormatNotSupported if level == "verbose" else Code.MediaTypeNotSupported)
        else:
            atom = media in ("*/*", "application/*", "application/atom+xml", "atom")
            refusals.append(Code.AtomFormatNotSupported if atom else Code.MediaTypeNotSupported)
    return refusals[0] if refusals else Code.AtomFormatNotSupported


@lru_cache(maxsize=8)
def _form(level: str) -> Form:
    return Form(level=level)


def _select(text: str) -> tuple[str, ...] | None:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > MAX_SELECT:
        raise StorageError(Code.InvalidInput)
    # `odata.etag` and `A@odata.type` are no properties: the level of metadata decides about them.
    return None if not names or "*" in names else tuple(name for name in names if "odata." not in name)

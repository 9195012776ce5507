"""OData in the Table service: paths with keys, continuation tokens, and the JSON format that a client accepts.

What an entity looks like in JSON is `codecs/entities.py`.
"""

import base64
import binascii
import re
from functools import lru_cache
from typing import NoReturn
from urllib.parse import quote

from verditer.core.caches import bounded_cache
from verditer.core.conditions import EtagCondition
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_TABLE_PAGE
from verditer.rest.codecs.etag import parse_entity_condition
from verditer.rest.codecs.table.json_format import FULL, MINIMAL, NONE, PLAIN, JsonFormat
from verditer.rest.stages import Accepted, AddressedRequest, IncomingRequest
from verditer.rest.wire_errors import missing_header
from verditer.services.table.filter import Node, parse_filter
from verditer.services.table.tables import wrong_keys

JSON = "application/json;odata={};streaming=true;charset=utf-8"
MAX_SELECT = 255
_UPSERTS_SINCE = "2011-08-18"  # before this version every change required If-Match

_RESOURCE = re.compile(r"([^()]*)(?:\((.*)\))?", re.DOTALL)
_ENTITY = re.compile(
    r"\s*(PartitionKey|RowKey)\s*=\s*'((?:[^']|'')*)'\s*,\s*(PartitionKey|RowKey)\s*=\s*'((?:[^']|'')*)'\s*", re.DOTALL
)
_TABLE = re.compile(r"\s*'((?:[^']|'')*)'\s*")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.~-]*")
_TOKEN = re.compile(r"1!([0-9]{1,9})!([A-Za-z0-9+/_-]*)")


def parse_resource(path: str) -> tuple[str, str | None]:
    """`name` or `name(arguments)` of a decoded path; None for the arguments when there are no parentheses."""
    if "(" not in path and ")" not in path:
        return path, None
    match = _RESOURCE.fullmatch(path)
    if match is None:
        raise StorageError(Code.InvalidInput)
    return match[1], match[2]


def parse_keys(arguments: str, account: str, table: str) -> tuple[str, str]:
    """PartitionKey and RowKey, in either order. Quotes inside a key are doubled."""
    match = _ENTITY.fullmatch(arguments)
    if match is None or match[1] == match[3]:
        raise wrong_keys(account, table)
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
    """A continuation token in Azure's form: the first key of the next page."""
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


def entity_tag(name: str, value: str) -> EtagCondition:
    value = value.strip()
    condition = parse_entity_condition(value)
    if condition is None:
        message = f"The etag value '{value}' specified in one of the request headers is not valid."
        raise StorageError(Code.InvalidInput, message=message)
    return condition


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


def accept_json(decoded: Accepted) -> JsonFormat:
    """For responses with content: the client has to accept JSON."""
    _check_protocol(decoded)
    level = _wanted(decoded)
    if isinstance(level, Code):
        raise StorageError(level)
    text = decoded.address.query.get("$select")
    return _format(level) if text is None else JsonFormat(level=level, select=_select(text), select_text=text)


def accept_created(decoded: Accepted) -> JsonFormat:
    """For inserts: the client has to send JSON, and to accept it unless it prefers no content."""
    accept_sent(decoded)
    if not _is_json(decoded.request.headers.get("content-type", "")):
        raise StorageError(Code.MediaTypeNotSupported)
    return accept_json(decoded) if preference(decoded) != NO_CONTENT else _WITHOUT_CONTENT


def accept_sent(decoded: Accepted) -> JsonFormat:
    """For responses without content: the client has to send JSON, with a length or in chunks."""
    _check_protocol(decoded)
    headers = decoded.request.headers
    if "content-length" not in headers and "transfer-encoding" not in headers:
        raise StorageError(Code.MissingContentLengthHeader)
    if _is_atom(headers.get("content-type", "")):
        raise StorageError(Code.AtomFormatNotSupported)
    return PLAIN


def accept_upsert(decoded: Accepted) -> JsonFormat:
    if decoded.version < _UPSERTS_SINCE:
        raise missing_header("If-Match")
    return accept_sent(decoded)


def _check_protocol(decoded: Accepted) -> None:
    """Check the OData version of the client, or the highest version that it understands, which counts if it sends both. JSON is
    part of 3.0; older versions are accepted although they had no JSON."""
    headers = decoded.request.headers
    version = headers.get("maxdataserviceversion") or headers.get("dataserviceversion")
    if version and not _is_odata(version):
        raise StorageError(Code.InvalidInput, message=f"The data service version '{version}' is not supported.")


@bounded_cache(64, 64)
def _is_odata(version: str) -> bool:
    return version.partition(";")[0].strip() in ("1.0", "2.0", "3.0")


@bounded_cache(256, 256)
def _is_atom(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/atom+xml"


@bounded_cache(256, 256)
def _is_json(content_type: str) -> bool:
    """A client that names no format means JSON."""
    media = content_type.partition(";")[0].strip().lower()
    return not media or media == "json" or media.endswith(("/json", "+json"))


NO_CONTENT = "return-no-content"


def preference(decoded: IncomingRequest) -> str | None:
    """Whether the client prefers content in the response to an insert; None if it does not say."""
    sent = decoded.request.headers.get("prefer")
    return _PREFERENCES.get(sent.lower()) if sent is not None else None


_PREFERENCES = {text: text for text in ("return-content", NO_CONTENT)}
_WITHOUT_CONTENT = JsonFormat(level=MINIMAL, content=False)


def level_of_error(decoded: IncomingRequest) -> str | None:
    """The metadata level of an error response; None when the client does not accept JSON."""
    level = _wanted(decoded)
    if isinstance(level, Code):
        return MINIMAL if level is Code.JsonVerboseFormatNotSupported else None
    return level


def _wanted(decoded: IncomingRequest) -> str | Code:
    wanted = decoded.address.query.get("$format") if isinstance(decoded, AddressedRequest) else None
    return _level(wanted or decoded.request.headers.get("accept", ""))


@bounded_cache(256, 256)
def _level(accept: str) -> str | Code:
    """The metadata level of the first JSON format in the list; otherwise the error. A client that names no format means Atom."""
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
def _format(level: str) -> JsonFormat:
    return JsonFormat(level=level)


def _select(text: str) -> tuple[str, ...] | None:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > MAX_SELECT:
        raise StorageError(Code.InvalidInput)
    # `odata.etag` and `A@odata.type` are not properties: they depend on the metadata level only.
    return None if not names or "*" in names else tuple(name for name in names if "odata." not in name)

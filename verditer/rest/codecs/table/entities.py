"""Tables and entities in JSON, at three levels of metadata: complete responses, with their headers.

With minimal metadata, which every SDK requests, the stored document of an entity is copied after its keys without being decoded.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.json import encode

from verditer.core.dates import TICKS_PER_SECOND
from verditer.core.edm import ANNOTATION, datetime_text, decode_members
from verditer.core.records.table import Entity
from verditer.rest.codecs.etag import show_entity
from verditer.rest.codecs.multipart import head_text
from verditer.rest.codecs.table.json_format import FULL, MINIMAL, NONE, JsonFormat
from verditer.rest.codecs.table.odata import JSON, entity_path, preference, show_token
from verditer.rest.http.message import Response
from verditer.rest.stages import Decoded
from verditer.services.table.entities import StoredEntity
from verditer.services.table.query import EntityPage
from verditer.services.table.tables import TablePage

COMMON = (("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-cache"))
READ_VERSION = ("DataServiceVersion", "3.0;")
WRITE_VERSION = ("DataServiceVersion", "1.0;")

ZERO = ord("0")

EntityRenderer = Callable[[Entity], bytes]
encode_text: Callable[[str], bytes] = msgspec.json.Encoder().encode


# --- answers ----------------------------------------------------------------------------------------------------------------


def render_entity(result: StoredEntity, decoded: Decoded) -> Response:
    headers = [("ETag", show_entity(result.entity.etag))]
    return _json(200, _element(result, decoded), decoded.format, headers)


def render_inserted(result: StoredEntity, decoded: Decoded) -> Response:
    entity = result.entity
    location = f"{base_of(decoded)}/{entity_path(result.table, entity.partition_key, entity.row_key)}"
    headers = [("ETag", show_entity(entity.etag)), ("Location", location)]
    return _created(lambda: _element(result, decoded), location, headers, decoded)


def render_updated(result: StoredEntity, decoded: Decoded) -> Response:
    return Response(status=204, headers=[*COMMON, WRITE_VERSION, ("ETag", show_entity(result.entity.etag))])


def render_deleted(result: None, decoded: Decoded) -> Response:
    return Response(status=204, headers=[*COMMON, WRITE_VERSION])


def brief_answer(render: Callable[..., object], decoded: Decoded) -> Callable[[StoredEntity], bytes] | None:
    """A function that writes the same responses as bytes, for parts of a batch without content; None for other responses."""
    if render is render_updated:
        head = head_text(204, (*COMMON, WRITE_VERSION))
        return lambda result: f"{head}ETag: {show_entity(result.entity.etag)}\r\n\r\n\r\n".encode()
    if render is not render_inserted or decoded.format.content:
        return None
    head = head_text(204, (*COMMON, READ_VERSION, *_preference_applied(decoded)))
    base = base_of(decoded)

    def inserted(result: StoredEntity) -> bytes:
        entity = result.entity
        location = f"{base}/{entity_path(result.table, entity.partition_key, entity.row_key)}"
        text = f"{head}ETag: {show_entity(entity.etag)}\r\nLocation: {location}\r\nDataServiceId: {location}\r\n\r\n\r\n"
        return text.encode("latin-1", "replace")

    return inserted


def render_page(result: EntityPage, decoded: Decoded) -> Response:
    headers = []
    if result.next is not None:
        partition_key, row_key = result.next
        headers.append(("x-ms-continuation-NextPartitionKey", show_token(partition_key)))
        headers.append(("x-ms-continuation-NextRowKey", show_token(row_key)))
    items = _writer(decoded, result.table)(result.entities)
    return _json(200, _collection(decoded, result.table, items), decoded.format, headers)


def render_table(result: str, decoded: Decoded) -> Response:
    return _json(200, _table_element(result, decoded), decoded.format)


def render_created_table(result: str, decoded: Decoded) -> Response:
    location = f"{base_of(decoded)}/Tables('{result}')"
    return _created(lambda: _table_element(result, decoded), location, [("Location", location)], decoded)


def render_tables(result: TablePage, decoded: Decoded) -> Response:
    headers = []
    if result.next_table is not None:
        headers.append(("x-ms-continuation-NextTableName", show_token(result.next_table)))
    items = b",".join(b"{" + _table_members(title, decoded) + b"}" for title in result.titles)
    return _json(200, _collection(decoded, "Tables", items), decoded.format, headers)


def _json(status: int, body: bytes, form: JsonFormat, headers: Iterable[tuple[str, str]] = ()) -> Response:
    content_type = ("Content-Type", JSON.format(form.level))
    return Response(status=status, headers=[*COMMON, READ_VERSION, *headers, content_type], body=body)


def _created(body: Callable[[], bytes], location: str, headers: list[tuple[str, str]], decoded: Decoded) -> Response:
    """201 with the created resource, or 204 if the client prefers no content."""
    headers = [*_preference_applied(decoded), *headers]
    if decoded.format.content:
        return _json(201, body(), decoded.format, headers)
    return Response(status=204, headers=[*COMMON, READ_VERSION, *headers, ("DataServiceId", location)])


def _preference_applied(decoded: Decoded) -> list[tuple[str, str]]:
    wanted = preference(decoded)
    return [] if wanted is None else [("Preference-Applied", wanted)]


def base_of(decoded: Decoded) -> str:
    """The URL of the service as the client addresses it."""
    request, address = decoded.request, decoded.address
    scheme = "https" if request.secure else "http"
    account = f"/{address.account}{'-secondary' if address.secondary else ''}" if address.path_style else ""
    return f"{scheme}://{request.headers.get('host', '')}{account}"


# --- JSON -------------------------------------------------------------------------------------------------------------------


def _collection(decoded: Decoded, name: str, items: bytes) -> bytes:
    context = _context(decoded, name)
    head = b'{"odata.metadata":' + encode(context) + b"," if context is not None else b"{"
    return b"".join((head, b'"value":[', items, b"]}"))


def _element(stored: StoredEntity, decoded: Decoded) -> bytes:
    return _with_context(decoded, stored.table, _writer(decoded, stored.table)([stored.entity]))


def _table_element(title: str, decoded: Decoded) -> bytes:
    return _with_context(decoded, "Tables", b"{" + _table_members(title, decoded) + b"}")


def _with_context(decoded: Decoded, name: str, item: bytes) -> bytes:
    context = _context(decoded, f"{name}/@Element")
    return item if context is None else b'{"odata.metadata":' + encode(context) + b"," + item[1:]


def _context(decoded: Decoded, what: str) -> str | None:
    form = decoded.format
    if form.level == NONE:
        return None
    select = "" if form.select_text is None else f"&$select={quote(form.select_text, safe=',')}"
    return f"{base_of(decoded)}/$metadata#{what}{select}"


def _table_members(title: str, decoded: Decoded) -> bytes:
    members = {"TableName": title}
    if decoded.format.level == FULL:
        path = f"Tables('{title}')"
        members = {
            "odata.type": f"{decoded.address.account}.Tables",
            "odata.id": f"{base_of(decoded)}/{path}",
            "odata.editLink": path,
            **members,
        }
    return encode(members)[1:-1]


def _writer(decoded: Decoded, table: str) -> Callable[[Sequence[Entity]], bytes]:
    """The function that writes the entities of this response, separated by commas."""
    form = decoded.format
    if form.level == MINIMAL and form.select is None:
        return _minimal_items
    if form.select is not None:
        item = _chosen_item(form.select, form.level, decoded, table)
    else:
        item = _full_item(decoded, table) if form.level == FULL else _bare_item
    return lambda entities: b",".join(map(item, entities))


def _minimal_items(entities: Sequence[Entity]) -> bytes:
    """Written without a function call per entity: this loop is most of the cost of a page of a thousand entities."""
    pieces: list[bytes] = []
    second, partition = -1, None
    for entity in entities:
        whole, fraction = divmod(entity.etag, TICKS_PER_SECOND)
        if whole != second:
            second, (etag, timestamp) = whole, _heads(whole)
        if entity.partition_key != partition:
            partition = entity.partition_key
            keys = b'Z\'\\"","PartitionKey":%b,"RowKey":' % encode_text(partition)
        digits = b".%07d" % fraction
        if digits[-1] == ZERO:
            digits = digits.rstrip(b".0")
        document = entity.properties
        end = b'Z",' if len(document) > 2 else b'Z"'
        pieces += (etag, digits, keys, encode_text(entity.row_key), timestamp, digits, end, document[1:], b",")
    return b"".join(pieces[:-1])


@lru_cache(maxsize=4096)
def _heads(whole_seconds: int) -> tuple[bytes, bytes]:
    """The beginnings of `odata.etag` and `Timestamp`, up to the fraction of the second."""
    moment = datetime_text(whole_seconds * TICKS_PER_SECOND)[:-1]
    return f'{{"odata.etag":"W/\\"datetime\'{moment.replace(":", "%3A")}'.encode(), f',"Timestamp":"{moment}'.encode()


def _bare_item(entity: Entity) -> bytes:
    document = entity.properties
    if ANNOTATION.encode() in document:
        document = encode({name: value for name, value in decode_members(document).items() if not name.endswith(ANNOTATION)})
    return b"{" + _keys(entity) + _behind(document)


def _full_item(decoded: Decoded, table: str) -> EntityRenderer:
    links = _links(decoded, table)
    typed = encode({f"Timestamp{ANNOTATION}": "Edm.DateTime"})[1:-1]

    def item(entity: Entity) -> bytes:
        keys = _keys(entity).replace(b',"Timestamp":', b"," + typed + b',"Timestamp":', 1)
        return b"{" + links(entity) + b"," + keys + _behind(entity.properties)

    return item


def _chosen_item(select: tuple[str, ...], level: str, decoded: Decoded, table: str) -> EntityRenderer:
    """The selected properties, null for those that the entity does not have. Values are copied in their stored form."""
    head = {NONE: _no_head, FULL: _links(decoded, table)}.get(level, _etag_head)
    system = [(name, _SYSTEM[name]) for name in select if name in _SYSTEM]
    columns = [(name, name + ANNOTATION, encode(name) + b":", encode(name + ANNOTATION) + b":") for name in select]

    def item(entity: Entity) -> bytes:
        stored = _decode_raw(entity.properties)
        for name, value in system:
            stored[name] = value(entity)
        if level == FULL:
            stored["Timestamp" + ANNOTATION] = b'"Edm.DateTime"'
        members = [head(entity)]
        for name, annotation, key, note in columns:
            if annotation in stored and level != NONE:
                members.append(note + stored[annotation])
            members.append(key + stored.get(name, b"null"))
        return b"{" + b",".join(filter(None, members)) + b"}"

    return item


_decode_raw: Callable[[bytes], dict[str, Any]] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_SYSTEM: dict[str, EntityRenderer] = {
    "PartitionKey": lambda entity: encode(entity.partition_key),
    "RowKey": lambda entity: encode(entity.row_key),
    "Timestamp": lambda entity: encode(datetime_text(entity.etag)),
}


def _no_head(entity: Entity) -> bytes:
    return b""


def _etag_head(entity: Entity) -> bytes:
    return b'"odata.etag":' + encode(show_entity(entity.etag))


def _links(decoded: Decoded, table: str) -> EntityRenderer:
    kind, base = f"{decoded.address.account}.{table}", base_of(decoded)

    def links(entity: Entity) -> bytes:
        path = entity_path(table, entity.partition_key, entity.row_key)
        members = {
            "odata.type": kind,
            "odata.id": f"{base}/{path}",
            "odata.etag": show_entity(entity.etag),
            "odata.editLink": path,
        }
        return encode(members)[1:-1]

    return links


def _keys(entity: Entity) -> bytes:
    partition_key, row_key = encode(entity.partition_key), encode(entity.row_key)
    moment = datetime_text(entity.etag).encode()
    return b'"PartitionKey":%b,"RowKey":%b,"Timestamp":"%b"' % (partition_key, row_key, moment)


def _behind(document: bytes) -> bytes:
    """The members of a document, as the last members of an object."""
    return b"," + document[1:] if len(document) > 2 else b"}"

"""Query Blob Contents on the wire: the document of the request, and the answer as an Avro object container.

The container has a record for each piece of the result, for progress, for errors and for the end. Avro's null codec and one
record per block keep the answer a stream.
"""

import secrets
from collections.abc import AsyncIterator
from xml.etree.ElementTree import Element

from verditer.core.errors import Code, StorageError
from verditer.rest.codecs.xml import parse
from verditer.rest.operation import StreamedContent
from verditer.rest.stages import Decoded
from verditer.rest.wire_errors import invalid_node, missing_node
from verditer.services.blob.query.request import ArrowField, Delimited, Input, JsonLines, Output
from verditer.services.blob.query.service import QueryEnd, QueryError, QueryEvent, QueryProgress, QueryResult, ResultData

_NAMESPACE = "com.microsoft.azure.storage.queryBlobContents"


def _record(name: str, doc: str, *fields: tuple[str, str]) -> str:
    shown = ",".join(f'{{"name":"{field}","type":"{kind}"}}' for field, kind in fields)
    return f'{{"type":"record","name":"{_NAMESPACE}.{name}","doc":"{doc}","fields":[{shown}]}}'


SCHEMA = "[{}]".format(
    ",".join(
        [
            _record("resultData", "Holds result data in the format specified for this query.", ("data", "bytes")),
            _record(
                "error",
                "An error that occurred while processing the query.",
                ("fatal", "boolean"),
                ("name", "string"),
                ("description", "string"),
                ("position", "long"),
            ),
            _record("progress", "Describes the progress of the query.", ("bytesScanned", "long"), ("totalBytes", "long")),
            _record("end", "Sent as the final message of the response.", ("totalBytes", "long")),
        ]
    )
)


# --- request ------------------------------------------------------------------------------------------------------------------


def parse_query_request(document: bytes) -> dict[str, object]:
    root = parse(document, "QueryRequest")
    kind = root.findtext("QueryType")
    if kind is None or kind.upper() != "SQL":
        raise missing_node("QueryType") if kind is None else invalid_node("QueryType", kind)
    expression = root.findtext("Expression")
    if not expression:
        raise missing_node("Expression")
    read = _format(root, "InputSerialization")
    given = Input(delimited=Delimited()) if read is None else _input(read)
    written = _format(root, "OutputSerialization")
    return {"expression": expression, "input": given, "output": _same(given) if written is None else _output(written)}


def _format(root: Element, name: str) -> Element | None:
    serialization = root.find(name)
    if serialization is None or not len(serialization):
        return None
    found = serialization.find("Format")
    if found is None:
        raise missing_node("Format")
    return found


def _kind(form: Element) -> str:
    return (form.findtext("Type") or "").strip().lower()


def _input(form: Element) -> Input:
    kind = _kind(form)
    if kind == "parquet":
        return Input(parquet=True)
    if kind == "json":
        return Input(json=_json(form))
    if kind == "delimited":
        return Input(delimited=_delimited(form))
    raise invalid_node("Type", kind)


def _same(given: Input) -> Output:
    """Without a format of its own the answer has the one of the blob; Parquet is answered as CSV."""
    return Output(json=given.json) if given.json is not None else Output(delimited=given.delimited or Delimited())


def _output(form: Element) -> Output:
    kind = _kind(form)
    if kind == "arrow":
        return Output(arrow=tuple(_field(one) for one in form.iterfind("ArrowConfiguration/Schema/Field")))
    if kind == "json":
        return Output(json=_json(form))
    if kind == "delimited":
        return Output(delimited=_delimited(form))
    raise invalid_node("Type", kind)


def _json(form: Element) -> JsonLines:
    return JsonLines(record_separator=form.findtext("JsonTextConfiguration/RecordSeparator") or "\n")


def _delimited(form: Element) -> Delimited:
    config = form.find("DelimitedTextConfiguration")
    if config is None:
        return Delimited()
    column_separator = _character(config, "ColumnSeparator", ",") or ","
    field_quote = _character(config, "FieldQuote", '"')
    escape_char = _character(config, "EscapeChar", "")
    record_separator = config.findtext("RecordSeparator") or "\n"
    if column_separator in (field_quote, escape_char):
        raise invalid_node("ColumnSeparator", column_separator)
    if record_separator in (column_separator, field_quote, escape_char):
        raise invalid_node("RecordSeparator", record_separator)
    return Delimited(
        column_separator=column_separator,
        field_quote=field_quote,
        record_separator=record_separator,
        escape_char="" if escape_char == field_quote else escape_char,  # a quote is doubled in any case
        has_headers=_boolean(config, "HasHeaders") or _boolean(config, "HeadersPresent"),
    )


def _character(config: Element, name: str, default: str) -> str:
    text = config.findtext(name)
    if text is not None and (len(text) > 1 or text in ("\r", "\n")):
        raise invalid_node(name, text)
    return default if text is None else text


def _boolean(config: Element, name: str) -> bool:
    text = config.findtext(name) or "false"
    if text.lower() not in ("true", "false"):
        raise invalid_node(name, text)
    return text.lower() == "true"


def _field(element: Element) -> ArrowField:
    def number(name: str) -> int | None:
        text = element.findtext(name)
        if not text:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 4:
            raise invalid_node(name, text)
        return int(text)

    kind = element.findtext("Type")
    if not kind:
        raise StorageError(Code.InvalidXmlDocument)
    return ArrowField(
        type=kind.lower(), name=element.findtext("Name") or "", precision=number("Precision"), scale=number("Scale")
    )


# --- answer -------------------------------------------------------------------------------------------------------------------


def render_query(result: QueryResult, decoded: Decoded) -> StreamedContent:
    return StreamedContent(avro_container(result.events), None, 200)


async def avro_container(events: AsyncIterator[QueryEvent]) -> AsyncIterator[bytes]:
    sync = secrets.token_bytes(16)
    yield b"Obj\x01" + _long(2) + _text("avro.codec") + _text("null") + _text("avro.schema") + _text(SCHEMA) + _long(0) + sync
    async for event in events:
        record = encode_event(event)
        yield _long(1) + _long(len(record)) + record + sync


def encode_event(event: QueryEvent) -> bytes:
    """The number of the record's type in the union, then its fields."""
    match event:
        case ResultData(data):
            return _long(0) + _bytes(data)
        case QueryError():
            text = _text(event.name) + _text(event.description)
            return _long(1) + (b"\x01" if event.fatal else b"\x00") + text + _long(event.position)
        case QueryProgress(scanned, total):
            return _long(2) + _long(scanned) + _long(total)
        case QueryEnd(total):
            return _long(3) + _long(total)


def _long(value: int) -> bytes:
    """Zigzag, then seven bits to a byte."""
    rest, encoded = value << 1, bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


def _text(text: str) -> bytes:
    return _bytes(text.encode())

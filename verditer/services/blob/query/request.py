"""A query as a client sends it: the expression, the format of the blob and the format of the answer."""

import msgspec

from verditer.services.blob.encryption import EncryptionRequest


class Delimited(msgspec.Struct, frozen=True, kw_only=True):
    """CSV and its relatives. An empty text means that there is no such character."""

    column_separator: str = ","
    field_quote: str = '"'
    record_separator: str = "\n"
    escape_char: str = ""
    has_headers: bool = False


class JsonLines(msgspec.Struct, frozen=True, kw_only=True):
    record_separator: str = "\n"


class ArrowField(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    name: str = ""
    precision: int | None = None
    scale: int | None = None


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One of the three formats."""

    delimited: Delimited | None = None
    json: JsonLines | None = None
    parquet: bool = False


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """One of the three formats."""

    delimited: Delimited | None = None
    json: JsonLines | None = None
    arrow: tuple[ArrowField, ...] | None = None


class QueryBlob(EncryptionRequest, frozen=True, kw_only=True):
    version: str
    expression: str
    input: Input
    output: Output
    snapshot: int | None = None
    version_id: int | None = None

"""Query Blob Contents on the wire: what the document of a request may say, conditions, and which blobs can be queried."""

import pytest

from tests.rest.client import Box, Reply

FORMAT = "<Format><Type>delimited</Type><DelimitedTextConfiguration>{config}</DelimitedTextConfiguration></Format>"
CONFIG = "<{side}Serialization>" + FORMAT + "</{side}Serialization>"


def ask(box: Box, more: str = "", expression: str = "SELECT _1 FROM BlobStorage", **options: str) -> Reply:
    document = f"<QueryRequest><QueryType>SQL</QueryType><Expression>{expression}</Expression>{more}</QueryRequest>"
    return box.blob("POST", "blob", "query", options, document.encode())


@pytest.mark.parametrize("side", ["Input", "Output"])
@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ("<ColumnSeparator>ab</ColumnSeparator>", "ColumnSeparator"),
        ("<ColumnSeparator>&#10;</ColumnSeparator>", "ColumnSeparator"),
        ('<ColumnSeparator>"</ColumnSeparator>', "ColumnSeparator"),
        ("<EscapeChar>,</EscapeChar>", "ColumnSeparator"),
        ("<FieldQuote>&#13;</FieldQuote>", "FieldQuote"),
        ("<RecordSeparator>,</RecordSeparator>", "RecordSeparator"),
        ("<HasHeaders>maybe</HasHeaders>", "HasHeaders"),
    ],
)
def test_what_a_delimited_format_says_is_checked(box: Box, side: str, config: str, refused: str) -> None:
    box.put(body=b"1,2\n")
    reply = ask(box, CONFIG.format(side=side, config=config))
    assert (reply.answer, reply.detail("XmlNodeName")) == ((400, "InvalidXmlNodeValue"), refused)


def test_an_escape_that_is_the_quote_doubles_it(box: Box) -> None:
    box.put(body=b'"a""b,\n""c",2\nd,3\n')
    reply = ask(box, CONFIG.format(side="Input", config='<EscapeChar>"</EscapeChar><HasHeaders>FALSE</HasHeaders>'))
    assert b'"a""b,\n""c"\nd\n' in reply.body


def test_conditions_are_those_of_a_read(box: Box) -> None:
    etag = box.put(body=b"1,2\n")["ETag"]
    assert ask(box, **{"If-Match": '"garbage"'}).answer == (412, "ConditionNotMet")
    assert ask(box, **{"If-None-Match": etag}).answer == (304, "ConditionNotMet")  # recorded
    assert ask(box, **{"x-ms-lease-id": "fee596cd-52e7-9b6b-51e9-882b8ed5c13b"}).answer == (
        412,
        "LeaseNotPresentWithBlobOperation",
    )
    assert ask(box, **{"If-Match": etag}).status == 200

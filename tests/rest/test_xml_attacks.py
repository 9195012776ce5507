"""Documents that attack the parser: each is refused with 400 (or 413 when too long), none is expanded, none fetched."""

import pytest

from tests.rest.client import Box, Client, Reply

BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
ATTACKS = {
    "entity bomb": BOMB + "]><{root}>&j;</{root}>",
    "external entity": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><{root}>&e;</{root}>',
    "parameter entity": '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:1/x.dtd"> %p;]><{root} />',
    "harmless dtd": "<!DOCTYPE {root}><{root} />",
    "external dtd": '<!DOCTYPE {root} SYSTEM "http://127.0.0.1:1/x.dtd"><{root} />',
    "wrong root": "<Other />",
    "other case of the root": "<{lower} />",
    "unclosed": "<{root}>",
    "two roots": "<{root} /><{root} />",
    "text": "just text",
    "nothing": "",
    "deep": "<{root}>" + "<a>" * 20_000 + "</a>" * 20_000 + "</{root}>",
    "unknown entity": "<{root}>&unknown;</{root}>",
    "unknown encoding": '<?xml version="1.0" encoding="no-such-thing"?><{root} />',
    "zero byte": "<{root}>\x00</{root}>",
}


def send_block_list(box: Box, body: bytes) -> Reply:
    return box.blob("PUT", comp="blocklist", body=body)


def send_acl(box: Box, body: bytes) -> Reply:
    return box.container("PUT", "acl", body=body)


def send_properties(box: Box, body: bytes) -> Reply:
    return box.client.send("PUT", "", {"restype": "service", "comp": "properties"}, body=body)


SENDERS = {"BlockList": send_block_list, "SignedIdentifiers": send_acl, "StorageServiceProperties": send_properties}
CASES = [(root, attack) for root in SENDERS for attack in ATTACKS]
CASES.remove(("SignedIdentifiers", "nothing"))  # Set Container ACL accepts an empty body as no policies


@pytest.mark.parametrize(("root", "attack"), CASES)
def test_a_hostile_document_is_refused(box: Box, root: str, attack: str) -> None:
    document = ATTACKS[attack].replace("{root}", root).replace("{lower}", root.lower())
    reply = SENDERS[root](box, document.encode())
    assert reply.answer == (400, "InvalidXmlDocument")
    assert b"root:" not in reply.body
    assert box.get().answer == (404, "BlobNotFound")


def test_a_document_in_utf16_is_understood_or_refused_but_never_harmful(box: Box) -> None:
    bomb = ('<?xml version="1.0" encoding="utf-16"?>' + ATTACKS["entity bomb"].replace("{root}", "BlockList")).encode("utf-16")
    assert send_block_list(box, bomb).answer == (400, "InvalidXmlDocument")


def test_a_document_that_is_too_long_is_refused_by_its_length(client: Client) -> None:
    path = f"/{client.server.account}?restype=service&comp=properties&{client.account_sas('w')}"
    headers = [("x-ms-version", "2021-08-06"), ("Content-Length", str(100 * 1024 * 1024)), ("Expect", "100-continue")]
    assert client.exchange("PUT", path, headers).answer == (413, "RequestBodyTooLarge")


def test_a_document_may_begin_with_a_byte_order_mark(box: Box) -> None:
    assert send_block_list(box, b"\xef\xbb\xbf<?xml version='1.0' encoding='utf-8'?><BlockList />").status == 201

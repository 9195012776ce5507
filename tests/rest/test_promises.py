"""What a client asks for and this server does not do is refused by name: to ignore it would be a promise."""

from collections.abc import Callable

import pytest

from tests.rest.client import Box, Reply

ENCRYPTION = ("x-ms-encryption-key", "x-ms-encryption-scope")
LASTING = ("x-ms-immutability-policy-until-date", "x-ms-immutability-policy-mode", "x-ms-legal-hold", "x-ms-expiry-option")
BLOCK = {"x-ms-blob-type": "BlockBlob"}
PAGE = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
Ask = Callable[[Box, dict[str, str]], Reply]

CREATES: dict[str, Ask] = {
    "put": lambda box, more: box.put(headers=more),
    "commit": lambda box, more: box.put_block_list("", headers=more),
    "append blob": lambda box, more: box.blob("PUT", headers={"x-ms-blob-type": "AppendBlob", **more}),
    "page blob": lambda box, more: box.blob(
        "PUT", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512", **more}
    ),
    "put from a url": lambda box, more: box.blob("PUT", headers={**BLOCK, "x-ms-copy-source": "http://elsewhere/", **more}),
    "copy now": lambda box, more: box.blob(
        "PUT", headers={"x-ms-requires-sync": "true", "x-ms-copy-source": "http://127.0.0.1:1/", **more}
    ),
}
OTHERS: dict[str, Ask] = {
    "get": lambda box, more: box.get(headers=more),
    "metadata": lambda box, more: box.blob("PUT", comp="metadata", headers=more),
    "snapshot": lambda box, more: box.blob("PUT", comp="snapshot", headers=more),
    "block": lambda box, more: box.put_block("AAAA", headers=more),
    "append": lambda box, more: box.blob("PUT", comp="appendblock", headers=more, body=b"more"),
    "pages": lambda box, more: box.blob("PUT", comp="page", headers={**PAGE, **more}, body=bytes(512)),
}


@pytest.mark.parametrize("operation", [*CREATES, *OTHERS])
def test_a_key_or_a_scope_of_the_client_s_own_is_refused_and_not_repeated(box: Box, operation: str) -> None:
    # contract G7
    before = box.put()["ETag"]
    for header in ENCRYPTION:
        refused = (CREATES | OTHERS)[operation](box, {header: "secret"})
        assert refused.answer == (501, "NotImplemented")
        assert f"{header} is not implemented" in (refused.detail("Message") or "")
        assert b"secret" not in refused.body
    assert box.head()["ETag"] == before


@pytest.mark.parametrize("operation", CREATES)
def test_a_blob_that_would_have_to_last_or_to_expire_is_not_made(box: Box, operation: str) -> None:
    # contract G7
    for header in LASTING:
        assert CREATES[operation](box, {header: "true"}).answer == (501, "NotImplemented")
    assert box.names() == []


def test_a_container_has_no_scope_of_its_own(box: Box) -> None:
    other = Box(box.client)
    assert other.container("PUT", headers={"x-ms-default-encryption-scope": "mine"}).answer == (501, "NotImplemented")
    assert other.container("GET").status == 404


@pytest.mark.parametrize("query", [{"showonly": "deleted"}, {"endbefore": "m"}])
def test_a_listing_shows_all_or_says_that_it_cannot_show_less(box: Box, query: dict[str, str]) -> None:
    assert box.page(query).answer == (501, "NotImplemented")


def test_a_signature_that_names_a_scope_reads_and_does_not_write(box: Box) -> None:
    # contract G7
    box.put()
    for token in (box.sas("rcw", ses="mine"), box.sas("rcw", blob="blob", ses="mine"), box.client.account_sas("rcw", ses="mine")):
        assert box.get(auth=token).body == b"hello"
        assert box.put(body=b"other", auth=token).answer == (501, "NotImplemented")
    assert box.get().body == b"hello"

"""Keys of clients: the content is stored encrypted under the key, and every request for it has to bring the key."""

import base64
import hashlib
import os
from collections.abc import Callable

import pytest

from tests.rest.client import Box, Reply
from tests.rest.copies import copy, copy_now, signed, url
from tests.rest.history import settled
from tests.rest.history_fixtures import server  # noqa: F401

NEEDS_KEY, HAS_NONE = (409, "BlobUsesCustomerSpecifiedEncryption"), (409, "BlobDoesNotUseCustomerSpecifiedEncryption")
DIGEST = "x-ms-encryption-key-sha256"
MIB = 1 << 20


def key_headers(key: bytes, prefix: str = "x-ms-") -> dict[str, str]:
    return {
        f"{prefix}encryption-key": base64.b64encode(key).decode(),
        f"{prefix}encryption-key-sha256": base64.b64encode(hashlib.sha256(key).digest()).decode(),
        f"{prefix}encryption-algorithm": "AES256",
    }


KEY, OTHER = key_headers(bytes(range(32))), key_headers(b"x" * 32)
FROM_KEY = key_headers(bytes(range(32)), "x-ms-source-")


def stored_bytes(box: Box) -> bytes:
    """Everything that the server has on its disk."""
    location = box.server.app.config.location
    return b"".join(path.read_bytes() for path in sorted(location.rglob("*")) if path.is_file())


@pytest.mark.parametrize("size", [5, 70_000, 3 * MIB + 17])
def test_a_blob_is_read_with_its_key_and_not_without(box: Box, size: int) -> None:
    # contract G7
    secret = b"the secret of this test " + os.urandom(8).hex().encode()
    body = (secret * (size // len(secret) + 1))[:size]
    reply = box.put(body=body, headers=KEY)
    assert (reply.status, reply[DIGEST], reply["x-ms-request-server-encrypted"]) == (201, KEY[DIGEST], "true")
    assert base64.b64decode(reply["Content-MD5"]) == hashlib.md5(body).digest()
    read = box.get(headers=KEY)
    assert (read.status, read.body, read[DIGEST]) == (200, body, KEY[DIGEST])
    for start, end in ((0, 1), (3, 4), (15, 40), (size // 2 + 1, size - 1)):
        if start < end < size:
            part = box.get(headers=KEY | {"x-ms-range": f"bytes={start}-{end}"})
            assert (part.status, part.body) == (206, body[start : end + 1])
    assert size < len(secret) or secret not in stored_bytes(box)
    for headers in ({}, OTHER):
        assert box.get(headers=headers).answer == NEEDS_KEY
        assert box.head(headers=headers).answer == NEEDS_KEY
        assert box.blob("GET", comp="metadata", headers=headers).answer == NEEDS_KEY
        assert box.blob("PUT", comp="metadata", headers=headers).answer == NEEDS_KEY
        assert box.blob("PUT", comp="snapshot", headers=headers).answer == NEEDS_KEY
    assert box.head(headers=KEY)["Content-Length"] == str(size)


def test_an_unencrypted_blob_takes_no_key(box: Box) -> None:
    box.put()
    assert box.get(headers=KEY).answer == HAS_NONE
    assert box.head(headers=KEY).answer == HAS_NONE
    assert box.blob("PUT", comp="metadata", headers=KEY).answer == HAS_NONE


def test_what_needs_no_key(box: Box) -> None:
    box.put(headers=KEY | {"x-ms-meta-a": "b"})
    assert box.blob("PUT", comp="tags", body=b"<Tags><TagSet /></Tags>").status == 204
    assert box.blob("GET", comp="tags").status == 200
    box.lease("release", {"x-ms-lease-id": box.acquire()})
    assert box.blob("PUT", comp="tier", headers={"x-ms-access-tier": "Cool"}).status == 200
    [blob] = box.page({"include": "metadata"}).xml.iter("Blob")
    assert blob.findtext("Properties/CustomerProvidedKeySha256") == KEY[DIGEST]
    metadata = blob.find("Metadata")
    assert metadata is not None
    assert (metadata.attrib, list(metadata)) == ({"Encrypted": "true"}, [])
    assert box.put(body=b"plain again").status == 201
    assert box.get().body == b"plain again"
    box.put(headers=KEY)
    assert box.blob("DELETE").status == 202


def test_metadata_and_snapshots_are_written_with_the_key(box: Box) -> None:
    box.put(headers=KEY)
    reply = box.blob("PUT", comp="metadata", headers=KEY | {"x-ms-meta-a": "b"})
    assert (reply.status, reply[DIGEST]) == (200, KEY[DIGEST])
    moment = box.blob("PUT", comp="snapshot", headers=KEY)["x-ms-snapshot"]
    assert box.get(query={"snapshot": moment}).answer == NEEDS_KEY
    assert box.get(headers=KEY, query={"snapshot": moment}).body == b"hello"
    with settled(box.server, versioning=True):
        version = box.blob("PUT", comp="metadata", headers=KEY)["x-ms-version-id"]
        box.put(body=b"new")
        assert box.get(query={"versionid": version}).answer == NEEDS_KEY
        assert box.get(headers=KEY, query={"versionid": version}).body == b"hello"


def test_metadata_is_stored_encrypted(box: Box) -> None:
    """Whatever wrote it, and in every state that has it."""
    said = f"said-{os.urandom(8).hex()}"
    sent = KEY | {"x-ms-meta-Told": said}

    def told(name: str, **query: str) -> str | None:
        assert box.get(name, KEY, query=query)["x-ms-meta-Told"] == box.head(name, KEY, query=query)["x-ms-meta-Told"]
        return box.blob("GET", name, "metadata", KEY, query=query).header("x-ms-meta-Told")

    box.put("put", headers=sent)
    box.put_block("AAAA", name="list", headers=KEY)
    assert box.put_block_list("<Latest>AAAA</Latest>", "list", sent).status == 201
    box.blob("PUT", "log", headers=sent | {"x-ms-blob-type": "AppendBlob"})
    box.blob("PUT", "log", "appendblock", KEY, b"line")
    box.put("later", headers=KEY)
    assert box.blob("PUT", "later", "metadata", sent).status == 200
    assert [told(name) for name in ("put", "list", "log", "later")] == [said] * 4
    kept = box.blob("PUT", "put", "snapshot", KEY)["x-ms-snapshot"]
    named = box.blob("PUT", "later", "snapshot", KEY | {"x-ms-meta-Told": f"{said}!"})["x-ms-snapshot"]
    assert (told("put", snapshot=kept), told("later", snapshot=named), told("later")) == (said, f"{said}!", said)
    with settled(box.server, versioning=True):
        version = box.blob("PUT", "list", "metadata", KEY | {"x-ms-meta-Told": said.upper()})["x-ms-version-id"]
        box.blob("PUT", "list", "metadata", KEY)
        assert told("list", versionid=version) == said.upper()
    assert box.blob("PUT", "put", "metadata", KEY).status == 200
    assert box.head("put", KEY).metadata == {}
    on_disk = stored_bytes(box)
    assert not any(text.encode() in on_disk for text in (said, said.upper()))


def test_blocks_are_staged_and_committed_with_one_key(box: Box) -> None:
    for block_id, body in (("AAAA", b"a" * 100), ("BBBB", b"b" * 200_000)):
        reply = box.put_block(block_id, body, headers=KEY)
        assert (reply.status, reply[DIGEST]) == (201, KEY[DIGEST])
    both = "<Latest>AAAA</Latest><Latest>BBBB</Latest>"
    assert box.put_block_list(both).answer == NEEDS_KEY
    assert box.put_block_list(both, headers=OTHER).answer == NEEDS_KEY
    reply = box.put_block_list(both, headers=KEY)
    assert (reply.status, reply[DIGEST]) == (201, KEY[DIGEST])
    assert box.get(headers=KEY).body == b"a" * 100 + b"b" * 200_000
    box.put_block("CCCC", b"plain")
    assert box.put_block_list("<Committed>AAAA</Committed><Latest>CCCC</Latest>", headers=KEY).answer == HAS_NONE
    box.put_block("CCCC", b"c", headers=KEY)
    assert box.put_block_list("<Latest>CCCC</Latest><Committed>AAAA</Committed>", headers=KEY).status == 201
    assert box.get(headers=KEY).body == b"c" + b"a" * 100


def test_appends_and_pages_are_written_with_the_key(box: Box) -> None:
    reply = box.blob("PUT", "log", headers=KEY | {"x-ms-blob-type": "AppendBlob"})
    assert (reply.status, reply[DIGEST]) == (201, KEY[DIGEST])
    for headers in ({}, OTHER):
        assert box.blob("PUT", "log", "appendblock", headers, b"line").answer == NEEDS_KEY
    for line in (b"one\n", b"two\n"):
        reply = box.blob("PUT", "log", "appendblock", KEY, line)
        assert (reply.status, reply[DIGEST]) == (201, KEY[DIGEST])
    assert box.get("log", KEY).body == b"one\ntwo\n"
    box.blob("PUT", "disk", headers=KEY | {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "2048"})
    write = {"x-ms-page-write": "update", "x-ms-range": "bytes=512-1535"}
    assert box.blob("PUT", "disk", "page", write, b"p" * 1024).answer == NEEDS_KEY
    assert box.blob("PUT", "disk", "page", write | KEY, b"p" * 1024)[DIGEST] == KEY[DIGEST]
    clear = {"x-ms-page-write": "clear", "x-ms-range": "bytes=512-1023"}
    assert box.blob("PUT", "disk", "page", clear).answer == NEEDS_KEY
    assert box.blob("PUT", "disk", "page", clear | KEY).status == 201
    resize = {"x-ms-blob-content-length": "4096"}
    assert box.blob("PUT", "disk", "properties", resize).answer == NEEDS_KEY
    assert box.blob("PUT", "disk", "properties", resize | KEY).status == 200
    assert box.get("disk", KEY).body == bytes(1024) + b"p" * 512 + bytes(4096 - 1536)
    assert box.blob("GET", "disk", "pagelist").status == 200


@pytest.mark.parametrize("target_key", [{}, KEY, OTHER], ids=["plain", "same", "other"])
def test_a_source_is_read_with_its_own_key(box: Box, target_key: dict[str, str]) -> None:
    body = b"s" * 100_000
    box.put("source", body, KEY)
    sent = {"x-ms-copy-source": signed(box)} | target_key
    new = sent | {"x-ms-blob-type": "BlockBlob"}
    missing = box.blob("PUT", "copy", headers=new)
    assert (missing.status, missing["x-ms-error-code"]) == (409, "CannotVerifyCopySource")
    assert box.blob("PUT", "copy", headers=new | FROM_KEY).status == 201
    assert box.get("copy", target_key).body == body
    assert box.blob("PUT", "blocks", "block", sent | FROM_KEY, query={"blockid": "AAAA"}).status == 201
    assert box.put_block_list("<Latest>AAAA</Latest>", "blocks", target_key).status == 201
    assert box.get("blocks", target_key).body == body
    box.blob("PUT", "log", headers=target_key | {"x-ms-blob-type": "AppendBlob"})
    assert box.blob("PUT", "log", "appendblock", sent | FROM_KEY | {"x-ms-source-range": "bytes=7-99"}).status == 201
    assert box.get("log", target_key).body == body[7:100]
    box.put("plain", body)
    plain = target_key | {"x-ms-copy-source": signed(box, "plain"), "x-ms-blob-type": "BlockBlob"}
    assert box.blob("PUT", "copy", headers=plain).status == 201
    assert box.get("copy", target_key).body == body


def test_copies_that_share_bytes_need_an_unencrypted_source(box: Box) -> None:
    box.put("source", headers=KEY)
    assert copy(box, url(box)).answer == NEEDS_KEY
    assert copy_now(box, signed(box)).status == 409
    assert box.head("copy").status == 404


@pytest.mark.parametrize(
    ("spoil", "answer"),
    [
        (lambda key: key | {"x-ms-encryption-key": "c2hvcnQ="}, (400, "InvalidHeaderValue")),
        (lambda key: key | {"x-ms-encryption-key": "?"}, (400, "InvalidHeaderValue")),
        (lambda key: key | {"x-ms-encryption-algorithm": "ROT13"}, (400, "InvalidHeaderValue")),
        (lambda key: key | {DIGEST: OTHER[DIGEST]}, (400, "InvalidHeaderValue")),
        (lambda key: {name: value for name, value in key.items() if name != DIGEST}, (400, "MissingRequiredHeader")),
        (lambda key: {DIGEST: key[DIGEST]}, (400, "MissingRequiredHeader")),
        (lambda key: {**key, "x-ms-encryption-scope": "scope"}, (400, "InvalidHeaderValue")),
    ],
)
def test_a_key_that_is_not_whole_is_refused(
    box: Box, spoil: Callable[[dict[str, str]], dict[str, str]], answer: tuple[int, str]
) -> None:
    reply = box.put(headers=spoil(KEY))
    assert reply.answer == answer
    assert KEY["x-ms-encryption-key"].encode() not in reply.body
    assert box.head().status == 404


# --- encryption scopes --------------------------------------------------------------------------------------------------------

SCOPE = "x-ms-encryption-scope"


def test_a_scope_of_the_account_is_recorded_and_reported(box: Box) -> None:
    with settled(box.server, encryption_scopes=["finance", "other"]):
        assert box.put(headers={SCOPE: "unknown"}).answer == (404, "EncryptionScopeNotFound")
        assert box.put(headers={SCOPE: "finance"})[SCOPE] == "finance"
        assert (box.get()[SCOPE], box.head()[SCOPE]) == ("finance", "finance")
        assert box.page().xml.findtext("Blobs/Blob/Properties/EncryptionScope") == "finance"
        assert box.blob("PUT", comp="metadata", headers={SCOPE: "finance"})[SCOPE] == "finance"
        assert box.blob("PUT", comp="metadata", headers={SCOPE: "other"}).answer == NEEDS_KEY
        assert copy_now(box, signed(box, "blob"), headers={SCOPE: "other"}).status == 202
        assert box.head("copy")[SCOPE] == "other"
        assert copy_now(box, signed(box, "blob"), headers={SCOPE: "other"})[SCOPE] == "other"
        assert box.put_block("AAAA", headers={SCOPE: "unknown"}).answer == (404, "EncryptionScopeNotFound")
        assert box.put_block("AAAA", headers={SCOPE: "finance"})[SCOPE] == "finance"


def test_a_container_has_a_default_scope_and_may_forbid_others(box: Box) -> None:
    default = {"x-ms-default-encryption-scope": "finance"}
    deny = {"x-ms-deny-encryption-scope-override": "true"}
    assert Box(box.client).container("PUT", headers=default).answer == (404, "EncryptionScopeNotFound")
    with settled(box.server, encryption_scopes=["finance", "other"]):
        free, strict = Box(box.client).create(default), Box(box.client).create(default | deny)
        assert Box(box.client).container("PUT", headers=deny).answer == (400, "MissingRequiredHeader")
        head = strict.container("HEAD")
        assert (head["x-ms-default-encryption-scope"], head["x-ms-deny-encryption-scope-override"]) == ("finance", "true")
        assert free.put()[SCOPE] == "finance"
        assert free.put(headers={SCOPE: "other"})[SCOPE] == "other"
        assert free.put(headers=KEY).header(SCOPE) is None
        assert free.put("source")[SCOPE] == "finance"
        assert strict.put()[SCOPE] == strict.put(headers={SCOPE: "finance"})[SCOPE] == "finance"
        refused = (409, "RequestForbiddenByContainerEncryptionPolicy")
        assert strict.put(headers={SCOPE: "other"}).answer == refused
        assert strict.put(headers=KEY).answer == refused
        for headers in ({SCOPE: "other"}, KEY):
            assert strict.put_block("AAAA", headers=headers).answer == refused
            from_url = headers | {"x-ms-copy-source": signed(free)}
            assert strict.blob("PUT", comp="block", headers=from_url, query={"blockid": "AAAA"}).answer == refused
        assert strict.put_block("AAAA")[SCOPE] == "finance"
        assert strict.put_block_list("<Latest>AAAA</Latest>")[SCOPE] == "finance"
        assert strict.blob("PUT", "log", headers={"x-ms-blob-type": "AppendBlob"})[SCOPE] == "finance"


def test_a_sas_fixes_the_scope(box: Box) -> None:
    def put(headers: dict[str, str] | None = None) -> Reply:
        return box.put(headers=headers, auth=box.sas("cw", ses="finance", sv="2020-12-06"))

    with settled(box.server, encryption_scopes=["finance", "other"]):
        assert put()[SCOPE] == "finance"
        assert put({SCOPE: "finance"}).status == 201
        for headers in ({SCOPE: "other"}, KEY):
            assert put(headers).answer == (403, "AuthorizationPermissionMismatch")

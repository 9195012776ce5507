"""Authorization of file operations: Shared Key, Lite, account SAS, service SAS and stored policies, bearer tokens; CORS."""

import uuid
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.rest.client import ANONYMOUS, VERSION, Reply
from tests.rest.files import DIRECTORY, FileClient, ShareBox
from tests.rest.history import ask_admin
from tests.rest.running import Running, running
from tests.rest.signing import signature
from verditer.config import OAuth

Ask = Callable[[ShareBox, str], Reply]
MISMATCH = (403, "AuthorizationPermissionMismatch")
WRONG_TYPE = (403, "AuthorizationResourceTypeMismatch")
NOT_AT_ALL = (403, "AuthorizationFailure")
FAILED = (403, "AuthenticationFailed")
PROPERTIES = {"restype": "service", "comp": "properties"}
WITH_SNAPSHOTS = {"x-ms-delete-snapshots": "include"}
SDDL = b'{"permission": "O:SYG:SYD:(A;;FA;;;SY)"}'


@pytest.fixture
def tree(share: ShareBox) -> ShareBox:
    share.make("d")
    share.fill(b"content")
    return share


def fresh() -> str:
    return uuid.uuid4().hex


# fmt: off
OPERATIONS: dict[str, tuple[str, str, str, Ask]] = {
    #                          service  srt  account  request
    "ListShares":              ("",      "s", "l",     lambda s, a: s.client.send("GET", "", {"comp": "list"}, auth=a)),
    "GetServiceProperties":    ("",      "s", "r",     lambda s, a: s.client.send("GET", "", PROPERTIES, auth=a)),
    "CreateShare":             ("",      "c", "cw",    lambda s, a: ShareBox(s.client).share("PUT", auth=a)),
    "GetShareProperties":      ("",      "c", "r",     lambda s, a: s.share("GET", auth=a)),
    "GetShareStats":           ("",      "c", "r",     lambda s, a: s.share("GET", "stats", auth=a)),
    "SetShareMetadata":        ("",      "c", "w",     lambda s, a: s.share("PUT", "metadata", auth=a)),
    "SetShareProperties":      ("",      "c", "w",     lambda s, a: s.share("PUT", "properties", auth=a)),
    "SnapshotShare":           ("",      "c", "cw",    lambda s, a: s.share("PUT", "snapshot", auth=a)),
    "GetShareAcl":             ("",      "",  "",      lambda s, a: s.share("GET", "acl", auth=a)),
    "SetShareAcl":             ("",      "",  "",      lambda s, a: s.share("PUT", "acl", auth=a)),
    "CreatePermission":        ("w",     "o", "w",     lambda s, a: s.share("PUT", "filepermission", body=SDDL, auth=a)),
    "List":                    ("l",     "c", "l",     lambda s, a: s.page(auth=a)),
    "CreateDirectory":         ("cw",    "o", "cw",    lambda s, a: s.directory("PUT", fresh(), auth=a)),
    "GetDirectoryProperties":  ("r",     "o", "r",     lambda s, a: s.directory("GET", "d", auth=a)),
    "SetDirectoryProperties":  ("w",     "o", "w",     lambda s, a: s.directory("PUT", "d", "properties", auth=a)),
    "SetDirectoryMetadata":    ("w",     "o", "w",     lambda s, a: s.directory("PUT", "d", "metadata", auth=a)),
    "RenameDirectory":         ("w",     "o", "w",     lambda s, a: s.rename("d", "e", query=DIRECTORY, auth=a)),
    "DeleteDirectory":         ("d",     "o", "d",     lambda s, a: s.directory("DELETE", "d", auth=a)),
    "CreateFile":              ("cw",    "o", "cw",    lambda s, a: s.put(fresh(), auth=a)),
    "GetFile":                 ("r",     "o", "r",     lambda s, a: s.get(auth=a)),
    "GetFileMetadata":         ("r",     "o", "r",     lambda s, a: s.file("GET", comp="metadata", auth=a)),
    "ListRanges":              ("r",     "o", "r",     lambda s, a: s.file("GET", comp="rangelist", auth=a)),
    "SetFileProperties":       ("w",     "o", "w",     lambda s, a: s.file("PUT", comp="properties", auth=a)),
    "SetFileMetadata":         ("w",     "o", "w",     lambda s, a: s.file("PUT", comp="metadata", auth=a)),
    "PutRange":                ("w",     "o", "w",     lambda s, a: s.write(b"x", auth=a)),
    "LeaseFile":               ("w",     "o", "w",     lambda s, a: s.lease("acquire", auth=a)),
    "RenameFile":              ("w",     "o", "w",     lambda s, a: s.rename("file", "other", auth=a)),
    "DeleteFile":              ("d",     "o", "d",     lambda s, a: s.file("DELETE", auth=a)),
    "DeleteShare":             ("",      "c", "d",     lambda s, a: s.share("DELETE", headers=WITH_SNAPSHOTS, auth=a)),
}
# fmt: on


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_account_sas_needs_the_resource_type_and_one_letter(tree: ShareBox, name: str) -> None:
    _, srt, letters, ask = OPERATIONS[name]
    if not srt:
        assert ask(tree, tree.client.account_sas("rwdlc")).answer == NOT_AT_ALL
        return
    others = "".join(letter for letter in "rwdlc" if letter not in letters)
    assert ask(tree, tree.client.account_sas(others)).answer == MISMATCH
    assert ask(tree, tree.client.account_sas("rwdlc", srt="sco".replace(srt, ""))).answer == WRONG_TYPE
    for letter in letters:
        assert ask(tree, tree.client.account_sas(letter, srt=srt)).status < 300


@pytest.mark.parametrize("name", [name for name, row in OPERATIONS.items() if row[1] not in ("", "s")])
def test_a_share_sas_reaches_what_the_share_holds_and_not_the_share(tree: ShareBox, name: str) -> None:
    letters, *_, ask = OPERATIONS[name]
    if name == "CreateShare":
        assert tree.share("PUT", auth=tree.sas("rwdlc")).answer == NOT_AT_ALL
    elif not letters:
        assert ask(tree, tree.sas("rwdlc")).answer == NOT_AT_ALL
    else:
        others = "".join(letter for letter in "rwdlc" if letter not in letters)
        assert ask(tree, tree.sas(others)).answer == MISMATCH
        for letter in letters:
            assert ask(tree, tree.sas(letter)).status < 300


def test_a_file_sas_is_good_for_its_file_alone(tree: ShareBox) -> None:
    tree.put("other")
    sas = tree.sas("rwdc", "file")
    assert tree.get(auth=sas).body == b"content"
    assert tree.write(b"x", auth=sas).status == 201
    for reply in (tree.get("other", auth=sas), tree.directory("GET", "d", auth=sas), tree.page(auth=sas)):
        assert reply.answer == FAILED
    assert tree.file("DELETE", auth=sas).status == 202
    assert tree.put(auth=sas).status == 201


def test_a_sas_of_another_share_or_service_is_refused(files: FileClient, tree: ShareBox) -> None:
    other = ShareBox(files).create()
    assert tree.get(auth=other.sas("r")).answer == FAILED
    assert tree.get(auth=files.account_sas("r", ss="b")).answer == (403, "AuthorizationServiceMismatch")
    assert tree.get(auth=tree.sas("r").replace("sp=r", "sp=rw")).answer == FAILED


def test_create_alone_does_not_overwrite(tree: ShareBox) -> None:
    assert tree.put("new", auth=tree.sas("c")).status == 201
    assert tree.put("new", auth=tree.sas("c")).status == 403
    assert tree.put("new", auth=tree.sas("w")).status == 201


def test_a_sas_ends_at_its_expiry_and_says_so(tree: ShareBox) -> None:
    sas = tree.sas("r", se=tree.client.moment(60))
    assert tree.get(auth=sas).status == 200
    tree.server.move_clock(61)
    reply = tree.get(auth=sas)
    assert reply.answer == FAILED
    assert reply.detail("AuthenticationErrorDetail")


def test_a_sas_overrides_the_headers_of_a_download(tree: ShareBox) -> None:
    overrides = {
        "rscc": ("Cache-Control", "no-store"),
        "rscd": ("Content-Disposition", "inline"),
        "rsce": ("Content-Encoding", "utf-8"),
        "rscl": ("Content-Language", "fr"),
        "rsct": ("Content-Type", "text/x-test"),
    }
    sas = tree.sas("r", "file", **{field: value for field, (_, value) in overrides.items()})
    reply = tree.get(auth=sas)
    assert {name: reply[name] for name, _ in overrides.values()} == dict(overrides.values())
    assert tree.get()["Content-Type"] == "application/octet-stream"
    assert tree.get(auth=sas.replace("x-test", "html")).answer == FAILED


def test_a_stored_policy_gives_what_the_token_leaves_out_and_takes_it_back_at_once(tree: ShareBox) -> None:
    def policy(permission: str) -> bytes:
        inner = f"<Start>{tree.client.moment(-60)}</Start><Expiry>{tree.client.moment(600)}</Expiry>"
        inner += f"<Permission>{permission}</Permission>"
        return (
            f"<SignedIdentifiers><SignedIdentifier><Id>worker</Id><AccessPolicy>{inner}</AccessPolicy>"
            "</SignedIdentifier></SignedIdentifiers>"
        ).encode()

    for sas in (tree.sas(si="worker"), tree.sas(si="worker", file="file")):
        assert tree.get(auth=sas).answer == FAILED
        assert tree.share("PUT", "acl", body=policy("r")).status == 200
        assert tree.get(auth=sas).status == 200
        assert tree.write(b"x", auth=sas).answer == MISMATCH
        assert tree.share("PUT", "acl", body=policy("w")).status == 200
        assert tree.get(auth=sas).answer == MISMATCH
        assert tree.write(b"x", auth=sas).status == 201
        assert tree.share("PUT", "acl").status == 200
        assert tree.write(b"x", auth=sas).answer == FAILED


def test_shared_key_lite_is_accepted(tree: ShareBox) -> None:
    path, date = f"/{tree.server.account}{tree.path}/file", formatdate(tree.server.now(), usegmt=True)
    headers = {"x-ms-date": date, "x-ms-version": VERSION}
    text = f"GET\n\n\n\nx-ms-date:{date}\nx-ms-version:{VERSION}\n/{tree.server.account}{path}?comp=metadata"
    headers["Authorization"] = f"SharedKeyLite {tree.server.account}:{signature(tree.server.key, text)}"
    assert tree.client.exchange("GET", f"{path}?comp=metadata", list(headers.items())).status == 200
    headers["Authorization"] = f"SharedKeyLite {tree.server.account}:{signature(tree.server.key, text + 'x')}"
    assert tree.client.exchange("GET", f"{path}?comp=metadata", list(headers.items())).answer == FAILED


def test_a_host_may_name_the_account(tree: ShareBox) -> None:
    host = f"{tree.server.account}.file.localhost"
    assert tree.client.send("GET", f"{tree.path}/file", host=host).body == b"content"


def test_nobody_reaches_nothing(tree: ShareBox) -> None:
    for *_, ask in OPERATIONS.values():
        assert ask(tree, ANONYMOUS).answer == (401, "NoAuthenticationInformation")


# Bearer tokens


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[ShareBox]:
    with running(tmp_path, in_memory=True, oauth=OAuth(mode="development")) as server:
        client = FileClient(server)
        share = ShareBox(client).create()
        share.fill(b"content")
        yield share
        client.close()


def bearer(server: Running, intent: str | None = "backup") -> dict[str, str]:
    status, document = ask_admin(server, "POST", "/control/token", {})
    assert status == 200
    return {"Authorization": f"Bearer {document['access_token']}", **({"x-ms-file-request-intent": intent} if intent else {})}


def test_a_bearer_token_needs_the_intent_of_a_backup(tokens: ShareBox) -> None:
    for share, headers in ((tokens, bearer(tokens.server)), (tokens, bearer(tokens.server, "Backup"))):
        assert share.get(headers=headers, auth=ANONYMOUS).body == b"content"
        assert share.page(headers=headers, auth=ANONYMOUS).status == 200
        assert share.share("GET", headers=headers, auth=ANONYMOUS).status == 200
        assert share.client.send("GET", "", {"comp": "list"}, headers, auth=ANONYMOUS).status == 200
    for intent in (None, "restore"):
        assert tokens.get(headers=bearer(tokens.server, intent), auth=ANONYMOUS).status in (400, 403)


# Routes, errors, CORS


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("POST", "/some-share", {"restype": "share"}, 405),
        ("PUT", "", {"comp": "list"}, 405),
        ("GET", "/some-share", {"restype": "share", "comp": "nonsense"}, 400),
        ("GET", "/some-share/file", {"comp": "nonsense"}, 400),
        ("GET", "/some-share/file", {"restype": "nonsense"}, 400),
        ("POST", "", {"restype": "service", "comp": "userdelegationkey"}, 403),  # by the account key
    ],
)
def test_what_is_no_operation_is_refused(files: FileClient, method: str, path: str, query: dict[str, str], status: int) -> None:
    body = b"<KeyInfo/>" if method == "POST" else None
    assert files.send(method, path, query, body=body).status == status


def test_an_error_has_its_code_in_a_header_and_its_words_in_a_document(share: ShareBox) -> None:
    reply = share.get("no", {"x-ms-client-request-id": "mine"})
    assert reply.detail("Code") == reply["x-ms-error-code"] == "ResourceNotFound"
    assert (reply.detail("Message") or "").startswith("The specified resource does not exist.\nRequestId:")
    assert reply["x-ms-client-request-id"] == "mine"
    head = share.head("no")
    assert (head.answer, head.body) == ((404, "ResourceNotFound"), b"")
    wrong = share.put(headers={"x-ms-file-attributes": "Blue"})
    assert (wrong.detail("HeaderName"), wrong.detail("HeaderValue")) == ("x-ms-file-attributes", "Blue")


def test_cors_rules_answer_preflights(share: ShareBox) -> None:
    rule = (
        "<CorsRule><AllowedOrigins>http://a.example</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>"
        "<AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-request-id</ExposedHeaders>"
        "<MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
    )
    document = f"<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>".encode()
    assert share.client.send("PUT", "", PROPERTIES, body=document).status == 202
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "PUT"}
    preflight = share.client.send("OPTIONS", f"{share.path}/file", headers=asked, auth=ANONYMOUS)
    assert (preflight.status, preflight["Access-Control-Allow-Origin"]) == (200, "http://a.example")
    other = share.client.send("OPTIONS", share.path, headers={**asked, "Origin": "http://b.example"}, auth=ANONYMOUS)
    assert other.answer == (403, "CorsPreflightFailure")
    assert share.page(headers={"Origin": "http://a.example"})["Access-Control-Allow-Origin"] == "http://a.example"
    empty = b"<StorageServiceProperties><Cors /></StorageServiceProperties>"
    assert share.client.send("PUT", "", PROPERTIES, body=empty).status == 202
    assert share.client.send("OPTIONS", share.path, headers=asked, auth=ANONYMOUS).answer == (403, "CorsPreflightFailure")

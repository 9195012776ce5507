"""Blob Batch: many deletes or tier changes in one request, each with its own authorization and response."""

from collections.abc import Iterator, Sequence
from email.utils import formatdate
from typing import NamedTuple

import pytest

from tests.conftest import watched
from tests.rest import signing
from tests.rest.client import ANONYMOUS, VERSION, Box, Client, Reply
from tests.rest.running import Running

BOUNDARY = "batch_1d2c"
COOL = (("x-ms-access-tier", "Cool"), ("Content-Length", "0"))


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


class Answer(NamedTuple):
    content_id: str
    status: int
    headers: dict[str, str]
    body: str

    @property
    def code(self) -> tuple[int, str | None]:
        return self.status, self.headers.get("x-ms-error-code")


def part(
    box: Box,
    number: int,
    name: str,
    method: str = "DELETE",
    headers: Sequence[tuple[str, str]] = (),
    *,
    query: str = "",
    sas: str = "",
    path: str = "",
) -> str:
    """One request, signed with the account key unless a SAS is given. Its version is the batch's and is not signed."""
    path = path or f"/{box.client.account}{box.path}/{name}"
    sent = list(headers)
    if not sas:
        sent.append(("x-ms-date", formatdate(box.server.now(), usegmt=True)))
        signed = signing.shared_key(box.server.account, box.server.key, method, path, query, sent)
        sent.append(("Authorization", signed))
    text = "&".join(filter(None, (query, sas)))
    lines = [f"{method} {path}{'?' + text if text else ''} HTTP/1.1", *(f"{header}: {value}" for header, value in sent)]
    head = f"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {number}\r\n\r\n"
    return head + "\r\n".join(lines) + "\r\n\r\n"


def submit(box: Box, parts: Sequence[str], *, container: bool = False, auth: str = "key", content_type: str = "") -> Reply:
    body = "".join([f"--{BOUNDARY}\r\n{one}\r\n" for one in parts]) + f"--{BOUNDARY}--\r\n"
    headers = {"Content-Type": content_type or f"multipart/mixed; boundary={BOUNDARY}"}
    if container:
        return box.container("POST", "batch", headers, body=body.encode(), auth=auth)
    return box.client.send("POST", "/", {"comp": "batch"}, headers, body.encode(), auth=auth)


def answers(reply: Reply) -> list[Answer]:
    assert reply.status == 202, reply.body
    boundary = reply["Content-Type"].partition("boundary=")[2]
    assert reply["Content-Type"].startswith("multipart/mixed; boundary=batchresponse_")
    text = reply.body.decode()
    assert text.endswith(f"--{boundary}--\r\n")
    return [_answer(piece) for piece in text.split(f"--{boundary}\r\n")[1:]]


def _answer(piece: str) -> Answer:
    outer, _, rest = piece.partition("\r\n\r\n")
    head, _, body = rest.partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    number = dict(line.split(": ", 1) for line in outer.split("\r\n"))["Content-ID"]
    return Answer(number, int(status.split()[1]), headers, body[: int(headers["Content-Length"])])


@pytest.mark.parametrize("container", [False, True])
def test_blobs_are_deleted_together_and_each_has_its_answer(box: Box, container: bool) -> None:
    for name in ("a", "b", "c"):
        box.put(name)
    box.acquire(-1, "b")
    parts = [part(box, 0, "a"), part(box, 1, "b"), part(box, 2, "absent"), part(box, 3, "c")]
    found = answers(submit(box, parts, container=container))
    assert [answer.content_id for answer in found] == ["0", "1", "2", "3"]
    assert [answer.code for answer in found] == [(202, None), (412, "LeaseIdMissing"), (404, "BlobNotFound"), (202, None)]
    assert found[0].headers["x-ms-delete-type-permanent"] == "true"
    assert "<Code>BlobNotFound</Code>" in found[2].body
    assert len({answer.headers["x-ms-request-id"] for answer in found}) == 4
    assert {answer.headers["x-ms-version"] for answer in found} == {VERSION}
    assert box.names() == ["b"]


def test_the_reason_of_a_part_is_the_message(box: Box) -> None:
    box.put("a")
    text = submit(box, [part(box, 0, "a"), part(box, 1, "absent")]).body.decode()
    lines = [line for line in text.split("\r\n") if line.startswith("HTTP/1.1")]
    assert lines == ["HTTP/1.1 202 Accepted", "HTTP/1.1 404 The specified blob does not exist."]  # recorded


def test_headers_of_a_part_are_its_own(box: Box) -> None:
    etag = box.put("a")["ETag"]
    lease = box.acquire(-1, "a")
    box.put("b")
    box.put("c")
    box.blob("PUT", "b", "snapshot")
    parts = [
        part(box, 0, "c", headers=[("If-Match", '"0x1"')]),
        part(box, 1, "a", headers=[("If-Match", etag), ("x-ms-lease-id", lease)]),
        part(box, 2, "b", headers=[("x-ms-delete-snapshots", "include")]),
    ]
    found = answers(submit(box, parts))
    assert [answer.code for answer in found] == [(412, "ConditionNotMet"), (202, None), (202, None)]
    assert box.names({"include": "snapshots"}) == ["c"]


@pytest.mark.parametrize("container", [False, True])
def test_tiers_are_set_together(box: Box, container: bool) -> None:
    box.put("a")
    box.put("b", headers={"x-ms-access-tier": "Archive"})
    parts = [part(box, n, name, "PUT", COOL, query="comp=tier") for n, name in enumerate(("a", "b", "absent"))]
    found = answers(submit(box, parts, container=container))
    assert [answer.code for answer in found] == [(200, None), (202, None), (404, "BlobNotFound")]
    assert box.head("a")["x-ms-access-tier"] == "Cool"
    assert box.head("b")["x-ms-archive-status"] == "rehydrate-pending-to-cool"


def test_every_part_is_authorized_by_itself(box: Box) -> None:
    for name in "abcd":
        box.put(name)
    parts = [
        part(box, 0, "a", sas=box.sas("d")),
        part(box, 1, "b", sas=box.sas("r")),
        part(box, 2, "c", sas="sv=2021-08-06&sig=x&sr=b&sp=d&se=2099-01-01"),
        part(box, 3, "d").replace("Authorization: SharedKey", "X-Other: SharedKey"),
    ]
    found = answers(submit(box, parts))
    assert [answer.code for answer in found] == [
        (202, None),
        (403, "AuthorizationPermissionMismatch"),
        (403, "AuthenticationFailed"),
        (401, "NoAuthenticationInformation"),
    ]
    assert box.names() == ["b", "c", "d"]


def test_the_batch_is_authorized_too(box: Box) -> None:
    box.put("a")
    parts = [part(box, 0, "a")]
    assert submit(box, parts, auth=ANONYMOUS).answer == (401, "NoAuthenticationInformation")
    assert submit(box, parts, container=True, auth=ANONYMOUS).answer == (401, "NoAuthenticationInformation")
    assert box.names() == ["a"]
    assert answers(submit(box, parts, container=True, auth=box.sas("r")))[0].status == 202


def test_all_parts_ask_for_the_same(box: Box) -> None:
    box.put("a")
    mixed = [part(box, 0, "a"), part(box, 1, "a", "PUT", COOL, query="comp=tier")]
    assert submit(box, mixed).answer == (400, "AllBatchSubRequestsShouldBeSameApi")
    assert box.names() == ["a"]


@pytest.mark.parametrize(
    ("method", "query"),
    [("GET", ""), ("PUT", "comp=metadata"), ("DELETE", "restype=container"), ("PUT", ""), ("POST", "comp=batch")],
)
def test_other_operations_are_not_taken(box: Box, method: str, query: str) -> None:
    assert submit(box, [part(box, 0, "a", method, query=query)]).answer == (400, "InvalidInput")


def test_a_batch_stays_in_its_container_and_account(box: Box) -> None:
    outside = part(box, 0, "a", path=f"/{box.client.account}/elsewhere/a")
    assert submit(box, [outside], container=True).answer == (400, "InvalidInput")
    assert answers(submit(box, [outside]))[0].code == (404, "ContainerNotFound")
    stranger = part(box, 0, "a", path=f"/stranger{box.path}/a")
    assert answers(submit(box, [stranger]))[0].code == (404, "ContainerNotFound")  # a path without an account
    assert submit(box, [part(box, 0, "a", path="/elsewhere/a")], container=True).answer == (400, "InvalidInput")


@pytest.mark.parametrize("container", [False, True])
@pytest.mark.parametrize("slash", ["/", ""])
def test_a_part_may_leave_the_account_to_the_batch(box: Box, container: bool, slash: str) -> None:
    """So does the library for Python, except with localhost. Without a slash, as .NET was seen to send parts, it is the same."""
    for name in ("a", "b", "c"):
        box.put(name)
    relative, whole = f"/{box.name}", f"/{box.client.account}/{box.name}"
    parts = [
        part(box, 0, "a", path=f"{relative}/a"),
        part(box, 1, "b", path=f"{relative}/b", sas=box.sas("d")),
        part(box, 2, "c", path=f"{whole}/c"),
        part(box, 3, "a", path=f"{relative}/a", sas=box.sas("r")),
    ]
    sent = [one.replace("DELETE /", f"DELETE {slash}") for one in parts]
    codes = [answer.code for answer in answers(submit(box, sent, container=container))]
    assert codes == [*[(202, None)] * 3, (403, "AuthorizationPermissionMismatch")]
    assert box.names() == []
    assert box.client.send("DELETE", relative, auth=box.sas("d"), host="127.0.0.1").status == 404  # in a batch only


def test_a_batch_on_the_secondary_deletes_nothing(box: Box) -> None:
    box.put("a")
    client = Client(box.server, account=f"{box.server.account}-secondary")
    body = f"--{BOUNDARY}\r\n{part(box, 0, 'a', path=f'/{box.name}/a')}\r\n--{BOUNDARY}--\r\n".encode()
    headers = {"Content-Type": f"multipart/mixed; boundary={BOUNDARY}"}
    reply = client.send("POST", "/", {"comp": "batch"}, headers, body)
    assert reply.answer == (403, "InsufficientAccountPermissions")
    assert box.names() == ["a"]
    client.close()


def test_a_batch_has_limits(box: Box) -> None:
    sas = box.sas("d")
    parts = [part(box, number, f"b{number}", sas=sas) for number in range(257)]
    assert submit(box, parts).answer == (400, "ExceedsMaxBatchRequestCount")
    assert {answer.code for answer in answers(submit(box, parts[:256]))} == {(404, "BlobNotFound")}
    assert submit(box, []).answer == (400, "InvalidInput")
    large = part(box, 0, "a", headers=[("x-ms-meta-a", "x" * (4 << 20))])
    assert submit(box, [large]).answer == (413, "RequestBodyTooLarge")


@pytest.mark.parametrize("content_type", ["application/json", "multipart/mixed", "multipart/form-data; boundary=x"])
def test_a_body_that_is_no_batch_is_refused(box: Box, content_type: str) -> None:
    assert submit(box, [part(box, 0, "a")], content_type=content_type).answer == (400, "InvalidInput")


@pytest.mark.parametrize("text", ["DELETE", "DELETE /a/b", "\r\n\r\nnonsense\r\n", "DELETE /a/b HTTP/1.1 more"])
def test_a_part_that_is_no_request_is_refused(box: Box, text: str) -> None:
    assert submit(box, [f"Content-Type: application/http\r\nContent-ID: 0\r\n\r\n{text}\r\n"]).answer == (400, "InvalidInput")


@pytest.mark.parametrize("version", [VERSION, "2019-12-12", "nonsense"])
@pytest.mark.parametrize("signed", ["key", "sas"])
def test_a_part_may_name_a_version_and_is_served_in_the_version_of_the_batch(box: Box, version: str, signed: str) -> None:
    """The object_store crate names one in every part. Blob Batch: the version of the batch is used for all subrequests."""
    box.put("a")
    sas = box.sas("d") if signed == "sas" else ""
    (found,) = answers(submit(box, [part(box, 0, "a", headers=[("x-ms-version", version)], sas=sas)]))
    assert found.code == (202, None)
    assert found.headers["x-ms-version"] == VERSION

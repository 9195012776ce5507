"""Entity group transactions over HTTP: the form of responses, atomicity, and lenient parsing."""

import json

import pytest

from tests.rest.history_fixtures import server
from tests.rest.table_fixtures import box, client
from tests.rest.tables import FULL, NONE, TableBox, TableClient, answers, changeset, json_of, message, refusal, send_batch
from tests.rest.tables import entity_path as path_of

__all__ = ["box", "client", "server"]  # fixtures

BATCH = {"Content-Type": "multipart/mixed; boundary=batch_1"}
MISSING = "The specified resource does not exist."
STALE = "W/\"datetime'2000-01-01T00%3A00%3A00Z'\""


def test_every_verb_in_one_batch(box: TableBox) -> None:  # T603, T608, T610, §5.2
    # contract T3, T4
    for row in ("update", "merge", "delete"):
        box.insert(row_key=row, known={"A": 1})
    reply = box.batch(
        box.part("POST", "insert", {"A": 1}),
        box.part("POST", "silent", {"A": 1}, Prefer="return-no-content"),
        box.part("PUT", "update", {"B": 2}, If_Match="*"),
        box.part("MERGE", "merge", {"B": 2}, If_Match=box.get(row_key="merge")["ETag"]),
        box.part("PATCH", "upmerge", {"B": 2}),
        box.part("PUT", "upreplace", {"B": 2}),
        box.part("DELETE", "delete", If_Match="*"),
        box.part("POST", "tunnel", {"B": 2}).replace(f"/{box.name} ", f"{path_of(box.name, 'p', 'tunnel')} ").replace(
            "Accept", "X-HTTP-Method: MERGE\r\nAccept"
        ),
    )  # fmt: skip
    assert (reply.status, reply["Cache-Control"], reply["X-Content-Type-Options"]) == (202, "no-cache", "nosniff")
    boundary = reply["Content-Type"].partition("multipart/mixed; boundary=")[2]
    assert boundary.startswith("batchresponse_")
    assert reply.body.startswith(f"--{boundary}\r\nContent-Type: multipart/mixed; boundary=changesetresponse_".encode())
    assert reply.body.endswith(f"--{boundary}--\r\n".encode())
    found = answers(reply)
    assert [answer.status for answer in found] == [201, 204, 204, 204, 204, 204, 204, 204]
    inserted, silent, updated, *_, deleted, _ = found
    assert json_of(inserted)["A"] == 1
    assert inserted["DataServiceVersion"] == "3.0;"
    assert inserted["Location"] == f"{box.client.base}{path_of(box.name, 'p', 'insert')}"
    assert (silent["Preference-Applied"], silent["DataServiceId"]) == ("return-no-content", silent["Location"])
    assert (updated["DataServiceVersion"], updated["ETag"]) == ("1.0;", box.get(row_key="update")["ETag"])
    assert "ETag" not in deleted
    assert box.rows() == ["insert", "merge", "silent", "tunnel", "update", "upmerge", "upreplace"]
    assert {"A", "B"} <= set(json_of(box.get(row_key="merge")))
    assert "A" not in json_of(box.get(row_key="update"))


FAILURES = [
    ("insert of what exists", "POST", "there", {}, 409, "EntityAlreadyExists", "The specified entity already exists."),  # T625
    ("update of nothing", "PUT", "missing", {"If_Match": "*"}, 404, "ResourceNotFound", MISSING),
    ("delete of nothing", "DELETE", "missing", {"If_Match": "*"}, 404, "ResourceNotFound", MISSING),
    ("stale update", "PUT", "there", {"If_Match": STALE}, 412, "UpdateConditionNotSatisfied",  # T627
     "The update condition specified in the request was not satisfied."),
    ("stale merge", "MERGE", "there", {"If_Match": STALE}, 412, "UpdateConditionNotSatisfied",
     "The update condition specified in the request was not satisfied."),
    ("stale delete", "DELETE", "there", {"If_Match": STALE}, 412, "UpdateConditionNotSatisfied",
     "The update condition specified in the request was not satisfied."),
    ("malformed etag", "PUT", "there", {"If_Match": "x"}, 400, "InvalidInput",
     "The etag value 'x' specified in one of the request headers is not valid."),
    ("delete without etag", "DELETE", "there", {}, 400, "InvalidInput", "One of the request inputs is not valid."),
]  # fmt: skip


@pytest.mark.parametrize(("case", "verb", "row", "headers", "status", "code", "text"), FAILURES, ids=[f[0] for f in FAILURES])
@pytest.mark.parametrize("index", [0, 3, 5])
def test_a_batch_that_fails_changes_nothing(
    box: TableBox, case: str, verb: str, row: str, headers: dict[str, str], status: int, code: str, text: str, index: int
) -> None:
    # contract T4, G7; race T1, T2, T3; T620
    for each in ("there", "a", "b", "c"):
        box.insert(row_key=each, known={"A": 1})
    before = box.query().body
    good = [
        box.part("POST", "new", {"A": 1}),
        box.part("PUT", "a", {"B": 2}, If_Match="*"),
        box.part("MERGE", "b", {"B": 2}),
        box.part("DELETE", "c", If_Match="*"),
        box.part("PUT", "other", {"B": 2}),
    ]
    failing = box.part(verb, row, {"B": 3}, **headers)
    reply = box.batch(*good[:index], failing, *good[index:])
    [answer] = answers(reply)
    assert (refusal(answer), message(answer)) == ((status, code), f"{index}:{text}")
    assert answer["Content-Type"] == "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
    assert answer["DataServiceVersion"] == "3.0;"
    assert box.query().body == before


def test_a_batch_stays_in_one_partition(box: TableBox) -> None:  # T605, T622
    # contract T4; race T4
    for parts in (
        (box.part("POST", "1"), box.part("POST", "2", partition_key="q")),
        (box.part("PUT", "1"), box.part("MERGE", "1", partition_key="q")),
        (box.part("POST", "1"), box.part("DELETE", "2", partition_key="q", If_Match="*")),
    ):
        [answer] = answers(box.batch(*parts))
        assert refusal(answer) == (400, "CommandsInBatchActOnDifferentPartitions")
        assert message(answer) == "1:All commands in a batch must operate on same entity group."
    assert box.rows() == []


def test_a_batch_stays_in_one_table(box: TableBox) -> None:  # T630
    other = TableBox(box.client).create()
    [answer] = answers(box.batch(box.part("POST", "1"), other.part("POST", "2")))
    assert refusal(answer) == (400, "InvalidInput")
    assert box.rows() + other.rows() == []


def test_an_entity_appears_once(box: TableBox) -> None:  # T623
    [answer] = answers(box.batch(box.part("POST", "1"), box.part("PUT", "1", {"A": 1})))
    assert refusal(answer) == (400, "InvalidDuplicateRow")
    assert message(answer) == (
        "1:The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    )
    assert box.rows() == []


def test_a_batch_has_at_most_a_hundred_changes(box: TableBox) -> None:  # T604, T624
    [answer] = answers(box.batch(*[box.part("PUT", f"{number:03}") for number in range(101)]))
    assert refusal(answer) == (400, "InvalidInput")
    assert message(answer) == "99:The batch request operation exceeds the maximum 100 changes per change set."
    assert box.rows() == []
    assert len(answers(box.batch(*[box.part("PUT", f"{number:03}") for number in range(100)]))) == 100
    assert len(box.rows()) == 100


def test_a_batch_on_a_missing_table(box: TableBox) -> None:  # T628
    gone = TableBox(box.client)
    [answer] = answers(box.batch(gone.part("POST", "1")))
    assert (refusal(answer), message(answer)) == ((404, "TableNotFound"), "0:The table specified does not exist.")


@pytest.mark.parametrize(
    ("name", "code"), [("a", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput"), ("a_b", "InvalidResourceName")]
)
@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE"])
def test_a_part_with_a_bad_table_name_is_refused(box: TableBox, verb: str, name: str, code: str) -> None:
    """Seen on Azure, as is the phrase of the response."""
    [answer] = answers(box.batch(TableBox(box.client, name).part(verb, "r", If_Match="*")))
    assert (refusal(answer), answer.reason) == ((400, code), "Bad Request")


def test_a_bad_entity_fails_the_batch_at_its_place(box: TableBox) -> None:
    [answer] = answers(box.batch(box.part("POST", "1"), box.part("POST", "2", {"a-b": 1})))
    assert (refusal(answer), message(answer)) == ((400, "PropertyNameInvalid"), "1:The property name is invalid.")
    assert box.rows() == []


def test_a_batch_over_four_mebibytes_is_refused_outside(box: TableBox) -> None:  # T629
    reply = box.batch(*[box.part("PUT", str(number), {"A": "x" * 30000, "B": "x" * 30000}) for number in range(80)])
    assert refusal(reply) == (413, "RequestBodyTooLarge")
    assert box.rows() == []


def query_part(box: TableBox, path: str, accept: str = NONE) -> bytes:
    request = f"GET {box.client.base}{path} HTTP/1.1\r\nAccept: {accept}\r\n\r\n".encode()
    head = b"--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    return head + request + b"\r\n"


def test_a_query_may_stand_alone_in_a_batch(box: TableBox) -> None:  # T606, T613
    box.insert(known={"A": 1})

    def send(*parts: bytes) -> bytes:
        return b"".join(parts) + b"--batch_1--\r\n"

    by_key = box.client.send("POST", "/$batch", headers=BATCH, body=send(query_part(box, path_of(box.name, "p", "r"))))
    [answer] = answers(by_key)
    assert (answer.status, answer["ETag"], json_of(answer)["A"]) == (200, box.get()["ETag"], 1)
    page = box.client.send("POST", "/$batch", headers=BATCH, body=send(query_part(box, f"/{box.name}()?$filter=A%20eq%201")))
    assert len(json_of(answers(page)[0])["value"]) == 1
    two = send(query_part(box, f"/{box.name}()"), query_part(box, f"/{box.name}()"))  # T631
    assert refusal(box.client.send("POST", "/$batch", headers=BATCH, body=two)) == (400, "InvalidInput")
    mixed = query_part(box, f"/{box.name}()") + changeset(box.part("POST", "x").encode())
    assert refusal(box.client.send("POST", "/$batch", headers=BATCH, body=mixed)) == (400, "InvalidInput")
    alone = send(query_part(box, f"/{box.name}()").replace(b"GET", b"POST"))
    assert refusal(box.client.send("POST", "/$batch", headers=BATCH, body=alone)) == (400, "InvalidInput")
    assert box.rows() == ["r"]


def test_what_a_query_in_a_batch_does_not_find_is_reported_inside(box: TableBox) -> None:  # T613
    for path, expected in (
        (path_of(box.name, "p", "none"), (404, "ResourceNotFound")),
        ("/nowhere()", (404, "TableNotFound")),
        (f"/{box.name}()?$filter=((", (400, "InvalidInput")),
    ):
        reply = box.client.send("POST", "/$batch", headers=BATCH, body=query_part(box, path) + b"--batch_1--\r\n")
        [answer] = answers(reply)
        assert refusal(answer) == expected


def test_the_secondary_answers_queries_in_batches_and_makes_no_changes(box: TableBox) -> None:  # T901
    box.insert()
    client = TableClient(box.server, account=f"{box.server.account}-secondary")
    for base in (box.client.base, f"{box.client.base}-secondary"):
        body = query_part(box, path_of(box.name, "p", "r")).replace(box.client.base.encode(), base.encode())
        [answer] = answers(client.send("POST", "/$batch", headers=BATCH, body=body + b"--batch_1--\r\n"))
        assert answer.status == 200
    assert refusal(send_batch(client, box.part("PUT", "x"))) == (403, "InsufficientAccountPermissions")
    assert box.rows() == ["r"]
    client.close()


@pytest.mark.parametrize("behind", ["undefined", "{}", "\r\n"])
def test_what_stands_behind_a_deletion_is_overlooked(box: TableBox, behind: str) -> None:
    box.insert()
    [answer] = answers(box.batch(box.part("DELETE", If_Match="*") + behind))
    assert answer.status == 204
    assert box.rows() == []


def test_a_header_that_comes_twice_in_a_part_is_both(box: TableBox) -> None:  # T130, T322
    box.insert()
    twice = box.part("PUT", If_Match=STALE).replace("Accept", "If-Match: *\r\nAccept", 1)
    assert refusal(answers(box.batch(twice))[0]) == (400, "InvalidInput")
    verbs = box.part("POST", X_HTTP_Method="MERGE").replace("Accept", "X-HTTP-Method: PUT\r\nAccept", 1)
    assert refusal(answers(box.batch(verbs))[0]) == (400, "XMethodIncorrectCount")


def test_the_head_of_a_part_is_no_longer_than_it_needs_to_be(box: TableBox) -> None:
    """Processing it would delay other requests."""
    for part in (
        box.part("PUT").replace(" HTTP/1.1", f"?x={'y' * 32768} HTTP/1.1", 1),
        box.part("PUT", X_Long="y" * 16384),
        box.part("PUT").replace("Accept", "X: y\r\n" * 100 + "Accept", 1),
        box.part("PUT").replace("PUT", "PUT" * 50_000, 1),
    ):
        [answer] = answers(box.batch(part))
        assert refusal(answer) == (400, "InvalidInput")
    filter = f"/{box.name}()?$filter={'(' * 32768}"
    reply = box.client.send("POST", "/$batch", headers=BATCH, body=query_part(box, filter) + b"--batch_1--\r\n")
    assert refusal(reply) == (400, "InvalidInput")


def test_far_too_many_parts_are_too_many(box: TableBox) -> None:
    [answer] = answers(box.batch(*[b"x"] * 5000))
    assert (refusal(answer), message(answer)[:3]) == ((400, "InvalidInput"), "99:")


@pytest.mark.parametrize(
    "body",  # T607, T631, T632
    [
        b"",
        b"nonsense",
        changeset(),
        changeset(b"POST /x"),
        changeset(b"GET http://h/devstoreaccount1/tbl() HTTP/1.1\r\n\r\n"),
        changeset(b'POST http://h/devstoreaccount1/Tables HTTP/1.1\r\n\r\n{"TableName":"abcd"}'),
        changeset(b"DELETE http://h/devstoreaccount1/Tables('abcd') HTTP/1.1\r\nIf-Match: *\r\n\r\n"),
        changeset(b"PUT http://h/devstoreaccount1/abc(PartitionKey='p',RowKey='1') HTTP/1.1\r\n\r\n{}").removesuffix(
            b"--batch_1--\r\n"
        )
        + changeset(b"PUT http://h/devstoreaccount1/abc(PartitionKey='p',RowKey='2') HTTP/1.1\r\n\r\n{}"),
    ],
)
def test_what_is_no_batch_is_refused(box: TableBox, body: bytes) -> None:
    reply = box.client.send("POST", "/$batch", headers=BATCH, body=body)
    found = answers(reply)[0] if reply.status == 202 else reply
    assert refusal(found) == (400, "InvalidInput")


def test_a_batch_needs_a_boundary(box: TableBox) -> None:
    body = changeset(box.part("POST", "1").encode())
    for content_type in ("application/json", "multipart/mixed", "text/plain; boundary=batch_1"):
        reply = box.client.send("POST", "/$batch", headers={"Content-Type": content_type}, body=body)
        assert refusal(reply) == (400, "InvalidInput")


def test_a_batch_is_read_leniently(box: TableBox) -> None:  # T600, T601, T602
    def part(number: int, target: str, headers: str = "") -> str:
        body = json.dumps({"PartitionKey": "p", "RowKey": str(number), "A": number})
        return (
            "--changeset_1\r\ncontent-TYPE: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 7\r\n\r\n"
            f"PUT {target} HTTP/1.1\r\ncontent-type: application/json\r\n{headers}\r\n{body}\r\n"
        )

    path = f"{box.name}(PartitionKey='p',RowKey='%s')"
    account = box.server.account
    parts = [
        part(1, f"https://{account}.table.core.windows.net/{path % 1}"),
        part(2, f"http://127.0.0.1:1/{account}/{path % 2}?timeout=30"),
        part(3, f"/{account}/{path % 3}"),
        part(4, path % 4, "Content-Length: 41\r\n"),
    ]
    head = 'preamble\r\n--b _q\r\nContent-Type: multipart/mixed; boundary="changeset_1"\r\n\r\n\r\n'
    body = head + "".join(parts) + "--changeset_1--\r\n\r\n--b _q\r\n"  # the last boundary lacks its dashes, as from JS
    headers = {"Content-Type": 'multipart/mixed; charset=utf-8; Boundary="b _q"'}
    for text in (body, body.replace("\r\n", "\n")):
        reply = box.client.send("POST", "/$batch", headers=headers, body=text.encode())
        assert [answer.status for answer in answers(reply)] == [204] * 4
    assert [item["A"] for item in json_of(box.query())["value"]] == [1, 2, 3, 4]


def test_each_part_has_its_own_form(box: TableBox) -> None:  # T603
    bare, full = answers(box.batch(box.part("POST", "1", Accept=NONE), box.part("POST", "2", Accept=FULL)))
    assert "odata.etag" not in json_of(bare)
    assert "odata.id" in json_of(full)


def test_text_that_looks_like_a_boundary_is_text(box: TableBox) -> None:
    text = "--changeset_1--\r\n--batch_1\r\n"
    box.batch(box.part("PUT", "1", {"A": text}), box.part("PUT", "2", {"A": "x --changeset_1"}))
    assert [item["A"] for item in json_of(box.query())["value"]] == [text, "x --changeset_1"]

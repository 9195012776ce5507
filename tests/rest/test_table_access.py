"""Authorization of table operations: the Shared Key of Table, account SAS, table SAS with key ranges, stored policies."""

import pytest

from tests.rest.client import Reply
from tests.rest.history_fixtures import server
from tests.rest.table_fixtures import box, client
from tests.rest.tables import TableBox, TableClient, answers, json_of, refusal

__all__ = ["box", "client", "server"]  # fixtures

SAME_TABLE = "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}code"


def test_shared_key_and_lite_sign_the_table_way(box: TableBox) -> None:  # T700-T705
    for lite in (False, True):
        assert box.client.send("GET", f"/{box.name}()", {"$top": "1"}, lite=lite).status == 200
        assert box.client.send("GET", f"/{box.name}", {"comp": "acl"}, {"Accept": "application/xml"}, lite=lite).status == 200


def test_a_wrong_signature_is_refused_in_xml(box: TableBox) -> None:  # T736, T801
    reply = box.client.exchange(
        "GET", f"/{box.server.account}/{box.name}()",
        [("Accept", "application/json"), ("x-ms-version", "2019-02-02"), ("x-ms-date", box.client.date()),
         ("Authorization", f"SharedKey {box.server.account}:AAAA")],
    )  # fmt: skip
    assert reply.answer == (403, "AuthenticationFailed")
    assert reply.xml.findtext(SAME_TABLE) == "AuthenticationFailed"
    assert b"Server failed to authenticate the request" in reply.body  # T906


def test_nobody_is_told_to_authenticate(box: TableBox) -> None:  # T739
    reply = box.query(auth="")
    assert reply.answer == (401, "NoAuthenticationInformation")
    assert "resource_id=https://storage.azure.com" in reply["WWW-Authenticate"]


def of(reply: Reply) -> int | tuple[int, str | None]:
    return reply.status if reply.status < 300 else reply.answer


DENIED = (403, "AuthorizationPermissionMismatch")
TYPE = (403, "AuthorizationResourceTypeMismatch")
FAILURE = (403, "AuthorizationFailure")


@pytest.mark.parametrize(
    ("letters", "query", "insert", "update", "upsert", "merge", "delete"),  # T726-T730
    [
        ("r", 200, DENIED, DENIED, DENIED, DENIED, DENIED),
        ("a", DENIED, 201, DENIED, DENIED, DENIED, DENIED),
        ("u", DENIED, DENIED, 204, DENIED, 204, DENIED),
        ("au", DENIED, 201, 204, 204, 204, DENIED),
        ("d", DENIED, DENIED, DENIED, DENIED, DENIED, 204),
        ("raud", 200, 201, 204, 204, 204, 204),
    ],
)
@pytest.mark.parametrize("kind", ["table", "account"])
def test_each_letter_opens_its_operations(
    box: TableBox,
    kind: str,
    letters: str,
    query: object,
    insert: object,
    update: object,
    upsert: object,
    merge: object,
    delete: object,
) -> None:
    sas = box.sas(letters) if kind == "table" else box.client.account_sas(letters, srt="o")
    box.insert()
    assert of(box.query(auth=sas)) == query
    assert of(box.get(auth=sas)) == query
    assert of(box.insert(row_key="new", auth=sas)) == insert
    assert of(box.put(etag="*", auth=sas)) == update
    assert of(box.put(auth=sas)) == upsert
    assert of(box.merge(etag="*", auth=sas)) == merge
    assert of(box.delete(auth=sas)) == delete


@pytest.mark.parametrize("verb", ["PUT", "MERGE"])
@pytest.mark.parametrize("kind", ["table", "account"])
def test_only_the_header_makes_an_update_of_an_upsert(box: TableBox, kind: str, verb: str) -> None:  # T111, T113, T729
    """Otherwise a caller who may only update could create."""
    sas = box.sas("u") if kind == "table" else box.client.account_sas("u", srt="o")
    for query, headers in (
        ({"if-match": "*"}, {}),
        ({"If-Match": "x"}, {}),
        ({}, {"If-Match": " "}),
    ):
        assert of(box.entity(verb, query=query, headers=headers, body={}, auth=sas)) == DENIED
    part = box.part(verb).replace(" HTTP/1.1", "?if-match=* HTTP/1.1", 1)
    box.batch(part, auth=sas)
    assert box.rows() == []


@pytest.mark.parametrize(
    ("sas", "list", "create", "properties", "delete"),  # T720-T725
    [
        ({"sp": "l", "srt": "c"}, 200, DENIED, TYPE, DENIED),
        ({"sp": "c", "srt": "c"}, DENIED, 201, TYPE, DENIED),
        ({"sp": "w", "srt": "c"}, DENIED, 201, TYPE, DENIED),
        ({"sp": "d", "srt": "c"}, DENIED, DENIED, TYPE, 204),
        ({"sp": "r", "srt": "s"}, TYPE, TYPE, 200, TYPE),
        ({"sp": "lcwdr", "srt": "o"}, TYPE, TYPE, TYPE, TYPE),
    ],
)
def test_tables_are_managed_by_an_account_sas(
    box: TableBox, sas: dict[str, str], list: object, create: object, properties: object, delete: object
) -> None:
    token = box.client.account_sas(**sas)
    assert of(box.client.send("GET", "/Tables", auth=token)) == list
    assert of(box.client.send("POST", "/Tables", body={"TableName": f"{box.name}x"}, auth=token)) == create
    query = {"restype": "service", "comp": "properties"}
    assert of(box.client.send("GET", "/", query, {"Accept": "application/xml"}, auth=token)) == properties
    assert of(box.table("GET", {"comp": "acl"}, headers={"Accept": "application/xml"}, auth=token)) == FAILURE  # T217
    assert of(box.client.send("DELETE", f"/Tables('{box.name}')", auth=token)) == delete


def test_a_table_sas_never_reaches_tables(box: TableBox) -> None:  # T717
    sas = box.sas("raud")
    for reply in (
        box.client.send("GET", "/Tables", auth=sas),
        box.client.send("POST", "/Tables", body={"TableName": "other"}, auth=sas),
        box.client.send("DELETE", f"/Tables('{box.name}')", auth=sas),
        box.table("GET", {"comp": "acl"}, headers={"Accept": "application/xml"}, auth=sas),
    ):
        assert reply.answer == FAILURE


def test_a_table_sas_is_for_its_table(box: TableBox) -> None:  # T710, T716
    other = TableBox(box.client).create()
    sas = box.sas("raud")
    assert other.query(auth=sas).answer == FAILURE
    assert other.get(auth=sas).answer == FAILURE
    assert other.insert(auth=sas).answer == FAILURE
    assert box.insert(auth=sas).status == 201
    shouted = TableBox(box.client, box.name.upper())
    assert shouted.query(auth=sas).status == 200


RANGES = [
    ({"spk": "b"}, ["b1", "b2", "c1", "c2"]),  # T713
    ({"epk": "b"}, ["a1", "a2", "b1", "b2"]),
    ({"spk": "b", "srk": "2"}, ["b2", "c1", "c2"]),
    ({"epk": "b", "erk": "1"}, ["a1", "a2", "b1"]),
    ({"spk": "a", "srk": "2", "epk": "c", "erk": "1"}, ["a2", "b1", "b2", "c1"]),
    ({"spk": "b", "srk": "1", "epk": "b", "erk": "1"}, ["b1"]),
    ({"spk": "c", "epk": "a"}, []),
]


@pytest.mark.parametrize(("fields", "reached"), RANGES)
def test_a_key_range_limits_queries_and_refuses_writes(box: TableBox, fields: dict[str, str], reached: list[str]) -> None:
    # T713, T714, T715
    names = [f"{partition}{row}" for partition in "abc" for row in "12"]
    for name in names:
        box.insert(name[0], name[1])
    sas = box.sas("raud", **fields)

    def seen(filter: str = "") -> list[str]:
        return [item["PartitionKey"] + item["RowKey"] for item in json_of(box.query(filter, auth=sas))["value"]]

    assert seen() == reached
    assert seen("PartitionKey eq 'b'") == [name for name in reached if name[0] == "b"]
    assert seen("RowKey eq '1'") == [name for name in reached if name[1] == "1"]
    for name in names:
        inside = name in reached
        assert box.get(name[0], name[1], auth=sas).status == (200 if inside else 404)
        for verb in ("PUT", "MERGE"):
            assert of(box.entity(verb, name[0], name[1], body={}, auth=sas)) == (204 if inside else FAILURE)
        assert of(box.delete(name[0], name[1], auth=sas)) == (204 if inside else FAILURE)
        assert of(box.insert(name[0], name[1], auth=sas)) == (201 if inside else FAILURE)


def test_a_key_range_holds_across_pages_and_batches(box: TableBox) -> None:  # T731
    for row in ("1", "2", "3", "4"):
        box.insert("p", row)
    sas = box.sas("raud", spk="p", srk="2", epk="p", erk="3")
    assert box.rows(top=1, auth=sas) == ["2", "3"]
    [answer] = answers(box.batch(box.part("PUT", "2", {"A": 1}), box.part("PUT", "4", {"A": 1}), auth=sas))
    assert refusal(answer) == FAILURE
    assert "A" not in json_of(box.get("p", "2"))
    assert [a.status for a in answers(box.batch(box.part("PUT", "2", {"A": 1}), box.part("PUT", "3"), auth=sas))] == [204, 204]


def test_each_part_of_a_batch_needs_its_own_permission(box: TableBox) -> None:  # T634, T731
    box.insert(row_key="there")
    parts = (box.part("POST", "new"), box.part("DELETE", "there", If_Match="*"))
    [answer] = answers(box.batch(*parts, auth=box.sas("a")))
    assert refusal(answer) == DENIED
    assert box.rows() == ["there"]
    assert [answer.status for answer in answers(box.batch(*parts, auth=box.sas("ad")))] == [201, 204]
    other = TableBox(box.client).create()
    [answer] = answers(box.batch(other.part("POST", "new"), auth=box.sas("a")))
    assert refusal(answer) == FAILURE
    assert box.batch(*parts, auth="").status == 401  # T633


def test_half_a_range_is_refused(box: TableBox) -> None:  # T713
    for fields in ({"srk": "1"}, {"erk": "1"}):
        assert box.query(auth=box.sas("r", **fields)).answer == (403, "AuthenticationFailed")


def test_a_bound_that_is_empty_is_none(box: TableBox) -> None:
    """An empty field is signed like a missing one, and a caller may omit it."""
    for partition in ("p", "q"):
        box.insert(partition)
    assert box.rows(auth=box.sas("r", epk="p", erk="")) == box.rows(auth=box.sas("r", epk="p")) == ["r"]
    assert box.rows(auth=box.sas("r", spk="", srk="", epk="", erk="")) == ["r", "r"]


def test_a_range_is_signed(box: TableBox) -> None:
    sas = box.sas("r", spk="b")
    for forged in (sas.replace("spk=b", "spk=a"), sas.replace("spk=b&", ""), sas.replace("spk=b", "spk=b&epk=c")):
        assert forged != sas
        assert box.query(auth=forged).answer == (403, "AuthenticationFailed")
    assert box.query(auth=sas.replace(f"tn={box.name}", "tn=other")).answer == (403, "AuthenticationFailed")


def test_a_stored_policy_gives_and_takes(box: TableBox) -> None:  # T734, T735
    # contract G2
    def allow(permission: str, seconds: float = 600) -> None:
        body = (
            "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>"
            f"<Expiry>{box.client.moment(seconds)}</Expiry><Permission>{permission}</Permission>"
            "</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        )
        xml = {"Accept": "application/xml", "Content-Type": "application/xml"}
        assert box.table("PUT", {"comp": "acl"}, headers=xml, body=body.encode()).status == 204

    sas = box.sas(si="one")
    assert box.query(auth=sas).answer == (403, "AuthenticationFailed")
    allow("r")
    assert box.query(auth=sas).status == 200
    assert box.insert(auth=sas).answer == DENIED
    assert [a.status for a in answers(box.batch(box.part("POST", "x"), auth=sas))] == [403]
    allow("a")
    assert box.query(auth=sas).answer == DENIED
    assert box.insert(auth=sas).status == 201
    assert box.query(auth=box.sas("r", si="one")).answer == (403, "AuthenticationFailed")
    allow("r", -5)
    assert box.query(auth=sas).answer == (403, "AuthenticationFailed")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"sip": "10.0.0.1"}, "AuthorizationSourceIPMismatch"),
        ({"spr": "https"}, "AuthorizationProtocolMismatch"),
        ({"se": "2001-01-01"}, "AuthenticationFailed"),
        ({"st": "2991-01-01"}, "AuthenticationFailed"),
    ],
)
def test_circumstances_of_a_table_sas(box: TableBox, fields: dict[str, str], code: str) -> None:  # T735-T737
    assert box.query(auth=box.sas("r", **fields)).answer == (403, code)


def test_an_account_sas_for_another_service_is_refused(client: TableClient) -> None:  # T732
    assert client.send("GET", "/Tables", auth=client.account_sas("l", ss="bqf")).answer == (403, "AuthorizationServiceMismatch")

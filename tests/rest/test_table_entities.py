"""Entities over HTTP: every write with every kind of ETag, keys in paths, types and levels of JSON, merge and replace."""

import gc
import json

import pytest

from tests.rest.history_fixtures import server
from tests.rest.table_fixtures import box, client
from tests.rest.tables import FULL, MINIMAL, NONE, TableBox, TableClient, answers, entity_path, json_of, message, refusal
from verditer.core.errors import StorageError

__all__ = ["box", "client", "server"]  # fixtures

GUID = "a455c695-df98-5678-aaaa-81d3367e5a34"
TYPES = {  # T400-T408
    "Str": "text", "Int": 5, "Big@odata.type": "Edm.Int64", "Big": "9223372036854775807", "Dbl": 3.0,
    "Nan@odata.type": "Edm.Double", "Nan": "NaN", "Yes": True, "When@odata.type": "Edm.DateTime",
    "When": "2021-06-08T02:05:09.1234567Z", "Id@odata.type": "Edm.Guid", "Id": GUID,
    "Bin@odata.type": "Edm.Binary", "Bin": "AAEC",
}  # fmt: skip


def test_an_entity_is_inserted_and_shown(box: TableBox) -> None:  # T109, T172, T174, T176, T179
    # contract T3
    reply = box.insert(known=TYPES)
    base = box.client.base
    assert reply.status == 201
    assert reply["Location"] == f"{base}/{box.name}(PartitionKey='p',RowKey='r')"
    body = json_of(reply)
    names = ["odata.metadata", "odata.etag", "PartitionKey", "RowKey", "Timestamp", *TYPES]
    assert list(body) == names
    assert body["odata.metadata"] == f"{base}/$metadata#{box.name}/@Element"
    assert body["odata.etag"] == reply["ETag"]
    assert reply["ETag"] == f"W/\"datetime'{body['Timestamp'].replace(':', '%3A')}'\""  # T300
    assert {name: body[name] for name in TYPES} == TYPES
    assert b'"Dbl":3.0,' in reply.body  # T183
    got = box.get()
    assert (got.status, got.body, got["ETag"]) == (200, reply.body, reply["ETag"])


def test_nometadata_has_no_annotation(box: TableBox) -> None:  # T175
    box.insert(known=TYPES)
    body = json_of(box.get(headers={"Accept": NONE}))
    assert not [name for name in body if "odata" in name]
    assert (body["Big"], body["Nan"], body["Id"], body["Bin"]) == ("9223372036854775807", "NaN", GUID, "AAEC")
    box.insert(row_key="plain", known={"A": 1})
    assert list(json_of(box.get(row_key="plain", headers={"Accept": NONE}))) == ["PartitionKey", "RowKey", "Timestamp", "A"]


def test_fullmetadata_names_the_entity_and_the_type_of_its_timestamp(box: TableBox) -> None:  # T172, T182
    box.insert(known={"Big@odata.type": "Edm.Int64", "Big": "5"})
    body = json_of(box.get(headers={"Accept": FULL}))
    path = f"{box.name}(PartitionKey='p',RowKey='r')"
    assert list(body) == [
        "odata.metadata", "odata.type", "odata.id", "odata.etag", "odata.editLink",
        "PartitionKey", "RowKey", "Timestamp@odata.type", "Timestamp", "Big@odata.type", "Big",
    ]  # fmt: skip
    assert body["odata.type"] == f"devstoreaccount1.{box.name}"
    assert (body["odata.id"], body["odata.editLink"]) == (f"{box.client.base}/{path}", path)
    assert body["Timestamp@odata.type"] == "Edm.DateTime"


def test_insert_prefers_content_or_none(box: TableBox) -> None:  # T161, T162, T163
    silent = box.insert(headers={"Prefer": "return-no-content"})
    assert (silent.status, silent.body, silent["Preference-Applied"]) == (204, b"", "return-no-content")
    assert silent["DataServiceId"] == silent["Location"]
    assert silent["ETag"] == box.get()["ETag"]
    asked = box.insert(row_key="2", headers={"Prefer": "return-content"})
    assert (asked.status, asked["Preference-Applied"]) == (201, "return-content")
    assert "Preference-Applied" not in box.insert(row_key="3")


# --- ETags --------------------------------------------------------------------------------------------------------------------

STALE = "W/\"datetime'2000-01-01T00%3A00%3A00Z'\""


@pytest.mark.parametrize("verb", ["PUT", "MERGE", "PATCH", "DELETE"])
def test_if_match_decides(box: TableBox, verb: str) -> None:
    # contract T1, G1, G7; T310, T311, T312, T320, T324
    def write(etag: str | None) -> tuple[int, str]:
        headers = {} if etag is None else {"If-Match": etag}
        reply = box.entity(verb, headers=headers, body=None if verb == "DELETE" else {"A": "new"})
        assert ("ETag" in reply) == (reply.status == 204 and verb != "DELETE")  # contract T3
        return (reply.status, "") if reply.status == 204 else refusal(reply)

    for etag in (STALE, "*"):
        assert write(etag) == (404, "ResourceNotFound")
    first = box.insert(known={"A": "old"})["ETag"]
    assert write(STALE) == (412, "UpdateConditionNotSatisfied")
    assert box.get()["ETag"] == first
    assert json_of(box.get())["A"] == "old"
    assert write(first) == (204, "")
    box.put({"A": "old"})
    assert write(first) == (412, "UpdateConditionNotSatisfied")
    assert write("*") == (204, "")


def test_a_delete_without_if_match_is_refused(box: TableBox) -> None:
    # contract T1; T312
    box.insert()
    assert refusal(box.delete(etag=None)) == (400, "InvalidInput")
    assert box.rows() == ["r"]


@pytest.mark.parametrize("verb", ["PUT", "MERGE"])
def test_an_upsert_never_compares(box: TableBox, verb: str) -> None:
    # contract T2
    created = box.entity(verb, body={"A": 1})
    assert created.status == 204
    assert box.get()["ETag"] == created["ETag"]
    updated = box.entity(verb, body={"B": 2})
    assert updated.status == 204
    assert updated["ETag"] != created["ETag"]
    assert ("A" in json_of(box.get())) == (verb == "MERGE")


def test_a_tunnelled_verb_counts_for_one_request(box: TableBox) -> None:
    for row in ("a", "b"):
        assert box.insert(row_key=row).status == 201
        assert box.insert(row_key="c", headers={"X-HTTP-Method": "MERGE"}).status == 405
    assert box.rows() == ["a", "b"]


def test_a_tunnelled_merge_is_a_merge(box: TableBox) -> None:  # T112, T131
    first = box.insert(known={"A": 1})["ETag"]
    for verb in ("MERGE", "PATCH"):
        reply = box.entity("POST", headers={"X-HTTP-Method": verb, "If-Match": "*"}, body={verb: 1})
        assert reply.status == 204
    assert {"A", "MERGE", "PATCH"} <= set(json_of(box.get()))
    assert refusal(box.entity("POST", headers={"X-HTTP-Method": "MERGE", "If-Match": first}, body={})) == (
        412,
        "UpdateConditionNotSatisfied",
    )


def test_other_verbs_may_be_tunnelled_too(box: TableBox) -> None:  # T131
    box.insert(known={"A": 1})
    assert box.entity("POST", headers={"X-HTTP-Method": "PUT"}, body={"B": 2}).status == 204
    assert {"A", "B"} & set(json_of(box.get())) == {"B"}
    assert box.entity("POST", headers={"X-HTTP-Method": "DELETE", "If-Match": "*"}, body=b"").status == 204
    assert box.rows() == []


@pytest.mark.parametrize(
    ("etag", "answer"),
    [
        ('W/"wrong"', (412, "UpdateConditionNotSatisfied")),  # race E8; T321
        ('w/"wrong"', (412, "UpdateConditionNotSatisfied")),
        ("test", (400, "InvalidInput")),  # T322
        ('"x"', (400, "InvalidInput")),
        ('W/"a", W/"b"', (400, "InvalidInput")),
        ("W/x", (400, "InvalidInput")),
        (" ", (400, "InvalidInput")),
    ],
)
def test_an_etag_that_is_none(box: TableBox, etag: str, answer: tuple[int, str]) -> None:
    # race E8
    box.insert()
    for verb in ("PUT", "MERGE"):
        headers = [("If-Match", etag)]
        assert refusal(box.entity(verb, body={}, headers=headers)) == answer
        assert refusal(answers(box.batch(box.part(verb, If_Match=etag)))[0]) == answer


def test_the_colons_of_an_etag_may_come_bare(box: TableBox) -> None:  # T302
    etag = box.insert()["ETag"]
    assert box.put(etag=etag.replace("%3A", ":")).status == 204
    assert box.put(etag="w" + box.get()["ETag"][1:]).status == 204


def test_if_none_match_on_a_write_is_refused(box: TableBox) -> None:  # T165, T313, T314
    etag = box.insert()["ETag"]
    for verb in ("PUT", "MERGE", "DELETE"):
        headers = {"If-None-Match": "*", "If-Match": "*"}
        assert refusal(box.entity(verb, headers=headers, body=None if verb == "DELETE" else {})) == (400, "InvalidInput")
    assert box.get(headers={"If-None-Match": etag, "If-Match": STALE}).status == 200
    assert box.insert(row_key="new", headers={"If-Match": "*"}).status == 201


def test_an_insert_over_an_entity_is_refused(box: TableBox) -> None:  # T323
    first = box.insert(known={"A": 1})
    again = box.insert(known={"A": 2})
    assert (refusal(again), message(again)) == ((409, "EntityAlreadyExists"), "The specified entity already exists.")
    assert box.get().body == first.body


def test_a_refused_insert_is_let_go_of_at_once(box: TableBox) -> None:
    """Including the request body. Memory must not depend on the cyclic garbage collector, which runs rarely."""
    large = {f"s{number:02}": "x" * 30000 for number in range(10)}
    box.insert(known=large)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(3):
            assert refusal(box.insert(known=large)) == (409, "EntityAlreadyExists")
        gc.collect()
        assert not [found for found in gc.garbage if isinstance(found, StorageError)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_etags_differ_at_any_rate(box: TableBox) -> None:
    # contract G4; race E7; T301
    box.insert()
    etags = [box.put({"N": number})["ETag"] for number in range(200)]
    stamps = [etag.partition("'")[2] for etag in etags]
    assert len(set(etags)) == 200
    assert stamps == sorted(stamps, key=lambda stamp: stamp.rstrip("Z'\"").ljust(40, "0"))
    box.delete()
    assert box.insert()["ETag"] not in etags


# --- what a write leaves -----------------------------------------------------------------------------------------------------


def test_replace_leaves_exactly_the_body(box: TableBox) -> None:  # T330, T335
    box.insert(known={"A": 1, "B": 2})
    box.put({"B": 3, "C": None})
    assert known(box) == {"B": 3}
    box.entity("PUT", body=b"")
    assert known(box) == {}


def test_merge_keeps_the_rest_and_null_removes_nothing(box: TableBox) -> None:  # T331
    box.insert(known={"A": 1, "B": 2, "T@odata.type": "Edm.Int64", "T": "5"})
    box.merge({"B": "text", "C": True, "A": None, "T": 6})
    assert known(box) == {"A": 1, "B": "text", "C": True, "T": 6}


def known(box: TableBox) -> dict[str, object]:
    body = json_of(box.get())
    return {name: value for name, value in body.items() if "odata." not in name[:6] and name not in SYSTEM}


SYSTEM = ("PartitionKey", "RowKey", "Timestamp")


def test_the_keys_of_the_path_win_and_the_timestamp_is_ours(box: TableBox) -> None:  # T332, T333
    box.put({"PartitionKey": "other", "RowKey": 5, "RowKey@odata.type": "Edm.Guid", "Timestamp": "nonsense", "A": 1})
    body = json_of(box.get())
    assert (body["PartitionKey"], body["RowKey"], body["A"]) == ("p", "r", 1)
    assert body["Timestamp"].startswith("20")


def test_after_a_merge_the_result_keeps_the_limits(box: TableBox) -> None:
    # contract G7; T334
    box.insert(known={f"p{number}": number for number in range(252)})
    before = box.get().body
    assert refusal(box.merge({"more": 1})) == (400, "TooManyProperties")
    assert box.get().body == before
    assert box.merge({"p0": "other"}).status == 204
    big = {f"s{number}": "x" * 32000 for number in range(10)}
    box.insert(row_key="big", known=big)
    refused = box.entity("MERGE", row_key="big", body={f"t{number}": "x" * 32000 for number in range(10)})
    assert (refusal(refused), message(refused)) == (
        (400, "EntityTooLarge"),
        "The entity is larger than the maximum allowed size (1MB).",
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "InvalidInput"),  # T418
        (b"[]", "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","A":NaN}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","A":[1]}', "InvalidInput"),  # T409
        (b'{"PartitionKey":"p","RowKey":"r","A":{}}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Single","A":1.0}', "InvalidInput"),
        (b'{"PartitionKey":"p","RowKey":"r","A@odata.type":"Edm.Guid","A":"x"}', "InvalidInput"),  # T412
        (b'{"PartitionKey":"p","RowKey":"r","A":1,"A":2}', "DuplicatePropertiesSpecified"),  # T417
        (b'{"PartitionKey":"p","RowKey":"r","a-b":1}', "PropertyNameInvalid"),  # T434
        (b'{"PartitionKey":"p"}', "PropertiesNeedValue"),  # T440
        (b'{"PartitionKey":"p","RowKey":5}', "InvalidInput"),  # T439
        (b'{"PartitionKey":"a/b","RowKey":"r"}', "OutOfRangeInput"),  # T438
        (b'{"PartitionKey":"p","RowKey":"a\\u0007"}', "OutOfRangeInput"),
        (json.dumps({"PartitionKey": "p", "RowKey": "k" * 513}).encode(), "KeyValueTooLarge"),  # T437
        (json.dumps({"PartitionKey": "p", "RowKey": "r", "A": "x" * 40000}).encode(), "PropertyValueTooLarge"),  # T436
        (b'{"PartitionKey":"p","RowKey":"r","A":"\xff"}', "InvalidInput"),
        (b"[" * 100_000, "InvalidInput"),
    ],
)
def test_a_bad_entity_is_refused(box: TableBox, body: bytes, code: str) -> None:
    # contract G7
    assert refusal(box.table("POST", body=body)) == (400, code)
    assert box.rows() == []


def test_a_body_over_four_mebibytes_is_refused(box: TableBox) -> None:  # T443
    assert refusal(box.table("POST", body=b" " * (4 * 1024 * 1024 + 1))) == (413, "RequestBodyTooLarge")


# --- keys -----------------------------------------------------------------------------------------------------------------------

KEYS = [
    "", " ", "RK'@*$!%", "a''b", "'", '"', "a+b", "a%2Fb", "ключ", "𝄞", "a,b", "(x)", "=", "&", "a b", "%", "~!$&'()*+,;=:@",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_key_survives_quoting(box: TableBox, key: str) -> None:  # T141-T146, T438
    inserted = box.insert(key, key + "2", {"A": 1})
    assert inserted.status == 201
    assert json_of(inserted)["PartitionKey"] == key
    assert json_of(box.get(key, key + "2"))["RowKey"] == key + "2"
    path = inserted["Location"].removeprefix(box.client.base)
    followed = box.client.send("GET", path)
    assert (followed.status, json_of(followed)["PartitionKey"]) == (200, key)
    quoted = key.replace("'", "''")
    assert box.rows(f"PartitionKey eq '{quoted}'") == [key + "2"]
    full = json_of(box.get(key, key + "2", headers={"Accept": FULL}))  # T181
    assert f"{box.client.base}{path}" == full["odata.id"]
    assert box.delete(key, key + "2").status == 204


def test_a_location_doubles_quotes_and_escapes_the_rest(box: TableBox) -> None:  # T146
    reply = box.insert("A'aaa_bbbb2\"", "\"A'aaa")
    assert reply["Location"].endswith(f"{box.name}(PartitionKey='A''aaa_bbbb2%22',RowKey='%22A''aaa')")


def test_paths_are_read_generously(box: TableBox) -> None:  # T140, T148
    box.insert("p", "r")
    for path in (
        f"/{box.name}(PartitionKey='p',%20RowKey='r')",
        f"/{box.name}(RowKey='r',PartitionKey='p')",
        f"/{box.name}(PartitionKey=%27p%27,RowKey=%27r%27)",
        f"/{box.name.upper()}(PartitionKey='p',RowKey='r')",
    ):
        reply = box.client.send("GET", path)
        assert reply.status == 200
        assert json_of(reply)["odata.metadata"].endswith(f"$metadata#{path[1:].partition('(')[0]}/@Element")  # as in the path


def test_an_encoded_slash_does_not_split_a_path(box: TableBox) -> None:  # T143
    reply = box.client.send("PUT", entity_path(box.name, "a/b\\c#d?e", "r"), body={})
    assert refusal(reply) == (400, "OutOfRangeInput")
    assert message(reply) == "The 'PartitionKey' parameter of value 'a/b\\c#d?e' is out of range."
    assert refusal(box.get("a/b\\c#d?e", "r")) == (404, "ResourceNotFound")


# --- selection ----------------------------------------------------------------------------------------------------------------


def test_selected_properties_come_alone_and_null_where_absent(box: TableBox) -> None:  # T180, T550, T551, T552
    box.insert(known={"age": 5, "big@odata.type": "Edm.Int64", "big": "7"})
    reply = box.get(query={"$select": "age, big,xyz"})
    assert list(json_of(reply).items()) == [
        ("odata.metadata", f"{box.client.base}/$metadata#{box.name}/@Element&$select=age,%20big,xyz"),
        ("odata.etag", reply["ETag"]),
        ("age", 5),
        ("big@odata.type", "Edm.Int64"),
        ("big", "7"),
        ("xyz", None),
    ]
    page = json_of(box.query(select="RowKey,xyz", headers={"Accept": NONE}))
    assert page == {"value": [{"RowKey": "r", "xyz": None}]}
    full = json_of(box.query(select="Timestamp", headers={"Accept": FULL}))["value"][0]
    assert list(full) == ["odata.type", "odata.id", "odata.etag", "odata.editLink", "Timestamp@odata.type", "Timestamp"]


def test_what_is_no_property_cannot_be_selected(box: TableBox) -> None:
    box.insert(known={"A": 1, "B@odata.type": "Edm.Int64", "B": "2"})
    reply = box.get(query={"$select": "odata.etag,A,B@odata.type"}, headers={"Accept": MINIMAL})
    assert reply.body.count(b"odata.etag") == 2  # in the context, and in the entity
    assert (json_of(reply)["odata.etag"], json_of(reply)["A"], "B" in json_of(reply)) == (reply["ETag"], 1, False)
    assert json_of(box.query(select="odata.etag", headers={"Accept": NONE}))["value"] == [{}]


def test_a_blank_selection_is_everything(box: TableBox) -> None:  # T553
    box.insert(known={"A": 1})
    body = json_of(box.query(select=""))
    assert body["odata.metadata"] == f"{box.client.base}/$metadata#{box.name}&$select="
    assert body["value"][0]["A"] == 1
    assert json_of(box.query(select="*"))["value"][0]["A"] == 1
    assert refusal(box.query(select=",".join(f"a{n}" for n in range(256)))) == (400, "InvalidInput")


@pytest.mark.parametrize("version", ["2009-09-19", "2013-08-15", "2019-02-02", "2027-01-01"])
def test_every_dated_version_is_served_and_echoed(client: TableClient, version: str) -> None:  # T150
    reply = client.send("GET", "/Tables", {"$top": "1"}, {"Accept": MINIMAL}, version=version)
    assert (reply.status, reply["x-ms-version"]) == (200, version)

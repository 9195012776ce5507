"""Protocol of every Table request: methods, versions, response headers, signature schemes, CORS."""

import base64
import hashlib
import json
from urllib.parse import quote, urlencode

import pytest

from tests.rest.client import Reply
from tests.rest.history_fixtures import server
from tests.rest.signing import signature
from tests.rest.table_fixtures import box, client
from tests.rest.tables import FULL, MINIMAL, TableBox, TableClient, answers, changeset, entity_path, json_of, message, refusal

__all__ = ["box", "client", "server"]  # fixtures

XML = {"Accept": "application/xml"}
PROPERTIES = {"restype": "service", "comp": "properties"}


def test_every_verb_answers_without_content_and_with_its_etag(box: TableBox) -> None:  # T110, T111, T113, T114, T132, T164, T178
    box.insert(known={"Old": 1})
    etags = [box.get()["ETag"]]
    for verb, etag in (("PUT", True), ("PUT", False), ("MERGE", True), ("MERGE", False), ("PATCH", True), ("PATCH", False)):
        headers = {"If-Match": etags[-1]} if etag else {}
        reply = box.entity(verb, body={"New": 2}, headers=headers)
        assert (reply.status, reply.body, "Content-Type" in reply) == (204, b"", False)
        assert reply["ETag"] == box.get()["ETag"]
        etags.append(reply["ETag"])
        stale = {"If-Match": etags[0]}
        assert refusal(box.entity(verb, body={}, headers=stale)) == (412, "UpdateConditionNotSatisfied")
    assert len(set(etags)) == 7
    reply = box.delete(etag=etags[-1])
    assert (reply.status, reply.body, "ETag" in reply) == (204, b"", False)


def test_a_filter_means_nothing_to_one_entity(box: TableBox) -> None:  # T108
    box.insert(known={"A": 1, "B": 2})
    reply = box.entity("GET", query={"$filter": "A eq 2", "$select": "B", "$format": "application/json;odata=nometadata"})
    assert (reply.status, json_of(reply)) == (200, {"B": 2})
    assert reply["ETag"] == box.get()["ETag"]


def test_a_table_is_named_in_quotes(box: TableBox) -> None:  # T149
    for name in (f"'{box.name}'", f"%27{box.name}%27", f"'{box.name.upper()}'"):
        assert box.client.send("GET", f"/Tables({name})").status == 200
    for name in (box.name, f"'{box.name}", f'"{box.name}"'):
        assert refusal(box.client.send("GET", f"/Tables({quote(name)})"))[0] == 400


def test_every_answer_says_who_and_when(box: TableBox) -> None:  # T152, T190, T191, T193
    box.insert()
    for reply in (
        box.get(headers={"x-ms-client-request-id": "mine 7"}),
        box.get(row_key="no", headers={"x-ms-client-request-id": "mine 7"}),
    ):
        assert reply["x-ms-client-request-id"] == "mine 7"
        assert reply["Server"].startswith("Verditer-Table/")
        assert all(name in reply for name in ("x-ms-request-id", "x-ms-version", "Date"))
        assert int(reply["Content-Length"]) == len(reply.body)
    assert "x-ms-client-request-id" not in box.get()
    assert "x-ms-client-request-id" not in box.get(headers={"x-ms-client-request-id": "m" * 1025})


def test_refusals_are_not_kept_either(box: TableBox) -> None:  # T192
    for headers in ({}, {"Accept": "application/atom+xml"}):
        reply = box.get(row_key="no", headers=headers)
        assert reply.status in (404, 415)
        assert (reply["Cache-Control"], reply["X-Content-Type-Options"]) == ("no-cache", "nosniff")


def test_a_digest_that_is_sent_is_checked(box: TableBox) -> None:  # Md5Mismatch, InvalidMd5
    body = b'{"PartitionKey":"p","RowKey":"r"}'
    right = {"Content-MD5": base64.b64encode(hashlib.md5(body).digest()).decode()}
    wrong = {"Content-MD5": base64.b64encode(bytes(16)).decode()}
    assert refusal(box.table("POST", body=body, headers=wrong)) == (400, "Md5Mismatch")
    assert refusal(box.table("POST", body=body, headers={"Content-MD5": "zzz"})) == (400, "InvalidMd5")
    assert box.rows() == []
    assert box.table("POST", body=body, headers=right).status == 201
    assert box.table("PUT", {"comp": "acl"}, body=b"<SignedIdentifiers/>", headers=XML | wrong).answer == (400, "Md5Mismatch")
    [refused] = answers(box.batch(box.part("PUT", Content_MD5=wrong["Content-MD5"])))
    assert refusal(refused) == (400, "Md5Mismatch")
    outer = {"Content-Type": "multipart/mixed; boundary=batch_1", **wrong}
    reply = box.client.send("POST", "/$batch", headers=outer, body=changeset(box.part("PUT").encode()))
    assert refusal(reply) == (400, "Md5Mismatch")


@pytest.mark.parametrize("key", ["PartitionKey", "RowKey"])
def test_half_a_character_is_refused_and_reported(box: TableBox, key: str) -> None:  # T438
    body = json.dumps({"PartitionKey": "p", "RowKey": "r", key: "a\ud800"}).encode()
    assert refusal(box.table("POST", body=body))[0] == 400
    [refused] = answers(box.batch(box.part("POST").encode().split(b"\r\n\r\n")[0] + b"\r\n\r\n" + body))
    assert refused.status == 400


@pytest.mark.parametrize("digits", [10, 4301])
def test_a_token_of_another_length_than_it_says_is_refused(box: TableBox, digits: int) -> None:  # T565
    token = f"1!{'1' * digits}!YQ--"
    assert refusal(box.query(NextPartitionKey=token)) == (400, "InvalidInput")
    assert refusal(box.client.send("GET", "/Tables", {"NextTableName": token})) == (400, "InvalidInput")


@pytest.mark.parametrize("verb", ["PUT", "MERGE"])
def test_clients_of_before_upserts_say_what_they_replace(box: TableBox, verb: str) -> None:  # T135
    box.insert(known={"Old": 1})
    before, since = {"x-ms-version": "2009-09-19"}, {"x-ms-version": "2011-08-18"}
    reply = box.entity(verb, body={}, headers=before)
    assert refusal(reply) == (400, "MissingRequiredHeader")
    assert box.entity(verb, body={}, headers={**before, "If-Match": "*"}).status == 204
    assert box.entity(verb, body={}, headers=since).status == 204


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"DataServiceVersion": "3.0"}, 200),
        ({"DataServiceVersion": "1.0;NetFx"}, 200),
        ({"DataServiceVersion": "3.0;", "MaxDataServiceVersion": "3.0;NetFx"}, 200),
        ({"DataServiceVersion": "4.0", "MaxDataServiceVersion": "2.0"}, 200),
        ({"DataServiceVersion": "3.0", "MaxDataServiceVersion": "0.5"}, 400),
        ({"DataServiceVersion": "4.0"}, 400),
        ({"DataServiceVersion": "three"}, 400),
    ],
)
def test_the_version_of_odata_is_one_of_three(box: TableBox, headers: dict[str, str], status: int) -> None:  # T153
    reply = box.query(headers=headers)
    assert reply.status == status
    assert box.put(headers=headers).status == (204 if status == 200 else status)
    if status == 400:
        assert refusal(reply) == (400, "InvalidInput")
        assert "data service version" in message(reply)
    else:
        assert reply["DataServiceVersion"] == "3.0;"


def test_a_signature_is_good_for_a_quarter_of_an_hour(box: TableBox) -> None:  # T151
    def signed(seconds: float) -> int:
        date, target = box.client.date(seconds), f"/{box.server.account}/{box.name}()"
        text = f"GET\n\n\n{date}\n/{box.server.account}{target}"
        authorization = f"SharedKey {box.server.account}:{signature(box.server.key, text)}"
        headers = [("Accept", MINIMAL), ("x-ms-version", "2019-02-02"), ("x-ms-date", date), ("Authorization", authorization)]
        return box.client.exchange("GET", target, headers).status

    assert [signed(-840), signed(0), signed(840), signed(-960), signed(960)] == [200, 200, 200, 403, 403]


@pytest.mark.parametrize("path", ["(PartitionKey='it''s',RowKey='a b')", "(PartitionKey=%27it%27%27s%27,RowKey=%27a%20b%27)"])
def test_what_is_signed_is_the_path_as_it_was_sent(box: TableBox, path: str) -> None:  # T706
    box.insert("it's", "a b")
    sent = path.replace(" ", "%20")
    assert box.client.send("GET", f"/{box.name}{sent}").status == 200


@pytest.mark.parametrize("authorization", ["nonsense", "SharedKey", "SharedKey abc", "SharedKeyLite x:", "Basic abc"])
def test_an_invalid_authorization_is_answered_in_the_form_that_is_asked_for(
    box: TableBox, authorization: str
) -> None:  # T740, T802
    def ask(accept: str) -> Reply:
        headers = [("Accept", accept), ("x-ms-version", "2019-02-02"), ("Authorization", authorization)]
        return box.client.exchange("GET", f"/{box.server.account}/{box.name}()", headers)

    assert refusal(ask(MINIMAL)) == (400, "InvalidAuthenticationInfo")
    reply = ask("application/xml")  # not in the `<Error>` of blobs and queues
    assert (reply.status, reply.xml.tag) == (400, "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}error")
    assert reply.xml[0].text == "InvalidAuthenticationInfo"


def older_sas(box: TableBox, sv: str, *names: str, resource: str) -> str:
    fields = {"sv": sv, "tn": box.name, "sp": "r", "se": box.client.moment(3600)}
    text = "\n".join((fields | {"": resource}).get(name, "") for name in names)
    return urlencode(fields | {"sig": signature(box.server.key, text)})


def test_tokens_of_older_versions_are_signed_their_way(box: TableBox) -> None:  # T711, T712
    account, table = box.server.account, box.name.lower()
    keys = ("spk", "srk", "epk", "erk")
    old = older_sas(box, "2014-02-14", "sp", "st", "se", "", "si", "sv", *keys, resource=f"/{account}/{table}")
    newer = older_sas(
        box, "2015-04-05", "sp", "st", "se", "", "si", "sip", "spr", "sv", *keys, resource=f"/table/{account}/{table}"
    )
    mixed = older_sas(box, "2015-04-05", "sp", "st", "se", "", "si", "sv", *keys, resource=f"/{account}/{table}")
    assert [box.query(auth=sas).status for sas in (old, newer, mixed)] == [200, 200, 403]


def test_letters_come_in_any_order(box: TableBox) -> None:  # T733
    assert [box.query(auth=box.sas(letters)).status for letters in ("raud", "duar", "ud")] == [200, 200, 403]


def test_the_secondary_shows_the_same_under_its_own_name(box: TableBox) -> None:  # T900, T901
    box.insert(known={"A": 1})
    secondary = TableClient(box.server, account=f"{box.server.account}-secondary")
    shown = json_of(secondary.send("GET", entity_path(box.name, "p", "r"), headers={"Accept": FULL}))
    assert shown["odata.id"].startswith(f"http://127.0.0.1:{box.client.port}/{box.server.account}-secondary/{box.name}(")
    assert shown["odata.etag"] == box.get()["ETag"]
    secondary.close()


# --- other origins ----------------------------------------------------------------------------------------------------------


def set_rules(client: TableClient, *rules: str) -> int:
    body = f"<StorageServiceProperties><Cors>{''.join(rules)}</Cors></StorageServiceProperties>"
    return client.send("PUT", "/", PROPERTIES, XML, body.encode()).status


def rule(origins: str = "*", methods: str = "GET", headers: str = "*", exposed: str = "*", seconds: str = "5") -> str:
    return (
        f"<CorsRule><AllowedMethods>{methods}</AllowedMethods><AllowedOrigins>{origins}</AllowedOrigins>"
        f"<AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders>"
        f"<MaxAgeInSeconds>{seconds}</MaxAgeInSeconds></CorsRule>"
    )


def test_an_origin_is_told_what_its_rule_allows(box: TableBox) -> None:  # T195, T244, T245, T246
    names = ("Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Access-Control-Allow-Credentials", "Vary")

    def cors_headers(origin: str | None) -> list[str | None]:
        reply = box.query(headers={} if origin is None else {"Origin": origin})
        assert reply.status == 200  # a request is never refused for its origin
        return [reply.header(name) for name in names]

    try:
        assert set_rules(box.client, rule("http://a.test", exposed="x-ms-version")) == 202
        assert cors_headers("http://a.test") == ["http://a.test", "x-ms-version", "true", "Origin"]
        assert cors_headers("http://b.test") == [None, None, None, "Origin"]
        assert cors_headers(None) == [None] * 4  # where Azure sends `Vary`: docs/decisions/vary-origin.md
        assert set_rules(box.client, rule("*", exposed="x-ms-version")) == 202
        assert cors_headers("http://b.test") == ["*", "x-ms-version", None, None]
    finally:
        assert set_rules(box.client) == 202


@pytest.mark.parametrize(
    "body",
    [
        rule(methods="GET,TRACE"),
        rule(seconds="-1"),
        rule(origins=",".join(f"http://{number}.test" for number in range(65))),
        rule(headers=",".join(f"x-{number}" for number in range(65))),
        rule(headers="x-ms-meta-a*,x-ms-meta-b*,x-ms-meta-c*"),
        rule(origins="http://" + "a" * 250),
        rule() * 6,
        rule(origins=",".join("http://" + "a" * 100 + f"{number}" for number in range(30))),
    ],
)
def test_rules_have_limits(client: TableClient, body: str) -> None:  # T225
    assert set_rules(client, body) == 400


def test_rules_may_reach_their_limits(client: TableClient) -> None:  # T225
    names = [f"x-{number}" for number in range(64)]
    try:
        assert set_rules(client, rule(headers=",".join([*names, "x-ms-meta-a*", "x-ms-meta-b*"]), exposed=",".join(names))) == 202
        assert set_rules(client, *[rule(origins="http://" + "a" * 249)] * 5) == 202
    finally:
        assert set_rules(client) == 202


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ("<Enabled>true</Enabled><Days>365</Days>", 202),
        ("<Enabled>true</Enabled><Days>0</Days>", 400),
        ("<Enabled>true</Enabled><Days>366</Days>", 400),
        ("<Enabled>true</Enabled>", 400),
        ("<Enabled>false</Enabled>", 202),
    ],
)
def test_what_is_kept_is_kept_for_a_day_to_a_year(client: TableClient, policy: str, status: int) -> None:  # T222
    body = (
        "<StorageServiceProperties><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
        f"<RetentionPolicy>{policy}</RetentionPolicy></HourMetrics></StorageServiceProperties>"
    )
    try:
        assert client.send("PUT", "/", PROPERTIES, XML, body.encode()).status == status
    finally:
        off = b"<Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
        reset = b"<StorageServiceProperties><HourMetrics>%b</HourMetrics></StorageServiceProperties>" % off
        assert client.send("PUT", "/", PROPERTIES, XML, reset).status == 202


# --- batches ----------------------------------------------------------------------------------------------------------------


def test_a_part_is_answered_with_the_number_it_was_given(box: TableBox) -> None:  # T115, T611, T612
    reply = box.batch(
        box.part("POST", "1", {"A": 1}, Content_ID="17"),
        box.part("POST", "2", {"A": 1}, Prefer="return-no-content", Content_ID="18"),
        box.part("PUT", "3", {"A": 1}),
        box.part("PUT", "4", {"A": 1}, Content_ID="19"),
    )
    assert (reply.status, reply["Content-Type"].partition("_")[0]) == (202, "multipart/mixed; boundary=batchresponse")
    found = answers(reply)
    assert [answer.status for answer in found] == [201, 204, 204, 204]
    assert [answer.header("Content-ID") for answer in found] == ["17", "18", None, "19"]
    assert all("ETag" in answer for answer in found)


@pytest.mark.parametrize("verb", ["PUT", "MERGE", "DELETE"])
def test_a_change_of_nothing_names_its_place(box: TableBox, verb: str) -> None:  # T621, T626
    (one,) = answers(box.batch(box.part(verb, "no", If_Match="*")))
    assert (refusal(one), message(one)) == ((404, "ResourceNotFound"), "0:The specified resource does not exist.")
    (one,) = answers(box.batch(box.part("POST", "new"), box.part(verb, "no", If_Match="*")))
    assert message(one) == "1:The specified resource does not exist."
    assert box.rows() == []


# --- values -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("2020-01-01T10:00:00", "2020-01-01T10:00:00Z"),
        ("2020-01-01T10:00:00+02:00", "2020-01-01T08:00:00Z"),
        ("2020-01-01T10:00:00.12345678Z", "2020-01-01T10:00:00.1234567Z"),
        ("2020-01-01", "2020-01-01T00:00:00Z"),
    ],
)
def test_a_moment_is_stored_in_utc_to_the_tick(box: TableBox, sent: str, stored: str) -> None:  # T413
    box.put({"W@odata.type": "Edm.DateTime", "W": sent})
    assert json_of(box.get())["W"] == stored


def test_blanks_are_kept(box: TableBox) -> None:  # T415
    known = {"Empty": "", "Blank": " ", "Around": "  a\t\n "}
    box.put(known)
    assert {name: value for name, value in json_of(box.get()).items() if name in known} == known


def test_mistakes_are_reported_from_the_outside_in(box: TableBox) -> None:  # T325
    stale, keys = {"If-Match": "W/\"datetime'2000-01-01T00%3A00%3A00Z'\""}, "(PartitionKey='p',RowKey='r')"
    assert refusal(box.client.send("PUT", f"/nosuchtable{keys}", body={}, headers=stale)) == (404, "TableNotFound")
    assert refusal(box.put({"1x": 1}, headers=stale)) == (400, "PropertyNameInvalid")
    assert refusal(box.put({}, headers=stale)) == (404, "ResourceNotFound")
    box.insert()
    assert refusal(box.put({}, headers=stale)) == (412, "UpdateConditionNotSatisfied")


def test_the_timestamp_is_the_servers(box: TableBox) -> None:  # T444
    box.put({"Timestamp": "2000-01-01T00:00:00Z", "A": 1})
    first = json_of(box.get())["Timestamp"]
    assert first > "2020"
    box.put({"A": 2})
    assert json_of(box.get())["Timestamp"] > first
    assert box.rows(f"Timestamp gt datetime'{first}'") == ["r"]


def test_guids_are_ordered_as_they_are_written(box: TableBox) -> None:  # T528
    for digit in "0af":
        box.insert(row_key=digit, known={"G@odata.type": "Edm.Guid", "G": f"{digit.upper()}0000000-0000-0000-0000-000000000000"})
    assert box.rows("G gt guid'00000000-0000-0000-0000-000000000000'") == ["a", "f"]
    assert box.rows("G le guid'A0000000-0000-0000-0000-000000000000'") == ["0", "a"]

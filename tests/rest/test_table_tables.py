"""Tables over HTTP: create, query, get, delete, access policies; the JSON of each metadata level; service properties; methods."""

import uuid

import pytest

from tests.rest.client import BOM
from tests.rest.history_fixtures import server
from tests.rest.running import Running
from tests.rest.table_fixtures import box, client
from tests.rest.tables import FULL, NONE, TableBox, TableClient, json_of, message, refusal
from verditer.core.records.record import Span
from verditer.core.records.table import Entity

__all__ = ["box", "client", "server"]  # fixtures


def new_name() -> str:
    return f"Tbl{uuid.uuid4().hex[:12]}"


@pytest.mark.parametrize(
    ("accept", "body"),  # T103, T170
    [
        (NONE, {"TableName": "{name}"}),
        ("application/json", {"odata.metadata": "{base}/$metadata#Tables/@Element", "TableName": "{name}"}),
        (
            FULL,
            {
                "odata.metadata": "{base}/$metadata#Tables/@Element",
                "odata.type": "devstoreaccount1.Tables",
                "odata.id": "{base}/Tables('{name}')",
                "odata.editLink": "Tables('{name}')",
                "TableName": "{name}",
            },
        ),
    ],
)
def test_a_table_is_created_and_shown_at_each_level(client: TableClient, accept: str, body: dict[str, str]) -> None:
    name = new_name()
    created = client.send("POST", "/Tables", headers={"Accept": accept}, body={"TableName": name})
    wanted = {key: value.replace("{base}", client.base).replace("{name}", name) for key, value in body.items()}
    assert (created.status, list(json_of(created).items())) == (201, list(wanted.items()))
    assert created["Location"] == f"{client.base}/Tables('{name}')"
    assert "Preference-Applied" not in created  # T163
    level = accept.partition("odata=")[2] or "minimalmetadata"
    assert created["Content-Type"] == f"application/json;odata={level};streaming=true;charset=utf-8"  # T177
    assert (created["Cache-Control"], created["X-Content-Type-Options"]) == ("no-cache", "nosniff")  # T192
    got = client.send("GET", f"/Tables('{name}')", headers={"Accept": accept})  # T102
    assert (got.status, got.body) == (200, created.body)


def test_a_client_may_prefer_to_hear_nothing(client: TableClient) -> None:  # T162
    name = new_name()
    reply = client.send("POST", "/Tables", headers={"Prefer": "return-no-content"}, body={"TableName": name})
    assert (reply.status, reply.body, reply["Preference-Applied"]) == (204, b"", "return-no-content")
    assert reply["DataServiceId"] == reply["Location"] == f"{client.base}/Tables('{name}')"
    again = client.send("POST", "/Tables", headers={"Prefer": "return-content"}, body={"TableName": new_name()})  # T161
    assert (again.status, again["Preference-Applied"]) == (201, "return-content")


def test_names_are_unique_whatever_their_case_and_keep_it(client: TableClient) -> None:  # T200, T441
    name = new_name()
    assert client.send("POST", "/Tables", body={"TableName": name}).status == 201
    again = client.send("POST", "/Tables", body={"TableName": name.upper()})
    assert refusal(again) == (409, "TableAlreadyExists")
    assert message(again) == "The table specified already exists."
    assert json_of(client.send("GET", f"/Tables('{name.lower()}')"))["TableName"] == name
    assert client.send("DELETE", f"/Tables('{name.lower()}')").status == 204


WRONG_KEYS = "The number of keys specified in the URI does not match number of key properties for the resource '{}'."


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("my_table", "InvalidResourceName", "The specifed resource name contains invalid characters."),  # T201
        ("1abc", "InvalidResourceName", "The specifed resource name contains invalid characters."),
        ("tables", "InvalidResourceName", "The specifed resource name contains invalid characters."),  # T203
        ("$Metrics", "InvalidResourceName", "The specifed resource name contains invalid characters."),  # T442
        ("ab", "OutOfRangeInput", "The specified resource name length is not within the permissible limits."),  # T202
        ("a" * 64, "OutOfRangeInput", "The specified resource name length is not within the permissible limits."),
    ],
)
def test_a_bad_name_is_refused(client: TableClient, name: str, code: str, text: str) -> None:
    reply = client.send("POST", "/Tables", body={"TableName": name})
    assert (refusal(reply), message(reply)) == ((400, code), text)
    assert "x-ms-error-code" not in reply  # T194


@pytest.mark.parametrize(
    ("body", "code"),  # T205, T418
    [(b"{}", "PropertiesNeedValue"), (b'{"TableName":5}', "InvalidInput"), (b"[]", "InvalidInput"), (b"{", "InvalidInput")],
)
def test_a_body_that_names_no_table_is_refused(client: TableClient, body: bytes, code: str) -> None:
    assert refusal(client.send("POST", "/Tables", body=body)) == (400, code)


def test_a_deleted_table_is_gone_and_a_new_one_is_empty(box: TableBox) -> None:  # T104, T206, T207
    box.insert()
    gone = box.client.send("DELETE", f"/Tables('{box.name}')")
    assert (gone.status, gone.body) == (204, b"")
    assert refusal(box.client.send("DELETE", f"/Tables('{box.name}')")) == (404, "ResourceNotFound")
    assert refusal(box.client.send("GET", f"/Tables('{box.name}')")) == (404, "ResourceNotFound")
    for reply in (box.insert(), box.query(), box.get(), box.put(), box.merge(), box.delete()):
        assert (refusal(reply), message(reply)) == ((404, "TableNotFound"), "The table specified does not exist.")
    box.create()
    assert box.rows() == []


def test_the_entities_of_a_deleted_table_are_collected(box: TableBox) -> None:
    for number in range(3):
        box.insert(row_key=str(number))
    box.client.send("DELETE", f"/Tables('{box.name}')")
    before = stored_entities(box)
    box.server.run(box.server.app.collector.collect())
    assert stored_entities(box) <= before - 3


def stored_entities(box: TableBox) -> int:
    everything = Span(b"", b"\xff" * 16)
    return box.server.run(box.server.app.engine.read((), lambda tx: len(list(tx.scan(Entity, everything))), long=True))


def test_tables_are_listed_by_lower_cased_name_in_pages(server: Running) -> None:  # T101, T171, T208, T560, T564
    client = TableClient(server)
    tag = uuid.uuid4().hex[:8]
    names = [f"q{tag}A", f"Q{tag}b", f"q{tag}C", f"Q{tag}d", f"q{tag}E"]
    for name in reversed(names):
        client.send("POST", "/Tables", body={"TableName": name})
    mine = " or ".join(f"TableName eq '{name}'" for name in names)  # T209
    query = {"$filter": mine, "$top": "2"}
    found, pages = [], 0
    while True:
        reply = client.send("GET", "/Tables()", query)
        found += [item["TableName"] for item in json_of(reply)["value"]]
        pages += 1
        if "x-ms-continuation-NextTableName" not in reply:
            break
        token = reply["x-ms-continuation-NextTableName"]
        assert token.startswith("1!")
        query["NextTableName"] = token
    assert found == names
    assert pages >= 3
    assert json_of(client.send("GET", "/Tables", {"$filter": mine}))["odata.metadata"] == f"{client.base}/$metadata#Tables"
    full = json_of(client.send("GET", "/Tables", {"$filter": f"TableName eq '{names[0]}'"}, {"Accept": FULL}))
    assert list(full["value"][0]) == ["odata.type", "odata.id", "odata.editLink", "TableName"]
    client.close()


def test_a_prefix_of_table_names_is_a_range(client: TableClient) -> None:  # T209
    tag = f"p{uuid.uuid4().hex[:8]}"
    for suffix in ("a", "b"):
        client.send("POST", "/Tables", body={"TableName": f"{tag}{suffix}"})
    reply = client.send("GET", "/Tables", {"$filter": f"TableName ge '{tag}a' and TableName lt '{tag}b'"})
    assert json_of(reply)["value"] == [{"TableName": f"{tag}a"}]


# --- access policies, properties, statistics ------------------------------------------------------------------------------

XML = {"Accept": "application/xml", "Content-Type": "application/xml"}
ACL = (
    "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start>"
    "<Expiry>2031-06-08T00:00:00.0000000Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier>"
    "<SignedIdentifier><Id>b</Id></SignedIdentifier></SignedIdentifiers>"
)


def test_access_policies_are_kept_and_cleared(box: TableBox) -> None:  # T105, T106, T210, T211, T212, T215
    def acl(method: str, body: bytes | None = None) -> tuple[int, bytes]:
        reply = box.table(method, {"comp": "acl"}, headers=XML, body=body)
        return reply.status, reply.body

    declaration = b'<?xml version="1.0" encoding="utf-8"?>'
    assert acl("GET") == (200, BOM + declaration + b"<SignedIdentifiers />")
    sent = ACL.replace("T02:05:09.0000000Z", "T02:05:09Z").replace("T00:00:00.0000000Z", "")
    assert acl("PUT", sent.encode()) == (204, b"")
    assert acl("GET") == (200, BOM + declaration + ACL.encode())
    assert acl("HEAD")[0] == 200
    assert acl("PUT", b"") == (204, b"")
    assert acl("GET") == (200, BOM + declaration + b"<SignedIdentifiers />")


@pytest.mark.parametrize(
    ("identifiers", "code"),
    [
        ("".join(f"<SignedIdentifier><Id>{n}</Id></SignedIdentifier>" for n in range(6)), "InvalidXmlDocument"),  # T213
        ("<SignedIdentifier><Id>" + "x" * 65 + "</Id></SignedIdentifier>", "InvalidXmlDocument"),
        (
            "<SignedIdentifier><Id>a</Id><AccessPolicy><Permission>rx</Permission></AccessPolicy></SignedIdentifier>",
            "InvalidXmlNodeValue",  # T214
        ),
    ],
)
def test_bad_policies_are_refused_in_the_xml_of_the_table_service(box: TableBox, identifiers: str, code: str) -> None:
    body = f"<SignedIdentifiers>{identifiers}</SignedIdentifiers>".encode()
    reply = box.table("PUT", {"comp": "acl"}, headers=XML, body=body)
    assert reply.answer == (400, code)  # T194: here the code is in a header too
    assert reply.xml.tag == "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}error"  # T801
    assert reply.xml[0].text == code
    assert reply["Content-Type"] == "application/xml"


def test_policies_of_a_missing_table(client: TableClient) -> None:  # T216
    assert client.send("GET", "/nosuchtable", {"comp": "acl"}, XML).answer == (404, "TableNotFound")


def test_service_properties_are_set_section_by_section(client: TableClient) -> None:  # T116, T117, T220, T221, T223
    query = {"restype": "service", "comp": "properties"}
    rule = (
        "<CorsRule><AllowedMethods>PATCH,MERGE</AllowedMethods><AllowedOrigins>*</AllowedOrigins><AllowedHeaders>*</AllowedHeaders>"
        "<ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
    )

    def change(cors: str) -> int:
        body = f"<StorageServiceProperties><Cors>{cors}</Cors></StorageServiceProperties>".encode()
        return client.send("PUT", "/", query, XML, body).status

    assert change(rule) == 202
    shown = client.send("GET", "/", query, XML)
    assert shown.status == 200
    assert b"<AllowedMethods>PATCH,MERGE</AllowedMethods>" in shown.body
    preflight = client.send(  # T119, T240-T243
        "OPTIONS", "/x", headers={"Origin": "http://o", "Access-Control-Request-Method": "MERGE"}, auth=""
    )
    assert (preflight.status, preflight["Access-Control-Allow-Methods"]) == (200, "MERGE")
    assert change("") == 202
    assert b"<Cors />" in client.send("GET", "/", query, XML).body
    refused = client.send("OPTIONS", "/x", headers={"Origin": "http://o", "Access-Control-Request-Method": "GET"}, auth="")
    assert refused.answer == (403, "CorsPreflightFailure")


def test_statistics_are_reported_by_the_secondary_alone(server: Running) -> None:  # T118, T230, T231, T232
    query = {"restype": "service", "comp": "stats"}
    primary, secondary = TableClient(server), TableClient(server, account=f"{server.account}-secondary")
    assert primary.send("GET", "/", query, XML).answer == (400, "InvalidQueryParameterValue")
    reply = secondary.send("GET", "/", query, XML)
    assert (reply.status, reply.xml.findtext("GeoReplication/Status")) == (200, "live")
    refused = secondary.send("POST", "/Tables", body={"TableName": "abc"})
    assert (refusal(refused), message(refused)) == ((403, "InsufficientAccountPermissions"), "Write operations are not allowed.")
    assert (refused.reason, "x-ms-error-code" in refused) == ("Forbidden", False)
    primary.close()
    secondary.close()


# --- verbs and forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "headers", "answer"),  # T130, T133, T134
    [
        ("PUT", {"X-HTTP-Method": "MERGE"}, (400, "XMethodNotUsingPost")),
        ("POST", {"X-HTTP-Method": "FETCH"}, (400, "XMethodIncorrectValue")),
        ("POST", {"X-HTTP-Method": "MERGE, PUT"}, (400, "XMethodIncorrectCount")),
        ("PUT", {}, (405, "MethodNotAllowed")),
        ("DELETE", {}, (405, "MethodNotAllowed")),
    ],
)
def test_verbs_that_do_not_fit(box: TableBox, method: str, headers: dict[str, str], answer: tuple[int, str]) -> None:
    assert refusal(box.table(method, headers=headers, body={})) == answer


@pytest.mark.parametrize(
    ("accept", "answer"),  # T154-T158
    [
        ("application/json; odata=nometadata", 200),
        ("APPLICATION/JSON;ODATA=FullMetadata", 200),
        ("text/html, application/json", 200),
        ("", "AtomFormatNotSupported"),
        ("*/*", "AtomFormatNotSupported"),
        ("application/atom+xml", "AtomFormatNotSupported"),
        ("application/json;odata=verbose", "JsonVerboseFormatNotSupported"),
        ("application/json;odata=some", "MediaTypeNotSupported"),
        ("text/html", "MediaTypeNotSupported"),
    ],
)
def test_which_forms_an_answer_can_have(box: TableBox, accept: str, answer: int | str) -> None:
    reply = box.query(headers={"Accept": accept})
    if answer == 200:
        assert reply.status == 200
    else:
        assert reply.status == 415
        assert str(answer).encode() in reply.body


def test_format_wins_over_accept(box: TableBox) -> None:  # T159
    reply = box.query(headers={"Accept": "*/*"}, format="application/json;odata=nometadata")
    assert (reply.status, reply.body) == (200, b'{"value":[]}')


def test_a_refused_form_changes_nothing(box: TableBox) -> None:
    # contract G7
    assert box.insert(headers={"Accept": "*/*"}).status == 415
    assert box.rows() == []
    assert box.insert(headers={"Accept": "*/*", "Prefer": "return-no-content"}).status == 204
    assert box.put(headers={"Accept": ""}).status == 204  # T155
    assert box.insert(headers={"Content-Type": "application/atom+xml"}).status == 415  # T160
    assert refusal(box.table("POST")) == (411, "MissingContentLengthHeader")  # T166


def test_an_error_is_reported_in_the_form_that_was_asked_for(box: TableBox) -> None:  # T800, §7.1
    asked = box.get(headers={"Accept": NONE})
    assert refusal(asked) == (404, "ResourceNotFound")
    assert asked["Content-Type"] == "application/json;odata=nometadata;streaming=true;charset=utf-8"
    text = json_of(asked)["odata.error"]["message"]["value"].split("\n")
    assert text[0] == "The specified resource does not exist."
    assert text[1] == f"RequestId:{asked['x-ms-request-id']}"
    assert text[2].startswith("Time:")
    xml = box.delete(headers={"Accept": ""})
    assert (xml.status, xml.xml.tag) == (404, "{http://schemas.microsoft.com/ado/2007/08/dataservices/metadata}error")
    assert (xml.xml[0].text, xml["Content-Type"]) == ("ResourceNotFound", "application/xml;charset=utf-8")
    assert "x-ms-error-code" not in xml


def test_wrong_keys_in_a_path_are_refused(box: TableBox) -> None:  # T147, T906
    for path in (f"/{box.name}('x')", f"/{box.name}(PartitionKey='p')", f"/{box.name}(PartitionKey='p',PartitionKey='q')"):
        reply = box.client.send("GET", path)
        assert refusal(reply) == (400, "InvalidInput")
        assert message(reply) == WRONG_KEYS.format(f"{box.server.account}.{box.name}")


def test_a_path_below_a_table_names_the_table_before_the_first_slash(box: TableBox) -> None:
    """Seen on Azure."""
    send = box.client.send
    entity = {"PartitionKey": "p", "RowKey": "r"}
    assert send("POST", f"/{box.name}/Tables", body=entity).status == 201
    assert send("POST", f"/{box.name}%2F%2F", body=entity | {"RowKey": "s"}).status == 201
    assert box.rows() == ["r", "s"]
    assert refusal(send("GET", f"/{box.name}/Tables")) == (501, "NotImplemented")
    assert refusal(send("GET", "/absent/Tables")) == (404, "TableNotFound")
    assert refusal(send("DELETE", "/absent/Tables('x')")) == (404, "TableNotFound")
    reply = send("DELETE", f"/{box.name}/Tables('x')")
    assert (refusal(reply), message(reply)) == ((400, "InvalidInput"), WRONG_KEYS.format(f"{box.server.account}.{box.name}"))


def test_an_insert_looks_for_the_table_before_it_looks_at_the_body(box: TableBox) -> None:
    """Seen on Azure."""
    send, no_json = box.client.send, {"Content-Type": "multipart/mixed; boundary=x"}
    assert refusal(send("POST", "/absent", body={"x": 1})) == (404, "TableNotFound")
    assert refusal(send("POST", "/absent", headers=no_json, body=b"--x--")) == (404, "TableNotFound")
    assert refusal(send("POST", f"/{box.name}", body={"x": 1})) == (400, "PropertiesNeedValue")
    reply = send("POST", f"/{box.name}/$batch", headers=no_json, body=b"--x--")
    assert (refusal(reply), message(reply)) == (
        (415, "MediaTypeNotSupported"),
        "None of the provided media types are supported",
    )


@pytest.mark.parametrize(
    ("name", "code"), [("a", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput"), ("a_b", "InvalidResourceName")]
)
def test_every_operation_that_names_a_table_checks_the_name(client: TableClient, name: str, code: str) -> None:
    """Seen on Azure."""
    keys = {"PartitionKey": "p", "RowKey": "r"}
    path = f"/{name}(PartitionKey='p',RowKey='r')"
    for reply in (
        client.send("POST", f"/{name}", body=keys),
        client.send("PUT", path, body={}),
        client.send("MERGE", path, body={}),
        client.send("DELETE", path, headers={"If-Match": "*"}),
    ):
        assert (refusal(reply), reply.reason) == ((400, code), "Bad Request")
    acl = client.send("GET", f"/{name}", {"comp": "acl"}, {"Accept": "application/xml"})
    assert acl.answer == (400, code)


def test_the_metadata_document_is_no_table(client: TableClient) -> None:  # T120
    assert client.send("GET", "/$metadata").status == 404

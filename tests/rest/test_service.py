"""Service properties, stats, account information, and the two endpoints."""

from collections.abc import Iterator

import pytest

from tests.rest.client import ANONYMOUS, Box, Client, Reply
from verditer.rest.stages import LATEST_VERSION

PROPERTIES = {"restype": "service", "comp": "properties"}
STATS = {"restype": "service", "comp": "stats"}
RETENTION = "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>"
NO_RETENTION = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
RULE = (
    "<CorsRule><AllowedOrigins>{}</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders>"
    "<ExposedHeaders>x-ms-meta-*,etag</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
)
CLEAN = (
    f"<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>{NO_RETENTION}</Logging>"
    f"<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>{NO_RETENTION}</HourMetrics>"
    f"<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>{NO_RETENTION}</MinuteMetrics><Cors />"
    "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled></StaticWebsite>"
)


def set_properties(client: Client, sections: str) -> Reply:
    body = f"<StorageServiceProperties>{sections}</StorageServiceProperties>".encode()
    return client.send("PUT", "", PROPERTIES, body=body)


@pytest.fixture(autouse=True)
def clean(client: Client) -> Iterator[None]:
    yield
    assert set_properties(client, CLEAN).status == 202


def test_a_new_account_has_everything_switched_off(client: Client) -> None:
    reply = client.send("GET", "", PROPERTIES)
    assert (reply.status, reply["Content-Type"]) == (200, "application/xml")
    sections = ["Logging", "HourMetrics", "MinuteMetrics", "Cors", "DeleteRetentionPolicy", "StaticWebsite"]
    assert [node.tag for node in reply.xml] == sections
    assert {node.text for node in reply.xml.iter("Enabled")} == {"false"}


def test_what_is_set_comes_back_and_what_is_left_out_stays(client: Client) -> None:
    logging = f"<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>{RETENTION}</Logging>"
    metrics = (
        f"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>{RETENTION}</HourMetrics>"
    )
    reply = set_properties(client, logging + metrics)
    assert (reply.status, reply.body) == (202, b"")
    website = (
        "<StaticWebsite><Enabled>true</Enabled><IndexDocument>i.html</IndexDocument>"
        "<ErrorDocument404Path>404.html</ErrorDocument404Path></StaticWebsite>"
    )
    more = f"<Cors>{RULE.format('*')}</Cors><DefaultServiceVersion>2021-08-06</DefaultServiceVersion>{website}"
    assert set_properties(client, more).status == 202
    root = client.send("GET", "", PROPERTIES).xml
    assert root.findtext("Logging/Delete") == "true"
    assert root.findtext("Logging/RetentionPolicy/Days") == "7"
    assert root.findtext("HourMetrics/IncludeAPIs") == "true"
    assert root.findtext("MinuteMetrics/Enabled") == "false"
    assert root.findtext("Cors/CorsRule/AllowedMethods") == "GET,PUT"
    assert root.findtext("Cors/CorsRule/MaxAgeInSeconds") == "60"
    assert root.findtext("DefaultServiceVersion") == "2021-08-06"
    assert root.findtext("StaticWebsite/IndexDocument") == "i.html"


@pytest.mark.parametrize(
    ("sections", "code"),
    [
        ("<Unknown />", "InvalidXmlDocument"),
        (f"<Cors>{RULE.format('*') * 6}</Cors>", "InvalidXmlDocument"),
        ("<Cors><CorsRule></CorsRule></Cors>", "MissingRequiredXmlNode"),
        (f"<Cors>{RULE.format('*').replace('GET', 'FETCH')}</Cors>", "InvalidXmlNodeValue"),
        (f"<Cors>{RULE.format('*').replace('60', 'long')}</Cors>", "InvalidXmlNodeValue"),
        (f"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled>{RETENTION}</HourMetrics>", "InvalidXmlDocument"),
        ("<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>", "InvalidXmlDocument"),
        ("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>", "InvalidXmlNodeValue"),
        ("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>0</Days></DeleteRetentionPolicy>", "InvalidXmlNodeValue"),
        ("<DeleteRetentionPolicy><Enabled>perhaps</Enabled></DeleteRetentionPolicy>", "InvalidXmlNodeValue"),
        ("<DefaultServiceVersion>new</DefaultServiceVersion>", "InvalidXmlNodeValue"),
        ("<Logging><Version>1.0</Version><Delete>true</Delete></Logging>", "MissingRequiredXmlNode"),
        ("<Logging>", "InvalidXmlDocument"),
    ],
)
def test_properties_that_cannot_be_change_nothing(client: Client, sections: str, code: str) -> None:
    # contract G7
    before = client.send("GET", "", PROPERTIES).body
    assert set_properties(client, sections).answer == (400, code)
    assert client.send("GET", "", PROPERTIES).body == before


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("level", ["service", "container", "blob"])
def test_account_information_is_reported_at_every_level(box: Box, method: str, level: str) -> None:
    path = {"service": "", "container": box.path, "blob": f"{box.path}/blob"}[level]
    query = {"restype": "account", "comp": "properties"}
    for auth in ("key", box.client.account_sas("r"), *([box.sas("r")] if level != "service" else [])):
        reply = box.client.send(method, path, query, auth=auth)
        assert reply.status == 200
        assert reply["x-ms-account-kind"] == "StorageV2"
        assert reply["x-ms-sku-name"] == "Standard_RAGRS"
        assert reply["x-ms-is-hns-enabled"] == "false"
        assert (reply["Content-Length"], reply.body) == ("0", b"")


def test_stats_are_reported_by_the_secondary_endpoint_only(client: Client) -> None:
    secondary = Client(client.server, account=f"{client.account}-secondary")
    reply = secondary.send("GET", "", STATS)
    assert reply.status == 200
    assert reply.xml.findtext("GeoReplication/Status") == "live"
    assert (reply.xml.findtext("GeoReplication/LastSyncTime") or "").endswith(" GMT")
    secondary.close()
    refused = client.send("GET", "", STATS)
    assert refused.answer == (400, "InvalidQueryParameterValue")
    assert refused.detail("QueryParameterName") == "comp"


def test_the_secondary_endpoint_reads_and_never_writes(box: Box) -> None:
    box.put(body=b"primary")
    mirror = Box(Client(box.server, account=f"{box.client.account}-secondary"), box.name)
    assert mirror.get().body == b"primary"
    assert mirror.names() == ["blob"]
    assert mirror.page().xml.get("ServiceEndpoint") == f"{box.server.base_url}-secondary/"
    assert mirror.container("HEAD").status == 200
    for reply in (
        mirror.put(body=b"secondary"),
        mirror.blob("DELETE"),
        mirror.blob("PUT", comp="metadata"),
        mirror.lease("acquire"),
        mirror.container("DELETE"),
        mirror.container("PUT", "metadata"),
        set_properties(mirror.client, "<Cors />"),
    ):
        assert reply.answer == (403, "InsufficientAccountPermissions")
    assert box.get().body == b"primary"
    mirror.client.close()


def preflight(client: Client, path: str = "", **headers: str) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.send("OPTIONS", path, headers=sent, auth=ANONYMOUS)


def test_a_preflight_is_answered_by_the_first_rule_that_fits(box: Box) -> None:
    asked = {"Origin": "http://a.example", "Access_Control_Request_Method": "PUT"}
    assert preflight(box.client, box.path, **asked).answer == (403, "CorsPreflightFailure")
    set_properties(box.client, f"<Cors>{RULE.format('http://a.example')}{RULE.format('*')}</Cors>")
    reply = preflight(box.client, f"{box.path}/blob", **asked, Access_Control_Request_Headers="x-ms-date,x-ms-version")
    assert reply.status == 200
    assert reply["Access-Control-Allow-Origin"] == "http://a.example"
    assert reply["Access-Control-Allow-Methods"] == "PUT"
    assert reply["Access-Control-Allow-Headers"] == "x-ms-date,x-ms-version"
    assert reply["Access-Control-Max-Age"] == "60"
    assert reply["Access-Control-Allow-Credentials"] == "true"
    refused = preflight(box.client, Origin="http://a.example", Access_Control_Request_Method="DELETE")
    assert refused.answer == (403, "CorsPreflightFailure")
    strange = preflight(box.client, **asked, Access_Control_Request_Headers="authorization")
    assert strange.answer == (403, "CorsPreflightFailure")


@pytest.mark.parametrize("headers", [{"Origin": "http://a.example"}, {"Access_Control_Request_Method": "PUT"}, {}])
def test_a_preflight_names_origin_and_method(client: Client, headers: dict[str, str]) -> None:
    assert preflight(client, **headers).answer == (400, "InvalidHeaderValue")


def test_an_answer_across_origins_says_who_may_read_it(box: Box) -> None:
    box.put(headers={"x-ms-meta-seen": "1"})
    origin = {"Origin": "http://a.example"}
    assert "Access-Control-Allow-Origin" not in box.get(headers=origin)
    set_properties(box.client, f"<Cors>{RULE.format('http://a.example')}</Cors>")
    reply = box.get(headers=origin)
    assert reply.status == 200
    assert reply["Access-Control-Allow-Origin"] == "http://a.example"
    assert reply["Access-Control-Allow-Credentials"] == "true"
    assert reply["Vary"] == "Origin"
    exposed = {name.strip().lower() for name in reply["Access-Control-Expose-Headers"].split(",")}
    assert {"x-ms-meta-seen", "etag"} <= exposed
    error = box.get("absent", headers=origin)
    assert (error.status, error["Access-Control-Allow-Origin"]) == (404, "http://a.example")
    other = box.get(headers={"Origin": "http://b.example"})
    assert (other.status, other.header("Access-Control-Allow-Origin")) == (200, None)
    set_properties(box.client, f"<Cors>{RULE.format('*')}</Cors>")
    assert box.get(headers=origin)["Access-Control-Allow-Origin"] == "*"


def test_a_request_without_a_version_gets_the_accounts_default(client: Client) -> None:
    def set_default(version: str) -> None:
        body = f"<StorageServiceProperties><DefaultServiceVersion>{version}</DefaultServiceVersion></StorageServiceProperties>"
        query = {"restype": "service", "comp": "properties"}
        assert client.send("PUT", "", query, body=body.encode()).status == 202

    sas = client.account_sas("l", ss="b", srt="s")
    plain = sas.replace("sv=", "unused=")  # the signature is invalid, but the response has the version
    set_default("2017-04-17")
    assert client.send("GET", "", {"comp": "list"}, version=None, auth=plain)["x-ms-version"] == "2017-04-17"
    set_default("")
    assert client.send("GET", "", {"comp": "list"}, version=None, auth=plain)["x-ms-version"] == LATEST_VERSION

"""Get and Set File Service Properties, preflight requests, and the version rules of the File service."""

from collections.abc import Iterator

import pytest

from tests.rest.client import ANONYMOUS
from tests.rest.files import FileClient, ShareBox

PROPERTIES = {"restype": "service", "comp": "properties"}
SECTIONS = ["HourMetrics", "MinuteMetrics", "Cors", "ProtocolSettings"]
SMB = "ProtocolSettings/SMB"
NFS = "ProtocolSettings/NFS"
RULE = (
    "<CorsRule><AllowedOrigins>http://example.com</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders>*"
    "</AllowedHeaders><ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
)
METRICS = (
    "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
    "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>"
)


@pytest.fixture(autouse=True)
def cleared(files: FileClient) -> Iterator[None]:
    """The properties belong to the account, which all tests share."""
    yield
    store(files, "<Cors />" + settings(multichannel="false", smb="false", nfs="false"))


def store(client: FileClient, sections: str) -> tuple[int, str | None]:
    document = f"<StorageServiceProperties>{sections}</StorageServiceProperties>"
    return client.send("PUT", "", PROPERTIES, body=document.encode()).answer


def settings(multichannel: str = "", smb: str = "", nfs: str = "") -> str:
    channel = f"<Multichannel><Enabled>{multichannel}</Enabled></Multichannel>" if multichannel else ""
    encryption = "<EncryptionInTransit><Required>{}</Required></EncryptionInTransit>"
    protocols = f"<SMB>{channel}{encryption.format(smb) if smb else ''}</SMB>"
    return f"<ProtocolSettings>{protocols}{f'<NFS>{encryption.format(nfs)}</NFS>' if nfs else ''}</ProtocolSettings>"


def stored(client: FileClient) -> list[str | None]:
    root = client.send("GET", "", PROPERTIES).xml
    leaves = f"{SMB}/Multichannel/Enabled", f"{SMB}/EncryptionInTransit/Required", f"{NFS}/EncryptionInTransit/Required"
    return [root.findtext(leaf) for leaf in leaves]


def test_the_document_has_the_sections_of_files(files: FileClient) -> None:
    reply = files.send("GET", "", PROPERTIES)
    assert (reply.status, [child.tag for child in reply.xml]) == (200, SECTIONS)
    assert stored(files) == ["false", "false", "false"]


def test_what_the_document_leaves_out_stays(files: FileClient) -> None:
    assert store(files, METRICS + settings(multichannel="true", nfs="true")) == (202, None)
    assert stored(files) == ["true", "false", "true"]
    assert store(files, f"<Cors>{RULE}</Cors>" + settings(smb="true")) == (202, None)
    assert stored(files) == ["true", "true", "true"]
    root = files.send("GET", "", PROPERTIES).xml
    assert root.findtext("HourMetrics/RetentionPolicy/Days") == "7"
    assert root.findtext("Cors/CorsRule/AllowedOrigins") == "http://example.com"


@pytest.mark.parametrize(
    "section",
    [
        "<Logging><Version>1.0</Version></Logging>",
        "<DefaultServiceVersion>2021-08-06</DefaultServiceVersion>",
        "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>",
        "<StaticWebsite><Enabled>true</Enabled></StaticWebsite>",
        "<ProtocolSettings><FTP /></ProtocolSettings>",
        "<ProtocolSettings><NFS><Multichannel><Enabled>true</Enabled></Multichannel></NFS></ProtocolSettings>",
    ],
)
def test_sections_of_other_services_are_refused(files: FileClient, section: str) -> None:
    assert store(files, section) == (400, "InvalidXmlDocument")


def test_a_setting_is_true_or_false(files: FileClient) -> None:
    assert store(files, settings(multichannel="maybe")) == (400, "InvalidXmlNodeValue")


def test_a_preflight_request_is_answered_by_the_rules(files: FileClient) -> None:
    asked = {"Origin": "http://example.com", "Access-Control-Request-Method": "GET"}
    assert files.send("OPTIONS", "/share/file", headers=asked, auth=ANONYMOUS).answer == (403, "CorsPreflightFailure")
    assert store(files, f"<Cors>{RULE}</Cors>") == (202, None)
    reply = files.send("OPTIONS", "/share/file", headers=asked, auth=ANONYMOUS)
    assert (reply.status, reply["Access-Control-Allow-Origin"]) == (200, "http://example.com")


# Versions

REQUIRED = {
    "x-ms-file-permission": "inherit",
    "x-ms-file-attributes": "None",
    "x-ms-file-creation-time": "now",
    "x-ms-file-last-write-time": "now",
}
KEPT = dict.fromkeys(REQUIRED, "preserve")


@pytest.mark.parametrize("version", ["2019-02-02", "2021-04-10"])
@pytest.mark.parametrize("left_out", REQUIRED)
def test_some_versions_require_the_properties_of_smb(share: ShareBox, version: str, left_out: str) -> None:
    share.make("there")
    share.fill(b"content")
    new = {name: value for name, value in REQUIRED.items() if name != left_out}
    kept = {name: value for name, value in KEPT.items() if name != left_out}
    refused = [
        share.put("new", headers=new, version=version),
        share.directory("PUT", "new", headers=new, version=version),
        share.file("PUT", "file", "properties", kept, version=version),
        share.directory("PUT", "there", "properties", kept, version=version),
    ]
    for reply in refused:
        assert reply.answer == (400, "MissingRequiredHeader")
        assert reply.detail("HeaderName") == left_out
    assert share.put("new", headers=REQUIRED, version=version).status == 201
    assert share.directory("PUT", "dir", headers=REQUIRED, version=version).status == 201
    assert share.file("PUT", "file", "properties", KEPT, version=version).status == 200
    assert share.directory("PUT", "there", "properties", KEPT, version=version).status == 200


@pytest.mark.parametrize("version", ["2018-11-09", "2021-06-08"])
def test_other_versions_require_none_of_them(share: ShareBox, version: str) -> None:
    assert share.put("new", version=version).status == 201
    assert share.directory("PUT", "dir", version=version).status == 201
    assert share.file("PUT", "new", "properties", version=version).status == 200


def test_a_permission_key_stands_for_the_permission(share: ShareBox) -> None:
    key = share.put()["x-ms-file-permission-key"]
    sent = {name: value for name, value in REQUIRED.items() if name != "x-ms-file-permission"}
    assert share.put("new", headers={**sent, "x-ms-file-permission-key": key}, version="2021-04-10").status == 201


def test_restored_files_get_no_attribute_that_they_did_not_have(share: ShareBox) -> None:
    for semantics, attributes in (("New", "Archive"), ("Restore", "None"), ("restore", "None")):
        created = share.put(headers={"x-ms-file-property-semantics": semantics}, version="2026-06-06")
        assert (created.status, created["x-ms-file-attributes"]) == (201, attributes)
    restored = share.directory("PUT", "dir", headers={"x-ms-file-property-semantics": "Restore"}, version="2026-06-06")
    assert restored["x-ms-file-attributes"] == "Directory"
    assert share.put(headers={"x-ms-file-property-semantics": "Old"}).answer == (400, "InvalidHeaderValue")

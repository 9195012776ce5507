"""Service properties and stats: the StorageServiceProperties document, parsed section by section and rendered whole."""

import re
from collections.abc import Callable, Mapping
from itertools import chain
from xml.etree.ElementTree import Element

from verditer.core.dates import rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_CORS_RULES, MAX_CORS_TEXT
from verditer.core.records.account import (
    CorsRule,
    Logging,
    MetricsSettings,
    ProtocolSettings,
    Retention,
    ServiceProperties,
    StaticWebsite,
)
from verditer.rest.codecs.xml import boolean, element, parse, render, required, text_of, truth
from verditer.rest.wire_errors import RestError, invalid_node, missing_node
from verditer.services.properties import ServiceStats

_METHODS = frozenset({"DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"})


def parse_properties(document: bytes) -> dict[str, object]:
    """A section that the document lacks is not in the result, so the stored section stays."""
    return _parse(document, _SECTIONS)


def parse_file_properties(document: bytes) -> dict[str, object]:
    return _parse(document, _FILE_SECTIONS)


def _parse(document: bytes, readers: Mapping[str, tuple[str, Callable[[Element], object]]]) -> dict[str, object]:
    root = parse(document, "StorageServiceProperties")
    sections: dict[str, object] = {}
    for child in root:
        reader = readers.get(child.tag)
        if reader is None:
            raise StorageError(Code.InvalidXmlDocument)
        field, read = reader
        sections[field] = read(child)
    return sections


def _logging(node: Element) -> Logging:
    return Logging(
        version=required(node, "Version"),
        delete=boolean(node, "Delete"),
        read=boolean(node, "Read"),
        write=boolean(node, "Write"),
        retention=_retention_of(node),
    )


def _metrics(node: Element) -> MetricsSettings:
    enabled = boolean(node, "Enabled")
    apis = text_of(node, "IncludeAPIs")
    if enabled and apis is None:
        raise StorageError(Code.InvalidXmlDocument)
    return MetricsSettings(
        version=required(node, "Version"),
        enabled=enabled,
        include_apis=truth("IncludeAPIs", apis) if apis is not None and enabled else None,
        retention=_retention_of(node),
    )


def _retention_of(node: Element) -> Retention:
    policy = node.find("RetentionPolicy")
    if policy is None:
        raise missing_node("RetentionPolicy")
    return _retention(policy)


def _retention(node: Element) -> Retention:
    enabled = boolean(node, "Enabled")
    days = text_of(node, "Days")
    permanent = text_of(node, "AllowPermanentDelete")
    if enabled and days is None:
        raise StorageError(Code.InvalidXmlDocument)
    if days is not None and (not days.isdigit() or not 1 <= int(days) <= 365):
        raise invalid_node("Days", days)
    return Retention(
        enabled=enabled,
        days=int(days) if enabled and days is not None else None,
        allow_permanent_delete=truth("AllowPermanentDelete", permanent) if permanent else False,
    )


def _cors(node: Element) -> tuple[CorsRule, ...]:
    rules = tuple(_cors_rule(child) for child in node)
    if len(rules) > MAX_CORS_RULES or sum(len(text.strip()) for text in node.itertext()) > MAX_CORS_TEXT:
        raise StorageError(Code.InvalidXmlDocument)
    return rules


def _cors_rule(node: Element) -> CorsRule:
    if node.tag != "CorsRule":
        raise StorageError(Code.InvalidXmlDocument)
    age = required(node, "MaxAgeInSeconds")
    if re.fullmatch(r"[0-9]{1,9}", age) is None:
        raise invalid_node("MaxAgeInSeconds", age)
    methods = _comma_list(required(node, "AllowedMethods"))
    origins = _comma_list(required(node, "AllowedOrigins"))
    headers = [_comma_list(required(node, name)) for name in ("AllowedHeaders", "ExposedHeaders")]
    if not origins or not methods or not _METHODS.issuperset(methods):
        raise RestError(Code.InvalidXmlNodeValue, {"XmlNodeName": "AllowedMethods"})
    if len(origins) > 64 or any(map(_are_too_many, headers)) or any(len(text) > 256 for text in chain(origins, *headers)):
        raise StorageError(Code.InvalidXmlDocument)
    return CorsRule(
        allowed_origins=origins,
        allowed_methods=methods,
        allowed_headers=headers[0],
        exposed_headers=headers[1],
        max_age_seconds=int(age),
    )


def _are_too_many(names: tuple[str, ...]) -> bool:
    """Names of headers. A name that ends with a star is a prefix; a star alone is a name."""
    prefixes = sum(name.endswith("*") and name != "*" for name in names)
    return prefixes > 2 or len(names) - prefixes > 64


def _comma_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _static_website(node: Element) -> StaticWebsite:
    return StaticWebsite(
        enabled=boolean(node, "Enabled"),
        index_document=text_of(node, "IndexDocument") or None,
        default_index_document_path=text_of(node, "DefaultIndexDocumentPath") or None,
        error_document_404_path=text_of(node, "ErrorDocument404Path") or None,
    )


def _version(node: Element) -> str:
    """An empty element removes the default version."""
    text = (node.text or "").strip()
    if text and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        raise invalid_node("DefaultServiceVersion", text)
    return text


def _protocol_settings(node: Element) -> ProtocolSettings:
    for protocol in node:
        known = _PROTOCOL_SETTINGS.get(protocol.tag, ())
        if not known or any(setting.tag not in known for setting in protocol):
            raise StorageError(Code.InvalidXmlDocument)
    return ProtocolSettings(
        smb_multichannel=_setting(node, "SMB/Multichannel", "Enabled"),
        smb_encryption_required=_setting(node, "SMB/EncryptionInTransit", "Required"),
        nfs_encryption_required=_setting(node, "NFS/EncryptionInTransit", "Required"),
    )


def _setting(node: Element, path: str, name: str) -> bool | None:
    found = node.find(path)
    return None if found is None else boolean(found, name)


_PROTOCOL_SETTINGS = {"SMB": ("Multichannel", "EncryptionInTransit"), "NFS": ("EncryptionInTransit",)}
_SECTIONS = {
    "Logging": ("logging", _logging),
    "HourMetrics": ("hour_metrics", _metrics),
    "MinuteMetrics": ("minute_metrics", _metrics),
    "Cors": ("cors", _cors),
    "DefaultServiceVersion": ("default_service_version", _version),
    "DeleteRetentionPolicy": ("delete_retention", _retention),
    "StaticWebsite": ("static_website", _static_website),
}
_FILE_SECTIONS = {
    "HourMetrics": ("hour_metrics", _metrics),
    "MinuteMetrics": ("minute_metrics", _metrics),
    "Cors": ("cors", _cors),
    "ProtocolSettings": ("protocol_settings", _protocol_settings),
}


def render_properties(properties: ServiceProperties, decoded: object) -> bytes:
    """The sections of queues and tables. Blobs have more."""
    return render(f"<StorageServiceProperties>{_common_sections(properties)}</StorageServiceProperties>")


def render_file_properties(properties: ServiceProperties, decoded: object) -> bytes:
    """Azure Files has no logging of its own. Settings that nobody has set are off."""
    settings = properties.protocol_settings
    return render(
        f"<StorageServiceProperties>{_metrics_and_cors(properties)}<ProtocolSettings>"
        f"<SMB><Multichannel><Enabled>{_bool(bool(settings.smb_multichannel))}</Enabled></Multichannel>"
        f"{_encryption(settings.smb_encryption_required)}</SMB><NFS>{_encryption(settings.nfs_encryption_required)}</NFS>"
        "</ProtocolSettings></StorageServiceProperties>"
    )


def _encryption(required: bool | None) -> str:
    return f"<EncryptionInTransit><Required>{_bool(bool(required))}</Required></EncryptionInTransit>"


def render_blob_properties(properties: ServiceProperties, decoded: object) -> bytes:
    version = properties.default_service_version
    website = properties.static_website
    return render(
        f"<StorageServiceProperties>{_common_sections(properties)}{element('DefaultServiceVersion', version) if version else ''}"
        f"<DeleteRetentionPolicy>{_render_retention(properties.delete_retention)}</DeleteRetentionPolicy>"
        f"<StaticWebsite><Enabled>{_bool(website.enabled)}</Enabled>{_render_website(website)}</StaticWebsite>"
        "</StorageServiceProperties>"
    )


def _common_sections(properties: ServiceProperties) -> str:
    logging = properties.logging
    return (
        f"<Logging><Version>{logging.version}</Version><Read>{_bool(logging.read)}</Read><Write>{_bool(logging.write)}</Write>"
        f"<Delete>{_bool(logging.delete)}</Delete><RetentionPolicy>{_render_retention(logging.retention)}</RetentionPolicy>"
        f"</Logging>{_metrics_and_cors(properties)}"
    )


def _metrics_and_cors(properties: ServiceProperties) -> str:
    return (
        f"{_render_metrics('HourMetrics', properties.hour_metrics)}"
        f"{_render_metrics('MinuteMetrics', properties.minute_metrics)}{_render_cors(properties.cors)}"
    )


def _render_metrics(name: str, metrics: MetricsSettings) -> str:
    apis = f"<IncludeAPIs>{_bool(metrics.include_apis)}</IncludeAPIs>" if metrics.include_apis is not None else ""
    return (
        f"<{name}><Version>{metrics.version}</Version><Enabled>{_bool(metrics.enabled)}</Enabled>{apis}"
        f"<RetentionPolicy>{_render_retention(metrics.retention)}</RetentionPolicy></{name}>"
    )


def _render_retention(retention: Retention) -> str:
    days = f"<Days>{retention.days}</Days>" if retention.days is not None else ""
    permanent = "<AllowPermanentDelete>true</AllowPermanentDelete>" if retention.allow_permanent_delete else ""
    return f"<Enabled>{_bool(retention.enabled)}</Enabled>{days}{permanent}"


def _render_cors(rules: tuple[CorsRule, ...]) -> str:
    if not rules:
        return "<Cors />"
    return f"<Cors>{''.join(_render_rule(rule) for rule in rules)}</Cors>"


def _render_rule(rule: CorsRule) -> str:
    return (
        f"<CorsRule>{element('AllowedMethods', ','.join(rule.allowed_methods))}"
        f"{element('AllowedOrigins', ','.join(rule.allowed_origins))}"
        f"{element('AllowedHeaders', ','.join(rule.allowed_headers))}"
        f"{element('ExposedHeaders', ','.join(rule.exposed_headers))}"
        f"<MaxAgeInSeconds>{rule.max_age_seconds}</MaxAgeInSeconds></CorsRule>"
    )


def _render_website(website: StaticWebsite) -> str:
    fields = (
        ("IndexDocument", website.index_document),
        ("DefaultIndexDocumentPath", website.default_index_document_path),
        ("ErrorDocument404Path", website.error_document_404_path),
    )
    return "".join(element(name, value) for name, value in fields if value)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def render_stats(stats: ServiceStats, decoded: object) -> bytes:
    return render(
        "<StorageServiceStats><GeoReplication><Status>live</Status>"
        f"<LastSyncTime>{rfc1123(stats.last_sync)}</LastSyncTime></GeoReplication></StorageServiceStats>"
    )

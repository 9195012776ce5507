"""Service properties and stats: the StorageServiceProperties document, parsed section by section and rendered whole."""

import re
from itertools import chain
from typing import Any
from xml.etree.ElementTree import Element

from verditer.core.dates import rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_CORS_RULES, MAX_CORS_TEXT
from verditer.core.records.account import CorsRule, Logging, Metrics, Retention, ServiceProperties, StaticWebsite
from verditer.rest.codecs.xml import boolean, element, parse, render, required, text_of, truth
from verditer.services.properties import ServiceStats

_METHODS = frozenset({"DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"})


def parse_properties(document: bytes) -> dict[str, Any]:
    """A section that is missing is missing from the result too, and so keeps its setting."""
    root = parse(document, "StorageServiceProperties")
    sections: dict[str, Any] = {}
    for child in root:
        reader = _SECTIONS.get(child.tag)
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


def _metrics(node: Element) -> Metrics:
    enabled = boolean(node, "Enabled")
    apis = text_of(node, "IncludeAPIs")
    if enabled and apis is None:
        raise StorageError(Code.InvalidXmlDocument)
    return Metrics(
        version=required(node, "Version"),
        enabled=enabled,
        include_apis=truth("IncludeAPIs", apis) if apis is not None and enabled else None,
        retention=_retention_of(node),
    )


def _retention_of(node: Element) -> Retention:
    policy = node.find("RetentionPolicy")
    if policy is None:
        raise StorageError(Code.MissingRequiredXmlNode, details={"XmlNodeName": "RetentionPolicy"})
    return _retention(policy)


def _retention(node: Element) -> Retention:
    enabled = boolean(node, "Enabled")
    days = text_of(node, "Days")
    permanent = text_of(node, "AllowPermanentDelete")
    if enabled and days is None:
        raise StorageError(Code.InvalidXmlDocument)
    if days is not None and (not days.isdigit() or not 1 <= int(days) <= 365):
        raise StorageError(Code.InvalidXmlNodeValue, details={"XmlNodeName": "Days", "XmlNodeValue": days})
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
        raise StorageError(Code.InvalidXmlNodeValue, details={"XmlNodeName": "MaxAgeInSeconds", "XmlNodeValue": age})
    methods = _comma_list(required(node, "AllowedMethods"))
    origins = _comma_list(required(node, "AllowedOrigins"))
    headers = [_comma_list(required(node, name)) for name in ("AllowedHeaders", "ExposedHeaders")]
    if not origins or not methods or not _METHODS.issuperset(methods):
        raise StorageError(Code.InvalidXmlNodeValue, details={"XmlNodeName": "AllowedMethods"})
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
    """Names of headers; those that end with a star are prefixes, and a star alone is a name."""
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
    """Empty means: none any more."""
    text = (node.text or "").strip()
    if text and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        raise StorageError(Code.InvalidXmlNodeValue, details={"XmlNodeName": "DefaultServiceVersion", "XmlNodeValue": text})
    return text


_SECTIONS = {
    "Logging": ("logging", _logging),
    "HourMetrics": ("hour_metrics", _metrics),
    "MinuteMetrics": ("minute_metrics", _metrics),
    "Cors": ("cors", _cors),
    "DefaultServiceVersion": ("default_service_version", _version),
    "DeleteRetentionPolicy": ("delete_retention", _retention),
    "StaticWebsite": ("static_website", _static_website),
}


def render_properties(properties: ServiceProperties, exchange: object) -> bytes:
    logging = properties.logging
    version = properties.default_service_version
    website = properties.static_website
    blob_only = (
        f"{element('DefaultServiceVersion', version) if version else ''}"
        f"<DeleteRetentionPolicy>{_render_retention(properties.delete_retention)}</DeleteRetentionPolicy>"
        f"<StaticWebsite><Enabled>{_bool(website.enabled)}</Enabled>{_render_website(website)}</StaticWebsite>"
    )
    return render(
        "<StorageServiceProperties><Logging>"
        f"<Version>{logging.version}</Version><Read>{_bool(logging.read)}</Read><Write>{_bool(logging.write)}</Write>"
        f"<Delete>{_bool(logging.delete)}</Delete><RetentionPolicy>{_render_retention(logging.retention)}</RetentionPolicy>"
        f"</Logging>{_render_metrics('HourMetrics', properties.hour_metrics)}"
        f"{_render_metrics('MinuteMetrics', properties.minute_metrics)}{_render_cors(properties.cors)}"
        f"{blob_only if properties.service == 'blob' else ''}</StorageServiceProperties>"
    )


def _render_metrics(name: str, metrics: Metrics) -> str:
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


def render_stats(stats: ServiceStats, exchange: object) -> bytes:
    return render(
        "<StorageServiceStats><GeoReplication><Status>live</Status>"
        f"<LastSyncTime>{rfc1123(stats.last_sync)}</LastSyncTime></GeoReplication></StorageServiceStats>"
    )

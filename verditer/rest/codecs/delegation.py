"""Get User Delegation Key: the KeyInfo document of the request and the UserDelegationKey document of the answer."""

import base64
from xml.etree.ElementTree import Element

from verditer.core.dates import iso, parse_iso
from verditer.rest.codecs.xml import element, parse, render, required, text_of
from verditer.rest.wire_errors import invalid_node
from verditer.services.delegation import UserDelegationKey


def parse_key_info(document: bytes) -> dict[str, object]:
    root = parse(document, "KeyInfo")
    start = text_of(root, "Start")
    return {
        "start": _moment(root, "Start") if start else None,
        "expiry": _moment(root, "Expiry"),
        "delegated_tid": text_of(root, "DelegatedUserTid") or "",
    }


def _moment(root: Element, name: str) -> int:
    text = required(root, name)
    ticks = parse_iso(text)
    if ticks is None:
        raise invalid_node(name, text)
    return ticks


def render_delegation_key(result: UserDelegationKey, decoded: object) -> bytes:
    key = result.key
    delegated = element("SignedDelegatedUserTid", key.delegated_tid) if key.delegated_tid else ""
    return render(
        f"<UserDelegationKey>{element('SignedOid', key.oid)}{element('SignedTid', key.tid)}"
        f"{element('SignedStart', _second(key.start))}{element('SignedExpiry', _second(key.expiry))}"
        f"{element('SignedService', key.service)}{element('SignedVersion', key.version)}{delegated}"
        f"{element('Value', base64.b64encode(result.value).decode())}</UserDelegationKey>"
    )


def _second(ticks: int) -> str:
    return f"{iso(ticks)[:19]}Z"

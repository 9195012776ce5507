"""Stored access policies: the SignedIdentifiers document of Get and Set ACL, the same for every service."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from verditer.core.dates import iso, parse_iso
from verditer.core.errors import Code, StorageError
from verditer.core.records.container import AccessPolicy
from verditer.rest.codecs.xml import element, parse, render, required, text_of
from verditer.rest.wire_errors import invalid_node
from verditer.services.blob.answers import ContainerState


def parse_policies(document: bytes) -> dict[str, object]:
    """An empty body means no policies."""
    if not document.strip():
        return {"policies": ()}
    root = parse(document, "SignedIdentifiers")
    if any(child.tag != "SignedIdentifier" for child in root):
        raise StorageError(Code.InvalidXmlDocument)
    return {"policies": tuple(_policy(child) for child in root)}


def _policy(node: Element) -> AccessPolicy:
    policy = node.find("AccessPolicy")
    if policy is None:
        return AccessPolicy(id=required(node, "Id"))
    return AccessPolicy(
        id=required(node, "Id"),
        start=_moment(policy, "Start"),
        expiry=_moment(policy, "Expiry"),
        permission=text_of(policy, "Permission") or None,
    )


def _moment(node: Element, name: str) -> int | None:
    text = text_of(node, name)
    if not text:
        return None
    ticks = parse_iso(text)
    if ticks is None:
        raise invalid_node(name, text)
    return ticks


def render_policies(state: ContainerState, decoded: object) -> bytes:
    return render_policy_list(state.container.policies)


def render_policy_list(policies: Iterable[AccessPolicy]) -> bytes:
    rows = "".join(_render(policy) for policy in policies)
    return render(f"<SignedIdentifiers>{rows}</SignedIdentifiers>" if rows else "<SignedIdentifiers />")


def _render(policy: AccessPolicy) -> str:
    """Only fields that were set are shown."""
    fields = (
        ("Start", None if policy.start is None else iso(policy.start)),
        ("Expiry", None if policy.expiry is None else iso(policy.expiry)),
        ("Permission", policy.permission),
    )
    inner = "".join(element(name, value) for name, value in fields if value is not None)
    access = f"<AccessPolicy>{inner}</AccessPolicy>" if inner else ""
    return f"<SignedIdentifier>{element('Id', policy.id)}{access}</SignedIdentifier>"

"""The pages of List Shares, and the documents of share statistics, access policies and permissions."""

import base64
import json

from verditer.core.dates import iso, rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.files.sddl import format_sddl
from verditer.core.files.security_descriptor import decode_descriptor
from verditer.core.files.sid import SecurityDescriptorError
from verditer.core.records.file import DeletedShare, Share, ShareSnapshot
from verditer.rest.codecs import etag as etags
from verditer.rest.codecs.listings import enumeration, lease_elements, metadata_element, retention_elements
from verditer.rest.codecs.policies import render_policy_list
from verditer.rest.codecs.xml import element, escape, render
from verditer.rest.stages import Decoded
from verditer.services.file.answers import Permission, SharePage, ShareState, ShareStatistics


def render_shares(page: SharePage, decoded: Decoded) -> bytes:
    has_metadata = "metadata" in decoded.address.query.get("include", "").lower()
    rows = "".join([_share(share, page.now, has_metadata) for share in page.shares])
    return enumeration(decoded, "", f"<Shares>{rows}</Shares>" if rows else "<Shares />", page.next_marker)


def _share(share: Share, now: int, has_metadata: bool) -> str:
    state, retention = "", ""
    if isinstance(share, DeletedShare):
        state = f"<Deleted>true</Deleted><Version>{share.version:016X}</Version>"
        retention = retention_elements(share.version, share.expires, now)
    elif isinstance(share, ShareSnapshot):
        state = f"<Snapshot>{iso(share.snapshot)}</Snapshot>"
    return (
        f"<Share><Name>{escape(share.name)}</Name>{state}<Properties>"
        f"<Last-Modified>{rfc1123(share.etag)}</Last-Modified><Etag>{escape(etags.show(share.etag))}</Etag>"
        f"<Quota>{share.quota_gib}</Quota>{_properties(share)}{lease_elements(share.lease, now)}{retention}</Properties>"
        f"{metadata_element(share.metadata) if has_metadata else ''}</Share>"
    )


def _properties(share: Share) -> str:
    figures = share.provisioning
    changed = None if share.access_tier_changed is None else rfc1123(share.access_tier_changed)
    given = (
        ("AccessTier", share.access_tier),
        ("AccessTierChangeTime", changed),
        ("EnabledProtocols", share.protocols),
        ("RootSquash", share.root_squash),
        ("EnableSnapshotVirtualDirectoryAccess", _flag(share.snapshot_directory)),
        ("EnableSmbDirectoryLease", _flag(share.directory_lease)),
        ("ProvisionedIops", _number(figures.iops)),
        ("ProvisionedBandwidthMiBps", _number(figures.bandwidth_mibps)),
        ("PaidBurstingEnabled", _flag(figures.paid_bursting)),
        ("PaidBurstingMaxIops", _number(figures.paid_bursting_iops)),
        ("PaidBurstingMaxBandwidthMibps", _number(figures.paid_bursting_bandwidth_mibps)),
    )
    return "".join(element(name, value) for name, value in given if value is not None)


def _flag(value: bool | None) -> str | None:
    return None if value is None else "true" if value else "false"


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def render_share_policies(state: ShareState, decoded: object) -> bytes:
    return render_policy_list(state.share.policies)


def render_share_usage(usage: ShareStatistics, decoded: object) -> bytes:
    return render(f"<ShareStats><ShareUsageBytes>{usage.usage_bytes}</ShareUsageBytes></ShareStats>")


def parse_permission_document(document: bytes) -> dict[str, object]:
    """`{"permission": "<SDDL or base64>", "format": "Sddl" or "Binary"}`."""
    try:
        found = {name.lower(): value for name, value in json.loads(document).items()}  # older clients send `Permission`
        permission, form = found["permission"], found.get("format", "sddl")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StorageError(Code.InvalidInput) from None
    if not isinstance(permission, str) or not isinstance(form, str) or form.lower() not in ("sddl", "binary"):
        raise StorageError(Code.InvalidInput)
    return {"permission": permission, "permission_format": form.lower()}


def render_permission(permission: Permission, decoded: Decoded) -> bytes:
    asked = decoded.request.headers.get("x-ms-file-permission-format")
    if asked is not None and asked.lower() == "binary":
        text, form = base64.b64encode(permission.descriptor).decode(), "binary"
    else:
        text, form = _sddl(permission.descriptor), "sddl"
    document = {"permission": text} if asked is None else {"permission": text, "format": form}
    return json.dumps(document, separators=(",", ":")).encode()


def _sddl(descriptor: bytes) -> str:
    try:
        return format_sddl(decode_descriptor(descriptor))
    except SecurityDescriptorError as error:
        message = f"The permission has only a binary form, which x-ms-file-permission-format asks for: {error}."
        raise StorageError(Code.FileInvalidPermission, message=message) from None

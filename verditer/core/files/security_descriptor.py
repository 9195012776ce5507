"""Windows security descriptors as values, and their self-relative binary form (MS-DTYP 2.4).

A file or directory of a share has one descriptor: owner, group, DACL and SACL. `core/files/sddl.py` has the text form and
`core/files/security_inheritance.py` derives the descriptor of a new file. Malformed input raises `SecurityDescriptorError`.
"""

import hashlib
import struct
from dataclasses import dataclass, replace
from enum import IntFlag
from uuid import UUID

from verditer.core.files.sid import SecurityDescriptorError, Sid, decode_sid, encode_sid

MAX_DESCRIPTOR_BYTES = 64 * 1024  # binary or text

_HEADER = struct.Struct("<BBHIIII")  # revision, resource manager byte, control, offsets of owner, group, SACL, DACL
_ACL_HEADER = struct.Struct("<BBHHH")  # revision, 0, size, number of ACEs, 0
_ACE_HEADER = struct.Struct("<BBH")  # type, flags, size

_DACL_PRESENT, _SACL_PRESENT, _SELF_RELATIVE = 0x0004, 0x0010, 0x8000


class AceFlags(IntFlag):
    NONE = 0
    OBJECT_INHERIT = 0x01
    CONTAINER_INHERIT = 0x02
    NO_PROPAGATE = 0x04
    INHERIT_ONLY = 0x08
    INHERITED = 0x10
    CRITICAL = 0x20
    AUDIT_SUCCESS = 0x40
    AUDIT_FAILURE = 0x80


class AclFlags(IntFlag):
    """The bits of the descriptor's control word that belong to its DACL. Those of the SACL are one position higher."""

    NONE = 0
    INHERIT_REQUEST = 0x0100
    AUTO_INHERITED = 0x0400
    PROTECTED = 0x1000


_ACL_FLAGS = AclFlags.INHERIT_REQUEST | AclFlags.AUTO_INHERITED | AclFlags.PROTECTED


@dataclass(frozen=True, kw_only=True, slots=True)
class AceType:
    code: int
    sddl: str
    has_objects: bool = False  # two optional GUIDs precede the SID
    has_data: bool = False  # a condition or an attribute follows the SID


ACE_TYPES = (
    AceType(code=0x00, sddl="A"),
    AceType(code=0x01, sddl="D"),
    AceType(code=0x02, sddl="AU"),
    AceType(code=0x03, sddl="AL"),
    AceType(code=0x05, sddl="OA", has_objects=True),
    AceType(code=0x06, sddl="OD", has_objects=True),
    AceType(code=0x07, sddl="OU", has_objects=True),
    AceType(code=0x08, sddl="OL", has_objects=True),
    AceType(code=0x09, sddl="XA", has_data=True),
    AceType(code=0x0A, sddl="XD", has_data=True),
    AceType(code=0x0B, sddl="ZA", has_objects=True, has_data=True),
    AceType(code=0x0D, sddl="XU", has_data=True),
    AceType(code=0x11, sddl="ML"),
    AceType(code=0x12, sddl="RA", has_data=True),
    AceType(code=0x13, sddl="SP"),
    AceType(code=0x14, sddl="TL"),
    AceType(code=0x15, sddl="FL", has_data=True),
)
ACE_TYPE_BY_CODE = {kind.code: kind for kind in ACE_TYPES}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ace:
    """One access control entry of a type in `ACE_TYPES`."""

    type: int
    flags: AceFlags = AceFlags.NONE
    mask: int = 0
    sid: Sid
    object_type: UUID | None = None
    inherited_object_type: UUID | None = None
    data: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpaqueAce:
    """An entry of an unknown type: the bytes after its header are kept as they are."""

    type: int
    flags: AceFlags = AceFlags.NONE
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Acl:
    flags: AclFlags = AclFlags.NONE
    aces: tuple[Ace | OpaqueAce, ...] | None = ()  # None is the null ACL, `NO_ACCESS_CONTROL`: it restricts nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class SecurityDescriptor:
    """A part that is None is absent, which differs from an empty and from a null ACL."""

    owner: Sid | None = None
    group: Sid | None = None
    dacl: Acl | None = None
    sacl: Acl | None = None


def as_permission(descriptor: SecurityDescriptor) -> SecurityDescriptor:
    """The form in which the service stores a descriptor that a client sent.

    Create Permission requires owner, group and DACL. An absent SACL becomes a null one: the service answers
    `O:…G:…D:…` with `O:…G:…D:…S:NO_ACCESS_CONTROL`.
    """
    check_required_parts(descriptor)
    return descriptor if descriptor.sacl else replace(descriptor, sacl=Acl(aces=None))


class SecurityParts(IntFlag):
    """Which parts of a descriptor an SMB request reads or sets: SECURITY_INFORMATION of MS-DTYP 2.4.7."""

    OWNER = 0x1
    GROUP = 0x2
    DACL = 0x4
    SACL = 0x8


def with_parts(descriptor: SecurityDescriptor, given: SecurityDescriptor, parts: int) -> SecurityDescriptor:
    """A descriptor with some of its parts taken from another. Owner, group and DACL stay where the other one has none."""
    names = {SecurityParts.OWNER: "owner", SecurityParts.GROUP: "group", SecurityParts.DACL: "dacl", SecurityParts.SACL: "sacl"}
    taken = {name: getattr(given, name) for part, name in names.items() if parts & part and getattr(given, name) is not None}
    return replace(descriptor, **taken)


def with_settled_inheritance(descriptor: SecurityDescriptor) -> SecurityDescriptor:
    """What Windows stores of a descriptor that an SMB client sets: INHERIT_REQUEST is no property of a DACL, it only says that
    AUTO_INHERITED is meant."""
    if descriptor.dacl is None:
        return descriptor
    flags = descriptor.dacl.flags
    kept = AclFlags.PROTECTED if not flags & AclFlags.INHERIT_REQUEST else AclFlags.PROTECTED | AclFlags.AUTO_INHERITED
    return replace(descriptor, dacl=replace(descriptor.dacl, flags=flags & kept))


def only_parts(descriptor: SecurityDescriptor, parts: int) -> SecurityDescriptor:
    return with_parts(SecurityDescriptor(), descriptor, parts)


def check_required_parts(descriptor: SecurityDescriptor) -> None:
    parts = {"owner (O:)": descriptor.owner, "group (G:)": descriptor.group, "DACL (D:)": descriptor.dacl}
    missing = [name for name, part in parts.items() if part is None]
    if missing:
        raise SecurityDescriptorError(f"the descriptor has no {', no '.join(missing)}")


def permission_key(descriptor: SecurityDescriptor) -> str:
    """`<u64>*<u64>`: a digest of the canonical binary form, so equal descriptors have equal keys."""
    high, low = struct.unpack_from("<QQ", hashlib.sha256(encode_descriptor(descriptor)).digest())
    return f"{high}*{low}"


# --- binary form ------------------------------------------------------------------------------------------------------


def encode_descriptor(descriptor: SecurityDescriptor) -> bytes:
    """The canonical self-relative form: SACL, DACL, owner, group, as Windows writes them."""
    control = _SELF_RELATIVE
    if descriptor.dacl is not None:
        control |= _DACL_PRESENT | descriptor.dacl.flags
    if descriptor.sacl is not None:
        control |= _SACL_PRESENT | descriptor.sacl.flags << 1
    body = bytearray()

    def append(part: bytes | None) -> int:
        if part is None:
            return 0
        body.extend(part)
        return _HEADER.size + len(body) - len(part)

    sacl, dacl = append(_encode_acl(descriptor.sacl)), append(_encode_acl(descriptor.dacl))
    owner, group = append(_encode_optional_sid(descriptor.owner)), append(_encode_optional_sid(descriptor.group))
    if _HEADER.size + len(body) > MAX_DESCRIPTOR_BYTES:
        raise SecurityDescriptorError(f"the descriptor has more than {MAX_DESCRIPTOR_BYTES} bytes")
    return _HEADER.pack(1, 0, control, owner, group, sacl, dacl) + body


def _encode_optional_sid(sid: Sid | None) -> bytes | None:
    return None if sid is None else encode_sid(sid)


def _encode_acl(acl: Acl | None) -> bytes | None:
    if acl is None or acl.aces is None:
        return None
    body = b"".join(map(_encode_ace, acl.aces))
    size = _ACL_HEADER.size + len(body)
    if size > 0xFFFF:
        raise SecurityDescriptorError("an ACL has more than 65535 bytes")
    revision = 4 if any(isinstance(ace, Ace) and ACE_TYPE_BY_CODE[ace.type].has_objects for ace in acl.aces) else 2
    return _ACL_HEADER.pack(revision, 0, size, len(acl.aces), 0) + body


def _encode_ace(ace: Ace | OpaqueAce) -> bytes:
    body = ace.body if isinstance(ace, OpaqueAce) else _encode_ace_body(ace)
    body += bytes(-len(body) % 4)
    if _ACE_HEADER.size + len(body) > 0xFFFF:
        raise SecurityDescriptorError("an ACE has more than 65535 bytes")
    return _ACE_HEADER.pack(ace.type, ace.flags, _ACE_HEADER.size + len(body)) + body


def _encode_ace_body(ace: Ace) -> bytes:
    objects = b""
    if ACE_TYPE_BY_CODE[ace.type].has_objects:
        guids = (ace.object_type, ace.inherited_object_type)
        present = sum(bit for bit, guid in zip((1, 2), guids, strict=True) if guid is not None)
        objects = struct.pack("<I", present) + b"".join(guid.bytes_le for guid in guids if guid is not None)
    return struct.pack("<I", ace.mask) + objects + encode_sid(ace.sid) + ace.data


def decode_descriptor(data: bytes) -> SecurityDescriptor:
    """Read a self-relative descriptor; its parts may be in any order. Control bits without a field here are dropped."""
    if len(data) > MAX_DESCRIPTOR_BYTES:
        raise SecurityDescriptorError(f"the descriptor has more than {MAX_DESCRIPTOR_BYTES} bytes")
    if len(data) < _HEADER.size:
        raise SecurityDescriptorError("the descriptor is shorter than its header")
    revision, _, control, owner, group, sacl, dacl = _HEADER.unpack_from(data)
    if revision != 1 or not control & _SELF_RELATIVE:
        raise SecurityDescriptorError("the descriptor is not in self-relative form of revision 1")
    return SecurityDescriptor(
        owner=decode_sid(data, owner)[0] if owner else None,
        group=decode_sid(data, group)[0] if group else None,
        dacl=_decode_acl(data, dacl, control) if control & _DACL_PRESENT else None,
        sacl=_decode_acl(data, sacl, control >> 1) if control & _SACL_PRESENT else None,
    )


def _decode_acl(data: bytes, offset: int, control: int) -> Acl:
    flags = AclFlags(control & _ACL_FLAGS)
    if offset == 0:
        return Acl(flags=flags, aces=None)
    if offset + _ACL_HEADER.size > len(data):
        raise SecurityDescriptorError("an ACL lies outside the descriptor")
    revision, _, size, count, _ = _ACL_HEADER.unpack_from(data, offset)
    if revision not in (2, 4) or size < _ACL_HEADER.size or offset + size > len(data):
        raise SecurityDescriptorError("an ACL has an unknown revision or a wrong size")
    aces, position, end = [], offset + _ACL_HEADER.size, offset + size
    for _ in range(count):
        ace, position = _decode_ace(data, position, end)
        aces.append(ace)
    return Acl(flags=flags, aces=tuple(aces))


def _decode_ace(data: bytes, offset: int, end: int) -> tuple[Ace | OpaqueAce, int]:
    if offset + _ACE_HEADER.size > end:
        raise SecurityDescriptorError("an ACE lies outside its ACL")
    code, flags, size = _ACE_HEADER.unpack_from(data, offset)
    if size < _ACE_HEADER.size or size % 4 or offset + size > end:
        raise SecurityDescriptorError("an ACE has a wrong size")
    body = data[offset + _ACE_HEADER.size : offset + size]
    kind = ACE_TYPE_BY_CODE.get(code)
    if kind is None:
        return OpaqueAce(type=code, flags=AceFlags(flags), body=body), offset + size
    return _decode_ace_body(kind, AceFlags(flags), body), offset + size


def _decode_ace_body(kind: AceType, flags: AceFlags, body: bytes) -> Ace:
    position = 4
    guids: list[UUID | None] = [None, None]
    if kind.has_objects:
        position = 8
        present = int.from_bytes(body[4:8], "little")
        for index in (0, 1):
            if present & 1 << index:
                guids[index] = UUID(bytes_le=_guid_bytes(body, position))
                position += 16
    sid, position = decode_sid(body, position)
    return Ace(
        type=kind.code,
        flags=flags,
        mask=int.from_bytes(body[:4], "little"),
        sid=sid,
        object_type=guids[0],
        inherited_object_type=guids[1],
        data=body[position:] if kind.has_data else b"",
    )


def _guid_bytes(body: bytes, position: int) -> bytes:
    if position + 16 > len(body):
        raise SecurityDescriptorError("an object ACE is shorter than its GUIDs")
    return body[position : position + 16]

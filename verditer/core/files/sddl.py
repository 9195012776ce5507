"""The text form of security descriptors: SDDL (MS-DTYP 2.5.1), written as Azure Files and Windows write it.

The tables of abbreviations are those of Windows' `sddl.h`. Conditional and resource attribute ACEs have no text form here:
they are read and kept in binary form only.
"""

import re
from collections.abc import Mapping
from uuid import UUID

from verditer.core.files.security_descriptor import (
    ACE_TYPE_BY_CODE,
    ACE_TYPES,
    MAX_DESCRIPTOR_BYTES,
    Ace,
    AceFlags,
    AceType,
    Acl,
    AclFlags,
    OpaqueAce,
    SecurityDescriptor,
)
from verditer.core.files.sid import SecurityDescriptorError, Sid, parse_sid

NULL_ACL = "NO_ACCESS_CONTROL"

SID_BY_ABBREVIATION = {
    "AA": Sid("S-1-5-32-579"), "AC": Sid("S-1-15-2-1"), "AN": Sid("S-1-5-7"), "AO": Sid("S-1-5-32-548"),
    "AS": Sid("S-1-18-1"), "AU": Sid("S-1-5-11"), "BA": Sid("S-1-5-32-544"), "BG": Sid("S-1-5-32-546"),
    "BO": Sid("S-1-5-32-551"), "BU": Sid("S-1-5-32-545"), "CD": Sid("S-1-5-32-574"), "CG": Sid("S-1-3-1"),
    "CO": Sid("S-1-3-0"), "CY": Sid("S-1-5-32-569"), "ED": Sid("S-1-5-9"), "ER": Sid("S-1-5-32-573"),
    "ES": Sid("S-1-5-32-576"), "HA": Sid("S-1-5-32-578"), "HI": Sid("S-1-16-12288"), "HO": Sid("S-1-5-32-584"),
    "IS": Sid("S-1-5-32-568"), "IU": Sid("S-1-5-4"), "LS": Sid("S-1-5-19"), "LU": Sid("S-1-5-32-559"),
    "LW": Sid("S-1-16-4096"), "ME": Sid("S-1-16-8192"), "MP": Sid("S-1-16-8448"), "MS": Sid("S-1-5-32-577"),
    "MU": Sid("S-1-5-32-558"), "NO": Sid("S-1-5-32-556"), "NS": Sid("S-1-5-20"), "NU": Sid("S-1-5-2"),
    "OW": Sid("S-1-3-4"), "PO": Sid("S-1-5-32-550"), "PS": Sid("S-1-5-10"), "PU": Sid("S-1-5-32-547"),
    "RA": Sid("S-1-5-32-575"), "RC": Sid("S-1-5-12"), "RD": Sid("S-1-5-32-555"), "RE": Sid("S-1-5-32-552"),
    "RM": Sid("S-1-5-32-580"), "RU": Sid("S-1-5-32-554"), "SH": Sid("S-1-5-32-585"), "SI": Sid("S-1-16-16384"),
    "SO": Sid("S-1-5-32-549"), "SS": Sid("S-1-18-2"), "SU": Sid("S-1-5-6"), "SY": Sid("S-1-5-18"),
    "UD": Sid("S-1-5-84-0-0-0-0-0"), "WD": Sid("S-1-1-0"), "WR": Sid("S-1-5-33"),
}  # fmt: skip
# Windows completes these with the SID of the domain it belongs to. This server belongs to none.
DOMAIN_ABBREVIATIONS = frozenset(
    {"AP", "CA", "CN", "DA", "DC", "DD", "DG", "DU", "EA", "EK", "KA", "LA", "LG", "PA", "RO", "RS", "SA"}
)

RIGHTS = {
    "CC": 0x1, "DC": 0x2, "LC": 0x4, "SW": 0x8, "RP": 0x10, "WP": 0x20, "DT": 0x40, "LO": 0x80, "CR": 0x100,
    "SD": 0x10000, "RC": 0x20000, "WD": 0x40000, "WO": 0x80000,
    "GA": 0x1000_0000, "GX": 0x2000_0000, "GW": 0x4000_0000, "GR": 0x8000_0000,
}  # fmt: skip
COMBINED_RIGHTS = {
    "FA": 0x1F01FF, "FR": 0x120089, "FW": 0x120116, "FX": 0x1200A0,
    "KA": 0xF003F, "KR": 0x20019, "KW": 0x20006, "KX": 0x20019,
}  # fmt: skip
LABEL_RIGHTS = {"NW": 0x1, "NR": 0x2, "NX": 0x4}  # of mandatory label ACEs
ACE_FLAGS = {
    "OI": AceFlags.OBJECT_INHERIT, "CI": AceFlags.CONTAINER_INHERIT, "NP": AceFlags.NO_PROPAGATE,
    "IO": AceFlags.INHERIT_ONLY, "ID": AceFlags.INHERITED, "CR": AceFlags.CRITICAL,
    "SA": AceFlags.AUDIT_SUCCESS, "FA": AceFlags.AUDIT_FAILURE,
}  # fmt: skip
ACL_FLAGS = {"P": AclFlags.PROTECTED, "AR": AclFlags.INHERIT_REQUEST, "AI": AclFlags.AUTO_INHERITED}

_ALL_RIGHTS = RIGHTS | COMBINED_RIGHTS | LABEL_RIGHTS
_SHOWN_SIDS = {sid: name for name, sid in SID_BY_ABBREVIATION.items()}
_SHOWN_COMBINED = {mask: name for name, mask in COMBINED_RIGHTS.items() if name != "KX"}
_TYPE_BY_SDDL = {kind.sddl: kind for kind in ACE_TYPES}
_MANDATORY_LABEL = _TYPE_BY_SDDL["ML"].code

_ACL_FLAG = rf"(?:P|AR|AI|{NULL_ACL})"
_DESCRIPTOR = re.compile(
    r"(?:O:(?P<owner>S-[0-9A-FX-]+?|[A-Z]{2}))?"
    r"(?:G:(?P<group>S-[0-9A-FX-]+?|[A-Z]{2}))?"
    rf"(?:D:(?P<dacl_flags>{_ACL_FLAG}*)(?P<dacl>(?:\([^()]*\))*))?"
    rf"(?:S:(?P<sacl_flags>{_ACL_FLAG}*)(?P<sacl>(?:\([^()]*\))*))?",
    re.IGNORECASE | re.ASCII,
)
_ACL_FLAG_TOKEN = re.compile(_ACL_FLAG, re.IGNORECASE)
_CONDITIONAL = re.compile(r"\(\s*(?:XA|XD|ZA|XU|RA|FL)\s*;", re.IGNORECASE)
_NUMBER = re.compile(r"0x[0-9a-f]{1,8}|[0-9]{1,11}", re.IGNORECASE)
_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def parse_sddl(text: str, max_bytes: int = MAX_DESCRIPTOR_BYTES) -> SecurityDescriptor:
    """Read text as Windows does: parts in the order O, G, D, S, each optional; letters in any case."""
    text = text.strip()
    if len(text) > max_bytes:
        raise SecurityDescriptorError(f"the text has more than {max_bytes} characters")
    if _CONDITIONAL.search(text):
        raise SecurityDescriptorError("conditional and resource attribute ACEs are accepted in binary form only")
    match = _DESCRIPTOR.fullmatch(text)
    if match is None or not text or not text.isascii():
        raise SecurityDescriptorError("the text is not of the form O:…G:…D:…S:…")
    return SecurityDescriptor(
        owner=None if match["owner"] is None else _parse_sid(match["owner"]),
        group=None if match["group"] is None else _parse_sid(match["group"]),
        dacl=None if match["dacl"] is None else _parse_acl(match["dacl_flags"], match["dacl"]),
        sacl=None if match["sacl"] is None else _parse_acl(match["sacl_flags"], match["sacl"]),
    )


def _parse_sid(text: str) -> Sid:
    abbreviation = text.upper()
    if abbreviation in DOMAIN_ABBREVIATIONS:
        raise SecurityDescriptorError(f"{abbreviation} names an account of a domain, and this server belongs to none")
    return SID_BY_ABBREVIATION.get(abbreviation) or parse_sid(text)


def _parse_acl(flags_text: str, aces_text: str) -> Acl:
    tokens = {token.upper() for token in _ACL_FLAG_TOKEN.findall(flags_text)}
    flags = AclFlags(sum(flag for name, flag in ACL_FLAGS.items() if name in tokens))
    if NULL_ACL not in tokens:
        return Acl(flags=flags, aces=tuple(map(_parse_ace, aces_text[1:-1].split(")("))) if aces_text else ())
    if aces_text:
        raise SecurityDescriptorError(f"{NULL_ACL} and ACEs exclude each other")
    return Acl(flags=flags, aces=None)


def _parse_ace(text: str) -> Ace:
    fields = [field.strip() for field in text.split(";")]
    if len(fields) != 6:
        raise SecurityDescriptorError(f"the ACE {text[:200]!r} has {len(fields)} fields instead of 6")
    name, flags, rights, object_type, inherited_object_type, sid = fields
    kind = _TYPE_BY_SDDL.get(name.upper())
    if kind is None:
        raise SecurityDescriptorError(f"{name[:200]!r} is not an ACE type")
    if (object_type or inherited_object_type) and not kind.has_objects:
        raise SecurityDescriptorError(f"an ACE of type {kind.sddl} has no object types")
    return Ace(
        type=kind.code,
        flags=AceFlags(_parse_codes(flags, ACE_FLAGS, "an ACE flag")),
        mask=_parse_rights(rights),
        sid=_parse_sid(sid),
        object_type=_parse_guid(object_type),
        inherited_object_type=_parse_guid(inherited_object_type),
    )


def _parse_rights(text: str) -> int:
    """Codes of two letters, or a number: hexadecimal, octal with a leading zero, or decimal."""
    if _NUMBER.fullmatch(text) is None:
        return _parse_codes(text, _ALL_RIGHTS, "a right")
    base = 16 if text[:2] in ("0x", "0X") else 8 if text[0] == "0" else 10
    try:
        mask = int(text, base)
    except ValueError:
        mask = 1 << 32
    if mask >> 32:
        raise SecurityDescriptorError(f"{text!r} is not a number of 32 bits")
    return mask


def _parse_codes(text: str, codes: Mapping[str, int], meaning: str) -> int:
    bits = 0
    for position in range(0, len(text), 2):
        code = text[position : position + 2].upper()
        if code not in codes:
            raise SecurityDescriptorError(f"{code!r} is not {meaning}")
        bits |= codes[code]
    return bits


def _parse_guid(text: str) -> UUID | None:
    if not text:
        return None
    if _GUID.fullmatch(text) is None:
        raise SecurityDescriptorError(f"{text[:200]!r} is not a GUID")
    return UUID(text)


# --- writing ----------------------------------------------------------------------------------------------------------


def format_sddl(descriptor: SecurityDescriptor) -> str:
    """The service's own text of a descriptor. An ACE that only the binary form can hold is an error."""
    parts = []
    if descriptor.owner is not None:
        parts.append(f"O:{_format_sid(descriptor.owner)}")
    if descriptor.group is not None:
        parts.append(f"G:{_format_sid(descriptor.group)}")
    if descriptor.dacl is not None:
        parts.append(f"D:{_format_acl(descriptor.dacl)}")
    if descriptor.sacl is not None:
        parts.append(f"S:{_format_acl(descriptor.sacl)}")
    return "".join(parts)


def _format_sid(sid: Sid) -> str:
    return _SHOWN_SIDS.get(sid, sid)


def _format_acl(acl: Acl) -> str:
    flags = "".join(name for name, flag in ACL_FLAGS.items() if acl.flags & flag)
    return flags + (NULL_ACL if acl.aces is None else "".join(map(_format_ace, acl.aces)))


def _format_ace(ace: Ace | OpaqueAce) -> str:
    kind = ACE_TYPE_BY_CODE.get(ace.type)
    if isinstance(ace, OpaqueAce) or kind is None or kind.has_data:
        raise SecurityDescriptorError(f"an ACE of type 0x{ace.type:02x} has no text form")
    objects = (str(ace.object_type or ""), str(ace.inherited_object_type or ""))
    fields = (kind.sddl, _format_flags(ace), _format_rights(kind, ace.mask), *objects, _format_sid(ace.sid))
    return f"({';'.join(fields)})"


def _format_flags(ace: Ace) -> str:
    return "".join(name for name, flag in ACE_FLAGS.items() if ace.flags & flag)


def _format_rights(kind: AceType, mask: int) -> str:
    """One abbreviation for the whole mask, else one for every bit in ascending order, else hexadecimal."""
    codes = LABEL_RIGHTS if kind.code == _MANDATORY_LABEL else RIGHTS
    if mask in _SHOWN_COMBINED:
        return _SHOWN_COMBINED[mask]
    if mask == 0 or mask & ~sum(codes.values()):
        return f"0x{mask:x}"
    return "".join(name for name, bit in codes.items() if mask & bit)

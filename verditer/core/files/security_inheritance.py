"""The security descriptor of a new file or directory that asks to inherit: the algorithm of MS-DTYP 2.5.3.4.

The descriptor of a share's root and the results for its children agree with what the real service answers to Get Permission
(recordings of the JavaScript SDK, 2019 to 2023).
"""

from dataclasses import replace
from typing import Final

from verditer.core.files.sddl import SID_BY_ABBREVIATION, parse_sddl
from verditer.core.files.security_descriptor import (
    Ace,
    AceFlags,
    Acl,
    AclFlags,
    OpaqueAce,
    SecurityDescriptor,
)
from verditer.core.files.sid import Sid

ROOT_DESCRIPTOR: Final = parse_sddl(
    "O:SYG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICI;0x1301bf;;;AU)(A;;FA;;;SY)"
    "(A;OICIIO;GA;;;CO)"
)
LOCAL_SYSTEM: Final = SID_BY_ABBREVIATION["SY"]  # the owner of what is written with the account key

# The default DACL of the local system account, with its generic rights mapped: for a parent from which nothing is inherited.
_FALLBACK_DACL = parse_sddl("D:(A;;FA;;;SY)(A;;0x1200a9;;;BA)").dacl

_GENERIC_RIGHTS = {0x8000_0000: 0x120089, 0x4000_0000: 0x120116, 0x2000_0000: 0x1200A0, 0x1000_0000: 0x1F01FF}
_CREATOR_OWNER, _CREATOR_GROUP = SID_BY_ABBREVIATION["CO"], SID_BY_ABBREVIATION["CG"]
_KEPT_FLAGS = AceFlags.CRITICAL | AceFlags.AUDIT_SUCCESS | AceFlags.AUDIT_FAILURE  # the others are about inheritance


def inherited_descriptor(
    parent: SecurityDescriptor, *, is_directory: bool, owner: Sid = LOCAL_SYSTEM, group: Sid = LOCAL_SYSTEM
) -> SecurityDescriptor:
    """The descriptor of a new child of a directory whose permission is to be inherited.

    As in Windows, the child's ACL and its entries are marked as inherited (AI, ID) when the parent's ACL has the flag AI.
    """

    def inherit(acl: Acl | None) -> Acl | None:
        if acl is None or not acl.aces:
            return None
        inherits = acl.flags & AclFlags.AUTO_INHERITED
        added = AceFlags.INHERITED if inherits else AceFlags.NONE
        aces = [child for ace in acl.aces for child in _inherit_ace(ace, is_directory, owner, group, added)]
        return Acl(flags=inherits, aces=tuple(aces)) if aces else None

    return SecurityDescriptor(owner=owner, group=group, dacl=inherit(parent.dacl) or _FALLBACK_DACL, sacl=inherit(parent.sacl))


def map_generic_rights(mask: int) -> int:
    """Replace the generic rights of an access mask by the rights of files they stand for."""
    for generic, rights in _GENERIC_RIGHTS.items():
        if mask & generic:
            mask = mask & ~generic | rights
    return mask


def _inherit_ace(
    ace: Ace | OpaqueAce, is_directory: bool, owner: Sid, group: Sid, added: AceFlags
) -> tuple[Ace | OpaqueAce, ...]:
    """The entries of the child that one entry of the parent causes: none, one or two."""
    kept = ace.flags & _KEPT_FLAGS | added
    if not is_directory:
        return (_effective(ace, kept, owner, group),) if ace.flags & AceFlags.OBJECT_INHERIT else ()
    propagated = ace.flags & (AceFlags.OBJECT_INHERIT | AceFlags.CONTAINER_INHERIT)
    ends_here = bool(ace.flags & AceFlags.NO_PROPAGATE)
    if not ace.flags & AceFlags.CONTAINER_INHERIT:
        passed_on = replace(ace, flags=kept | propagated | AceFlags.INHERIT_ONLY)
        return (passed_on,) if propagated and not ends_here else ()
    if ends_here:
        return (_effective(ace, kept, owner, group),)
    effective = _effective(ace, kept, owner, group)
    if effective == replace(ace, flags=kept):
        return (replace(ace, flags=kept | propagated),)
    return effective, replace(ace, flags=kept | propagated | AceFlags.INHERIT_ONLY)


def _effective(ace: Ace | OpaqueAce, flags: AceFlags, owner: Sid, group: Sid) -> Ace | OpaqueAce:
    """The entry as it applies to the child: creator identifiers are replaced and generic rights are mapped."""
    if isinstance(ace, OpaqueAce):
        return replace(ace, flags=flags)
    sid = {_CREATOR_OWNER: owner, _CREATOR_GROUP: group}.get(ace.sid, ace.sid)
    return replace(ace, flags=flags, sid=sid, mask=map_generic_rights(ace.mask))

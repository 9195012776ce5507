"""Security descriptors: text, value, binary form, permission key and inheritance."""

import struct
import time
from base64 import b64decode, b64encode
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.core.files.sddl import ACE_FLAGS, DOMAIN_ABBREVIATIONS, SID_BY_ABBREVIATION, format_sddl, parse_sddl
from verditer.core.files.security_descriptor import (
    ACE_TYPE_BY_CODE,
    ACE_TYPES,
    MAX_DESCRIPTOR_BYTES,
    Ace,
    AceFlags,
    Acl,
    AclFlags,
    OpaqueAce,
    SecurityDescriptor,
    as_permission,
    check_required_parts,
    decode_descriptor,
    encode_descriptor,
    permission_key,
)
from verditer.core.files.security_inheritance import ROOT_DESCRIPTOR, inherited_descriptor, map_generic_rights
from verditer.core.files.sid import SecurityDescriptorError, format_sid, parse_sid
from verditer.core.limits import MAX_PERMISSION_TEXT

# A descriptor in both forms, from the tests of Microsoft's SDKs.
TEXT = (
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513D:AI(A;;FA;;;SY)"
    "(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)S:NO_ACCESS_CONTROL"
)
BINARY = (
    "AQAUhGwAAACIAAAAAAAAABQAAAACAFgAAwAAAAAAFAD/AR8AAQEAAAAAAAUSAAAAAAAYAP8BHwABAgAAAAAABSAAAAAgAgAAAAAkAKkAEgABBQAAAAAABRUAAABZUbgX"
    "ZnJdJWRjOwuMmS4AAQUAAAAAAAUVAAAAoGXPfnhLm1/nfIdwr/1IAQEFAAAAAAAFFQAAAKBlz354S5tf53yHcAECAAA="
)

sids = st.builds(
    format_sid, st.integers(0, 2**48 - 1), st.lists(st.integers(0, 2**32 - 1), max_size=15).map(tuple)
) | st.sampled_from(sorted(SID_BY_ABBREVIATION.values()))
masks = st.integers(0, 2**32 - 1) | st.sampled_from([0x1F01FF, 0x120089, 0x1200A0, 0x20019, 0x1F, 0xF000_0000])
flags = st.integers(0, 255).map(AceFlags)
guids = st.none() | st.uuids()


@st.composite
def aces(draw: st.DrawFn, with_text_only: bool) -> Ace | OpaqueAce:
    kinds = [kind for kind in ACE_TYPES if not (with_text_only and kind.has_data)]
    kind = draw(st.sampled_from(kinds))
    if not with_text_only and draw(st.integers(0, 4)) == 0:
        unknown = st.integers(0, 255).filter(lambda code: code not in ACE_TYPE_BY_CODE)
        return OpaqueAce(type=draw(unknown), flags=draw(flags), body=draw(words))
    ace = Ace(type=kind.code, flags=draw(flags), mask=draw(masks), sid=draw(sids))
    if kind.has_objects:
        ace = replace(ace, object_type=draw(guids), inherited_object_type=draw(guids))
    return replace(ace, data=draw(words)) if kind.has_data else ace


words = st.binary(max_size=40).map(lambda data: data + bytes(-len(data) % 4))
acl_flags = st.sets(st.sampled_from(list(AclFlags))).map(lambda chosen: AclFlags(sum(chosen)))


def descriptors(with_text_only: bool) -> st.SearchStrategy[SecurityDescriptor]:
    entries = st.none() | st.lists(aces(with_text_only), max_size=5).map(tuple)
    acls = st.none() | st.builds(Acl, flags=acl_flags, aces=entries)
    part = st.none() | sids
    return st.builds(SecurityDescriptor, owner=part, group=part, dacl=acls, sacl=acls)


# --- the two forms ------------------------------------------------------------------------------------------------------


def test_the_recorded_descriptor_has_both_recorded_forms() -> None:
    assert b64encode(encode_descriptor(parse_sddl(TEXT))).decode() == BINARY
    assert format_sddl(decode_descriptor(b64decode(BINARY))) == TEXT


@given(descriptors(with_text_only=True))
def test_text_comes_back_as_it_was(descriptor: SecurityDescriptor) -> None:
    text = format_sddl(descriptor)
    if text:
        assert parse_sddl(text) == descriptor
        assert parse_sddl(text.lower()) == descriptor
        assert format_sddl(parse_sddl(text)) == text


@given(descriptors(with_text_only=False))
def test_the_binary_form_comes_back_as_it_was(descriptor: SecurityDescriptor) -> None:
    data = encode_descriptor(descriptor)
    assert decode_descriptor(data) == descriptor
    assert encode_descriptor(decode_descriptor(data)) == data


def test_the_service_writes_its_own_form_of_a_text() -> None:
    """The comment of the Go SDK's test of permissions records what the real service made of this text."""
    sent = "O:S-1-5-32-548G:S-1-5-21-397955417-626881126-188441444-512D:(A;;RPWPCCDCLCSWRCWDWOGA;;;S-1-0-0)"
    answered = "O:AOG:S-1-5-21-397955417-626881126-188441444-512D:(A;;CCDCLCSWRPWPRCWDWOGA;;;S-1-0-0)S:NO_ACCESS_CONTROL"
    assert format_sddl(as_permission(parse_sddl(sent))) == answered


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("D:(A;OICIIOID;SDGXGWGR;;;AU)", "D:(A;OICIIOID;SDGXGWGR;;;AU)"),
        ("D:PARAI(A;IDOI;GRGX;;;WD)", "D:PARAI(A;OIID;GXGR;;;WD)"),
        ("D:(A;;0x1f01ff;;;S-1-5-18)", "D:(A;;FA;;;SY)"),
        ("D:(A;;2032127;;;SY)(A;;07600777;;;SY)", "D:(A;;FA;;;SY)(A;;FA;;;SY)"),
        ("D:(A;;FRFW;;;SY)", "D:(A;;0x12019f;;;SY)"),
        ("D:(A;;;;;SY)", "D:(A;;0x0;;;SY)"),
        ("D:(D; CI ;KR;;;BG)", "D:(D;CI;KR;;;BG)"),
        ("d:no_Access_control", "D:NO_ACCESS_CONTROL"),
        ("D:PNO_ACCESS_CONTROL", "D:PNO_ACCESS_CONTROL"),
        ("D:S:", "D:S:"),
        ("S:(ML;;NXNRNW;;;LW)(AU;SAFA;WD;;;WD)", "S:(ML;;NWNRNX;;;LW)(AU;SAFA;WD;;;WD)"),
        ("S:(SP;;;;;S-1-17-1)", "S:(SP;;0x0;;;S-1-17-1)"),
        (
            "D:(OA;CI;CR;00299570-246D-11d0-a768-00aa006e0529;;PS)",
            "D:(OA;CI;CR;00299570-246d-11d0-a768-00aa006e0529;;PS)",
        ),
        ("O:S-1-0x0123456789ab-7", "O:S-1-0x0123456789AB-7"),
    ],
)
def test_every_text_has_one_canonical_form(text: str, shown: str) -> None:
    assert format_sddl(parse_sddl(text)) == shown


def test_object_types_are_kept_in_both_forms() -> None:
    guid = UUID("bf967aba-0de6-11d0-a285-00aa003049e2")
    ace = Ace(type=0x05, mask=1, sid=SID_BY_ABBREVIATION["PS"], inherited_object_type=guid)
    descriptor = SecurityDescriptor(dacl=Acl(aces=(ace,)))
    assert format_sddl(descriptor) == f"D:(OA;;CC;;{guid};PS)"
    assert encode_descriptor(descriptor)[20] == 4  # the ACL revision of object ACEs


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "form"),
        ("abcde", "form"),
        ("O:", "form"),
        ("G:SYO:SY", "form"),
        ("O:SYO:SY", "form"),
        ("O:ZZ", "security identifier"),
        ("O:S-2-5-18", "security identifier"),
        ("O:S-1-5-4294967296", "out of range"),
        ("O:S-1-5" + "-1" * 16, "security identifier"),
        ("O:DA", "domain"),
        ("D:X(A;;FA;;;SY)", "form"),
        ("D:(A;;FA;;;SY", "form"),
        ("D:(A;;FA;;SY)", "5 fields"),
        ("D:(A;;FA;;;SY;)", "7 fields"),
        ("D:(Q;;FA;;;SY)", "ACE type"),
        ("D:(A;XX;FA;;;SY)", "ACE flag"),
        ("D:(A;O;FA;;;SY)", "ACE flag"),
        ("D:(A;;ZZ;;;SY)", "a right"),
        ("D:(A;;0x100000000;;;SY)", "a right"),
        ("D:(A;;4294967296;;;SY)", "32 bits"),
        ("D:(A;;089;;;SY)", "32 bits"),
        ("D:(A;;FA;;;)", "security identifier"),
        ("D:(A;;FA;bf967aba-0de6-11d0-a285-00aa003049e2;;SY)", "object types"),
        ("D:(OA;;FA;1;;SY)", "GUID"),
        ("D:NO_ACCESS_CONTROL(A;;FA;;;SY)", "exclude"),
        ('D:(XA;;FX;;;WD;(@User.Title=="PM"))', "binary form only"),
        ("O:ſY", "form"),
        ("D:(A;;FA;;;ſY)", "form"),
    ],
)
def test_what_is_not_a_descriptor_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(SecurityDescriptorError, match=reason):
        parse_sddl(text)


def test_a_domain_abbreviation_is_never_a_fixed_one() -> None:
    assert not DOMAIN_ABBREVIATIONS & SID_BY_ABBREVIATION.keys()
    assert len(set(SID_BY_ABBREVIATION.values())) == len(SID_BY_ABBREVIATION)
    assert all(parse_sid(sid) == sid for sid in SID_BY_ABBREVIATION.values())
    assert sum(ACE_FLAGS.values()) == 0xFF


# --- hostile input --------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_bytes_are_a_descriptor_or_are_refused(data: bytes) -> None:
    for candidate in (data, b"\x01\x00\x14\x80" + data, b64decode(BINARY)[: len(data)] + data):
        try:
            descriptor = decode_descriptor(candidate)
        except SecurityDescriptorError:
            continue
        assert decode_descriptor(encode_descriptor(descriptor)) == descriptor


@given(st.integers(0, 163), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(position: int, value: int) -> None:
    data = bytearray(b64decode(BINARY))
    data[position] = value
    try:
        descriptor = decode_descriptor(bytes(data))
    except SecurityDescriptorError:
        return
    encode_descriptor(descriptor)


@given(st.text(alphabet="OGDSAI:();-0x1YFP", max_size=60))
def test_texts_are_a_descriptor_or_are_refused(text: str) -> None:
    try:
        descriptor = parse_sddl(text)
    except SecurityDescriptorError:
        return
    assert parse_sddl(format_sddl(descriptor)) == descriptor


@pytest.mark.parametrize("part", ["O:S-1", "(", "()", "P", "AI", "(A;;FA;;;SY)x", "(\t", "S-", "D:", "(A;"])
def test_long_texts_are_refused_at_once(part: str) -> None:
    started = time.monotonic()
    with pytest.raises(SecurityDescriptorError):
        parse_sddl("D:" + part * ((MAX_DESCRIPTOR_BYTES - 4) // len(part)) + "!")
    assert time.monotonic() - started < 1


def test_sizes_are_bounded() -> None:
    text = "O:SYG:SYD:" + "(A;;FA;;;SY)" * 1000
    with pytest.raises(SecurityDescriptorError, match="8192"):
        parse_sddl(text, MAX_PERMISSION_TEXT)
    assert len(encode_descriptor(parse_sddl(text))) == 20 + 8 + 1000 * 20 + 12 + 12
    with pytest.raises(SecurityDescriptorError, match="65536"):
        parse_sddl("D:" + "(A;;FA;;;SY)" * 6000)
    with pytest.raises(SecurityDescriptorError, match="65535"):
        encode_descriptor(parse_sddl("D:" + "(A;;FA;;;SY)" * 3300))
    with pytest.raises(SecurityDescriptorError, match="65536"):
        decode_descriptor(bytes(MAX_DESCRIPTOR_BYTES + 1))


# --- permissions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["G:SYD:", "O:SYD:", "O:SYG:SY", "O:SYG:SYS:"])
def test_a_permission_has_owner_group_and_dacl(text: str) -> None:
    with pytest.raises(SecurityDescriptorError, match="the descriptor has no"):
        check_required_parts(parse_sddl(text))


def test_a_permission_without_sacl_has_the_key_of_its_canonical_text() -> None:
    created = as_permission(parse_sddl(TEXT.removesuffix("S:NO_ACCESS_CONTROL")))
    assert format_sddl(created) == TEXT
    assert permission_key(created) == permission_key(as_permission(parse_sddl(TEXT)))
    assert permission_key(created) == permission_key(decode_descriptor(b64decode(BINARY)))


def test_a_permission_key_is_two_numbers_of_64_bits() -> None:
    numbers = [int(part) for part in permission_key(ROOT_DESCRIPTOR).split("*")]
    assert len(numbers) == 2
    assert all(number < 2**64 for number in numbers)
    assert permission_key(ROOT_DESCRIPTOR) != permission_key(as_permission(ROOT_DESCRIPTOR))


def test_parts_may_be_in_any_order_and_defaulted_bits_are_dropped() -> None:
    owner, dacl = b"\x01\x01\0\0\0\0\0\x05\x12\0\0\0", b"\x02\0\x08\0\0\0\0\0"
    data = struct.pack("<BBHIIII", 1, 7, 0x8004 | 0x2B, 20, 20, 0, 32) + owner + dacl
    assert format_sddl(decode_descriptor(data)) == "O:SYG:SYD:"


def test_a_condition_is_kept_in_binary_form_only() -> None:
    ace = Ace(type=0x09, mask=0x20, sid=SID_BY_ABBREVIATION["WD"], data=b"artx\0\0\0\0")
    descriptor = SecurityDescriptor(dacl=Acl(aces=(ace,)))
    assert decode_descriptor(encode_descriptor(descriptor)) == descriptor
    with pytest.raises(SecurityDescriptorError, match="no text form"):
        format_sddl(descriptor)


# --- inheritance --------------------------------------------------------------------------------------------------------------


def test_children_of_the_root_inherit_what_the_service_gives_them() -> None:
    directory = inherited_descriptor(ROOT_DESCRIPTOR, is_directory=True)
    file = inherited_descriptor(ROOT_DESCRIPTOR, is_directory=False)
    assert directory == ROOT_DESCRIPTOR
    assert format_sddl(file) == "O:SYG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)(A;;0x1301bf;;;AU)(A;;FA;;;SY)"
    assert inherited_descriptor(directory, is_directory=False) == file


@pytest.mark.parametrize(
    ("flags", "directory", "file"),
    [
        ("OI", "OIIOID", "ID"),
        ("OIIO", "OIIOID", "ID"),
        ("OIID", "OIIOID", "ID"),
        ("CI", "CIID", None),
        ("CIIO", "CIID", None),
        ("OICI", "OICIID", "ID"),
        ("OICIIO", "OICIID", "ID"),
        ("OICIIOID", "OICIID", "ID"),
        ("OINP", None, "ID"),
        ("CINP", "ID", None),
        ("OICINP", "ID", "ID"),
        ("OICINPIO", "ID", "ID"),
        ("", None, None),
        ("ID", None, None),
    ],
)
@pytest.mark.parametrize("is_marked", [True, False])
def test_flags_decide_what_is_inherited(flags: str, directory: str | None, file: str | None, is_marked: bool) -> None:
    parent = parse_sddl(f"O:BAG:BAD:{'AI' * is_marked}(A;OICI;FR;;;WD)(A;{flags};FA;;;BA)")
    for is_directory, expected in ((True, directory), (False, file)):
        first = "OICIID" if is_directory else "ID"
        text = f"O:SYG:SYD:AI(A;{first};FR;;;WD)" + (f"(A;{expected};FA;;;BA)" if expected is not None else "")
        if not is_marked:
            text = text.replace("AI", "").replace("ID", "")
        assert format_sddl(inherited_descriptor(parent, is_directory=is_directory)) == text


def test_creators_are_replaced_and_the_entry_goes_on_below() -> None:
    parent = parse_sddl("O:BAG:BAD:PAI(A;OICIIO;FA;;;CO)(A;CINP;GR;;;CG)(A;OI;GA;;;CO)S:AI(AU;OICISAFA;WD;;;WD)")
    child = inherited_descriptor(
        parent, is_directory=True, owner=parse_sid("S-1-5-21-1-2-3-1001"), group=parse_sid("S-1-5-32-545")
    )
    assert format_sddl(child) == (
        "O:S-1-5-21-1-2-3-1001G:BUD:AI(A;ID;FA;;;S-1-5-21-1-2-3-1001)(A;OICIIOID;FA;;;CO)(A;ID;FR;;;BU)(A;OIIOID;GA;;;CO)"
        "S:AI(AU;OICIIDSAFA;WD;;;WD)"
    )


@pytest.mark.parametrize("text", ["O:SYG:SYD:(A;;FA;;;BA)", "O:SYG:SYD:", "O:SYG:SYD:NO_ACCESS_CONTROLS:NO_ACCESS_CONTROL"])
def test_a_parent_without_inheritable_entries_leaves_the_default(text: str) -> None:
    child = inherited_descriptor(parse_sddl(text), is_directory=False)
    assert format_sddl(child) == "O:SYG:SYD:(A;;FA;;;SY)(A;;0x1200a9;;;BA)"


def test_unknown_entries_are_inherited_as_they_are() -> None:
    opaque = OpaqueAce(type=0x7F, flags=AceFlags.OBJECT_INHERIT, body=b"1234")
    child = inherited_descriptor(SecurityDescriptor(dacl=Acl(aces=(opaque,))), is_directory=False)
    assert child.dacl == Acl(aces=(replace(opaque, flags=AceFlags.NONE),))


def test_generic_rights_stand_for_rights_of_files() -> None:
    assert map_generic_rights(0x8000_0000) == 0x120089
    assert map_generic_rights(0xA000_0000) == 0x1200A9
    assert map_generic_rights(0x1000_0040) == 0x1F01FF
    assert map_generic_rights(0x40) == 0x40

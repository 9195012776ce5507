"""Create and Get Permission, and permissions of files and directories: text, keys, and the binary form."""

import base64
import json
import re

import pytest

from tests.rest.client import Reply
from tests.rest.files import ShareBox

OWNER = "S-1-5-21-2127521184-1604012920-1887927527-21560751"
GROUP = "S-1-5-21-2127521184-1604012920-1887927527-513"
OTHER = "S-1-5-21-397955417-626881126-188441444-3053964"
SDDL = f"O:{OWNER}G:{GROUP}D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;{OTHER})"
CANONICAL = SDDL + "S:NO_ACCESS_CONTROL"
BINARY = (
    "AQAUhGwAAACIAAAAAAAAABQAAAACAFgAAwAAAAAAFAD/AR8AAQEAAAAAAAUSAAAAAAAYAP8BHwABAgAAAAAABSAAAAAgAgAAAAAkAKkAEgABBQAAAAAABRUAAABZUbgX"
    "ZnJdJWRjOwuMmS4AAQUAAAAAAAUVAAAAoGXPfnhLm1/nfIdwr/1IAQEFAAAAAAAFFQAAAKBlz354S5tf53yHcAECAAA="
)
KEY = "x-ms-file-permission-key"


def made(share: ShareBox, permission: str = SDDL, form: str | None = None) -> str:
    reply = share.permission(permission, form)
    assert (reply.status, reply.body) == (201, b"")
    return reply[KEY]


def read(share: ShareBox, key: str, form: str | None = None) -> dict[str, str]:
    headers = {KEY: key, **({"x-ms-file-permission-format": form} if form else {})}
    reply = share.share("GET", "filepermission", headers)
    assert reply.status == 200
    found = json.loads(reply.body)
    assert isinstance(found, dict)
    return found


def test_a_permission_is_found_by_its_key(share: ShareBox) -> None:
    key = made(share)
    assert re.fullmatch(r"[0-9]{1,20}\*[0-9]{1,20}", key)
    assert read(share, key) == {"permission": CANONICAL}


def test_equal_permissions_have_one_key_in_every_form(share: ShareBox) -> None:
    key = made(share)
    assert made(share, CANONICAL) == key
    assert made(share, read(share, key)["permission"]) == key
    assert made(share, SDDL, "Sddl") == key
    assert made(share, BINARY, "binary") == key
    assert made(share, BINARY, "Binary") == key
    assert made(share, f"O:{OWNER}G:{GROUP}D:(A;;FA;;;SY)") != key


def test_a_permission_is_reported_in_the_form_asked_for(share: ShareBox) -> None:
    key = made(share)
    assert read(share, key, "sddl") == {"permission": CANONICAL, "format": "sddl"}
    assert read(share, key, "Binary") == {"permission": BINARY, "format": "binary"}


def test_a_permission_without_a_text_form_is_reported_in_its_binary_form_only(share: ShareBox) -> None:
    stored = bytearray(base64.b64decode(BINARY))
    stored[28] = 9  # the type of the first ACE: one with a condition, which only the binary form holds
    binary = base64.b64encode(bytes(stored)).decode()
    key = made(share, binary, "binary")
    assert read(share, key, "binary") == {"permission": binary, "format": "binary"}
    for headers in ({KEY: key}, {KEY: key, "x-ms-file-permission-format": "sddl"}):
        assert share.share("GET", "filepermission", headers).answer == (400, "InvalidHeaderValue")


def test_older_clients_spell_the_name_in_another_case(share: ShareBox) -> None:
    body = json.dumps({"Permission": SDDL}).encode()
    assert share.share("PUT", "filepermission", body=body)[KEY] == made(share)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b'{"permission": 1}',
        b'{"permission": "abcde"}',
        b'{"permission": "O:SYG:SY"}',  # without D:
        b'{"permission": "AAAA", "format": "binary"}',
        b'{"permission": "!", "format": "binary"}',
        b'{"permission": "O:SYG:SYD:(A;;FA;;;SY)", "format": "xml"}',
    ],
)
def test_what_is_no_permission_is_refused(share: ShareBox, body: bytes) -> None:
    assert share.share("PUT", "filepermission", body=body).status == 400


def test_a_key_that_nobody_made_is_not_found(share: ShareBox) -> None:
    assert share.share("GET", "filepermission", {KEY: "1*2"}).status == 404
    assert share.share("GET", "filepermission").answer == (400, "MissingRequiredHeader")
    assert share.put(headers={KEY: "1*2"}).status == 404


def test_new_entries_inherit(share: ShareBox) -> None:
    share.make("d", "d/sub")
    root, one, two = (share.directory("GET", name)[KEY] for name in ("", "d", "d/sub"))
    assert one == two
    inherited = "O:SYG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICI;0x1301bf;;;AU)"
    assert read(share, one)["permission"].startswith(inherited)
    assert read(share, root)["permission"].startswith("O:")
    share.put("a")
    share.put("d/a")
    assert share.head("a")[KEY] == share.head("d/a")[KEY] != one


def entries(share: ShareBox, headers: dict[str, str]) -> list[Reply]:
    """A file and a directory that get their permission by each operation that takes one."""
    share.make("d1", "d2")
    share.put("f1")
    share.put("f2")
    return [
        share.put("f3", headers=headers),
        share.file("PUT", "f1", "properties", headers),
        share.rename("f2", "f4", headers),
        share.directory("PUT", "d3", headers=headers),
        share.directory("PUT", "d1", "properties", headers),
        share.rename("d2", "d4", headers, query={"restype": "directory"}),
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ms-file-permission": SDDL},
        {"x-ms-file-permission": SDDL, "x-ms-file-permission-format": "sddl"},
        {"x-ms-file-permission": BINARY, "x-ms-file-permission-format": "Binary"},
    ],
)
def test_every_operation_takes_a_permission(share: ShareBox, headers: dict[str, str]) -> None:
    replies = entries(share, headers)
    assert {reply.status for reply in replies} <= {200, 201}
    assert {reply[KEY] for reply in replies} == {made(share)}
    assert share.head("f3")[KEY] == share.directory("GET", "d4")[KEY] == made(share)


def test_every_operation_takes_a_key(share: ShareBox) -> None:
    key = made(share)
    assert {reply[KEY] for reply in entries(share, {KEY: key})} == {key}


def test_a_permission_is_preserved_unless_given(share: ShareBox) -> None:
    key = made(share)
    share.put(headers={KEY: key})
    for headers in ({}, {"x-ms-file-permission": "preserve"}, {"x-ms-file-permission": "Preserve"}):
        assert share.file("PUT", comp="properties", headers=headers)[KEY] == key
    assert share.rename("file", "other")[KEY] == key


def test_permission_and_key_exclude_each_other(share: ShareBox) -> None:
    for reply in entries(share, {"x-ms-file-permission": SDDL, KEY: made(share)}):
        assert reply.answer == (400, "InvalidHeaderValue")

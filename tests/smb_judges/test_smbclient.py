"""smbclient: its commands at every dialect, signed and encrypted, with every cipher and signing algorithm."""

import dataclasses
import os
import re
import uuid
from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient

from tests.smb_judges.samba_client import SmbClient
from tests.smb_judges.target import Target

WAYS = [("SMB2_10", "sign"), *((dialect, way) for dialect in ("SMB3_00", "SMB3_02", "SMB3_11") for way in ("sign", "encrypt"))]
CONTENT = os.urandom(3 * 1024 * 1024 + 17)  # several writes and reads


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def smb(target: Target, request: pytest.FixtureRequest) -> SmbClient:
    dialect, protection = request.param
    return SmbClient(target=target, dialect=dialect, protection=protection)


@pytest.fixture
def folder(smb: SmbClient) -> str:
    """A new directory of the share."""
    name = f"d{uuid.uuid4().hex[:8]}"
    smb.run(f"mkdir {name}")
    return name


@pytest.fixture
def local(target: Target) -> Path:
    """A local file of several megabytes; smbclient runs in its folder."""
    path = target.folder / "local"
    path.write_bytes(CONTENT)
    return path


def names_in(listing: str) -> set[str]:
    """The names that `ls` printed: two spaces, the name, its attributes, its size, its time."""
    found = re.findall(r"^  (.+?)\s+[A-Z]*\s+\d+  \w{3} \w{3} .*$", listing, re.MULTILINE)
    return set(found) - {".", ".."}


def test_a_file_is_stored_and_read(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\file", f"get {folder}\\file back")
    assert (local.parent / "back").read_bytes() == CONTENT


def test_a_file_is_replaced_by_a_shorter_one(smb: SmbClient, folder: str, local: Path) -> None:
    (local.parent / "short").write_bytes(b"short")
    smb.run(f"put local {folder}\\file", f"put short {folder}\\file", f"get {folder}\\file back")
    assert (local.parent / "back").read_bytes() == b"short"


def test_an_empty_file_is_stored(smb: SmbClient, folder: str, local: Path) -> None:
    (local.parent / "empty").write_bytes(b"")
    smb.run(f"put empty {folder}\\file", f"get {folder}\\file back")
    assert (local.parent / "back").read_bytes() == b""


def test_a_broken_download_is_continued(smb: SmbClient, folder: str, local: Path) -> None:
    """`reget` begins where the shorter copy ends. (`reput` of smbclient 4.17 sends wrong bytes, also to Samba.)"""
    (local.parent / "rest").write_bytes(CONTENT[:2_000_000])
    smb.run(f"put local {folder}\\file", f"reget {folder}\\file rest")
    assert (local.parent / "rest").read_bytes() == CONTENT


def test_a_listing_shows_names_and_sizes(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\one", f'put local "{folder}\\two words.txt"', f"mkdir {folder}\\sub")
    listing = smb.run(f"ls {folder}\\*")
    assert names_in(listing) == {"one", "two words.txt", "sub"}
    assert f"{len(CONTENT)}" in next(line for line in listing.splitlines() if line.startswith("  one "))


def test_a_pattern_selects_names(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(*(f"put local {folder}\\{name}" for name in ("a.txt", "b.txt", "ab.dat", "C.TXT")))
    assert names_in(smb.run(f"ls {folder}\\*.txt")) == {"a.txt", "b.txt", "C.TXT"}
    assert names_in(smb.run(f"ls {folder}\\?.txt")) == {"a.txt", "b.txt", "C.TXT"}
    assert names_in(smb.run(f"ls {folder}\\a*")) == {"a.txt", "ab.dat"}
    assert "NT_STATUS_NO_SUCH_FILE" in smb.attempt(f"ls {folder}\\*.none")


def test_a_name_is_found_in_another_case_and_shown_as_it_was_given(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\ReadMe.Txt", f"get {folder}\\README.TXT back")
    assert (local.parent / "back").read_bytes() == CONTENT
    assert names_in(smb.run(f"ls {folder}\\*")) == {"ReadMe.Txt"}


def test_names_of_every_script_are_stored(smb: SmbClient, folder: str, local: Path) -> None:
    names = {"ünïcødé", "日本語.txt", "Привет", "emoji 🎨.txt", "100%", "a'b"}
    smb.run(*(f'put local "{folder}\\{name}"' for name in names))
    assert names_in(smb.run(f"ls {folder}\\*")) == names


def test_the_size_of_a_directory_is_counted(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\one", f"put local {folder}\\two")
    assert f"Total number of bytes: {2 * len(CONTENT)}" in smb.run(f"du {folder}\\*")


def test_a_file_is_renamed_and_moved(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\one", f"mkdir {folder}\\sub", f"rename {folder}\\one {folder}\\sub\\two")
    assert names_in(smb.run(f"ls {folder}\\*")) == {"sub"}
    smb.run(f"get {folder}\\sub\\two back")
    assert (local.parent / "back").read_bytes() == CONTENT


def test_a_rename_to_an_existing_name_is_refused_unless_forced(smb: SmbClient, folder: str, local: Path) -> None:
    (local.parent / "short").write_bytes(b"short")
    smb.run(f"put local {folder}\\one", f"put short {folder}\\two")
    assert "NT_STATUS_OBJECT_NAME_COLLISION" in smb.attempt(f"rename {folder}\\one {folder}\\two")
    smb.run(f"rename {folder}\\one {folder}\\two -f", f"get {folder}\\two back")
    assert (local.parent / "back").read_bytes() == CONTENT
    assert names_in(smb.run(f"ls {folder}\\*")) == {"two"}


def test_a_directory_is_renamed_with_what_is_in_it(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(
        f"mkdir {folder}\\a", f"put local {folder}\\a\\file", f"rename {folder}\\a {folder}\\b", f"get {folder}\\b\\file back"
    )
    assert (local.parent / "back").read_bytes() == CONTENT


def test_files_are_deleted_by_name_and_by_pattern(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(*(f"put local {folder}\\{name}" for name in ("a.txt", "b.txt", "keep")), f"del {folder}\\a.txt")
    assert names_in(smb.run(f"ls {folder}\\*")) == {"b.txt", "keep"}
    smb.run(f"del {folder}\\*.txt")
    assert names_in(smb.run(f"ls {folder}\\*")) == {"keep"}


def test_only_an_empty_directory_is_removed(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\file")
    assert "NT_STATUS_DIRECTORY_NOT_EMPTY" in smb.attempt(f"rmdir {folder}")
    smb.run(f"del {folder}\\file", f"rmdir {folder}")
    assert "NT_STATUS_" in smb.attempt(f"cd {folder}")


def test_a_tree_is_removed(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"mkdir {folder}\\sub", f"put local {folder}\\sub\\file", f"deltree {folder}")
    assert folder not in names_in(smb.run("ls"))


def test_missing_things_have_their_statuses(smb: SmbClient, folder: str, local: Path) -> None:
    assert "NT_STATUS_OBJECT_NAME_NOT_FOUND" in smb.attempt(f"get {folder}\\none back")
    assert "NT_STATUS_OBJECT_PATH_NOT_FOUND" in smb.attempt(f"get {folder}\\none\\none back")
    assert "NT_STATUS_OBJECT_NAME_COLLISION" in smb.attempt(f"mkdir {folder}")
    assert "NT_STATUS_NO_SUCH_FILE" in smb.attempt(f"del {folder}\\none")


def test_everything_about_a_file_is_shown(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\file")
    shown = smb.attempt(f"allinfo {folder}\\file")  # snapshots and short names may be absent
    assert f"stream: [::$DATA], {len(CONTENT)} bytes" in shown
    for line in ("create_time:", "access_time:", "write_time:", "change_time:", "attributes: A (20)"):
        assert line in shown


def test_attributes_are_set_and_shown(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\file", f"setmode {folder}\\file +rh")
    assert "attributes: RHA (23)" in smb.attempt(f"allinfo {folder}\\file")
    assert "NT_STATUS_" in smb.attempt(f"put local {folder}\\file")
    smb.run(f"setmode {folder}\\file -rh", f"put local {folder}\\file")


def test_times_are_set_and_shown(smb: SmbClient, folder: str, local: Path) -> None:
    times = "2020:01:02-03:04:05 2021:01:02-03:04:05 2022:01:02-03:04:05 2023:01:02-03:04:05"
    smb.run(f"put local {folder}\\file", f"utimes {folder}\\file {times}")
    shown = smb.attempt(f"allinfo {folder}\\file")
    for name, year in (("create", 2020), ("access", 2021), ("write", 2022), ("change", 2023)):
        if name != "change":  # the reference server keeps its own change time
            assert re.search(rf"^{name}_time: .* Jan .*2 03:04:05 .*{year}", shown, re.MULTILINE), shown


def test_the_volume_and_its_space_are_shown(smb: SmbClient, folder: str) -> None:
    assert re.search(r"Volume: \|.+\| serial number 0x[0-9a-f]+", smb.run("volume"))
    blocks, size, free = map(int, re.findall(r"(\d+) blocks of size (\d+)\. (\d+) blocks available", smb.run("ls"))[0])
    assert blocks * size >= 1 << 30
    assert 0 < free <= blocks


def test_a_file_is_copied_on_the_server(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\one", f"scopy {folder}\\one {folder}\\two", f"get {folder}\\two back")
    assert (local.parent / "back").read_bytes() == CONTENT


def test_a_tree_goes_up_and_comes_back(smb: SmbClient, folder: str, target: Target) -> None:
    source = target.folder / f"tree-{folder}"
    for name in ("a", "b/c", "b/d/e"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(name.encode() * 1000)
    back = target.folder / f"back-{folder}"
    back.mkdir()
    smb.run("recurse", "prompt", f"lcd {source}", f"cd {folder}", "mput *", f"lcd {back}", "mget *")
    assert {path.relative_to(back).as_posix(): path.read_bytes() for path in back.rglob("*") if path.is_file()} == {
        name: name.encode() * 1000 for name in ("a", "b/c", "b/d/e")
    }


def test_the_security_descriptor_of_a_file_is_shown(smb: SmbClient, folder: str, local: Path) -> None:
    smb.run(f"put local {folder}\\file")
    shown = smb.run("showacls", f"ls {folder}\\file")
    assert "type: ACCESS ALLOWED" in shown or "OWNER:" in shown.upper() or "Owner" in shown, shown


def test_a_thousand_files_are_listed(target: Target) -> None:
    smb, source = SmbClient(target=target), target.folder / "many"
    source.mkdir()
    names = {f"file with a rather long name {number:04d}" for number in range(1000)}
    for name in names:
        (source / name).touch()
    smb.run("prompt", "mkdir many", f"lcd {source}", "cd many", "mput *")
    assert names_in(smb.run("ls many\\*")) == names
    smb.run("deltree many")


# --- connecting -------------------------------------------------------------------------------------------------------------


def test_a_wrong_key_is_refused(smb: SmbClient, target: Target) -> None:
    wrong = dataclasses.replace(smb, target=dataclasses.replace(target, key=target.key[::-1]))
    assert "NT_STATUS_LOGON_FAILURE" in wrong.attempt("ls")


def test_an_unknown_account_is_refused(smb: SmbClient, target: Target) -> None:
    unknown = dataclasses.replace(smb, target=dataclasses.replace(target, account="nobodyatall"))
    assert "NT_STATUS_LOGON_FAILURE" in unknown.attempt("ls")


def test_an_unknown_share_is_refused(smb: SmbClient, target: Target) -> None:
    unknown = dataclasses.replace(smb, target=dataclasses.replace(target, share="none-such"))
    assert "NT_STATUS_BAD_NETWORK_NAME" in unknown.attempt("ls")


def test_the_shares_are_listed(smb: SmbClient, target: Target) -> None:
    assert f"Disk|{target.share}|" in smb.list_shares()


def test_the_name_of_a_share_and_of_an_account_have_no_case(smb: SmbClient, target: Target) -> None:
    upper = dataclasses.replace(target, share=target.share.upper(), account=target.account.upper())
    dataclasses.replace(smb, target=upper).run("ls")


@pytest.mark.parametrize("cipher", ["AES-128-GCM", "AES-128-CCM", "AES-256-GCM", "AES-256-CCM"])
def test_every_cipher_transfers(target: Target, local: Path, cipher: str) -> None:
    options = (f"client smb3 encryption algorithms={cipher}",)
    smb = SmbClient(target=target, protection="encrypt", options=options)
    smb.run(f"put local {cipher}", f"get {cipher} back")
    assert (local.parent / "back").read_bytes() == CONTENT


@pytest.mark.parametrize("algorithm", ["AES-128-GMAC", "AES-128-CMAC", "HMAC-SHA256"])
def test_every_signing_algorithm_transfers(target: Target, local: Path, algorithm: str) -> None:
    smb = SmbClient(target=target, options=(f"client smb3 signing algorithms={algorithm}",))
    smb.run(f"put local {algorithm}", f"get {algorithm} back")
    assert (local.parent / "back").read_bytes() == CONTENT


# --- with REST --------------------------------------------------------------------------------------------------------------


@pytest.mark.verditer
def test_rest_reads_what_smbclient_stored(smb: SmbClient, folder: str, local: Path, share: ShareClient) -> None:
    # contract F5
    smb.run(f"put local {folder}\\file")
    assert share.get_file_client(f"{folder}/file").download_file().readall() == CONTENT


@pytest.mark.verditer
def test_smbclient_reads_what_rest_stored(smb: SmbClient, folder: str, local: Path, share: ShareClient) -> None:
    # contract F5
    share.get_file_client(f"{folder}/file").upload_file(CONTENT)
    smb.run(f"get {folder}\\file back")
    assert (local.parent / "back").read_bytes() == CONTENT


@pytest.mark.verditer
def test_a_share_snapshot_is_a_previous_version(target: Target, local: Path, share: ShareClient) -> None:
    smb = SmbClient(target=target)
    smb.run("put local versioned")
    share.create_snapshot()
    (local.parent / "short").write_bytes(b"later")
    smb.run("put short versioned")
    token = re.findall(r"@GMT-[0-9.-]+", smb.attempt("allinfo versioned"))[0]
    smb.run(f"get {token}\\versioned back")
    assert (local.parent / "back").read_bytes() == CONTENT
